"""Two bodies have one fingerprint when they ask for the same, however they are spelled, and else another."""

import dataclasses
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hordechat.contract import chat
from hordechat.contract.chat import ChatHordeOptions, ChatSubmission
from hordechat.contract.limits import DEFAULT_CHAT_OUTPUT_TOKENS, MAX_CHAT_SCHEMA_CONTAINERS
from hordechat.contract.vocabulary import ReasoningEffort
from requests_app.rules.fingerprint import EXCLUDED_HORDE_KEYS, fingerprint_of
from tests.rules.strategies import submissions
from tests.rules.submissions import CLOCK, IMAGE, JSON_OBJECT, STRICT, WEATHER, tools, user

mark = pytest.mark
BODY: dict[str, Any] = {"model": "demo/echo", "messages": [{"role": "user", "content": "Hello"}]}
LOWER = "01890a5d-ac96-774b-bcce-b302099a8057"
OTHER = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
FUNCTION = {"type": "function", "function": {"name": "read_clock"}}
FORMAT = {"type": "json_object"}


def fingerprint(**changes: object) -> str:
    """Return the fingerprint of a body, a value of `...` leaving its key out."""
    return fingerprint_of_json(orjson.dumps({k: v for k, v in {**BODY, **changes}.items() if v is not ...}))


def fingerprint_of_json(body: bytes | str) -> str:
    return fingerprint_of(chat.parse(orjson.loads(body)))


def speak(role: str, content: object = "Hello", **more: object) -> list[dict[str, object]]:
    return [{"role": role, "content": content, **more}]


@pytest.mark.spec("OPK-27", "OPK-29", "OPK-31", "OPK-33", "OPK-37", "OPK-43", "OPK-47", "OPK-48")
def test_the_fingerprint_is_the_hash_of_one_canonical_document() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://images.example/ä.jpg", "detail": "low"}}
    sent = fingerprint(
        model=...,
        models=["b", "a"],
        messages=[*speak("developer", "Größe"), *speak("user", [{"type": "text", "text": 'a "b"\n'}, picture])],
        max_completion_tokens=64,
        temperature=1,
        frequency_penalty=0,
        presence_penalty=-1.5,
        seed=0,
        reasoning_effort="none",
        stop="x",
        stream=True,
        tools=[CLOCK],
        tool_choice="none",
        horde={"only": [LOWER.upper()], "conformance": "best_effort", "max_kudos": 5, "operation_key": OTHER},
    )

    canonical = (
        '{"extras":{"tool_choice":"none","tools":[{"function":{"name":"read_clock"},"type":"function"}]},'
        '"horde":{"conformance":"best_effort","context_fit":"truncate_oldest","ignore":null,"max_context_length":null,'
        f'"only":["{LOWER}"],"openai_guards":false,"slow_workers":true,"trusted_workers":false,'
        '"validated_backends":false},'
        '"messages":[{"content":"Größe","role":"system"},{"content":[{"text":"a \\"b\\"\\n","type":"text"},'
        '{"image_url":{"detail":"low","url":"https://images.example/ä.jpg"},"type":"image_url"}],"role":"user"}],'
        '"models":["a","b"],'
        '"params":{"frequency_penalty":0.0,"max_length":64,"presence_penalty":-1.5,"reasoning_effort":"none","seed":0,'
        '"stop_sequence":["x"],"temperature":1.0}}'
    )
    assert sent == sha256(canonical.encode()).hexdigest()
    assert (len(sent), sent) == (64, sent.lower())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"messages": speak("developer")}, {"messages": speak("system")}, marks=mark.spec("OPK-28")),
        pytest.param({"max_tokens": 64}, {"max_completion_tokens": 64}, marks=mark.spec("OPK-30")),
        pytest.param({"max_tokens": 64}, {"max_tokens": 64, "max_completion_tokens": 64}, marks=mark.spec("OPK-30")),
        pytest.param({}, {"max_tokens": 512}, marks=mark.spec("OPK-46")),
        pytest.param({}, {"max_completion_tokens": 512}, marks=mark.spec("OPK-46")),
        pytest.param(
            {"model": ..., "models": ["a", "b"]}, {"model": ..., "models": ["b", "a"]}, marks=mark.spec("OPK-31")
        ),
        pytest.param({"model": "a"}, {"model": ..., "models": ["a"]}, marks=mark.spec("OPK-32")),
        pytest.param({}, {"horde": {}}, marks=mark.spec("OPK-34")),
        pytest.param({}, {"horde": None}, marks=mark.spec("OPK-34")),
        *[
            pytest.param({}, {"horde": {key: value}}, marks=mark.spec("OPK-34"))
            for key, value in ChatHordeOptions().model_dump(mode="json").items()
        ],
        pytest.param({}, {"temperature": None, "stop": [], "tools": [], "tool_choice": None, "seed": None}),
        pytest.param({}, {"response_format": {"type": "text"}, "n": 1, "parallel_tool_calls": None}),
        *[
            pytest.param({}, {"horde": {key: value}}, marks=mark.spec("OPK-35"))
            for key, value in {
                "availability_mode": "fail_fast",
                "dry_run": True,
                "include_reasoning": False,
                "max_kudos": 7,
                "operation_key": LOWER,
            }.items()
        ],
        pytest.param({}, {"stream": True}, marks=mark.spec("OPK-37", "OPK-40")),
        pytest.param({"tools": [CLOCK]}, {"tools": [CLOCK], "stream": True}, marks=mark.spec("OPK-40")),
        pytest.param({}, {"stream_options": {"include_usage": True}}, marks=mark.spec("OPK-41")),
        pytest.param({}, {"user": "somebody"}, marks=mark.spec("OPK-41")),
        pytest.param({}, {"metadata": {"any": ["thing"]}}, marks=mark.spec("OPK-41")),
        pytest.param({"stop": "x"}, {"stop": ["x"]}, marks=mark.spec("OPK-45")),
        pytest.param({"temperature": 1}, {"temperature": 1.0}),
        pytest.param({"top_p": 1, "presence_penalty": -2}, {"top_p": 1.0, "presence_penalty": -2.0}),
        pytest.param({"frequency_penalty": 0}, {"frequency_penalty": -0.0}),
        pytest.param({"horde": {"only": [LOWER]}}, {"horde": {"only": [LOWER.upper()]}}),
    ],
)
def test_these_ask_for_the_same(one: dict[str, object], other: dict[str, object]) -> None:
    assert fingerprint(**one) == fingerprint(**other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({}, {"messages": speak("user", "hello")}),
        pytest.param({}, {"messages": speak("system")}),
        pytest.param({}, {"messages": speak("user", [{"type": "text", "text": "Hello"}])}),
        pytest.param({}, {"messages": speak("user", name="Ann")}),
        pytest.param({}, {"messages": speak("user") * 2}),
        *[
            pytest.param({}, {key: value}, marks=mark.spec("OPK-29"))
            for key, value in {"temperature": 1, "top_p": 1, "stop": "x", "max_tokens": 513}.items()
        ],
        *[
            pytest.param({}, {key: value}, marks=mark.spec("OPK-47"))
            for key, value in {
                "seed": 0,
                "reasoning_effort": "none",
                "frequency_penalty": 0,
                "presence_penalty": 0,
            }.items()
        ],
        pytest.param({"stop": ["a", "b"]}, {"stop": ["b", "a"]}, marks=mark.spec("OPK-29")),
        pytest.param({}, {"model": "demo/ECHO"}),
        pytest.param({"model": ..., "models": ["a", "b"]}, {"model": ..., "models": ["a"]}, marks=mark.spec("OPK-31")),
        *[
            pytest.param({}, {"horde": {key: value}}, marks=mark.spec("OPK-33", "OPK-36"))
            for key, value in {
                "only": [LOWER],
                "ignore": [LOWER],
                "trusted_workers": True,
                "validated_backends": True,
                "slow_workers": False,
                "max_context_length": 2048,
                "context_fit": "grow",
                "conformance": "best_effort",
                "openai_guards": True,
            }.items()
        ],
        pytest.param({"horde": {"only": [LOWER]}}, {"horde": {"ignore": [LOWER]}}),
        pytest.param({"horde": {"only": [LOWER, OTHER]}}, {"horde": {"only": [OTHER, LOWER]}}),
        pytest.param({}, {"tools": [CLOCK]}, marks=mark.spec("OPK-37", "OPK-38")),
        pytest.param({"tools": [CLOCK]}, {"tools": [CLOCK, WEATHER]}, marks=mark.spec("OPK-38")),
        pytest.param({"tools": [CLOCK, WEATHER]}, {"tools": [WEATHER, CLOCK]}, marks=mark.spec("OPK-38")),
        pytest.param({"tools": [CLOCK]}, {"tools": [CLOCK], "tool_choice": "none"}, marks=mark.spec("OPK-39")),
        pytest.param(
            {"tools": [CLOCK]}, {"tools": [CLOCK], "tool_choice": "auto"}, marks=mark.spec("OPK-38", "TLS-42")
        ),
        pytest.param(
            {"tools": [CLOCK], "tool_choice": "required"},
            {"tools": [CLOCK], "tool_choice": FUNCTION},
            marks=mark.spec("OPK-38"),
        ),
        pytest.param(
            {"tools": [CLOCK]}, {"tools": [CLOCK], "parallel_tool_calls": True}, marks=mark.spec("OPK-38", "TLS-42")
        ),
        pytest.param(
            {"tools": [CLOCK], "parallel_tool_calls": True},
            {"tools": [CLOCK], "parallel_tool_calls": False},
            marks=mark.spec("OPK-38"),
        ),
        pytest.param({}, {"response_format": FORMAT}, marks=mark.spec("OPK-37", "OPK-38")),
        pytest.param({"response_format": FORMAT}, {"response_format": STRICT.document}, marks=mark.spec("OPK-38")),
    ],
)
def test_these_do_not(one: dict[str, object], other: dict[str, object]) -> None:
    assert fingerprint(**one) != fingerprint(**other)


@pytest.mark.spec("OPK-35", "OPK-36")
def test_every_other_option_is_compared() -> None:
    excluded = {"availability_mode", "dry_run", "include_reasoning", "max_kudos", "operation_key"}

    assert excluded == EXCLUDED_HORDE_KEYS
    assert set(ChatHordeOptions.model_fields) - excluded == set(OTHER_OPTIONS)


@pytest.mark.spec("OPK-43")
def test_an_image_counts_by_the_url_that_was_sent() -> None:
    def show(url: str) -> str:
        return fingerprint(messages=speak("user", [{"type": "image_url", "image_url": {"url": url}}]))

    assert show("https://images.example/a.jpg") == show("https://images.example/a.jpg")
    assert show("https://images.example/a.jpg") != show("https://images.example/b.jpg")
    assert show("data:image/png;base64,AAAA") != show("data:image/png;base64,AAAB")


@pytest.mark.spec("OPK-49")
@pytest.mark.parametrize(
    "sent",
    [
        "00000000-0000-0000-0000-000000000000",
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "3d813cbb-47fb-32ba-91df-831e1593ac29",
        "9d3e7b4a-3b0f-4e52-8d41-5d6f0a4e8c11",
        "886313e1-3b8a-5372-9b90-0c9aee199e5d",
        LOWER,
    ],
)
def test_a_key_of_any_version_and_case_is_one_key(sent: str) -> None:
    keys = {chat.parse(BODY | {"horde": {"operation_key": way(sent)}}).horde.operation_key for way in (str.upper, str)}

    assert keys == {UUID(sent)}


def test_the_deepest_schema_the_contract_takes_is_hashed() -> None:
    schema: dict[str, object] = {}
    for _ in range(MAX_CHAT_SCHEMA_CONTAINERS - 1):
        schema = {"b": 1, "a": schema}
    deep = {"type": "function", "function": {"name": "deep", "parameters": schema}}

    assert fingerprint(tools=[deep]) == fingerprint(tools=[dict(reversed(deep.items()))])
    assert fingerprint(tools=[deep]) != fingerprint(tools=[CLOCK])


# -- Properties --------------------------------------------------------------------------------------------------------
def shuffled(draw: st.DrawFn, value: object) -> object:
    """Return a small JSON value with its keys in another order, at every depth."""
    if isinstance(value, dict):
        return {key: shuffled(draw, value[key]) for key in draw(st.permutations(sorted(value)))}
    return [shuffled(draw, item) for item in value] if isinstance(value, list) else value


@st.composite
def spellings(draw: st.DrawFn, sent: ChatSubmission) -> str:
    """Draw another JSON text of a body that asks for the same."""
    body = chat.dump(sent)
    body["max_completion_tokens"] = body["max_tokens"]
    if draw(st.booleans()):
        del body["max_tokens"]
    elif draw(st.booleans()):
        del body["max_completion_tokens"]
    if sent.max_length == DEFAULT_CHAT_OUTPUT_TOKENS and draw(st.booleans()):
        body = {key: value for key, value in body.items() if key not in {"max_tokens", "max_completion_tokens"}}
    body.pop("model", None)
    body["models"] = draw(st.permutations(sent.models))
    for key in ("temperature", "top_p", "frequency_penalty", "presence_penalty"):
        if isinstance(value := body.get(key), float) and value.is_integer() and draw(st.booleans()):
            body[key] = int(value)
    body["stream"] = draw(st.booleans() | st.none())
    body["user"] = draw(st.text("ab", max_size=2))
    everything = sent.horde.model_dump(mode="json")
    said = everything if draw(st.booleans()) else sent.horde.model_dump(mode="json", exclude_defaults=True)
    body["horde"] = said | {"dry_run": draw(st.booleans()), "max_kudos": draw(st.none() | st.integers(1, 9))}
    messages = body["messages"]
    assert isinstance(messages, list)
    for message in messages:
        if message["role"] == "system" and draw(st.booleans()):
            message["role"] = "developer"
    return json.dumps(shuffled(draw, body), ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 2])))


def is_admitted(sent: ChatSubmission) -> bool:
    """Return whether the contract takes it: the guards refuse a JSON format that no text speaks of."""
    return not sent.horde.openai_guards


@pytest.mark.spec("OPK-27", "OPK-28", "OPK-30", "OPK-31", "OPK-34", "OPK-35", "OPK-40", "OPK-41")
@given(st.data(), submissions().filter(is_admitted))
def test_no_spelling_changes_the_fingerprint(data: st.DataObject, sent: ChatSubmission) -> None:
    assert fingerprint_of_json(data.draw(spellings(sent))) == fingerprint_of(sent)


OTHER_OPTIONS: dict[str, Callable[[ChatHordeOptions], object]] = {
    "only": lambda options: [*(options.only or []), LOWER],
    "ignore": lambda options: [*(options.ignore or []), LOWER],
    "trusted_workers": lambda options: not options.trusted_workers,
    "validated_backends": lambda options: not options.validated_backends,
    "slow_workers": lambda options: not options.slow_workers,
    "max_context_length": lambda options: (options.max_context_length or 80) + 1,
    "context_fit": lambda options: "reject" if options.context_fit == "grow" else "grow",
    "conformance": lambda options: "strict" if options.conformance == "best_effort" else "best_effort",
    "openai_guards": lambda options: not options.openai_guards,
}
"""For each option that is compared, another value than the one it has."""


def change_option(name: str) -> Callable[[ChatSubmission], ChatSubmission]:
    def change(sent: ChatSubmission) -> ChatSubmission:
        changed = sent.horde.model_copy(update={name: OTHER_OPTIONS[name](sent.horde)})
        return dataclasses.replace(sent, horde=changed)

    return change


def change_sampling(name: str, other: Callable[[Any], object]) -> Callable[[ChatSubmission], ChatSubmission]:
    def change(sent: ChatSubmission) -> ChatSubmission:
        value: Any = other(getattr(sent.sampling, name))
        return dataclasses.replace(sent, sampling=dataclasses.replace(sent.sampling, **{name: value}))

    return change


def other_text(sent: ChatSubmission) -> ChatSubmission:
    first, *rest = sent.messages
    content = f"{first.content}." if isinstance(first.content, str) else "."
    return dataclasses.replace(sent, messages=(dataclasses.replace(first, content=content), *rest))


CHANGES: list[Callable[[ChatSubmission], ChatSubmission]] = [
    other_text,
    lambda sent: dataclasses.replace(sent, messages=(*sent.messages, user("More"))),
    lambda sent: dataclasses.replace(sent, messages=(dataclasses.replace(user(), content=(IMAGE,)), *sent.messages)),
    lambda sent: dataclasses.replace(sent, models=(*sent.models, "another/model")),
    lambda sent: dataclasses.replace(sent, max_length=sent.max_length + 1),
    change_sampling("temperature", lambda value: 0.5 if value is None else None),
    change_sampling("top_p", lambda value: 0.5 if value is None else None),
    change_sampling("frequency_penalty", lambda value: 0.5 if value is None else None),
    change_sampling("presence_penalty", lambda value: 0.5 if value is None else None),
    change_sampling("seed", lambda value: 1 if value is None else value ^ 1),
    change_sampling("reasoning_effort", lambda value: ReasoningEffort.LOW if value is None else None),
    change_sampling("stop_sequence", lambda value: (*value, "\n")),
    lambda sent: dataclasses.replace(sent, tools=(*sent.tools, *tools(CLOCK))),
    lambda sent: dataclasses.replace(sent, response_format=None if sent.response_format else JSON_OBJECT),
    *map(change_option, OTHER_OPTIONS),
]


@pytest.mark.spec("OPK-29", "OPK-33", "OPK-36", "OPK-38")
@given(submissions())
def test_every_change_of_what_is_asked_changes_the_fingerprint(sent: ChatSubmission) -> None:
    found = [fingerprint_of(sent), *(fingerprint_of(change(sent)) for change in CHANGES)]

    assert len(set(found)) == len(found)
