"""What is stored of a submission is what the client sent, under the text route's names."""

import orjson
import pytest

from hordechat.contract import chat
from hordechat.contract.chat.submission import Sampling
from hordechat.contract.vocabulary import ReasoningEffort
from requests_app.rules.mapping import stored_extras, stored_params
from tests.rules.submissions import (
    AUTO,
    CLOCK,
    JSON_OBJECT,
    JSON_SCHEMA,
    LOOSE,
    NONE,
    WEATHER,
    function,
    submission,
    tools,
)

mark = pytest.mark


@pytest.mark.parametrize(
    ("sampling", "stored"),
    [
        pytest.param(Sampling(), {}, marks=mark.spec("REQ-19")),
        pytest.param(
            Sampling(temperature=0.5, top_p=0.25), {"temperature": 0.5, "top_p": 0.25}, marks=mark.spec("REQ-11")
        ),
        pytest.param(Sampling(temperature=0.0), {"temperature": 0.0}, marks=mark.spec("REQ-11")),
        pytest.param(
            Sampling(frequency_penalty=0.0, presence_penalty=-2.0),
            {"frequency_penalty": 0.0, "presence_penalty": -2.0},
            marks=mark.spec("REQ-50"),
        ),
        pytest.param(Sampling(seed=0), {"seed": 0}, marks=mark.spec("REQ-50")),
        pytest.param(Sampling(seed=2**63 - 1), {"seed": 2**63 - 1}, marks=mark.spec("REQ-50")),
        pytest.param(
            Sampling(reasoning_effort=ReasoningEffort.NONE), {"reasoning_effort": "none"}, marks=mark.spec("REQ-50")
        ),
        pytest.param(Sampling(stop_sequence=("b", "a")), {"stop_sequence": ["b", "a"]}, marks=mark.spec("REQ-22")),
    ],
)
def test_keeps_the_sampling_keys_that_were_sent(sampling: Sampling, stored: dict[str, object]) -> None:
    sent = submission(sampling=sampling)

    assert stored_params(sent) == stored
    assert stored_extras(sent) is None


@pytest.mark.parametrize("key", ["temperature", "top_p", "frequency_penalty", "presence_penalty"])
def test_a_number_has_one_spelling(key: str) -> None:
    whole = stored_params(submission(sampling=Sampling(**{key: 1})))  # type: ignore[arg-type]
    fraction = stored_params(submission(sampling=Sampling(**{key: 1.0})))  # type: ignore[arg-type]

    assert orjson.dumps(whole) == orjson.dumps(fraction) == b'{"%s":1.0}' % key.encode()


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        pytest.param({}, None, marks=mark.spec("TLS-29", "REQ-23")),
        pytest.param({"is_streamed": True}, {"stream_progress": True}, marks=mark.spec("REQ-23")),
        pytest.param({"tools": tools(WEATHER, CLOCK)}, {"tools": [WEATHER, CLOCK]}, marks=mark.spec("TLS-29")),
        pytest.param(
            {"tools": tools(CLOCK), "tool_choice": NONE},
            {"tools": [CLOCK], "tool_choice": "none"},
            marks=mark.spec("TLS-30"),
        ),
        pytest.param(
            {"tools": tools(CLOCK), "tool_choice": AUTO, "parallel_tool_calls": True},
            {"tools": [CLOCK], "tool_choice": "auto", "parallel_tool_calls": True},
            marks=mark.spec("TLS-42"),
        ),
        pytest.param(
            {"tools": tools(CLOCK), "tool_choice": function("read_clock"), "parallel_tool_calls": False},
            {
                "tools": [CLOCK],
                "tool_choice": {"type": "function", "function": {"name": "read_clock"}},
                "parallel_tool_calls": False,
            },
        ),
        pytest.param({"response_format": JSON_OBJECT}, {"response_format": {"type": "json_object"}}),
        pytest.param(
            {"response_format": LOOSE, "is_streamed": True},
            {"response_format": JSON_SCHEMA, "stream_progress": True},
        ),
    ],
)
def test_keeps_tools_format_and_hint_as_sent(sent: dict[str, object], stored: dict[str, object] | None) -> None:
    assert stored_extras(submission(**sent)) == stored  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        pytest.param({"tools": []}, None, marks=mark.spec("TLS-29")),
        pytest.param(
            {"tools": None, "tool_choice": None, "parallel_tool_calls": None}, None, marks=mark.spec("TLS-29")
        ),
        pytest.param({"response_format": {"type": "text"}}, None, marks=mark.spec("TLS-29")),
        pytest.param({"response_format": None}, None, marks=mark.spec("TLS-29")),
        pytest.param({"tools": [CLOCK], "tool_choice": None}, {"tools": [CLOCK]}, marks=mark.spec("TLS-29")),
        pytest.param(
            {"tools": [CLOCK], "tool_choice": "none"},
            {"tools": [CLOCK], "tool_choice": "none"},
            marks=mark.spec("TLS-30"),
        ),
        pytest.param({"stream": True}, {"stream_progress": True}, marks=mark.spec("REQ-23")),
        pytest.param({"stream": False}, None, marks=mark.spec("REQ-23")),
        pytest.param(
            {"stream_options": {"include_usage": True}, "user": "a", "metadata": {}}, None, marks=mark.spec("REQ-24")
        ),
    ],
)
def test_a_value_that_is_the_same_as_none_is_not_stored(
    said: dict[str, object], stored: dict[str, object] | None
) -> None:
    sent = chat.parse({"model": "demo/echo", "messages": [{"role": "user", "content": "Hello"}], **said})

    assert stored_extras(sent) == stored
    assert stored_params(sent) == {}


def test_keeps_the_clients_order_of_keys_inside_a_tool() -> None:
    assert orjson.dumps(stored_extras(submission(tools=tools(CLOCK)))) == (
        b'{"tools":[{"function":{"name":"read_clock"},"type":"function"}]}'
    )
