"""Words for tests that speak HTTP byte by byte."""

import http.client
import json
import secrets
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import Any

import psycopg

from hordechat.errors import ErrorCode
from hordechat.local import ports, stack
from hordechat.local.stack import Api

SECONDS = 30
ANONYMOUS = "0000000000"
MODEL = "demo/echo"
RETURN_CODES = {code.value for code in ErrorCode}


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    status: int
    headers: Message
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        parsed = json.loads(self.body, parse_constant=self._refuse_constant)
        assert isinstance(parsed, dict)
        return parsed

    @staticmethod
    def _refuse_constant(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")


@dataclass(frozen=True)
class Job:
    """A job a worker took, and the request it is for."""

    request_id: str
    generation_id: str
    model: str


@dataclass(frozen=True)
class Site:
    """The server under test."""

    api: Api
    database_url: str
    environment: Mapping[str, str]
    log: Path
    keys: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def connection(self) -> Iterator[socket.socket]:
        with socket.create_connection((ports.HOST, self.api.port), timeout=SECONDS) as opened:
            yield opened

    def send(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str | bytes] | None = None,
    ) -> Answer:
        """Send a request; an iterable of bytes goes out chunked."""
        connection = http.client.HTTPConnection(ports.HOST, self.api.port, timeout=SECONDS)
        is_chunked = body is not None and not isinstance(body, bytes)
        try:
            connection.request(method, path, body, dict(headers or {}), encode_chunked=is_chunked)
            return _read(connection.getresponse())
        finally:
            connection.close()

    def post(self, path: str, body: bytes | Iterable[bytes], **headers: str) -> Answer:
        return self.send("POST", path, body, {"apikey": ANONYMOUS, **headers})

    def exchange(self, *raw: bytes) -> Answer:
        """Send bytes as they are, and read one answer."""
        with self.connection() as connection:
            for piece in raw:
                connection.sendall(piece)
            return read_answer(connection)

    def key_of(self, alias: str) -> str:
        """Return the API key of a person made for these tests."""
        if alias not in self.keys:
            answer = stack.manage(self.environment, "create_user", alias, "--trusted", "--kudos", "10000", "--json")
            assert answer.returncode == 0, answer.stderr
            self.keys[alias] = json.loads(answer.stdout)["api_key"]
        return self.keys[alias]

    def count(self, table: str) -> int:
        """Count the rows of a table in the server's database."""
        return self.read(f"SELECT count(*) FROM {table}")

    def read(self, statement: str) -> int:
        """Return the one number of a statement in the server's database."""
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(statement.encode()).fetchone()
        assert row is not None
        return int(row[0])

    def list_errors(self) -> list[str]:
        """Return the lines the server logged as errors."""
        return [line for line in self.log.read_text(encoding="utf-8").splitlines() if " ERROR " in line]

    def pop(self, *, model: str = MODEL, **changes: object) -> Answer:
        """Pop as a chat worker that serves one model."""
        body = {
            "name": f"worker of {model}",
            "models": [model],
            "chat_jobs": True,
            "prompt_jobs": False,
            "chat_features": ["prompt_overflow_refused"],
            "chat_limits": {"max_context_length": 8192, "max_length": 1024},
            "model_id": model,
            **changes,
        }
        return self.post("/api/v2/generate/text/pop", json.dumps(body).encode(), apikey=self.key_of("owner"))

    def take_job(self) -> Job:
        """Queue a chat request for a model of its own, and pop it."""
        model, worker = f"demo/{secrets.token_hex(4)}", "worker of many models"
        if self.pop(model=model, name=worker).status == HTTPStatus.FORBIDDEN:
            # It gave up too many jobs within the hour.
            ended = stack.manage(self.environment, "worker", worker, "--maintenance", "off")
            assert ended.returncode == 0, ended.stderr
            self.pop(model=model, name=worker)
        body = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 16}
        submitted = self.post("/api/v2/generate/chat/async", json.dumps(body).encode(), apikey=self.key_of("client"))
        assert submitted.status == 202, submitted.body
        return Job(
            request_id=submitted.json["id"], generation_id=self.pop(model=model, name=worker).json["id"], model=model
        )


def read_answer(connection: socket.socket) -> Answer:
    """Read one answer off a socket."""
    response = http.client.HTTPResponse(connection)
    try:
        response.begin()
        return _read(response)
    finally:
        response.close()


def _read(response: http.client.HTTPResponse) -> Answer:
    return Answer(status=response.status, headers=response.headers, body=response.read())


def refusal(answer: Answer) -> tuple[int, str]:
    """Return status and return code of a refusal, after a look at what every one of them carries."""
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.headers["X-Request-Id"]
    assert_refusal(answer.json)
    return answer.status, answer.json["rc"]


def assert_refusal(body: dict[str, Any]) -> None:
    """Hold a body to the one shape of refusals."""
    assert set(body) <= {"message", "rc", "errors"}, body
    assert isinstance(body["message"], str)
    assert body["message"]
    assert body["rc"] in RETURN_CODES
    assert all(isinstance(told, str) for told in body.get("errors", {"": ""}).values())
