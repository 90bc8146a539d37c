"""The WSGI application, for granian (or any WSGI server): `hordechat.wsgi:application`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hordechat.settings.django")

from hordechat.model_reference import reference

application = get_wsgi_application()
reference.start()
