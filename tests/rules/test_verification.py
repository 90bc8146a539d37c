"""A reply is stored as it came, is cut to its one call, or is refused, by what its request asked for."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hordechat.contract.chat.submission import JsonObject, ToolCall
from hordechat.contract.submit import ChatReply, ChatSubmitInvalid
from hordechat.contract.vocabulary import Conformance, FinishReason, GenerationState
from hordechat.errors import HordeError
from requests_app.errors import ChatSubmitNonconformant
from requests_app.rules import verification
from requests_app.rules.verification import VerifiedReply
from tests.rules.submissions import CLOCK, JSON_SCHEMA, WEATHER

mark = pytest.mark
STRICT, BEST_EFFORT = Conformance.STRICT, Conformance.BEST_EFFORT
PASSES, INVALID, NONCONFORMANT = "passes", "ChatSubmitInvalid", "ChatSubmitNonconformant"
SECRET = "what the client alone may read"

OBJECT: JsonObject = {"type": "json_object"}
LOOSE = JSON_SCHEMA
COLOUR: JsonObject = {
    "type": "object",
    "properties": {"shade": {"type": "string", "maxLength": 5, "pattern": "^[a-z]+$"}},
    "required": ["shade"],
    "additionalProperties": False,
}


def asked(
    *,
    tools: Sequence[JsonObject] = (WEATHER, CLOCK),
    choice: object = None,
    parallel: bool | None = None,
    form: JsonObject | None = None,
) -> dict[str, object]:
    """Return extras as a client sends them and a request stores them."""
    sent = {"tools": [*tools], "tool_choice": choice, "parallel_tool_calls": parallel, "response_format": form}
    return {key: value for key, value in sent.items() if value not in (None, [])}


def only(name: str) -> JsonObject:
    return {"type": "function", "function": {"name": name}}


def strictly(schema: JsonObject) -> JsonObject:
    return {"type": "json_schema", "json_schema": {"name": "colour", "strict": True, "schema": schema}}


def answering(form: JsonObject | None) -> dict[str, object]:
    return asked(tools=(), form=form)


def weather(call_id: str = "call_1", **changes: str) -> ToolCall:
    return ToolCall(**{"id": call_id, "name": "lookup_weather", "arguments": "{}", **changes})


def clock(call_id: str = "call_2") -> ToolCall:
    return weather(call_id, name="read_clock")


def unknown(call_id: str = "call_3") -> ToolCall:
    return weather(call_id, name="launch")


def reply(*tool_calls: ToolCall, content: str | None = None, **changes: Any) -> ChatReply:
    return ChatReply(
        **{
            "content": content if tool_calls or content is not None else "It rains.",
            "tool_calls": tool_calls,
            "reasoning_content": None,
            "finish_reason": FinishReason.STOP,
            "native_finish_reason": None,
            "prompt_tokens": None,
            "completion_tokens": None,
            "reasoning_tokens": None,
            "model_id": "demo/echo",
            "state": GenerationState.OK,
            **changes,
        }
    )


def verify(sent: ChatReply, extras: JsonObject | None, conformance: Conformance = STRICT) -> VerifiedReply:
    return verification.verify(sent, verification.read_contract(extras, conformance=conformance))


def refuse(sent: ChatReply, extras: JsonObject | None, conformance: Conformance = STRICT) -> HordeError:
    with pytest.raises((ChatSubmitInvalid, ChatSubmitNonconformant)) as refused:
        verify(sent, extras, conformance)
    return refused.value


def outcome(sent: ChatReply, extras: JsonObject | None, conformance: Conformance = STRICT) -> str:
    """Return the code a reply is refused with; one that passes has to be stored as it came."""
    try:
        verified = verify(sent, extras, conformance)
    except (ChatSubmitInvalid, ChatSubmitNonconformant) as refusal:
        return refusal.code.value
    assert verified == VerifiedReply(reply=sent, dropped_tool_calls=0)
    return PASSES


TEXT = reply()
NOTHING = reply(content="")


@pytest.mark.parametrize(
    ("extras", "sent", "strict", "best_effort"),
    [
        pytest.param(None, TEXT, PASSES, PASSES, id="a text where nothing was asked for"),
        pytest.param(None, NOTHING, PASSES, PASSES, id="no text at all"),
        pytest.param({"stream_progress": True}, TEXT, PASSES, PASSES, id="a text that is streamed"),
        pytest.param(asked(), TEXT, PASSES, PASSES, id="no call where a call is free"),
        pytest.param(asked(), reply(weather(), clock()), PASSES, PASSES, id="calls to the request's tools"),
        pytest.param(asked(choice="auto"), reply(clock(), content="Wait."), PASSES, PASSES, id="a call and a text"),
        pytest.param(
            asked(), reply(weather(arguments="no JSON")), PASSES, PASSES, id="arguments nobody reads",
            marks=mark.spec("SUB-48"),
        ),
        pytest.param(
            asked(), reply(weather(), unknown()), INVALID, INVALID, id="a call to a function nobody offered",
            marks=mark.spec("VER-07"),
        ),
        pytest.param(
            asked(tools=[CLOCK], choice="none"), reply(weather()), INVALID, INVALID, id="nor under none",
            marks=mark.spec("VER-07"),
        ),
        pytest.param(
            asked(), reply(weather(name="Lookup_Weather")), INVALID, INVALID, id="a name in other letters",
            marks=mark.spec("VER-07"),
        ),
        pytest.param(None, reply(weather()), INVALID, INVALID, id="a call without tools", marks=mark.spec("VER-08")),
        pytest.param(
            answering(OBJECT), reply(weather()), INVALID, INVALID, id="a call beside a format, without tools",
            marks=mark.spec("VER-08"),
        ),
        pytest.param(
            asked(), reply(weather("a"), clock("b"), clock("a")), INVALID, INVALID, id="two calls with one id",
            marks=mark.spec("VER-09"),
        ),
        pytest.param(
            asked(choice="none"), reply(weather()), NONCONFORMANT, PASSES, id="a call under none",
            marks=mark.spec("VER-10", "VER-11"),
        ),
        pytest.param(asked(choice="none"), TEXT, PASSES, PASSES, id="no call under none"),
        pytest.param(
            asked(choice="required"), TEXT, NONCONFORMANT, PASSES, id="no call under required",
            marks=mark.spec("VER-12"),
        ),
        pytest.param(asked(choice="required"), reply(clock()), PASSES, PASSES, id="any call under required"),
        pytest.param(
            asked(choice=only("read_clock")), TEXT, NONCONFORMANT, PASSES, id="no call under a function",
            marks=mark.spec("VER-13"),
        ),
        pytest.param(
            asked(choice=only("read_clock")), reply(clock("a"), weather("b")), NONCONFORMANT, PASSES,
            id="a call to another tool under a function", marks=mark.spec("VER-14"),
        ),
        pytest.param(asked(choice=only("read_clock")), reply(clock("a"), clock("b")), PASSES, PASSES, id="two to it"),
        pytest.param(
            asked(parallel=False), reply(weather(), clock()), "cut", PASSES, id="two calls where one was asked for",
            marks=mark.spec("VER-15", "VER-16"),
        ),
        pytest.param(asked(parallel=True), reply(weather(), clock()), PASSES, PASSES, id="two where several may come"),
        pytest.param(asked(parallel=False), reply(weather()), PASSES, PASSES, id="one call where one was asked for"),
        pytest.param(asked(parallel=False), TEXT, PASSES, PASSES, id="a text where one call was asked for"),
        pytest.param(
            answering(OBJECT), TEXT, NONCONFORMANT, PASSES, id="a text where an object was asked for",
            marks=mark.spec("VER-17"),
        ),
        pytest.param(
            answering(LOOSE), TEXT, NONCONFORMANT, PASSES, id="a text where a schema is no rule",
            marks=mark.spec("VER-18"),
        ),
        pytest.param(
            answering(strictly(COLOUR)), reply(content='{"shade": 1}'), NONCONFORMANT, PASSES,
            id="an object that breaks a strict schema", marks=mark.spec("VER-19"),
        ),
        pytest.param(
            answering(strictly(COLOUR)), reply(content='{"shade": "red"}'), PASSES, PASSES, id="one that matches it"
        ),
    ],
)  # fmt: skip
def test_each_rule_holds_in_its_modes(
    extras: JsonObject | None, sent: ChatReply, strict: str, best_effort: str
) -> None:
    if strict == "cut":
        assert verify(sent, extras).reply.tool_calls == sent.tool_calls[:1]
    else:
        assert outcome(sent, extras) == strict
    assert outcome(sent, extras, BEST_EFFORT) == best_effort


def nested(depth: int) -> str:
    return '{"a": ' + "[" * depth + "]" * depth + "}"


@pytest.mark.parametrize(
    ("content", "strict"),
    [
        ("{}", PASSES),
        ('\n {"a": [1, null, "NaN"]}\t', PASSES),
        ('{"a": 1, "a": 2}', PASSES),
        ("[]", NONCONFORMANT),
        ('"{}"', NONCONFORMANT),
        ("1", NONCONFORMANT),
        ("null", NONCONFORMANT),
        ("{'a': 1}", NONCONFORMANT),
        ('{"a": 1,}', NONCONFORMANT),
        ('{"a": 1} and more', NONCONFORMANT),
        ('```json\n{"a": 1}\n```', NONCONFORMANT),
        ("\ufeff{}", NONCONFORMANT),
        pytest.param("", NONCONFORMANT, marks=mark.spec("VER-35")),
        pytest.param(" \n", NONCONFORMANT, marks=mark.spec("VER-35")),
        pytest.param('{"a": NaN}', NONCONFORMANT, marks=mark.spec("VER-27")),
        pytest.param('{"a": [Infinity]}', NONCONFORMANT, marks=mark.spec("VER-27")),
        pytest.param('{"a": {"b": -Infinity}}', NONCONFORMANT, marks=mark.spec("VER-37")),
        pytest.param(nested(100_000), NONCONFORMANT, marks=mark.spec("VER-37"), id="too deep for the parser"),
        pytest.param('{"a": ' + "9" * 5000 + "}", NONCONFORMANT, id="a number too long for the parser"),
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        pytest.param(OBJECT, marks=mark.spec("VER-17"), id="json_object"),
        pytest.param(LOOSE, marks=mark.spec("VER-18"), id="json_schema"),
        pytest.param(
            {"type": "json_schema", "json_schema": {"name": "a", "strict": False, "schema": {"type": "array"}}},
            marks=mark.spec("VER-18"), id="json_schema with strict false",
        ),
        pytest.param(
            {"type": "json_schema", "json_schema": {"name": "a", "strict": None, "schema": {"type": "colour"}}},
            marks=mark.spec("VER-18"), id="json_schema with strict null and a schema nobody can compile",
        ),
    ],
)  # fmt: skip
def test_a_format_without_a_strict_schema_asks_for_any_object(form: JsonObject, content: str, strict: str) -> None:
    assert outcome(reply(content=content), answering(form)) == strict
    assert outcome(reply(content=content), answering(form), BEST_EFFORT) == PASSES


DRAFT_04 = {"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": True}
DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}
PAIR_2020 = {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}
TREE: JsonObject = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["below"],
            "additionalProperties": False,
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "content", "strict"),
    [
        pytest.param(COLOUR, '{"shade": "Red"}', NONCONFORMANT, id="a pattern"),
        pytest.param(COLOUR, '{"shade": "orange"}', NONCONFORMANT, id="and a length beside it"),
        pytest.param(COLOUR, "{}", NONCONFORMANT, id="a property is missing"),
        pytest.param(COLOUR, '{"shade": "red", "more": 1}', NONCONFORMANT, id="a property is one too many"),
        pytest.param(COLOUR, "red", NONCONFORMANT, id="no JSON"),
        pytest.param({"type": "integer"}, "3", PASSES, marks=mark.spec("VER-37"), id="a number by itself"),
        pytest.param({"type": "array"}, "[]", PASSES, marks=mark.spec("VER-37"), id="an array by itself"),
        pytest.param({}, "null", PASSES, marks=mark.spec("VER-37"), id="anything"),
        pytest.param({}, "", NONCONFORMANT, marks=mark.spec("VER-35"), id="anything is something"),
        pytest.param({}, "NaN", NONCONFORMANT, marks=mark.spec("VER-27"), id="NaN is nothing"),
        pytest.param({}, "-Infinity", NONCONFORMANT, marks=mark.spec("VER-37"), id="nor is -Infinity"),
        pytest.param({}, "[" * 100_000, NONCONFORMANT, marks=mark.spec("VER-37"), id="nor what nobody can parse"),
        pytest.param(DRAFT_04, "3", NONCONFORMANT, marks=mark.spec("VER-28"), id="draft 4: a limit that is excluded"),
        pytest.param(DRAFT_04, "2", PASSES, marks=mark.spec("VER-28"), id="draft 4: below it"),
        pytest.param(DRAFT_07, "[1]", NONCONFORMANT, marks=mark.spec("VER-28"), id="draft 7: a list of items"),
        pytest.param(DRAFT_07, '["a", 1]', PASSES, marks=mark.spec("VER-28"), id="draft 7: more than the list"),
        pytest.param(PAIR_2020, '["a", 1]', PASSES, marks=mark.spec("VER-29"), id="2020-12 where none is named"),
        pytest.param(PAIR_2020, '["a", "b"]', NONCONFORMANT, marks=mark.spec("VER-29"), id="its prefixItems"),
        pytest.param(
            {"$schema": "https://example.org/my-own", **PAIR_2020}, '["a", "b"]', NONCONFORMANT,
            marks=mark.spec("VER-37"), id="2020-12 where nobody knows the one that is named",
        ),
        pytest.param(
            {"$schema": "https://example.org/my-own", **PAIR_2020}, '["a", 1]', PASSES,
            marks=mark.spec("VER-37"), id="and it can match",
        ),
        pytest.param(TREE, '{"below": [{"below": []}]}', PASSES, marks=mark.spec("VER-30"), id="a tree"),
        pytest.param(TREE, '{"below": [{"below": [1]}]}', NONCONFORMANT, marks=mark.spec("VER-30"), id="and a 1"),
        pytest.param(
            {"$id": "https://example.org/a", "$ref": "#b", "$defs": {"b": {"$anchor": "b", "type": "null"}}}, "null",
            PASSES, marks=mark.spec("VER-30"), id="an anchor inside a schema with an address",
        ),
    ],
)  # fmt: skip
def test_a_strict_schema_is_matched_by_its_own_draft(schema: JsonObject, content: str, strict: str) -> None:
    assert outcome(reply(content=content), answering(strictly(schema))) == strict
    assert outcome(reply(content=content), answering(strictly(schema)), BEST_EFFORT) == PASSES


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "colour"}, marks=mark.spec("VER-31"), id="an unknown type"),
        pytest.param({"type": "string", "pattern": "("}, marks=mark.spec("VER-31"), id="a broken pattern"),
        pytest.param({"required": "shade"}, marks=mark.spec("VER-31"), id="a keyword of another type"),
        pytest.param(
            {"properties": {"shade": {"minLength": -1}}}, marks=mark.spec("VER-31"), id="a fault nothing reaches"
        ),
        pytest.param({"$ref": "#/$defs/shade"}, marks=mark.spec("VER-32"), id="no such definition"),
        pytest.param({"$ref": "#shade"}, marks=mark.spec("VER-32"), id="no such anchor"),
        pytest.param({"$ref": "https://example.org/shade"}, marks=mark.spec("VER-32"), id="a schema elsewhere"),
        pytest.param(
            {"properties": {"shade": {"$ref": "#/$defs/shade"}}},
            marks=mark.spec("VER-32"),
            id="where nothing leads to it",
        ),
    ],
)
def test_no_reply_matches_a_schema_that_cannot_be_compiled(schema: JsonObject) -> None:
    sent = reply(content='"red"')

    refusal = refuse(sent, answering(strictly(schema)))

    assert (refusal.code.value, refusal.message) == (
        NONCONFORMANT,
        "The schema of the request's response_format cannot be compiled, so no reply can be shown to match it.",
    )
    assert outcome(sent, answering(strictly(schema)), BEST_EFFORT) == PASSES


@pytest.mark.spec("VER-30")
def test_a_reference_is_never_fetched(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text("true", encoding="utf-8")

    refusal = refuse(reply(content="1"), answering(strictly({"$ref": schema.as_uri()})))

    assert "cannot be compiled" in refusal.message


@pytest.mark.parametrize(
    ("sent", "strict"),
    [
        pytest.param(reply(weather()), PASSES, marks=mark.spec("VER-25"), id="calls and null"),
        pytest.param(reply(weather(), content=""), PASSES, marks=mark.spec("VER-25"), id="calls and no text"),
        pytest.param(
            reply(weather(), content="Wait."), NONCONFORMANT, marks=mark.spec("VER-26"), id="calls and a text"
        ),
        pytest.param(reply(weather(), content=" "), NONCONFORMANT, marks=mark.spec("VER-26"), id="calls and a space"),
        pytest.param(
            reply(weather(), content='{"shade": "red"}'),
            PASSES,
            marks=mark.spec("VER-26"),
            id="calls and what was asked",
        ),
        pytest.param(NOTHING, NONCONFORMANT, marks=mark.spec("VER-35"), id="neither calls nor a text"),
    ],
)
@pytest.mark.parametrize("form", [OBJECT, LOOSE, strictly(COLOUR)])
def test_calls_may_stand_in_for_the_format(form: JsonObject, sent: ChatReply, strict: str) -> None:
    assert outcome(sent, asked(form=form)) == strict
    assert outcome(sent, asked(form=form), BEST_EFFORT) == PASSES


@pytest.mark.spec("RSN-07")
@pytest.mark.parametrize("form", [OBJECT, LOOSE, strictly(COLOUR)])
def test_reasoning_is_never_judged(form: JsonObject) -> None:
    asks = answering(form)

    assert outcome(reply(content='{"shade": "red"}', reasoning_content="Red? No, {green"), asks) == PASSES
    assert outcome(reply(content="red", reasoning_content='{"shade": "red"}'), asks) == NONCONFORMANT
    assert outcome(reply(content="", reasoning_content='{"shade": "red"}'), asks) == NONCONFORMANT


@pytest.mark.spec("VER-36", "VER-40")
@pytest.mark.parametrize("state", GenerationState)
@pytest.mark.parametrize("reason", [FinishReason.STOP, FinishReason.LENGTH, FinishReason.CONTENT_FILTER])
@pytest.mark.parametrize(
    ("extras", "rc"),
    [
        (asked(choice="required"), NONCONFORMANT),
        (asked(choice=only("read_clock")), NONCONFORMANT),
        (answering(OBJECT), NONCONFORMANT),
        (answering(strictly(COLOUR)), NONCONFORMANT),
    ],
)
def test_no_finish_reason_and_no_state_is_an_excuse(
    extras: JsonObject, rc: str, reason: FinishReason, state: GenerationState
) -> None:
    assert outcome(reply(content='{"sha', finish_reason=reason, state=state), extras) == rc


@pytest.mark.spec("VER-40")
@pytest.mark.parametrize("conformance", Conformance)
@pytest.mark.parametrize("state", GenerationState)
def test_no_state_excuses_a_call_nobody_offered(state: GenerationState, conformance: Conformance) -> None:
    assert outcome(reply(unknown(), state=state), asked(), conformance) == INVALID
    assert outcome(reply(weather("a"), clock("a"), state=state), asked(), conformance) == INVALID


@pytest.mark.spec("VER-15", "VER-20", "GUA-08")
@pytest.mark.parametrize(
    ("dropped", "best_effort"),
    [
        pytest.param([clock()], PASSES, id="a call that is right"),
        pytest.param([unknown()], INVALID, id="one nobody offered"),
        pytest.param([clock("call_1")], INVALID, id="one with the first one's id"),
        pytest.param([clock(), unknown(), clock()], INVALID, id="several"),
    ],
)
@pytest.mark.parametrize("choice", [None, "auto", "required", only("lookup_weather")])
def test_the_first_call_is_kept_and_the_rest_dropped_unread(
    dropped: list[ToolCall], best_effort: str, choice: object
) -> None:
    sent, extras = reply(weather(), *dropped), asked(choice=choice, parallel=False)

    assert verify(sent, extras) == VerifiedReply(reply=reply(weather()), dropped_tool_calls=len(dropped))
    assert outcome(sent, extras, BEST_EFFORT) == best_effort


@pytest.mark.spec("VER-20")
@pytest.mark.parametrize(
    ("first", "choice", "rc"),
    [
        (unknown(), None, INVALID),
        (weather(), "none", NONCONFORMANT),
        (weather(), only("read_clock"), NONCONFORMANT),
    ],
)
def test_the_call_that_is_kept_is_judged(first: ToolCall, choice: object, rc: str) -> None:
    assert outcome(reply(first, clock()), asked(choice=choice, parallel=False)) == rc


@pytest.mark.spec("VER-20")
def test_a_content_beside_dropped_calls_is_judged() -> None:
    extras = asked(parallel=False, form=OBJECT)

    assert outcome(reply(weather(), clock(), content="Wait."), extras) == NONCONFORMANT
    assert verify(reply(weather(), clock(), content="{}"), extras).dropped_tool_calls == 1


@pytest.mark.parametrize(
    ("choice", "submitted", "stored"),
    [
        pytest.param(only("lookup_weather"), "tool_calls", "stop", marks=mark.spec("VER-23"), id="a function"),
        pytest.param(
            only("lookup_weather"), "stop", "stop", marks=mark.spec("SUB-09"), id="a function, as OpenAI ends"
        ),
        (only("lookup_weather"), "length", "length"),
        (only("lookup_weather"), "content_filter", "content_filter"),
        pytest.param(None, "tool_calls", "tool_calls", marks=mark.spec("VER-24"), id="no choice"),
        pytest.param("auto", "tool_calls", "tool_calls", marks=mark.spec("VER-24"), id="auto"),
        pytest.param("required", "tool_calls", "tool_calls", marks=mark.spec("VER-24"), id="required"),
        pytest.param("required", "stop", "stop", marks=mark.spec("SUB-09"), id="required, as OpenAI ends a function"),
    ],
)
@pytest.mark.parametrize("conformance", Conformance)
def test_only_a_function_choice_ends_as_openai_ends_it(
    choice: object, submitted: str, stored: str, conformance: Conformance
) -> None:
    sent = reply(weather(), finish_reason=FinishReason(submitted))

    verified = verify(sent, asked(choice=choice), conformance)

    assert verified == VerifiedReply(reply=reply(weather(), finish_reason=FinishReason(stored)), dropped_tool_calls=0)


@pytest.mark.spec("VER-23")
def test_a_call_to_another_function_ends_so_where_it_passes() -> None:
    sent = reply(clock(), finish_reason=FinishReason.TOOL_CALLS)

    verified = verify(sent, asked(choice=only("lookup_weather")), BEST_EFFORT)

    assert verified.reply.finish_reason is FinishReason.STOP


@pytest.mark.spec("VER-24")
def test_a_call_under_none_ends_as_it_came_where_it_passes() -> None:
    assert outcome(reply(clock(), finish_reason=FinishReason.TOOL_CALLS), asked(choice="none"), BEST_EFFORT) == PASSES


@pytest.mark.spec("VER-21", "VER-23")
@pytest.mark.parametrize("reason", FinishReason)
def test_dropping_calls_leaves_the_finish_reason(reason: FinishReason) -> None:
    sent = reply(weather(), clock(), finish_reason=reason)

    assert verify(sent, asked(parallel=False)).reply.finish_reason is reason
    chosen = verify(sent, asked(choice=only("lookup_weather"), parallel=False))
    assert chosen.reply.finish_reason is (FinishReason.STOP if reason is FinishReason.TOOL_CALLS else reason)


NOT_A_TOOL = "The reply calls 'launch', which is not one of the request's tools."
TWICE = "Two tool calls of the reply have the id 'a'."
UNWANTED = "The reply calls 'lookup_weather', and the request's tool_choice is 'none'."
NO_CALL = "The reply calls no tool, and the request's tool_choice is 'required'."
NO_CALL_TO_IT = "The reply calls no tool, and the request's tool_choice is the function 'read_clock'."
OTHER = "The reply calls 'lookup_weather', and the request's tool_choice is 'read_clock'."
NOT_JSON = "The reply's content is not JSON, as the request's response_format asks."
NO_OBJECT = "The reply's content is not a JSON object, as the request's response_format asks."
NO_MATCH = "The reply's content does not match the schema of the request's response_format."


@pytest.mark.spec("VER-34", "VER-41")
@pytest.mark.parametrize(
    ("extras", "sent", "message"),
    [
        pytest.param(
            asked(choice="none", form=OBJECT), reply(weather("a"), clock("a"), unknown(), content=SECRET),
            NOT_A_TOOL, id="an unknown function before an id sent twice, none and the format",
        ),
        pytest.param(
            asked(choice=only("read_clock"), form=OBJECT), reply(weather("a"), weather("a"), unknown(), content=SECRET),
            NOT_A_TOOL, id="and before the function choice",
        ),
        pytest.param(
            asked(choice="none", form=OBJECT), reply(weather("a"), clock("a"), content=SECRET),
            TWICE, id="an id sent twice before none and the format",
        ),
        pytest.param(
            asked(choice=only("read_clock"), form=OBJECT), reply(weather("a"), clock("a"), content=SECRET),
            TWICE, id="and before the function choice",
        ),
        pytest.param(
            asked(choice="none", form=OBJECT), reply(weather(), clock(), content=SECRET),
            UNWANTED, id="none before the format",
        ),
        pytest.param(
            asked(choice="required", form=OBJECT), reply(content=SECRET), NO_CALL, id="required before the format"
        ),
        pytest.param(
            asked(choice=only("read_clock"), form=OBJECT), reply(content=SECRET),
            NO_CALL_TO_IT, id="the function choice before the format",
        ),
        pytest.param(
            asked(choice=only("read_clock"), form=OBJECT), reply(clock(), weather(), content=SECRET),
            OTHER, id="whatever is called before the format",
        ),
        pytest.param(answering(OBJECT), reply(content=SECRET), NOT_JSON, id="the format at last"),
        pytest.param(answering(OBJECT), reply(content=json.dumps([SECRET])), NO_OBJECT, id="which wants an object"),
        pytest.param(answering(LOOSE), reply(content=json.dumps(SECRET)), NO_OBJECT, id="by a loose schema too"),
        pytest.param(
            answering(strictly(COLOUR)), reply(content=json.dumps({"shade": SECRET})), NO_MATCH, id="or a match"
        ),
    ],
)  # fmt: skip
def test_the_first_rule_it_breaks_is_told_and_nothing_it_says(
    extras: JsonObject, sent: ChatReply, message: str
) -> None:
    assert refuse(sent, extras).message == message


@pytest.mark.spec("VER-34")
@pytest.mark.parametrize("conformance", Conformance)
def test_what_holds_always_is_told_before_what_holds_when_strict(conformance: Conformance) -> None:
    extras = asked(choice="none", form=OBJECT)

    assert refuse(reply(weather("a"), weather("a"), unknown()), extras, conformance).message == NOT_A_TOOL
    assert refuse(reply(weather("a"), weather("a"), content="Wait."), extras, conformance).message == TWICE


@pytest.mark.spec("VER-41")
@pytest.mark.parametrize(
    ("extras", "calls"),
    [
        pytest.param(asked(), [weather(name="n" * 5000, arguments=SECRET)], id="a long name"),
        pytest.param(asked(), [weather("i" * 256, arguments=SECRET), clock("i" * 256)], id="a long id"),
        pytest.param(asked(choice="none"), [weather(SECRET, arguments=SECRET)], id="a call under none"),
        pytest.param(asked(choice=only("read_clock")), [weather(SECRET, arguments=SECRET)], id="another call"),
        pytest.param(
            asked(choice=only("n" * 64), tools=[only("n" * 64), WEATHER]), [weather(SECRET)], id="long choice"
        ),
    ],
)
def test_a_refusal_quotes_a_name_or_an_id_in_part(extras: JsonObject, calls: Iterable[ToolCall]) -> None:
    message = refuse(reply(*calls, content=SECRET, reasoning_content=SECRET), extras).message

    assert SECRET not in message
    assert len(message) < 200
    assert not any(65 * letter in message for letter in "ni")
