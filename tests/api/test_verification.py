"""A chat reply is stored, shown and paid as it was verified, or refused while its job stays pending."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson
import pytest
from prometheus_client import REGISTRY

from tests.horde import ABLE, MODEL, Horde, count_rows, one_value

mark = pytest.mark
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("look", "listen")]
LISTEN = {"type": "function", "function": {"name": "listen"}}
BEST_EFFORT = {"conformance": "best_effort"}
KNOWN_MODEL = "elinas/chronos-70b-v2"
COLOUR = {
    "type": "object",
    "properties": {"shade": {"type": "string", "maxLength": 5, "pattern": "^[a-z]+$"}},
    "required": ["shade"],
    "additionalProperties": False,
}
CANNOT_BE_COMPILED = (
    "The schema of the request's response_format cannot be compiled, so no reply can be shown to match it."
)


def call(name: str = "look", call_id: str = "call_1", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def message(*calls: dict[str, Any], content: str | None = None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content} | ({"tool_calls": [*calls]} if calls else {}) | more


def strictly(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


def hand_out(horde: Horde, /, **asked: Any) -> tuple[str, str]:
    """Bring a request into the hands of a worker that claims to keep every guarantee."""
    return horde.in_flight(declared=ABLE, **asked)


def shown(horde: Horde, request_id: str) -> dict[str, Any]:
    [generation] = horde.status(request_id)[1]["generations"]
    found: dict[str, Any] = generation
    return found


def empty_replies(model: str) -> float:
    return REGISTRY.get_sample_value("horde_text_empty_generations_total", {"model": model}) or 0


BROKEN: list[Any] = [
    pytest.param(
        {"tools": TOOLS}, message(call("smell")), "ChatSubmitInvalid",
        "The reply calls 'smell', which is not one of the request's tools.", marks=mark.spec("VER-07"),
    ),
    pytest.param(
        {}, message(call()), "ChatSubmitInvalid", "The reply calls 'look', which is not one of the request's tools.",
        marks=mark.spec("VER-08"),
    ),
    pytest.param(
        {"tools": TOOLS}, message(call("look"), call("listen")), "ChatSubmitInvalid",
        "Two tool calls of the reply have the id 'call_1'.", marks=mark.spec("VER-09"),
    ),
    pytest.param(
        {"tools": TOOLS, "tool_choice": "none"}, message(call()), "ChatSubmitNonconformant",
        "The reply calls 'look', and the request's tool_choice is 'none'.", marks=mark.spec("VER-10", "VER-02"),
    ),
    pytest.param(
        {"tools": TOOLS, "tool_choice": "required"}, message(content="I see."), "ChatSubmitNonconformant",
        "The reply calls no tool, and the request's tool_choice is 'required'.", marks=mark.spec("VER-12"),
    ),
    pytest.param(
        {"tools": TOOLS, "tool_choice": LISTEN}, message(content="I hear."), "ChatSubmitNonconformant",
        "The reply calls no tool, and the request's tool_choice is the function 'listen'.", marks=mark.spec("VER-13"),
    ),
    pytest.param(
        {"tools": TOOLS, "tool_choice": LISTEN}, message(call()), "ChatSubmitNonconformant",
        "The reply calls 'look', and the request's tool_choice is 'listen'.", marks=mark.spec("VER-14", "VER-02"),
    ),
    pytest.param(
        {"response_format": {"type": "json_object"}}, message(content=""), "ChatSubmitNonconformant",
        "The reply's content is not JSON, as the request's response_format asks.", marks=mark.spec("VER-17", "VER-35"),
    ),
    pytest.param(
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": COLOUR}}},
        message(content="[]"), "ChatSubmitNonconformant",
        "The reply's content is not a JSON object, as the request's response_format asks.", marks=mark.spec("VER-18"),
    ),
    pytest.param(
        {"response_format": strictly(COLOUR)}, message(content='{"shade": "violet"}'), "ChatSubmitNonconformant",
        "The reply's content does not match the schema of the request's response_format.", marks=mark.spec("VER-19"),
    ),
]  # fmt: skip


@pytest.mark.spec("VER-01", "VER-04", "VER-05")
@pytest.mark.parametrize(("asked", "sent", "rc", "says"), BROKEN)
def test_refuses_a_reply_that_breaks_a_rule_and_leaves_its_job_pending(
    horde: Horde, asked: dict[str, Any], sent: dict[str, Any], rc: str, says: str
) -> None:
    request_id, generation_id = hand_out(horde, **asked)
    untouched = "SELECT row_to_json(g)::jsonb - 'chat_refusal_rc' FROM processing_gens g"
    measured = "SELECT (requests_fulfilled, speed_samples, aborted_jobs, uncompleted_jobs)::text FROM workers"
    before = one_value(untouched), one_value(measured), count_rows("transfers", "queue_rows")

    assert horde.reply(generation_id, message=sent) == (400, {"message": says, "rc": rc})

    assert (one_value(untouched), one_value(measured), count_rows("transfers", "queue_rows")) == before
    body = horde.status(request_id)[1]
    assert (body["processing"], body["finished"], body["restarted"], body["done"]) == (1, 0, 0, False)


@pytest.mark.spec("VER-05")
def test_takes_a_better_reply_after_a_refused_one(horde: Horde) -> None:
    request_id, generation_id = hand_out(horde, response_format=strictly(COLOUR))
    horde.reply(generation_id, message=message(content="red"))

    assert horde.reply(generation_id, message=message(content='{"shade": "red"}'))[0] == 200

    assert shown(horde, request_id)["text"] == '{"shade": "red"}'
    assert horde.reply(generation_id, message=message(content="red"))[1]["rc"] == "DuplicateGen"


@pytest.mark.spec("VER-11", "VER-12", "VER-13", "VER-14", "VER-17", "VER-18", "VER-19")
@pytest.mark.parametrize(("asked", "sent"), [each.values[:2] for each in BROKEN[3:]])
def test_takes_it_where_the_best_effort_is_enough(horde: Horde, asked: dict[str, Any], sent: dict[str, Any]) -> None:
    request_id, generation_id = hand_out(horde, horde=BEST_EFFORT, **asked)

    assert horde.reply(generation_id, message=sent)[0] == 200

    assert shown(horde, request_id)["message"] == sent


@pytest.mark.parametrize(("asked", "sent", "rc", "says"), BROKEN[:3])
def test_best_effort_excuses_no_call_nobody_can_handle(
    horde: Horde, asked: dict[str, Any], sent: dict[str, Any], rc: str, says: str
) -> None:
    _, generation_id = hand_out(horde, horde=BEST_EFFORT, **asked)

    assert horde.reply(generation_id, message=sent) == (400, {"message": says, "rc": rc})


@pytest.mark.spec("VER-03")
def test_holds_a_reply_to_the_mode_its_request_is_stored_with(horde: Horde) -> None:
    _, generation_id = hand_out(horde, response_format={"type": "json_object"}, horde=BEST_EFFORT)
    stored = "UPDATE waiting_prompts SET chat_conformance = %s RETURNING 1"

    one_value(stored, ["strict"])
    assert horde.reply(generation_id)[1]["rc"] == "ChatSubmitNonconformant"
    one_value(stored, ["best_effort"])
    assert horde.reply(generation_id)[0] == 200


@pytest.mark.spec("VER-02")
def test_holds_a_reply_to_the_extras_its_request_is_stored_with(horde: Horde) -> None:
    _, generation_id = hand_out(horde, tools=TOOLS, tool_choice=LISTEN)
    choose = "UPDATE waiting_prompts SET chat_extras = jsonb_set(chat_extras, '{tool_choice}', %s) RETURNING 1"

    one_value(choose, ['"none"'])
    assert horde.reply(generation_id, message=message(call("listen")))[1]["rc"] == "ChatSubmitNonconformant"
    one_value(choose, ['"auto"'])
    assert horde.reply(generation_id, message=message(call("look")))[0] == 200


@pytest.mark.spec("VER-15", "VER-20", "VER-21", "GUA-08")
@pytest.mark.parametrize(
    "declared",
    [
        pytest.param(ABLE, id="a worker that claims to send one call"),
        pytest.param({"chat_features": ["tools", "prompt_overflow_refused"]}, id="a worker that does not"),
    ],
)
def test_keeps_the_first_call_where_one_was_asked_for(horde: Horde, declared: dict[str, Any]) -> None:
    request_id, generation_id = horde.in_flight(declared=declared, tools=TOOLS, parallel_tool_calls=False)
    sent = message(call("listen"), call("smell"), call("look"), reasoning_content="All at once.")

    assert horde.reply(generation_id, message=sent, finish_reason="tool_calls")[0] == 200

    generation = shown(horde, request_id)
    assert generation["message"] == message(call("listen"), reasoning_content="All at once.")
    assert generation["finish_reason"] == "tool_calls"
    assert orjson.loads(one_value("SELECT message::text FROM processing_gens")) == generation["message"]


@pytest.mark.spec("VER-16")
def test_keeps_all_calls_where_the_best_effort_is_enough(horde: Horde) -> None:
    request_id, generation_id = hand_out(horde, tools=TOOLS, parallel_tool_calls=False, horde=BEST_EFFORT)
    sent = message(call("look", "a"), call("listen", "b"))

    assert horde.reply(generation_id, message=sent)[0] == 200

    assert shown(horde, request_id)["message"] == sent


@pytest.mark.spec("PRC-08")
def test_measures_charges_and_pays_what_it_kept_of_the_calls(horde: Horde) -> None:
    kept = call("look", arguments="x" * 996)
    paid = []
    for calls in ([kept], [kept, call("listen", "b", "y" * 994)]):
        request_id, generation_id = hand_out(horde, tools=TOOLS, parallel_tool_calls=False, max_tokens=512)
        one_value("UPDATE processing_gens SET created = created - interval '50 s' RETURNING 1")
        reward = horde.reply(generation_id, message=message(*calls))[1]["reward"]
        paid.append((reward, horde.status(request_id)[1]["kudos"]))

    # 4 and 996 characters are 250 tokens, in 50 seconds: x 0.027 x C(prompt), and for the client burn and tax.
    assert paid == [(8.24, 10.24), (8.24, 10.24)]
    assert one_value("SELECT speed_samples FROM workers") == pytest.approx([5, 5], abs=0.5)


@pytest.mark.parametrize(
    ("options", "calls", "dropped"),
    [
        pytest.param({}, 3, 2, marks=mark.spec("VER-22", "VER-38"), id="two are dropped"),
        pytest.param({}, 2, 1, marks=mark.spec("VER-22", "VER-38"), id="one is dropped"),
        pytest.param({}, 1, None, marks=mark.spec("VER-38"), id="there is one alone"),
        pytest.param({}, 0, None, marks=mark.spec("VER-38"), id="there is none"),
        pytest.param(BEST_EFFORT, 3, None, marks=mark.spec("VER-38"), id="all are kept"),
    ],
)
def test_logs_how_many_calls_it_dropped(
    horde: Horde, caplog: pytest.LogCaptureFixture, options: dict[str, Any], calls: int, dropped: int | None
) -> None:
    _, generation_id = hand_out(horde, tools=TOOLS, parallel_tool_calls=False, horde=options)
    sent = message(*[call("look", f"call_{number}") for number in range(calls)], content="I see.")

    with caplog.at_level(logging.INFO):
        assert horde.reply(generation_id, message=sent)[0] == 200

    [record] = [each for each in caplog.records if each.getMessage() == "horde.job_submit.done"]
    assert record.__dict__.get("dropped_tool_calls", "absent") == (dropped or "absent")
    assert str(record.__dict__["generation_id"]) == generation_id


@pytest.mark.spec("PRC-16")
@pytest.mark.parametrize(
    ("choice", "submitted", "stored"),
    [
        pytest.param(LISTEN, "tool_calls", "stop", marks=mark.spec("VER-23", "VER-39")),
        pytest.param(LISTEN, "length", "length", marks=mark.spec("VER-23")),
        pytest.param(LISTEN, "stop", "stop", marks=mark.spec("SUB-09")),
        pytest.param("required", "tool_calls", "tool_calls", marks=mark.spec("VER-24")),
        pytest.param("auto", "tool_calls", "tool_calls", marks=mark.spec("VER-24")),
        pytest.param(None, "stop", "stop", marks=mark.spec("SUB-09")),
    ],
)
@pytest.mark.parametrize("options", [{}, BEST_EFFORT])
def test_stores_and_shows_how_openai_ends_a_choice(
    horde: Horde, choice: object, submitted: str, stored: str, options: dict[str, Any]
) -> None:
    request_id, generation_id = hand_out(horde, tools=TOOLS, tool_choice=choice, horde=options)

    assert horde.reply(generation_id, message=message(call("listen")), finish_reason=submitted)[0] == 200

    assert one_value("SELECT finish_reason FROM processing_gens") == stored
    assert shown(horde, request_id)["finish_reason"] == stored


@pytest.mark.spec("VER-25", "VER-26")
@pytest.mark.parametrize(
    ("content", "status"), [(None, 200), ("", 200), ('{"shade": "red"}', 200), ("Red.", 400), ("{}", 400)]
)
def test_lets_calls_stand_in_for_the_format(horde: Horde, content: str | None, status: int) -> None:
    _, generation_id = hand_out(horde, tools=TOOLS, response_format=strictly(COLOUR))

    assert horde.reply(generation_id, message=message(call(), content=content))[0] == status


@pytest.mark.parametrize(
    ("schema", "content", "status"),
    [
        pytest.param(COLOUR, '{"shade": "red"}', 200, marks=mark.spec("VER-29")),
        pytest.param(COLOUR, '{"shade": "Red"}', 400, marks=mark.spec("VER-29")),
        pytest.param({"prefixItems": [{"type": "string"}]}, "[1]", 400, marks=mark.spec("VER-29")),
        pytest.param(
            {"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [{"type": "string"}]}, "[1]", 200,
            marks=mark.spec("VER-28"),
        ),
        pytest.param(
            {"$schema": "https://example.org/own", "prefixItems": [{"type": "string"}]}, "[1]", 400,
            marks=mark.spec("VER-37"),
        ),
        pytest.param(
            {"$schema": "https://example.org/own", "prefixItems": [{"type": "string"}]}, '["a"]', 200,
            marks=mark.spec("VER-37"),
        ),
        pytest.param({"type": "integer"}, "3", 200, marks=mark.spec("VER-37")),
        pytest.param({"type": "integer"}, '"3"', 400, marks=mark.spec("VER-37")),
        pytest.param({}, "[NaN]", 400, marks=mark.spec("VER-27")),
        pytest.param({}, "[Infinity]", 400, marks=mark.spec("VER-27")),
        pytest.param({}, "[-Infinity]", 400, marks=mark.spec("VER-37")),
        pytest.param({}, "[" * 200_000, 400, marks=mark.spec("VER-37")),
        pytest.param({}, "[" * 200_000 + "]" * 200_000, 400, marks=mark.spec("VER-37")),
        pytest.param({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, "null", 200, marks=mark.spec("VER-30")),
        pytest.param({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, "1", 400, marks=mark.spec("VER-30")),
    ],
)  # fmt: skip
def test_holds_a_reply_to_a_strict_schema(horde: Horde, schema: dict[str, Any], content: str, status: int) -> None:
    _, generation_id = hand_out(horde, response_format=strictly(schema))

    answer = horde.reply(generation_id, message=message(content=content))

    assert (answer[0], answer[1].get("rc")) == (status, None if status == 200 else "ChatSubmitNonconformant")


TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"below": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
            "required": ["below"],
            "additionalProperties": False,
        }
    },
}


@pytest.mark.spec("VER-30")
@pytest.mark.parametrize(("levels", "outcomes"), [(20, {200}), (400, {200, 400}), (100_000, {400})])
def test_ends_in_an_answer_however_deep_a_tree_it_is_sent(horde: Horde, levels: int, outcomes: set[int]) -> None:
    _, generation_id = hand_out(horde, response_format=strictly(TREE))
    right, wrong = ('{"below": ' * levels + leaf + "}" * levels for leaf in ("null", "1"))

    status, body = horde.reply(generation_id, message=message(content=wrong))
    assert (status, body["rc"]) == (400, "ChatSubmitNonconformant")
    assert "cannot be compiled" not in body["message"]
    assert horde.reply(generation_id, message=message(content=right))[0] in outcomes


UNUSABLE: list[Any] = [
    pytest.param({"type": "colour"}, marks=mark.spec("VER-31")),
    pytest.param({"type": "string", "pattern": "("}, marks=mark.spec("VER-31")),
    pytest.param({"$ref": "#/$defs/nowhere"}, marks=mark.spec("VER-32")),
]


@pytest.mark.spec("VER-33")
@pytest.mark.parametrize("schema", UNUSABLE)
def test_takes_a_request_whose_schema_cannot_be_compiled_and_refuses_every_reply_to_it(
    horde: Horde, schema: dict[str, Any]
) -> None:
    asked: dict[str, Any] = {"response_format": strictly(schema)}
    horde.pop()
    assert horde.submit(horde={"dry_run": True}, **asked)[0] == 200
    _, generation_id = hand_out(horde, **asked)

    for content in ('"red"', "{}", "1"):
        assert horde.reply(generation_id, message=message(content=content)) == (
            400,
            {"message": CANNOT_BE_COMPILED, "rc": "ChatSubmitNonconformant"},
        )


@contextmanager
def serving_schemas() -> Iterator[tuple[str, list[str]]]:
    """Serve a schema that everything matches, and collect who asks for it."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"true")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Keep the test's output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.spec("VER-30", "VER-32")
@pytest.mark.parametrize("key", ["$ref", "$dynamicRef", "$schema"])
def test_fetches_nothing_a_schema_names(horde: Horde, key: str) -> None:
    with serving_schemas() as (address, asked):
        schema = {key: f"{address}/schema.json", "$id": f"{address}/own.json", "type": "integer"}
        _, generation_id = hand_out(horde, response_format=strictly(schema))

        status, body = horde.reply(generation_id, message=message(content="1"))

    # A draft nobody knows is judged as the newest one is; a schema elsewhere is not there.
    assert (status, body.get("message")) == ((200, None) if key == "$schema" else (400, CANNOT_BE_COMPILED))
    assert asked == []


@pytest.mark.spec("VER-36")
@pytest.mark.parametrize("reason", ["stop", "length", "content_filter"])
@pytest.mark.parametrize(
    "asked", [{"response_format": {"type": "json_object"}}, {"tools": TOOLS, "tool_choice": "required"}]
)
def test_no_finish_reason_is_an_excuse(horde: Horde, asked: dict[str, Any], reason: str) -> None:
    _, generation_id = hand_out(horde, **asked)

    status, body = horde.reply(generation_id, message=message(content='{"sha'), finish_reason=reason)

    assert (status, body["rc"]) == (400, "ChatSubmitNonconformant")


@pytest.mark.spec("VER-40", "SUB-49")
@pytest.mark.parametrize("state", ["censored", "csam"])
class TestCensoredReply:
    def test_is_verified_like_any_other(self, horde: Horde, state: str) -> None:
        _, generation_id = hand_out(horde, response_format={"type": "json_object"})

        for changes, rc in (
            ({"message": message(content="Red.")}, "ChatSubmitNonconformant"),
            ({"message": message(call())}, "ChatSubmitInvalid"),
            ({"message": None}, "ChatSubmitInvalid"),
            ({"message": message()}, "ChatSubmitInvalid"),
            ({"message": message(content="{}"), "finish_reason": None}, "ChatSubmitInvalid"),
        ):
            status, body = horde.reply(generation_id, state=state, **changes)
            assert (status, body["rc"]) == (400, rc)
        assert one_value("SELECT generation IS NULL AND NOT faulted FROM processing_gens") is True

    def test_is_stored_paid_in_full_and_charged_its_burn_alone(self, horde: Horde, state: str) -> None:
        request_id, generation_id = hand_out(horde, max_tokens=1024)

        status, body = horde.reply(generation_id, state=state, message=message(content="x" * 400))

        generation = shown(horde, request_id)
        assert (status, body) == (200, {"reward": 3.27})
        assert (generation["state"], generation["message"]) == (state, message(content="x" * 400))
        assert generation["charge_basis"] == "output_estimate"
        assert horde.kudos(horde.owner) == Decimal("3.27")
        assert horde.kudos(horde.requester) == Decimal(10_000) - 1 - 1


@pytest.mark.spec("SUB-33", "SUB-36", "SUB-34", "PRC-15")
@pytest.mark.parametrize("content", [None, ""])
def test_stores_an_empty_text_beside_calls(horde: Horde, content: str | None) -> None:
    request_id, generation_id = hand_out(horde, tools=TOOLS)

    horde.reply(generation_id, message=message(call(), content=content), finish_reason="tool_calls")

    generation = shown(horde, request_id)
    assert (generation["text"], generation["message"]) == ("", message(call(), content=content))
    assert one_value("SELECT generation FROM processing_gens") == ""
    assert horde.status(request_id)[1]["done"] is True


@pytest.mark.spec("SUB-34")
def test_stores_no_calls_where_there_are_none(horde: Horde) -> None:
    request_id, generation_id = hand_out(horde, tools=TOOLS)

    horde.reply(generation_id, message=message(content="I see.", tool_calls=None))

    assert one_value("SELECT message ? 'tool_calls' FROM processing_gens") is False
    assert shown(horde, request_id)["message"] == message(content="I see.")


@pytest.mark.spec("SUB-35")
def test_replaces_nul_characters_inside_calls(horde: Horde) -> None:
    request_id, generation_id = hand_out(horde, tools=TOOLS)

    horde.reply(generation_id, message=message(call("look", "a\0", '{"at": "\0"}'), content="\0"))

    kept = message(call("look", "a\ufffd", '{"at": "\ufffd"}'), content="\ufffd")
    assert shown(horde, request_id)["message"] == kept
    status, body = horde.reply(hand_out(horde, tools=TOOLS)[1], message=message(call("look\0")))
    assert (status, body["rc"]) == (400, "ChatSubmitInvalid")


@pytest.mark.spec("SUB-37", "PRC-27")
def test_completes_charges_and_pays_an_empty_reply(horde: Horde) -> None:
    request_id, generation_id = hand_out(horde, max_tokens=1024)

    status, body = horde.reply(generation_id, message=message(content=""))

    # The least of 20 tokens x 0.027 x C(20).
    assert (status, body) == (200, {"reward": 0.65})
    assert horde.kudos(horde.requester) == Decimal(10_000) - 1 - Decimal("0.65") - 1
    shows = horde.status(request_id)[1]
    assert (shows["done"], shows["finished"], shows["generations"][0]["text"]) == (True, 1, "")


@pytest.mark.parametrize(
    ("sent", "counted"),
    [
        pytest.param(message(content=""), 1, marks=mark.spec("SUB-38"), id="an empty text"),
        pytest.param(message(content="", reasoning_content="Hm."), 1, marks=mark.spec("SUB-38"), id="and reasoning"),
        pytest.param(message(content=" "), 0, marks=mark.spec("SUB-38"), id="a space"),
        pytest.param(message(call(), content=""), 0, marks=mark.spec("SUB-39"), id="calls and an empty text"),
        pytest.param(message(call()), 0, marks=mark.spec("SUB-39"), id="calls and null"),
    ],
)
def test_counts_empty_replies_by_model(horde: Horde, sent: dict[str, Any], counted: int) -> None:
    declared: dict[str, Any] = {**ABLE, "models": [KNOWN_MODEL], "model_id": KNOWN_MODEL}
    horde.pop(**declared)
    horde.submit(model=KNOWN_MODEL, tools=TOOLS)
    generation_id = horde.pop(**declared)[1]["id"]
    before = empty_replies(KNOWN_MODEL), empty_replies("other")

    assert horde.reply(generation_id, message=sent, model_id=KNOWN_MODEL)[0] == 200
    horde.reply(generation_id, message=sent, model_id=KNOWN_MODEL)

    assert (empty_replies(KNOWN_MODEL), empty_replies("other")) == (before[0] + counted, before[1])


@pytest.mark.spec("SUB-38")
def test_counts_empty_replies_of_models_nobody_knows_together(horde: Horde) -> None:
    before = empty_replies("other")

    for content in ("", "Hello"):
        horde.reply(horde.in_flight()[1], message=message(content=content))

    assert (empty_replies("other"), empty_replies(MODEL)) == (before + 1, 0)


@pytest.mark.spec("SUB-05", "SUB-47")
def test_stores_as_many_calls_as_a_reply_may_have_as_their_backend_minted_them(horde: Horde) -> None:
    request_id, generation_id = hand_out(horde, tools=TOOLS)
    calls = [call("look", f"{number:\u00e9>256}", "no JSON") for number in range(129)]

    status, body = horde.reply(generation_id, message=message(*calls))
    assert (status, body["rc"]) == (400, "ChatSubmitInvalid")
    assert horde.reply(generation_id, message=message(*calls[:128]))[0] == 200

    assert shown(horde, request_id)["message"]["tool_calls"] == calls[:128]


@pytest.mark.spec("VER-41")
def test_quotes_nothing_of_a_reply_but_a_part_of_a_name(horde: Horde) -> None:
    _, generation_id = hand_out(horde, tools=TOOLS)
    sent = message(call("n" * 100_000, "the id", "the arguments"), content="the text", reasoning_content="the thought")

    body = horde.reply(generation_id, message=sent)[1]

    assert body["message"] == f"The reply calls '{'n' * 64}', which is not one of the request's tools."
