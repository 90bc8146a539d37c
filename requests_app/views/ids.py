"""Ids in paths: what is no UUID names no request, and answers like one that is not there (RTE-26)."""

from uuid import UUID

from requests_app.errors import RequestNotFound


def parse_request_id(request_id: str) -> UUID:
    """Return the id.

    Raises:
        RequestNotFound: it is no UUID.
    """
    try:
        return UUID(request_id)
    except ValueError:
        raise RequestNotFound(request_id=request_id) from None
