"""Every route of the API process."""

from django.contrib import admin
from django.urls import include, path
from django.views.decorators.cache import cache_page
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerView

from hordechat.http.refusals import require_safe
from requests_app.views import site

SCHEMA_SECONDS = 60
"""How long a made OpenAPI document is kept: it changes with the code alone, and takes 90 ms to make."""

public = [path("api/v2/", include("requests_app.urls"))]

urlpatterns = [
    *public,
    path("v2/", include("requests_app.urls")),
    path("api/schema/", cache_page(SCHEMA_SECONDS)(SpectacularJSONAPIView.as_view(patterns=public))),
    path("api/", SpectacularSwaggerView.as_view(url="/api/schema/")),
    path("healthz/live", site.live),
    path("healthz/ready", site.ready),
    path("metrics", site.show_metrics),
    path("admin/", admin.site.urls),
    path("", require_safe(RedirectView.as_view(url="/api/"))),
]

handler400 = "hordechat.http.refusals.bad_request"
handler404 = "hordechat.http.refusals.not_found"
handler500 = "hordechat.http.refusals.server_error"
