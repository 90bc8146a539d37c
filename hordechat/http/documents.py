"""What the OpenAPI document says about a route, from the contract's pydantic models."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from pydantic import BaseModel

from hordechat.errors import ErrorCode
from hordechat.http.error_status import STATUS_BY_CODE

View = TypeVar("View", bound=Callable[..., Any])


class Refusal(BaseModel):
    """Every refusal, whatever its status."""

    message: str
    rc: ErrorCode
    errors: dict[str, str] | None = None


API_KEY = OpenApiParameter("apikey", str, OpenApiParameter.HEADER, required=True, description="Your API key.")
CLIENT_AGENT = OpenApiParameter(
    "Client-Agent", str, OpenApiParameter.HEADER, description="Your program, as `name:version:contact`."
)

COMMON_REFUSALS = (ErrorCode.RATE_LIMIT_EXCEEDED, ErrorCode.SERVICE_UNAVAILABLE)


def documented(
    *,
    answers: type[BaseModel],
    body: type[BaseModel] | None = None,
    status: int = 200,
    needs_key: bool = False,
    others: Mapping[int, type[BaseModel]] = MappingProxyType({}),
    refusals: tuple[ErrorCode, ...] = (),
    is_self_contained: bool = False,
    tag: str,
) -> Callable[[View], View]:
    """Describe a route: its body, its answer, and the return codes it may refuse with.

    A self-contained route asks no database and counts no callers. Every route refuses what is broken below the body.
    """
    codes: dict[int, list[ErrorCode]] = {}
    for code in {*refusals, ErrorCode.BAD_REQUEST, *(() if is_self_contained else COMMON_REFUSALS)}:
        codes.setdefault(int(STATUS_BY_CODE[code]), []).append(code)
    responses: dict[int, object] = {status: answers, **others}
    for refused, names in codes.items():
        responses[refused] = OpenApiResponse(Refusal, description=", ".join(sorted(names)))
    parameters = [API_KEY, CLIENT_AGENT] if needs_key else []
    decorate: Callable[[View], View] = extend_schema(
        request={"application/json": body} if body else None, responses=responses, parameters=parameters, tags=[tag]
    )
    return decorate
