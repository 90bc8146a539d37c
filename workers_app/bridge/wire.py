"""One HTTP exchange with a bound on its time and on what it may bring back."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

CONNECT_SECONDS = 10.0


class Unreachable(Exception):
    """No usable answer came back; the message says why in a few words."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer, read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def parse(self) -> object:
        """Return the body's JSON value, or None when it is no JSON."""
        try:
            value: object = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return value


def make_client(*, headers: Mapping[str, str], idle_connections: int) -> httpx2.AsyncClient:
    """Return a client that follows no redirect: keys and conversations go to the address they were meant for."""
    return httpx2.AsyncClient(
        # `exchange` bounds the whole; "identity" keeps the size bound exact, since nothing is unpacked.
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        limits=httpx2.Limits(max_keepalive_connections=idle_connections),
        follow_redirects=False,
    )


async def exchange(
    client: httpx2.AsyncClient,
    method: str,
    url: str,
    *,
    body: Mapping[str, object] | None = None,
    seconds: float | None,
    limit_bytes: int,
) -> Answer:
    """Send one request and read its answer; `seconds` None leaves the time to the caller.

    Raises:
        Unreachable: no connection, no whole answer in time, or one above `limit_bytes`.
    """
    # "replace" turns a lone half of a surrogate pair, which JSON can carry and UTF-8 cannot, into a question mark.
    content = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    received = bytearray()
    try:
        async with (
            asyncio.timeout(seconds),
            client.stream(method, url, content=content, headers={"Content-Type": "application/json"}) as response,
        ):
            async for chunk in response.aiter_raw():
                received += chunk
                if len(received) > limit_bytes:
                    raise Unreachable(f"the answer is longer than {limit_bytes} bytes")
            return Answer(response.status_code, response.headers, bytes(received))
    except TimeoutError:
        raise Unreachable(f"no whole answer within {seconds:.0f} seconds") from None
    except httpx2.HTTPError as error:
        raise Unreachable(type(error).__name__) from error
