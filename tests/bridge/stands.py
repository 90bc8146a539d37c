"""Real HTTP servers that answer from a script; they stand for the horde and for the backend, both beyond the bridge."""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast

IDLE_POP: Mapping[str, object] = {
    "id": None,
    "ids": [],
    "payload": {"max_length": 80, "max_context_length": 2048},
    "model": None,
    "ttl": None,
    "skipped": {},
    "messages": [],
}
NEUTRAL_SAMPLING = {
    "temperature": 1.0,
    "top_p": 1.0,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "rep_pen": 1.0,
    "top_k": 0,
    "min_p": 0,
}


@dataclass(frozen=True)
class Call:
    """A request a stand received."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Response:
    """What a stand answers."""

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    wait_for: threading.Event | None = None
    """Answer only once this is set, as a slow server does."""


class Stand:
    """A server on a free port; each path answers what was scripted for it, then its fallback."""

    def __init__(self, fallbacks: Mapping[str, Response]) -> None:
        self.calls: list[Call] = []
        self._fallbacks = dict(fallbacks)
        self._scripts: dict[str, deque[Response]] = {}
        self._received = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def script(self, path: str, *responses: Response) -> None:
        self._scripts.setdefault(path, deque()).extend(responses)

    def calls_to(self, path: str) -> list[Call]:
        with self._received:
            return [call for call in self.calls if call.path == path]

    def wait_for(self, condition: Callable[[Self], bool], seconds: float = 10) -> None:
        ends_at = time.monotonic() + seconds
        with self._received:
            while not condition(self):
                assert self._received.wait(max(ends_at - time.monotonic(), 0)), "the expected call did not come"

    def answer(self, call: Call) -> Response:
        with self._received:
            self.calls.append(call)
            script = self._scripts.get(call.path)
            response = script.popleft() if script else self._fallbacks.get(call.path, Response(404, {}))
            self._received.notify_all()
        if response.wait_for is not None:
            response.wait_for.wait(20)
        return response

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        stand = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Without this the kernel holds an answer's body back until the headers are acknowledged.
            disable_nagle_algorithm = True
            wbufsize = -1

            def log_message(self, *_: object) -> None:
                return

            def _respond(self) -> None:
                content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = json.loads(content) if content else None
                response = stand.answer(Call(self.command, self.path, dict(self.headers), body))
                raw = json.dumps(response.body).encode() if response.raw is None else response.raw
                try:
                    self.send_response(response.status)
                    for name, value in {"Content-Length": str(len(raw)), **response.headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(raw)
                except ConnectionError:
                    self.close_connection = True  # the client gave up; that is what some tests are about

            do_GET = _respond  # noqa: N815 the base class calls it so
            do_POST = _respond  # noqa: N815 the base class calls it so

        return Handler


POP = "/api/v2/generate/text/pop"
SUBMIT = "/api/v2/generate/text/submit"
COMPLETIONS = "/v1/chat/completions"
MODELS = "/v1/models"


def make_horde() -> Stand:
    """A horde with nothing to do that takes every reply for 1.5 kudos."""
    return Stand({POP: Response(body=IDLE_POP), SUBMIT: Response(body={"reward": 1.5})})


def make_backend() -> Stand:
    """A backend that always says "Good day."."""
    return Stand({MODELS: Response(body={"data": []}), COMPLETIONS: Response(body=completion("Good day."))})


def payload(**changes: object) -> dict[str, object]:
    """A chat payload, neutral but for the changes."""
    return {
        "messages": [{"role": "user", "content": "Hello there"}],
        "max_length": 64,
        "max_context_length": 2048,
        "n": 1,
        **NEUTRAL_SAMPLING,
        **changes,
    }


def popped(generation_id: str = "g-1", *, ttl: float = 150, **changes: object) -> Response:
    """The answer to a pop that hands out a chat."""
    return Response(
        body={
            **IDLE_POP,
            "id": generation_id,
            "ids": [generation_id],
            "payload": payload(**changes),
            "model": "demo/echo",
            "ttl": ttl,
            "chat": True,
        }
    )


def completion(content: str | None, *, finish_reason: str | None = "stop", **message: object) -> dict[str, object]:
    """A chat completion."""
    return {
        "id": "c-1",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": finish_reason,
            }
        ],
    }


def refusal(status: int, rc: str, message: str = "No.", **extra: object) -> Response:
    """An error as the horde words it."""
    return Response(status, {"message": message, "rc": rc, **extra})


def bodies(stand: Stand, path: str) -> list[dict[str, Any]]:
    return [cast("dict[str, Any]", call.body) for call in stand.calls_to(path)]
