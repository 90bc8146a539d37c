"""JSON out: orjson, always strict JSON, whatever the client says it accepts."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import orjson
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


def to_json(value: object) -> bytes:
    """Return compact JSON; NaN and infinities become null, kudos (Decimal) become numbers."""
    return orjson.dumps(value, default=_plain)


def _plain(value: object) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


class JsonRenderer(BaseRenderer):
    """Renders with orjson; messages of any language stay readable and a 1 MiB body costs about a millisecond."""

    media_type = "application/json"
    format = "json"
    charset = "utf-8"

    def render(self, data: object, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:  # noqa: ARG002
        """Return the body's bytes, none for no data."""
        return b"" if data is None else to_json(data)


class AlwaysJson(BaseContentNegotiation):
    """Answers JSON to everyone: old clients send Accept headers nobody ever looked at."""

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> None:
        """Return no parser: views read the body through `hordechat.http.body`."""

    def select_renderer(self, request: Request, renderers: Iterable[Any], format_suffix: str | None = None) -> Any:  # noqa: ARG002
        """Return the first renderer of the view."""
        first = next(iter(renderers))
        return first, first.media_type
