"""The OpenAPI document keeps its word: whatever is sent to a route it describes, the answer is one it describes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import APIOperation, BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.contract.bodies import ABSENT
from tests.http.test_answers import ROUTES
from tests.http.wire import MODEL, SECONDS, Job, Site, assert_refusal
from tests.seeds import SEED

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
CHAT = "/api/v2/generate/chat/async"
TEXT = "/api/v2/generate/text/async"
POP = "/api/v2/generate/text/pop"
SUBMIT = "/api/v2/generate/text/submit"
POST_ROUTES = sorted(path for method, path in ROUTES if method == "post")
"""The routes with a body: the others take any string for an id, and there is nothing wrong to send."""
# What the document cannot say: which model is served, whose name is printable, which keys stand alone.
GOOD_VALUES: dict[str, dict[str, Any]] = {
    CHAT: {
        "model": MODEL,
        "models": None,
        "messages": [{"role": "user", "content": "Hello"}],
        "n": 1,
        **dict.fromkeys(("seed", "stream", "presence_penalty", "frequency_penalty", "response_format")),
        **dict.fromkeys(("tools", "tool_choice", "parallel_tool_calls", "max_completion_tokens")),
        "max_tokens": 16,
        "reasoning_effort": ABSENT,
        "horde": {"max_kudos": 10_000},
    },
    TEXT: {
        "prompt": "Once",
        "models": [],
        "workers": [],
        "webhook": "",
        "proxied_account": "",
        "extra_source_images": [],
    },
    POP: {
        "name": "worker of the document",
        "models": [MODEL, "other"],
        "bridge_agent": "a:1:b",
        "chat_features": ["seed"],
        "chat_limits": {"max_context_length": 8192, "max_length": 1024},
        "image_transports": [],
        "model_id": MODEL,
    },
    SUBMIT: {
        "generation": None,
        "state": "ok",
        "message": {"role": "assistant", "content": "Hello"},
        "finish_reason": "stop",
        "native_finish_reason": None,
        **dict.fromkeys(("prompt_tokens", "completion_tokens", "reasoning_tokens"), 1),
    },
}
Case = schemathesis.Case[Any]
Operation = APIOperation[Any, Any, Any, Any]
FEW_CASES = 6
MANY_CASES = 150
PATIENCE = settings(
    deadline=None,
    database=None,
    # What a case meets depends on those before it, so a smaller one would fail for another reason or none.
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@dataclass
class Crowd:
    """What a case may name to get past the first checks: keys, requests of each family, a job in a worker's hands."""

    site: Site
    connection: requests.Session
    job: Job
    finished_chat_id: str
    text_id: str

    @property
    def keys(self) -> list[str]:
        return [self.site.key_of("client"), self.site.key_of("owner")]

    def list_request_ids(self, path: str) -> list[str]:
        return [self.job.request_id, self.finished_chat_id] if "/chat/" in path else [self.text_id]

    def list_job_values(self, path: str) -> dict[str, Any]:
        return {"id": self.job.generation_id, "model_id": self.job.model} if path == SUBMIT else {}

    def tidy_up(self, case: Case, answer: schemathesis.Response) -> None:
        """Cancel the request a case queued, and put back the job it ended."""
        if answer.status_code == HTTPStatus.ACCEPTED:
            # A user may have few requests waiting.
            family = "chat" if "/chat/" in case.operation.path else "text"
            self.site.send("DELETE", f"/api/v2/generate/{family}/status/{answer.json()['id']}")
        if case.operation.path == SUBMIT and answer.status_code == HTTPStatus.OK:
            self.finished_chat_id = self.job.request_id
            self.job = self.site.take_job()


@pytest.fixture(scope="module")
def api(site: Site) -> BaseSchema:
    schema = schemathesis.openapi.from_dict(site.send("GET", "/api/schema/").json, config=schemathesis.Config())
    assert {(method, path) for path in schema for method in schema[path]} == ROUTES
    return schema


@pytest.fixture
def crowd(site: Site) -> Iterator[Crowd]:
    site.pop()
    text = site.post("/api/v2/generate/text/async", b'{"prompt": "Once"}', apikey=site.key_of("client"))
    assert site.send("DELETE", f"/api/v2/generate/text/status/{text.json['id']}").status == HTTPStatus.OK
    finished = site.take_job()
    reply = {"message": {"role": "assistant", "content": "Hello yourself"}, "finish_reason": "stop"}
    sent = json.dumps({"id": finished.generation_id, "model_id": finished.model, **reply}).encode()
    assert site.post(SUBMIT, sent, apikey=site.key_of("owner")).status == HTTPStatus.OK
    with requests.Session() as connection:
        connection.trust_env = False  # or a proxy of the machine's would be asked for the site
        yield Crowd(
            site=site,
            connection=connection,
            job=site.take_job(),
            finished_chat_id=finished.request_id,
            text_id=text.json["id"],
        )


@st.composite
def cases(draw: st.DrawFn, operation: Operation, mode: schemathesis.GenerationMode, crowd: Crowd) -> Any:
    """Return a case of the document's, most with some values in it that get it past the first checks."""
    case = draw(operation.as_strategy(generation_mode=mode))
    if draw(st.integers(0, 3)):
        case.headers["apikey"] = draw(st.sampled_from(crowd.keys))
    if "request_id" in case.path_parameters and draw(st.booleans()):
        known_id = draw(st.sampled_from(crowd.list_request_ids(operation.path)))
        case.path_parameters["request_id"] = known_id
    if isinstance(case.body, dict):
        good = {**GOOD_VALUES[operation.path], **crowd.list_job_values(operation.path)}
        chosen = draw(st.just(set(good)) | st.sets(st.sampled_from(sorted(good))))
        body = {**case.body, **{key: good[key] for key in chosen}}
        case.body = {key: value for key, value in body.items() if value is not ABSENT}
    return case


def judge(case: Case, crowd: Crowd) -> int:
    """Send a case, hold the answer to the document and to the shape of refusals, and return its status."""
    answer = case.call(crowd.site.api.url, session=crowd.connection, timeout=SECONDS)
    case.validate_response(answer, checks=CHECKS)
    if answer.status_code >= 400:
        assert_refusal(answer.json())
    crowd.tidy_up(case, answer)
    return answer.status_code


def judge_many(operation: Operation, mode: schemathesis.GenerationMode, crowd: Crowd, *, count: int) -> set[int]:
    """Judge that many cases of an operation and return the statuses that were met."""
    statuses: set[int] = set()

    @seed(SEED)
    @settings(PATIENCE, max_examples=count)
    @given(cases(operation, mode, crowd))
    def judge_one(case: Case) -> None:
        statuses.add(judge(case, crowd))

    judge_one()
    return statuses


def judge_route(api: BaseSchema, crowd: Crowd, method: str, path: str, *, count: int) -> set[int]:
    operation = api[path][method]
    statuses = judge_many(operation, schemathesis.GenerationMode.POSITIVE, crowd, count=count)
    if path in POST_ROUTES:
        statuses |= judge_many(operation, schemathesis.GenerationMode.NEGATIVE, crowd, count=count)
    return statuses


@pytest.mark.parametrize(("method", "path"), sorted(ROUTES))
def test_a_few_cases_are_answered_as_documented(api: BaseSchema, crowd: Crowd, method: str, path: str) -> None:
    assert judge_route(api, crowd, method, path, count=FEW_CASES)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), sorted(ROUTES))
def test_hundreds_of_cases_are_answered_as_documented(api: BaseSchema, crowd: Crowd, method: str, path: str) -> None:
    statuses = judge_route(api, crowd, method, path, count=MANY_CASES)

    assert [status for status in statuses if status < 300], "some cases have to get past every check"


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), sorted(ROUTES))
def test_every_edge_of_the_document_is_answered_as_documented(
    api: BaseSchema, crowd: Crowd, method: str, path: str
) -> None:
    operation = api[path][method]
    modes = list(schemathesis.GenerationMode)

    for case in api.iter_coverage_cases(operation, generation_modes=modes, generation_config=api.config.generation):
        if "apikey" in case.headers:
            case.headers["apikey"] = crowd.site.key_of("owner")
        judge(case, crowd)
