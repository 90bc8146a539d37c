"""A worker's payload holds every sampling value, and of the extras what its tool choice leaves."""

import copy

import pytest

from hordechat.contract.chat.submission import Sampling
from hordechat.contract.vocabulary import ReasoningEffort
from requests_app.rules.mapping import stored_extras, stored_params
from requests_app.rules.narrowing import narrow_extras
from requests_app.rules.payload import chat_payload
from tests.rules.submissions import CLOCK, JSON_OBJECT, JSON_SCHEMA, WEATHER, submission, tools

mark = pytest.mark
MESSAGES = [{"role": "user", "content": "Hello"}]
FORMAT = {"type": "json_object"}
CHOSEN = {"type": "function", "function": {"name": "read_clock"}}
NAMESAKE = {"type": "function", "function": {"name": "read_clock", "description": "Another clock"}}
DEFAULTS = {
    "temperature": 1.0,
    "top_p": 1.0,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "rep_pen": 1.0,
    "top_k": 0,
    "min_p": 0,
}


def build(params: dict[str, object] | None = None, extras: dict[str, object] | None = None) -> dict[str, object]:
    return chat_payload(messages=MESSAGES, params=params or {}, extras=extras, max_length=64, max_context_length=4096)


@pytest.mark.parametrize(
    ("stored", "narrowed"),
    [
        pytest.param({}, {}, marks=mark.spec("POP-08")),
        pytest.param({"tools": [WEATHER, CLOCK]}, {"tools": [WEATHER, CLOCK]}, marks=mark.spec("POP-08", "POP-34")),
        pytest.param({"response_format": FORMAT}, {"response_format": FORMAT}, marks=mark.spec("POP-08")),
        pytest.param({"stream_progress": True}, {"stream_progress": True}, marks=mark.spec("POP-21")),
        pytest.param(
            {"tools": [WEATHER], "tool_choice": "auto", "parallel_tool_calls": False},
            {"tools": [WEATHER], "tool_choice": "auto", "parallel_tool_calls": False},
            marks=mark.spec("POP-27"),
        ),
        pytest.param(
            {"tools": [WEATHER, CLOCK], "tool_choice": "required"},
            {"tools": [WEATHER, CLOCK], "tool_choice": "required"},
            marks=mark.spec("POP-27"),
        ),
        pytest.param(
            {"tools": [WEATHER], "tool_choice": "none", "parallel_tool_calls": True}, {}, marks=mark.spec("POP-23")
        ),
        pytest.param(
            {"tools": [WEATHER], "tool_choice": "none", "response_format": FORMAT, "stream_progress": True},
            {"response_format": FORMAT, "stream_progress": True},
            marks=mark.spec("POP-24"),
        ),
        pytest.param(
            {"tools": [WEATHER, CLOCK], "tool_choice": CHOSEN},
            {"tools": [CLOCK], "tool_choice": "required"},
            marks=mark.spec("POP-25", "POP-26"),
        ),
        pytest.param(
            {"tools": [CLOCK, WEATHER, NAMESAKE], "tool_choice": CHOSEN},
            {"tools": [CLOCK, NAMESAKE], "tool_choice": "required"},
            marks=mark.spec("POP-25"),
        ),
        pytest.param(
            {"tools": [CLOCK], "tool_choice": CHOSEN, "parallel_tool_calls": False, "response_format": JSON_SCHEMA},
            {
                "tools": [CLOCK],
                "tool_choice": "required",
                "parallel_tool_calls": False,
                "response_format": JSON_SCHEMA,
            },
            marks=mark.spec("POP-34"),
        ),
    ],
)
@pytest.mark.spec("POP-28", "POP-35")
def test_extras_are_narrowed_for_the_worker_alone(stored: dict[str, object], narrowed: dict[str, object]) -> None:
    before = copy.deepcopy(stored)

    assert narrow_extras(stored) == narrowed
    assert build(extras=stored) == build() | narrowed
    assert stored == before


@pytest.mark.parametrize(
    ("sent", "changed"),
    [
        pytest.param(
            Sampling(),
            {},
            marks=mark.spec("POP-09", "POP-10", "POP-11", "POP-12", "POP-13", "POP-14", "POP-15", "POP-16", "POP-17"),
        ),
        pytest.param(Sampling(temperature=0.0), {"temperature": 0.0}, marks=mark.spec("POP-09")),
        pytest.param(Sampling(top_p=0.5), {"top_p": 0.5}, marks=mark.spec("POP-10")),
        pytest.param(Sampling(frequency_penalty=-1.5), {"frequency_penalty": -1.5}, marks=mark.spec("POP-11")),
        pytest.param(Sampling(presence_penalty=2.0), {"presence_penalty": 2.0}, marks=mark.spec("POP-12")),
        pytest.param(Sampling(stop_sequence=("a",)), {"stop_sequence": ["a"]}, marks=mark.spec("POP-16")),
        pytest.param(Sampling(seed=0), {"seed": 0}, marks=mark.spec("POP-17")),
        pytest.param(Sampling(seed=-(2**63)), {"seed": -(2**63)}, marks=mark.spec("POP-17")),
        *[
            pytest.param(
                Sampling(reasoning_effort=effort), {"reasoning_effort": effort.value}, marks=mark.spec("POP-18")
            )
            for effort in ReasoningEffort
        ],
    ],
)
@pytest.mark.spec("POP-20", "POP-22", "POP-30")
def test_every_sampling_value_is_said(sent: Sampling, changed: dict[str, object]) -> None:
    payload = build(params=stored_params(submission(sampling=sent)))

    assert payload == {
        "messages": MESSAGES,
        **DEFAULTS,
        **changed,
        "max_length": 64,
        "max_context_length": 4096,
        "n": 1,
    }


def test_what_is_stored_of_a_submission_becomes_its_payload() -> None:
    sent = submission(tools=tools(WEATHER), response_format=JSON_OBJECT, is_streamed=True)

    payload = build(params=stored_params(sent), extras=stored_extras(sent))

    assert payload == build() | {"tools": [WEATHER], "response_format": FORMAT, "stream_progress": True}
