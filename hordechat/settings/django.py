"""Django's settings, all of them derived from the typed environment; no value asks where it runs."""

from hordechat.settings import env

HORDE = env.load()

SECRET_KEY = HORDE.secret_key
DEBUG = False
ALLOWED_HOSTS = [host.strip() for host in HORDE.allowed_hosts.split(",")]
CSRF_TRUSTED_ORIGINS = [HORDE.url]

INSTALLED_APPS = [
    "billing_app",
    "workers_app",
    "requests_app",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]

# The API needs the first four alone; the admin's middleware is cheap for requests that touch no session.
MIDDLEWARE = [
    "hordechat.http.middleware.RequestIdMiddleware",
    "hordechat.http.middleware.PublicHeadersMiddleware",
    # Says whose address counts, so before any that counts.
    "billing_app.views.proxies.ProxyPasskeyMiddleware",
    # Before any that may read a body (ORD-24).
    "hordechat.http.rate_limits.middleware.RateLimitMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "hordechat.urls"
WSGI_APPLICATION = "hordechat.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

KEPT_PLANS = "-c enable_seqscan=off -c plan_cache_mode=force_generic_plan"
STATEMENT_LIMITS = (
    f"-c statement_timeout={HORDE.database_statement_timeout_seconds}s"
    # A process that stops in the middle of a transaction, or whose machine does, would keep its rows locked.
    f" -c idle_in_transaction_session_timeout={HORDE.database_statement_timeout_seconds}s"
)

DATABASES = {
    "default": {
        "ENGINE": "hordechat.infra.postgresql",
        **HORDE.database,
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            "connect_timeout": 5,
            # A server that vanished without a word, as its machine does, is given up after half a minute.
            "keepalives_idle": 15,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 30_000,
            "application_name": "hordechat",
            # Bound on the server, a statement can be prepared, which psycopg does at its fifth use on a connection.
            # Its plan outlives the moment it was made in: one made while the queue was empty read the whole table, and
            # took 33 ms at 100,000 rows where the index took 0.08. So plans read indexes wherever there is one. And it
            # is kept: left to itself PostgreSQL planned a pop anew at each call, 1.5 ms, once the queue was long.
            **(
                {"server_side_binding": True, "prepare_threshold": 5, "options": f"{KEPT_PLANS} {STATEMENT_LIMITS}"}
                if HORDE.database_prepared_statements
                else {}
            ),
            **HORDE.database_options,
            **(
                {
                    "pool": {
                        "min_size": 1,
                        "max_size": HORDE.database_pool_size,
                        "timeout": 5,
                        # The pauses between tries double, up to minutes in an outage of minutes; given up early, the
                        # next request starts them anew.
                        "reconnect_timeout": 2,
                    }
                }
                if HORDE.database_pool_size
                else {}
            ),
        },
        "TEST": {"NAME": HORDE.database["NAME"]},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

redis_timeout_seconds = HORDE.redis_timeout_milliseconds / 1000
CACHES = {
    alias: {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": HORDE.redis_database(env.REDIS_CACHE_DATABASE),
        "KEY_PREFIX": prefix,
        "OPTIONS": {
            "CLIENT_CLASS": "django_redis.client.DefaultClient",
            "SOCKET_CONNECT_TIMEOUT": redis_timeout_seconds,
            "SOCKET_TIMEOUT": redis_timeout_seconds,
            "IGNORE_EXCEPTIONS": True,
        },
    }
    for alias, prefix in (("default", "horde"), ("rate_limits", "horde-rates"))
}
RATELIMIT_USE_CACHE = "rate_limits"
RATELIMIT_FAIL_OPEN = True

AUTH_USER_MODEL = "billing_app.User"
LOGIN_URL = "/admin/login/"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
USE_I18N = False

STATIC_URL = "/static/"
# Packaged assets are few and never change while a process lives: they are served from where they are installed.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

# The body bound is the project's own (hordechat.http.body); Django's would answer first and in another shape.
DATA_UPLOAD_MAX_MEMORY_SIZE = 256 * 1024
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_ENGINE = "hordechat.http.sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HORDE.url.startswith("https://")

REST_FRAMEWORK = {
    # Authentication is a step of a service, in the documented order, and not a gate in front of it (decision W2).
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_PARSER_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["hordechat.http.rendering.JsonRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "hordechat.http.rendering.AlwaysJson",
    "EXCEPTION_HANDLER": "hordechat.http.refusals.handle",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "hordechat",
    "DESCRIPTION": "Crowd-served chat: clients queue conversations, volunteers' workers pop and answer them.",
    "VERSION": "2",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    # The vocabularies are named by the contract's own models.
    "POSTPROCESSING_HOOKS": [],
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    "SCHEMA_PATH_PREFIX": "/api/v2",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

LOGGING_CONFIG = "hordechat.infra.logging.configure"

LOGGING = {"level": HORDE.log_level, "format": HORDE.log_format}
