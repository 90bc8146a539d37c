"""A reply's reasoning is stored beside its content, never judged, and counted as the model's work."""

from typing import Any

import pytest

from hordechat.contract.limits import MAX_REASONING_BYTES
from tests.horde import ABLE, Horde, one_value

mark = pytest.mark
COUNTS = ("prompt_tokens", "completion_tokens", "reasoning_tokens")
TOOL = {"type": "function", "function": {"name": "look"}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "x" * 396}}
SENT_UNDER_STRICT = {
    "type": "json_schema",
    "json_schema": {"name": "any", "strict": True, "schema": {"type": "object", "additionalProperties": False}},
}


def message(content: str | None = "Hello yourself", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def shown(horde: Horde, request_id: str) -> dict[str, Any]:
    [generation] = horde.status(request_id)[1]["generations"]
    found: dict[str, Any] = generation
    return found


def measured(horde: Horde, sent: dict[str, Any], *, seconds: int, max_tokens: int) -> tuple[float, float, float]:
    """Walk a request to a late reply with other counts than its own; return reward, charge and the worker's sample."""
    request_id, generation_id = horde.in_flight(declared=ABLE, tools=[TOOL], max_tokens=max_tokens)
    one_value("UPDATE processing_gens SET created = created - interval '1 s' * %s RETURNING 1", [seconds])
    reported: dict[str, Any] = dict.fromkeys(COUNTS, 1)
    status, body = horde.reply(generation_id, message=sent, **reported)
    assert status == 200, body
    sample = one_value("SELECT speed_samples[1] FROM workers")
    return body["reward"], horde.status(request_id)[1]["kudos"], sample


@pytest.mark.spec("RSN-03", "RSN-05", "RSN-06", "RSN-15", "PRC-15")
@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        pytest.param({"reasoning_content": "Greet."}, {"reasoning_content": "Greet."}, id="some"),
        pytest.param({"reasoning_content": ""}, {"reasoning_content": ""}, id="an empty one was submitted"),
        pytest.param({"reasoning_content": None}, {}, id="null is none"),
        pytest.param({}, {}, id="none"),
        pytest.param({"reasoning": "Greet."}, {}, id="another key is ignored"),
    ],
)
def test_is_stored_beside_the_content_where_it_was_submitted(
    horde: Horde, sent: dict[str, Any], stored: dict[str, Any]
) -> None:
    request_id, generation_id = horde.in_flight()

    assert horde.reply(generation_id, message=message(**sent))[0] == 200

    generation = shown(horde, request_id)
    assert (generation["text"], generation["message"]) == ("Hello yourself", message(**stored))
    assert one_value("SELECT generation FROM processing_gens") == "Hello yourself"
    assert one_value("SELECT message ? 'reasoning_content' FROM processing_gens") is bool(stored)


@pytest.mark.spec("RSN-06")
def test_is_no_part_of_an_empty_content(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    sent = message("", reasoning_content="<think>I should")

    assert horde.reply(generation_id, message=sent, finish_reason="length")[0] == 200

    generation = shown(horde, request_id)
    assert (generation["text"], generation["message"], generation["finish_reason"]) == ("", sent, "length")
    assert horde.status(request_id)[1]["done"] is True


@pytest.mark.spec("RSN-15")
@pytest.mark.parametrize("sent", [1, True, ["Greet."], {"text": "Greet."}])
def test_is_refused_where_it_is_no_text(horde: Horde, sent: object) -> None:
    _, generation_id = horde.in_flight()

    status, body = horde.reply(generation_id, message=message(reasoning_content=sent))

    assert (status, body) == (
        400,
        {
            "message": "The reply is invalid: 'message.reasoning_content': Input should be a valid string.",
            "rc": "ChatSubmitInvalid",
        },
    )


@pytest.mark.spec("RSN-04")
def test_has_its_nul_characters_replaced(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()

    horde.reply(generation_id, message=message(reasoning_content="\0a\0"))

    assert shown(horde, request_id)["message"] == message(reasoning_content="\ufffda\ufffd")


@pytest.mark.spec("HOP-17")
@pytest.mark.parametrize("options", [{"include_reasoning": False}, {"include_reasoning": True}, {}])
def test_is_shown_whatever_a_front_was_told(horde: Horde, options: dict[str, Any]) -> None:
    request_id, generation_id = horde.in_flight(horde=options)

    horde.reply(generation_id, message=message(reasoning_content="Greet."))

    assert shown(horde, request_id)["message"] == message(reasoning_content="Greet.")


@pytest.mark.spec("RSN-07")
@pytest.mark.parametrize("form", [{"type": "json_object"}, SENT_UNDER_STRICT])
def test_is_not_held_to_the_format_of_the_reply(horde: Horde, form: dict[str, Any]) -> None:
    _, generation_id = horde.in_flight(declared=ABLE, response_format=form)

    for content in ("Red.", ""):
        status, body = horde.reply(generation_id, message=message(content, reasoning_content="{}"))
        assert (status, body["rc"]) == (400, "ChatSubmitNonconformant")
    assert horde.reply(generation_id, message=message("{}", reasoning_content="Red? No: {"))[0] == 200


@pytest.mark.spec("RSN-08", "RSN-09", "RSN-10", "PRC-07")
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(message("x" * 1200), id="a content"),
        pytest.param(message("", reasoning_content="x" * 1200), id="reasoning"),
        pytest.param(message("x" * 400, reasoning_content="é" * 800), id="both, in characters and not in bytes"),
        pytest.param(message("x" * 400, reasoning_content="\0" * 800), id="with NUL characters, each replaced by one"),
        pytest.param(message(None, tool_calls=[CALL], reasoning_content="x" * 800), id="reasoning and a call"),
        pytest.param(message("x" * 400, tool_calls=[CALL], reasoning_content="x" * 400), id="all three"),
    ],
)
def test_counts_like_a_content_in_charge_reward_and_speed(horde: Horde, sent: dict[str, Any]) -> None:
    # 1,200 characters are 300 tokens: x 0.027 x C(20), and for the client burn and tax.
    assert measured(horde, sent, seconds=1000, max_tokens=1024) == (9.82, 11.82, 0.3)


@pytest.mark.spec("RSN-11")
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(message("x" * 400), id="a content as long as was asked for"),
        pytest.param(message("", reasoning_content="x" * 4000), id="longer reasoning"),
        pytest.param(message("x" * 300, reasoning_content="x" * 300), id="longer together"),
        pytest.param(message("x" * 4000, tool_calls=[CALL], reasoning_content="x" * 4000), id="all three longer"),
    ],
)
def test_counts_with_the_rest_up_to_the_length_that_was_asked_for(horde: Horde, sent: dict[str, Any]) -> None:
    # 100 tokens x 0.027 x C(20), and for the client burn and tax.
    assert measured(horde, sent, seconds=1000, max_tokens=100) == (3.27, 5.27, 0.1)


@pytest.mark.spec("PRC-09")
def test_keeps_a_worker_from_looking_slow(horde: Horde) -> None:
    late: dict[str, int] = {"seconds": 50, "max_tokens": 1024}
    thoughtful = measured(horde, message("Yes.", reasoning_content="x" * 3996), **late)[2]
    curt = measured(horde, message("Yes."), **late)[2]

    # A thousand tokens in 50 seconds, and the least of 20.
    assert 18 < thoughtful <= 20
    assert curt < 1


@pytest.mark.spec("RSN-13", "SUB-13", "PRC-17")
@pytest.mark.parametrize("tokens", [None, 0, 7, 10_000_000])
def test_its_reported_tokens_are_stored_and_shown(horde: Horde, tokens: int | None) -> None:
    request_id, generation_id = horde.in_flight()

    horde.reply(generation_id, reasoning_tokens=tokens, completion_tokens=9)

    assert one_value("SELECT reasoning_tokens FROM processing_gens") == tokens
    assert shown(horde, request_id)["reasoning_tokens"] == tokens
    assert shown(horde, request_id)["completion_tokens"] == 9


@pytest.mark.spec("RSN-14", "PRC-14")
@pytest.mark.parametrize("count", [*COUNTS])
def test_reported_tokens_move_no_kudos(horde: Horde, count: str) -> None:
    paid = []
    for tokens in (None, 0, 10_000_000):
        request_id, generation_id = horde.in_flight(max_tokens=1024)
        sent = message("x" * 400, reasoning_content="x" * 400)
        reported: dict[str, Any] = {count: tokens}
        reward = horde.reply(generation_id, message=sent, **reported)[1]["reward"]
        assert shown(horde, request_id)[count] == tokens
        paid.append((reward, horde.status(request_id)[1]["kudos"]))

    # 200 tokens x 0.027 x C(20), and for the client burn and tax.
    assert paid == [(6.54, 8.54)] * 3


@pytest.mark.spec("RSN-12")
@pytest.mark.parametrize(
    "largest",
    [
        pytest.param("x" * MAX_REASONING_BYTES, id="of one byte a character"),
        pytest.param("é" * (MAX_REASONING_BYTES // 2), id="of two"),
        pytest.param("語" * (MAX_REASONING_BYTES // 3) + "x", id="of three"),
        pytest.param("👍" * (MAX_REASONING_BYTES // 4), id="of four"),
        pytest.param(
            "\0" * 300_000 + "x" * (MAX_REASONING_BYTES - 300_000),
            marks=mark.spec("RSN-16"),
            id="that grows when it is stored",
        ),
    ],
)
def test_may_hold_a_mebibyte_as_it_is_sent_and_no_byte_more(horde: Horde, largest: str) -> None:
    assert len(largest.encode()) == 1024 * 1024
    request_id, generation_id = horde.in_flight()

    status, body = horde.reply(generation_id, message=message(reasoning_content=largest + "x"))
    assert (status, body) == (
        400,
        {
            "message": "The reply is invalid: 'message.reasoning_content': has to hold at most 1048576 bytes.",
            "rc": "ChatSubmitInvalid",
        },
    )
    assert one_value("SELECT generation IS NULL AND NOT faulted FROM processing_gens") is True
    assert horde.reply(generation_id, message=message(reasoning_content=largest))[0] == 200

    assert shown(horde, request_id)["message"]["reasoning_content"] == largest.replace("\0", "\ufffd")
