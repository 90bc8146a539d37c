"""What a request needs of its worker, as the tables of features and guarantees say it."""

import pytest

from hordechat.contract import chat
from hordechat.contract.chat import ChatSubmission, Message
from hordechat.contract.chat.submission import Sampling
from hordechat.contract.vocabulary import Capability, Conformance, ReasoningEffort
from requests_app.rules.needs import Needs, needs_of
from tests.rules.submissions import (
    AUTO,
    CLOCK,
    JSON_OBJECT,
    LOOSE,
    NONE,
    REQUIRED,
    STRICT,
    WEATHER,
    answer,
    calls,
    function,
    pictures,
    submission,
    tools,
    user,
)
from workers_app.rules.capabilities import mask_of

mark = pytest.mark
TOOLS = tools(WEATHER, CLOCK)
HISTORY = (user(), calls("c1"), answer("c1"), user())

GUARANTEES = {
    "tool_choice_enforced",
    "single_tool_call_enforced",
    "structured_output_enforced",
    "prompt_overflow_refused",
}


def find_needs(sent: ChatSubmission) -> Needs:
    return needs_of(sent, messages=sent.messages)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"response_format": {"type": "text"}}, marks=mark.spec("FTR-19")),
        pytest.param({"response_format": None}, marks=mark.spec("FTR-19")),
        pytest.param({"tools": [], "tool_choice": None, "parallel_tool_calls": None}, marks=mark.spec("FTR-23")),
        pytest.param(
            {"temperature": 1, "top_p": 1, "stop": None, "n": 1, "max_tokens": 512}, marks=mark.spec("FTR-23")
        ),
        pytest.param({"seed": None, "stream": True, "metadata": {"vision": 1}}, marks=mark.spec("FTR-23")),
    ],
)
def test_a_body_that_says_what_is_so_anyway_needs_nothing(said: dict[str, object]) -> None:
    body = {"model": "demo/echo", "messages": [{"role": "user", "content": "Hello"}], **said}

    assert find_needs(chat.parse(body | {"horde": {"conformance": "best_effort"}})).capabilities == ()


@pytest.mark.spec("FTR-24")
@pytest.mark.parametrize("conformance", Conformance)
@pytest.mark.parametrize(
    ("sent", "needed"),
    [
        pytest.param({}, "", marks=mark.spec("FTR-04", "FTR-23")),
        pytest.param({"sampling": Sampling(temperature=1.0, top_p=1.0)}, "", marks=mark.spec("FTR-23")),
        pytest.param({"sampling": Sampling(temperature=0.2, top_p=0.5)}, ""),
        pytest.param({"sampling": Sampling(stop_sequence=("a",))}, "", marks=mark.spec("FTR-23")),
        pytest.param({"max_length": 16384, "is_streamed": True}, "", marks=mark.spec("FTR-23")),
        pytest.param({"sampling": Sampling(seed=7)}, "seed", marks=mark.spec("FTR-03")),
        pytest.param({"sampling": Sampling(seed=0)}, "seed", marks=mark.spec("FTR-03")),
        pytest.param({"sampling": Sampling(seed=-(2**63))}, "seed", marks=mark.spec("FTR-03")),
        *[
            pytest.param({"sampling": Sampling(reasoning_effort=effort)}, "reasoning_effort", marks=mark.spec("FTR-05"))
            for effort in ReasoningEffort
        ],
        pytest.param(
            {"sampling": Sampling(reasoning_effort=ReasoningEffort.NONE)}, "reasoning_effort", marks=mark.spec("FTR-06")
        ),
        pytest.param({"sampling": Sampling(presence_penalty=0.5)}, "presence_penalty", marks=mark.spec("FTR-07")),
        pytest.param({"sampling": Sampling(presence_penalty=-2.0)}, "presence_penalty", marks=mark.spec("FTR-07")),
        pytest.param({"sampling": Sampling(presence_penalty=0.0)}, "", marks=mark.spec("FTR-08", "REQ-14")),
        pytest.param({"sampling": Sampling(frequency_penalty=0.5)}, "frequency_penalty", marks=mark.spec("FTR-09")),
        pytest.param({"sampling": Sampling(frequency_penalty=-2.0)}, "frequency_penalty", marks=mark.spec("FTR-09")),
        pytest.param({"sampling": Sampling(frequency_penalty=0.0)}, "", marks=mark.spec("FTR-10", "REQ-14")),
        pytest.param({"messages": (pictures(), user())}, "vision", marks=mark.spec("FTR-11")),
        pytest.param({"messages": (user(), pictures(3))}, "vision", marks=mark.spec("FTR-11")),
        pytest.param({"tools": TOOLS}, "tools", marks=mark.spec("FTR-13")),
        pytest.param({"tools": TOOLS, "tool_choice": AUTO}, "tools", marks=mark.spec("FTR-13")),
        pytest.param({"tools": TOOLS, "tool_choice": NONE}, "", marks=mark.spec("FTR-16")),
        pytest.param({"messages": HISTORY}, "tools", marks=mark.spec("FTR-14", "FTR-15")),
        pytest.param({"messages": (user(), answer("c1"))}, "tools", marks=mark.spec("FTR-14")),
        pytest.param({"messages": (user(), calls("c1"))}, "tools", marks=mark.spec("FTR-15")),
        pytest.param(
            {"messages": (user(), answer("c1")), "tools": TOOLS, "tool_choice": NONE},
            "tools",
            marks=mark.spec("FTR-14"),
        ),
        pytest.param(
            {"messages": (user(), calls("c1")), "tools": TOOLS, "tool_choice": NONE}, "tools", marks=mark.spec("FTR-15")
        ),
        pytest.param({"response_format": JSON_OBJECT}, "json_object", marks=mark.spec("FTR-17")),
        pytest.param({"response_format": LOOSE}, "json_schema", marks=mark.spec("FTR-18")),
        pytest.param({"response_format": STRICT}, "json_schema", marks=mark.spec("FTR-18")),
        pytest.param({"response_format": None}, "", marks=mark.spec("FTR-19")),
        pytest.param(
            {"response_format": JSON_OBJECT, "tools": TOOLS},
            "json_object tools tools_with_response_format",
            marks=mark.spec("FTR-20"),
        ),
        pytest.param(
            {"response_format": LOOSE, "tools": TOOLS, "tool_choice": REQUIRED},
            "json_schema tools tools_with_response_format",
            marks=mark.spec("FTR-20"),
        ),
        pytest.param(
            {"response_format": JSON_OBJECT, "tools": TOOLS, "tool_choice": NONE},
            "json_object",
            marks=mark.spec("FTR-21"),
        ),
        pytest.param(
            {"response_format": JSON_OBJECT, "messages": HISTORY}, "json_object tools", marks=mark.spec("FTR-21")
        ),
        pytest.param(
            {"sampling": Sampling(seed=1, presence_penalty=1.0), "messages": (pictures(),)},
            "presence_penalty seed vision",
        ),
    ],
)
def test_needs_the_features_of_what_it_sends(conformance: Conformance, sent: dict[str, object], needed: str) -> None:
    capabilities = find_needs(submission(**sent, conformance=conformance)).capabilities  # type: ignore[arg-type]

    assert [name for name in capabilities if name not in GUARANTEES] == needed.split()


@pytest.mark.parametrize(
    ("sent", "needed"),
    [
        pytest.param({}, "", marks=mark.spec("GUA-05")),
        pytest.param({"tools": TOOLS}, "", marks=mark.spec("GUA-05")),
        pytest.param({"tools": TOOLS, "tool_choice": AUTO}, "", marks=mark.spec("GUA-05")),
        pytest.param({"tools": TOOLS, "tool_choice": NONE}, "", marks=mark.spec("GUA-05", "GUA-12")),
        pytest.param({"tools": TOOLS, "tool_choice": REQUIRED}, "tool_choice_enforced", marks=mark.spec("GUA-03")),
        pytest.param(
            {"tools": TOOLS, "tool_choice": function("read_clock")}, "tool_choice_enforced", marks=mark.spec("GUA-04")
        ),
        pytest.param({"tools": TOOLS, "parallel_tool_calls": False}, "", marks=mark.spec("GUA-06")),
        pytest.param(
            {"tools": TOOLS, "tool_choice": REQUIRED, "parallel_tool_calls": False},
            "tool_choice_enforced",
            marks=mark.spec("GUA-06"),
        ),
        pytest.param({"response_format": STRICT}, "structured_output_enforced", marks=mark.spec("GUA-09")),
        pytest.param({"response_format": LOOSE}, "", marks=mark.spec("GUA-10")),
        pytest.param({"response_format": JSON_OBJECT}, "", marks=mark.spec("GUA-10")),
        pytest.param(
            {"response_format": STRICT, "tools": TOOLS, "tool_choice": REQUIRED},
            "structured_output_enforced tool_choice_enforced",
        ),
    ],
)
@pytest.mark.spec("GUA-11")
def test_a_strict_request_needs_the_guarantees_of_what_it_sends(sent: dict[str, object], needed: str) -> None:
    strict = find_needs(submission(**sent, conformance=Conformance.STRICT))  # type: ignore[arg-type]

    assert [name for name in strict.capabilities if name in GUARANTEES] == sorted(
        [*needed.split(), "prompt_overflow_refused"]
    )


@pytest.mark.spec("GUA-13")
def test_a_best_effort_request_needs_no_guarantee() -> None:
    sent = submission(tools=TOOLS, tool_choice=REQUIRED, response_format=STRICT, conformance=Conformance.BEST_EFFORT)

    assert find_needs(sent).capabilities == ("json_schema", "tools", "tools_with_response_format")
    assert find_needs(submission(conformance=Conformance.BEST_EFFORT)).capabilities == ()


@pytest.mark.spec("FTR-01", "GUA-02")
def test_features_and_guarantees_are_one_vocabulary() -> None:
    features = [
        "seed",
        "reasoning_effort",
        "presence_penalty",
        "frequency_penalty",
        "vision",
        "tools",
        "json_object",
        "json_schema",
        "tools_with_response_format",
    ]

    assert sorted(Capability) == sorted([*features, *GUARANTEES])


@pytest.mark.spec("REQ-30")
def test_no_capability_is_about_the_developer_role() -> None:
    assert [capability for capability in Capability if "developer" in capability] == []


def test_the_mask_has_a_bit_for_each_need_and_no_other() -> None:
    needs = find_needs(submission(tools=TOOLS, messages=(pictures(),), sampling=Sampling(seed=1)))

    assert needs.capabilities == ("prompt_overflow_refused", "seed", "tools", "vision")
    assert needs.feature_mask == mask_of(needs.capabilities)
    assert needs.feature_mask.bit_count() == 4


@pytest.mark.spec("FTR-29", "CTX-50")
@pytest.mark.parametrize(
    ("kept", "needed"),
    [
        ((pictures(), *HISTORY), ("tools", "vision")),
        (HISTORY, ("tools",)),
        ((user(),), ()),
    ],
)
def test_needs_what_the_kept_messages_hold(kept: tuple[Message, ...], needed: tuple[str, ...]) -> None:
    sent = submission(messages=(pictures(), *HISTORY), conformance=Conformance.BEST_EFFORT)

    assert needs_of(sent, messages=kept).capabilities == needed


@pytest.mark.parametrize(
    ("sent", "temperature"),
    [
        pytest.param({}, None, marks=mark.spec("TMP-03")),
        pytest.param({"sampling": Sampling(temperature=0.3)}, None, marks=mark.spec("TMP-03")),
        pytest.param(
            {"tools": TOOLS, "tool_choice": NONE, "sampling": Sampling(temperature=0.3)},
            None,
            marks=mark.spec("TMP-03"),
        ),
        pytest.param({"messages": HISTORY}, None, marks=mark.spec("TMP-03")),
        pytest.param({"tools": TOOLS}, 1.0, marks=mark.spec("TMP-04")),
        pytest.param({"tools": TOOLS, "sampling": Sampling(temperature=0.3)}, 0.3),
        pytest.param({"tools": TOOLS, "sampling": Sampling(temperature=0.0)}, 0.0),
        pytest.param({"tools": TOOLS, "tool_choice": REQUIRED, "sampling": Sampling(temperature=2)}, 2.0),
    ],
)
def test_the_temperature_counts_when_tools_are_forwarded(sent: dict[str, object], temperature: float | None) -> None:
    found = find_needs(submission(**sent)).tools_temperature  # type: ignore[arg-type]

    assert (found, type(found)) == (temperature, type(temperature))
