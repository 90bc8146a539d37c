"""What the bridge's tests share."""

import signal
from collections.abc import Iterator

import pytest

from tests.bridge.stands import Stand, make_backend, make_horde
from workers_app.bridge import backoff


@pytest.fixture(autouse=True)
def direct_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_DELAY_SECONDS", 0.1)


@pytest.fixture(autouse=True)
def signal_handlers() -> Iterator[None]:
    """Put back the handlers a bridge in this process replaces."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def horde() -> Iterator[Stand]:
    with make_horde() as stand:
        yield stand


@pytest.fixture
def backend() -> Iterator[Stand]:
    with make_backend() as stand:
        yield stand
