"""The public routes, below `/api/v2/` and `/v2/`."""

from django.urls import path

from requests_app.views import chat, jobs, site, text

urlpatterns = [
    path("generate/chat/async", chat.ChatSubmitViewSet.as_view({"post": "create"})),
    path(
        "generate/chat/status/<str:request_id>",
        chat.ChatStatusViewSet.as_view({"get": "retrieve", "delete": "destroy"}),
    ),
    path("generate/text/async", text.TextSubmitViewSet.as_view({"post": "create"})),
    path(
        "generate/text/status/<str:request_id>",
        text.TextStatusViewSet.as_view({"get": "retrieve", "delete": "destroy"}),
    ),
    path("generate/text/request/<str:request_id>", text.StoredTextViewSet.as_view({"get": "retrieve"})),
    path("generate/text/pop", jobs.PopViewSet.as_view({"post": "create"})),
    path("generate/text/submit", jobs.SubmitViewSet.as_view({"post": "create"})),
    path("find_user", site.FindUserViewSet.as_view({"get": "retrieve"})),
    path("status/heartbeat", site.HeartbeatViewSet.as_view({"get": "retrieve"})),
]
