"""A worker's life against a horde and a backend that answer from a script, over real sockets."""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from hordechat.contract.vocabulary import Capability
from tests.bridge import stands
from tests.bridge.stands import COMPLETIONS, MODELS, POP, SUBMIT, Response, Stand, bodies, popped, refusal
from workers_app.bridge import serve
from workers_app.bridge.completion import Kind
from workers_app.bridge.demo import DemoBackend
from workers_app.bridge.horde import Declaration, Horde
from workers_app.bridge.openai import OpenAIBackend
from workers_app.bridge.serve import Bridge, Plan
from workers_app.bridge.values import Backend

NOW = {"Retry-After": "0"}
CUT_OFF = Response(200, raw=b"{}", headers={"Content-Length": "9", "Connection": "close"})
DONE = refusal(401, "InvalidAPIKey", "No user has that key.")
"""A pop that ends a worker which would serve for ever; whatever it serves is still brought to an end."""


def run(horde: Stand, backend: Backend, *, threads: int = 1, is_once: bool = True, poll_seconds: float = 0.1) -> int:
    async def main() -> int:
        declaration = Declaration(
            name="my worker",
            model="demo/echo",
            max_context_length=2048,
            max_length=512,
            threads=threads,
            features=backend.features,
        )
        plan = Plan(threads=threads, poll_seconds=poll_seconds, grace_seconds=5, is_once=is_once)
        try:
            async with Horde(url=horde.url, api_key="secret-key", declaration=declaration) as client:
                return await Bridge(horde=client, backend=backend, plan=plan).run()
        finally:
            await backend.close()

    return asyncio.run(main())


def openai_backend(stand: Stand, *, kind: Kind = Kind.OPENAI, checks_context: bool = False) -> OpenAIBackend:
    return OpenAIBackend(
        url=stand.url,
        model="local",
        api_key="backend-key",
        kind=kind,
        checks_context=checks_context,
        features=frozenset({Capability.SEED}),
    )


def fault(reason: str, generation_id: str = "g-1") -> dict[str, str]:
    return {"id": generation_id, "state": "faulted", "model_id": "demo/echo", "fault_reason": reason}


def test_serves_one_generation_with_the_demo_backend(horde: Stand) -> None:
    horde.script(POP, Response(body=stands.IDLE_POP), popped())

    assert run(horde, DemoBackend()) == 0

    assert len(horde.calls_to(POP)) == 2
    assert bodies(horde, POP)[0] == {
        "name": "my worker",
        "models": ["demo/echo"],
        "max_length": 512,
        "max_context_length": 2048,
        "threads": 1,
        "bridge_agent": "hordechat bridge:0.1.0:",
        "amount": 1,
        "chat_jobs": True,
        "prompt_jobs": False,
        "chat_features": [
            "json_object",
            "json_schema",
            "prompt_overflow_refused",
            "seed",
            "single_tool_call_enforced",
            "structured_output_enforced",
            "tool_choice_enforced",
            "tools",
            "tools_with_response_format",
        ],
        "chat_limits": {"max_context_length": 2048, "max_length": 512},
        "model_id": "demo/echo",
        "image_transports": [],
    }
    assert {call.headers["apikey"] for call in horde.calls} == {"secret-key"}
    assert bodies(horde, SUBMIT) == [
        {
            "id": "g-1",
            "model_id": "demo/echo",
            "message": {"role": "assistant", "content": "[demo reply, no model behind it] You said: Hello there"},
            "finish_reason": "stop",
        }
    ]


def test_hands_in_the_demo_backends_call(horde: Stand) -> None:
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
    horde.script(POP, popped(tools=tools, tool_choice="required"))

    assert run(horde, DemoBackend()) == 0

    [handed_in] = bodies(horde, SUBMIT)
    [call] = handed_in["message"].pop("tool_calls")
    assert handed_in == {
        "id": "g-1",
        "model_id": "demo/echo",
        "message": {"role": "assistant", "content": None},
        "finish_reason": "tool_calls",
    }
    assert call == {"id": call["id"], "type": "function", "function": {"name": "look_up", "arguments": "{}"}}


def test_a_schema_the_demo_backend_cannot_fill_in_is_handed_back_and_the_next_request_served(horde: Stand) -> None:
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    response_format = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
    horde.script(POP, popped(response_format=response_format), popped("g-2"), DONE)

    assert run(horde, DemoBackend(), is_once=False) == 1

    assert bodies(horde, SUBMIT)[0] == fault("unbuildable_grammar")
    assert [body["id"] for body in bodies(horde, SUBMIT)] == ["g-1", "g-2"]


def test_serves_one_generation_with_an_openai_backend(horde: Stand, backend: Stand) -> None:
    calls = [{"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}]
    answer = stands.completion(None, finish_reason="tool_calls", tool_calls=calls, reasoning_content="Hm.")
    usage = {"prompt_tokens": 12, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 2}}
    backend.script(COMPLETIONS, Response(body={**answer, "usage": usage}))
    horde.script(POP, popped(seed=7, tools=[{"type": "function", "function": {"name": "look_up"}}]))

    assert run(horde, openai_backend(backend)) == 0

    [asked] = backend.calls_to(COMPLETIONS)
    assert asked.headers["Authorization"] == "Bearer backend-key"
    assert (asked.body["model"], asked.body["seed"], asked.body["max_tokens"]) == ("local", 7, 64)
    assert "apikey" not in {name.lower() for name in asked.headers}
    assert bodies(horde, SUBMIT) == [
        {
            "id": "g-1",
            "model_id": "demo/echo",
            "message": {"role": "assistant", "content": None, "tool_calls": calls, "reasoning_content": "Hm."},
            "finish_reason": "tool_calls",
            "native_finish_reason": "tool_calls",
            "prompt_tokens": 12,
            "completion_tokens": 5,
            "reasoning_tokens": 2,
        }
    ]


def test_half_a_surrogate_pair_does_not_stop_a_reply(horde: Stand, backend: Stand) -> None:
    backend.script(COMPLETIONS, Response(body=stands.completion("cut \ud83d")))
    horde.script(POP, popped())

    assert run(horde, openai_backend(backend)) == 0

    assert bodies(horde, SUBMIT)[0]["message"]["content"] == "cut ?"


@pytest.mark.parametrize(
    ("answers", "code", "fault_reasons"),
    [
        pytest.param([refusal(400, "ChatSubmitNonconformant")], 1, ["reply_refused"], id="refused"),
        pytest.param([refusal(400, "ChatSubmitInvalid")], 1, ["reply_refused"], id="invalid"),
        pytest.param([Response(400, {"message": "No.", "errors": {}})], 1, ["reply_refused"], id="no code"),
        pytest.param([refusal(413, "RequestTooLarge")], 1, ["reply_refused"], id="too large"),
        pytest.param([refusal(400, "AbortedGen")], 1, [], id="aborted"),
        pytest.param([refusal(404, "InvalidJobID")], 1, [], id="unknown"),
        pytest.param([refusal(403, "WrongCredentials")], 1, [], id="not ours"),
        pytest.param([Response(503, {}, NOW)], 0, [], id="unavailable once"),
        pytest.param([Response(429, {"message": "1 per 1 second"}, NOW)], 0, [], id="too many once"),
        pytest.param([Response(500, raw=b"<html>")], 0, [], id="broken once"),
        pytest.param([Response(503, {}, NOW), refusal(400, "DuplicateGen")], 0, [], id="answer lost"),
        pytest.param([CUT_OFF], 0, [], id="connection lost"),
    ],
)
def test_what_follows_the_answer_to_a_reply(
    horde: Stand, answers: list[Response], code: int, fault_reasons: list[str]
) -> None:
    horde.script(SUBMIT, *answers)
    horde.script(POP, popped())

    assert run(horde, DemoBackend()) == code

    replies = [body for body in bodies(horde, SUBMIT) if "message" in body]
    faults = [body for body in bodies(horde, SUBMIT) if "message" not in body]
    assert all(body == replies[0] for body in replies)
    assert faults == [fault(reason) for reason in fault_reasons]


def test_a_reply_the_horde_cannot_take_is_dropped_at_the_end_of_the_lease(horde: Stand) -> None:
    horde.script(SUBMIT, *[Response(503, {})] * 20)
    horde.script(POP, popped(ttl=2))
    started_at = time.monotonic()

    assert run(horde, DemoBackend()) == 1

    assert time.monotonic() - started_at < 6
    assert 3 <= len(horde.calls_to(SUBMIT)) <= 8


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(Response(500, {"error": "out of memory"}), "generation_error", id="broken"),
        pytest.param(Response(400, {"error": {"code": "context_length_exceeded"}}), "prompt_overflow", id="overflow"),
        pytest.param(Response(400, {"error": "cannot parse grammar"}), "unbuildable_grammar", id="grammar"),
        pytest.param(Response(200, raw=b"no JSON"), "generation_error", id="no JSON"),
        pytest.param(Response(200, raw=b"[" * 100_000), "generation_error", id="deep JSON"),
        pytest.param(
            Response(200, raw=json.dumps(stands.completion("Yes.")).encode() + b" " * 8 * 1024 * 1024),
            "generation_error",
            id="too long",
        ),
        pytest.param(Response(302, {}, {"Location": "http://127.0.0.1:1/"}), "generation_error", id="redirect"),
    ],
)
def test_a_backend_that_fails_has_the_generation_handed_back(
    horde: Stand, backend: Stand, answer: Response, reason: str
) -> None:
    backend.script(COMPLETIONS, answer)
    horde.script(POP, popped(response_format={"type": "json_object"}))

    assert run(horde, openai_backend(backend)) == 1

    assert bodies(horde, SUBMIT) == [fault(reason)]


def test_a_backend_that_hangs_has_the_generation_handed_back_within_the_lease(horde: Stand, backend: Stand) -> None:
    backend.script(COMPLETIONS, Response(body={}, wait_for=threading.Event()))
    horde.script(POP, popped(ttl=1))
    started_at = time.monotonic()

    assert run(horde, openai_backend(backend)) == 1

    assert time.monotonic() - started_at < 5
    assert bodies(horde, SUBMIT) == [fault("generation_error")]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"max_length": 64, "max_context_length": 80}, ["prompt_overflow"]),
        ({"max_length": 64, "max_context_length": 84}, []),
    ],
)
@pytest.mark.parametrize(
    ("kind", "counters"),
    [
        (Kind.VLLM, {"/tokenize": Response(body={"count": 20, "max_model_len": 4096, "tokens": []})}),
        (
            Kind.LLAMACPP,
            {
                "/apply-template": Response(body={"prompt": "<user>Hello there"}),
                "/tokenize": Response(body={"tokens": list(range(20))}),
            },
        ),
    ],
)
def test_counts_the_prompt_where_the_backend_can(
    horde: Stand,
    backend: Stand,
    kind: Kind,
    counters: dict[str, Response],
    changes: dict[str, Any],
    expected: list[str],
) -> None:
    for path, response in counters.items():
        backend.script(path, response, response)  # one for the look before the first pop
    horde.script(POP, popped(**changes))

    code = run(horde, openai_backend(backend, kind=kind, checks_context=True))

    assert bodies(horde, POP)[0]["chat_features"] == ["prompt_overflow_refused", "seed"]
    assert code == len(expected)
    assert [body["fault_reason"] for body in bodies(horde, SUBMIT) if "fault_reason" in body] == expected
    assert len(backend.calls_to(COMPLETIONS)) == 1 - len(expected)
    conversation = backend.calls_to(next(iter(counters)))[-1].body
    assert conversation["messages"] == [{"role": "user", "content": "Hello there"}]


def test_estimates_the_prompt_where_the_backend_cannot_count(horde: Stand, backend: Stand) -> None:
    horde.script(POP, popped(messages=[{"role": "user", "content": "7" * 2000}]))

    assert run(horde, openai_backend(backend, checks_context=True)) == 1

    assert bodies(horde, SUBMIT) == [fault("prompt_overflow")]
    assert backend.calls_to(COMPLETIONS) == []


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (Response(503, {}), "The backend is not ready (HTTP status 503)."),
        (Response(401, {}), "The backend refuses the key in HORDE_BRIDGE_BACKEND_KEY."),
    ],
)
def test_takes_no_work_before_the_backend_is_ready(
    horde: Stand, backend: Stand, problem: Response, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    backend.script(MODELS, problem)
    horde.script(POP, popped())
    asked_before_ready: list[int] = []
    backend_answer = backend.answer

    def answer(call: stands.Call) -> Response:
        if call.path == MODELS:
            asked_before_ready.append(len(horde.calls))
        return backend_answer(call)

    backend.answer = answer  # type: ignore[method-assign]  # the stand is the test's own

    assert run(horde, openai_backend(backend)) == 0

    assert asked_before_ready == [0, 0]
    assert sentence in caplog.text


def test_says_when_the_backend_does_not_count_prompts(
    horde: Stand, backend: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    backend.script("/tokenize", Response(404, {}), Response(body={"count": 1}), Response(body={"count": 1}))
    horde.script(POP, popped())

    assert run(horde, openai_backend(backend, kind=Kind.VLLM, checks_context=True)) == 0

    assert "does not count prompts as vllm does; try --no-context-check" in caplog.text


def test_looks_at_the_backend_again_after_a_failure(horde: Stand, backend: Stand) -> None:
    backend.script(COMPLETIONS, Response(500, {}))
    horde.script(POP, popped("g-1"), popped("g-2"), DONE)

    assert run(horde, openai_backend(backend), is_once=False) == 1

    assert [(body["id"], "message" in body) for body in bodies(horde, SUBMIT)] == [("g-1", False), ("g-2", True)]
    assert len(backend.calls_to(MODELS)) == 2


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (DONE, "No user has that key. Check HORDE_BRIDGE_API_KEY or the file given by --api-key-file."),
        (refusal(403, "WrongCredentials", "Not yours."), "Not yours. The name is another account's worker"),
        (refusal(403, "WorkerInviteOnly", "By invitation."), "By invitation. Check the API key, and that its account"),
        (refusal(400, "ChatDeclarationInvalid", "'model_id' is missing."), "'model_id' is missing. Check --model,"),
        (
            refusal(400, "BadRequest", "Input is wrong", errors={"name": "Bad\ncharacter.", "models[0]": "Too short."}),
            "Input is wrong: name: Bad character.; models[0]: Too short. Check --url",
        ),
        (refusal(400, "BadRequest", "Input is wrong.", errors=[]), "Input is wrong. Check --url"),
        (Response(404, raw=b"<html>"), "HTTP status 404 without a message. Check --url"),
        (Response(301, raw=b"", headers={"Location": "https://elsewhere.example/"}), "HTTP status 301"),
    ],
)
def test_stops_when_the_horde_refuses_the_worker(
    horde: Stand, answer: Response, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    horde.script(POP, answer)

    assert run(horde, DemoBackend(), is_once=False) == 1

    assert len(horde.calls) == 1
    assert sentence in caplog.text
    assert "secret-key" not in caplog.text


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Response(500, {}), id="broken"),
        pytest.param(Response(502, raw=b"<html>"), id="bad gateway"),
        pytest.param(Response(429, {"message": "1 per 1 second"}, NOW), id="too many"),
        pytest.param(Response(503, {}, NOW), id="unavailable"),
        pytest.param(Response(200, raw=b"<html>"), id="no JSON"),
        pytest.param(Response(200, {"id": 7}), id="no pop"),
        pytest.param(CUT_OFF, id="cut off"),
    ],
)
def test_goes_on_when_the_horde_stumbles(horde: Stand, answer: Response) -> None:
    horde.script(POP, answer, popped())

    assert run(horde, DemoBackend()) == 0

    assert len(bodies(horde, SUBMIT)) == 1


def test_waits_as_long_as_the_horde_asks(horde: Stand) -> None:
    horde.script(POP, Response(429, {}, {"Retry-After": "1"}), popped())
    started_at = time.monotonic()

    assert run(horde, DemoBackend()) == 0

    assert 1 <= time.monotonic() - started_at < 6


@pytest.mark.parametrize("rc", sorted(serve.PASSING_REFUSALS))
def test_waits_for_a_pause_to_end(
    horde: Stand, rc: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serve, "REFUSED_PAUSE_SECONDS", 0.05)
    horde.script(POP, refusal(403, rc, "Paused by its owner."), popped())

    assert run(horde, DemoBackend()) == 0

    assert "Paused by its owner." in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        {"chat": False, "payload": {"prompt": "Once upon", "max_length": 80}},
        {"chat": True, "payload": {key: value for key, value in stands.payload().items() if key != "messages"}},
        {"chat": True, "payload": stands.payload(messages=[])},
        {"chat": True, "payload": None},
    ],
)
def test_hands_back_what_it_cannot_read(horde: Stand, body: dict[str, object]) -> None:
    horde.script(POP, Response(body={**stands.IDLE_POP, "id": "g-1", "ids": ["g-1"], "ttl": 150, **body}))

    assert run(horde, DemoBackend()) == 1

    assert bodies(horde, SUBMIT) == [fault("generation_error")]


def test_serves_as_many_at_once_as_it_has_threads(horde: Stand, backend: Stand) -> None:
    both_asked = threading.Event()
    backend.script(COMPLETIONS, *[Response(body=stands.completion("Yes."), wait_for=both_asked)] * 2)
    horde.script(POP, popped("g-1"), popped("g-2"), popped("g-3"), DONE)
    pops_while_full: list[int] = []

    def release() -> None:
        backend.wait_for(lambda stand: len(stand.calls_to(COMPLETIONS)) == 2)
        time.sleep(0.3)  # long enough for a pop that should not come
        pops_while_full.append(len(horde.calls_to(POP)))
        both_asked.set()

    _in_background(release, lambda: run(horde, openai_backend(backend), threads=2, is_once=False))

    assert pops_while_full == [2]
    assert sorted(body["id"] for body in bodies(horde, SUBMIT)) == ["g-1", "g-2", "g-3"]
    assert all("message" in body for body in bodies(horde, SUBMIT))


def test_pops_again_at_once_after_a_reply(horde: Stand) -> None:
    horde.script(POP, *[popped(f"g-{number}") for number in range(10)], DONE)
    started_at = time.monotonic()

    assert run(horde, DemoBackend(), is_once=False, poll_seconds=5) == 1

    assert time.monotonic() - started_at < 20
    assert len(bodies(horde, SUBMIT)) == 10


def test_a_slot_that_is_freed_ends_the_pause(horde: Stand, backend: Stand) -> None:
    released = threading.Event()
    backend.script(COMPLETIONS, Response(body=stands.completion("Yes."), wait_for=released))
    horde.script(POP, popped(), Response(body=stands.IDLE_POP), DONE)
    started_at = time.monotonic()

    def release() -> None:
        horde.wait_for(lambda stand: len(stand.calls_to(POP)) == 2)
        time.sleep(0.2)  # into the pause
        released.set()

    _in_background(release, lambda: run(horde, openai_backend(backend), threads=2, is_once=False, poll_seconds=60))

    assert time.monotonic() - started_at < 5
    assert len(bodies(horde, SUBMIT)) == 1


def test_a_refused_worker_still_hands_in_what_it_serves(horde: Stand, backend: Stand) -> None:
    refused = threading.Event()
    backend.script(COMPLETIONS, Response(body=stands.completion("Yes."), wait_for=refused))
    horde.script(POP, popped(), DONE)

    def release() -> None:
        horde.wait_for(lambda stand: len(stand.calls_to(POP)) == 2)
        refused.set()

    _in_background(release, lambda: run(horde, openai_backend(backend), threads=2, is_once=False))

    assert [body["message"]["content"] for body in bodies(horde, SUBMIT)] == ["Yes."]


def test_no_text_of_a_conversation_is_logged(horde: Stand, backend: Stand, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="workers_app.bridge")
    spoken = [{"role": "user", "content": "tell me PRIVATE things"}]
    backend.script(
        COMPLETIONS,
        Response(body=stands.completion("PRIVATE answer")),
        Response(500, {"error": "cannot render PRIVATE"}),
        Response(200, {"choices": [{"message": {"content": {"PRIVATE": 1}}}]}),
    )
    horde.script(SUBMIT, refusal(400, "ChatSubmitInvalid", "PRIVATE answer is no reply."))
    horde.script(
        POP,
        popped("g-1", messages=spoken),
        popped("g-2", messages=spoken),
        popped("g-3", messages=spoken),
        popped("g-4", messages=spoken, max_length="PRIVATE"),
        DONE,
    )

    run(horde, openai_backend(backend), is_once=False)

    assert all(f"generation g-{number}:" in caplog.text for number in (1, 2, 3, 4))
    assert "PRIVATE" not in caplog.text


def test_the_owner_hears_what_the_horde_says(horde: Stand, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="workers_app.bridge")
    notice = {"id": "n-1", "message": "Please\x1b update.", "origin": "a moderator", "expiry": "later"}
    idle = {**stands.IDLE_POP, "skipped": {"max_context_length": 2}, "messages": [notice, "odd"]}
    horde.script(POP, Response(body=idle), Response(body=idle), popped())

    assert run(horde, DemoBackend()) == 0

    assert caplog.text.count("a message from the horde: Please  update.") == 1
    assert caplog.text.count("may not take, by reason: max_context_length 2") == 1


def _in_background(task: Callable[[], None], meanwhile: Callable[[], int]) -> None:
    thread = threading.Thread(target=task)
    thread.start()
    meanwhile()
    thread.join(10)
    assert not thread.is_alive()
