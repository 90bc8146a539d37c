"""A reply that holds half of a surrogate pair is no text: it is refused as the reply it is, and nothing is lost."""

import json
import random
import tracemalloc
from typing import Any

import orjson
import pytest

from hordechat.contract.json_body import parse_reply
from hordechat.contract.limits import MAX_JSON_SEPARATORS, MAX_REPLY_BODY_BYTES
from hordechat.contract.refusals import BadRequest
from tests.horde import Horde, one_value, reply_body
from tests.seeds import SEED

HALF = b"\\ud83d"
PLACE = b"HALF"


def submit_with_half(horde: Horde, body: dict[str, Any], *, half: bytes = HALF) -> tuple[int, dict[str, Any]]:
    sent = orjson.dumps(body).replace(PLACE, half)
    return horde.call("POST", "generate/text/submit", sent, api_key=horde.owner.api_key)


@pytest.mark.spec("RSN-16")
@pytest.mark.parametrize("half", [HALF, b"\\uDE00", b"\\ud83d \\ude00", b"\\ude00\\ud83d"])
@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"content": "Well", "reasoning_content": "a HALF"}, id="reasoning"),
        pytest.param({"content": "cut HALF"}, id="content"),
    ],
)
def test_a_chat_reply_is_refused_and_may_be_sent_again(horde: Horde, message: dict[str, Any], half: bytes) -> None:
    _, generation_id = horde.in_flight()

    status, body = submit_with_half(
        horde, reply_body(generation_id, message={"role": "assistant", **message}), half=half
    )

    assert (status, body["rc"]) == (400, "ChatSubmitInvalid")
    assert body["message"] == "The reply holds half of a surrogate pair, which is no text."
    assert one_value("SELECT chat_fault_rc FROM waiting_prompts") == "ChatSubmitInvalid"
    assert horde.reply(generation_id)[0] == 200


def test_a_whole_pair_is_text(horde: Horde) -> None:
    request_id, generation_id = horde.in_flight()
    whole = reply_body(generation_id, message={"role": "assistant", "content": "HALF"})

    assert submit_with_half(horde, whole, half=b"\\ud83d\\ude00")[0] == 200
    assert horde.status(request_id)[1]["generations"][0]["text"] == "\U0001f600"


@pytest.mark.parametrize("change", [{"id": "HALF"}, {"model_id": "HALF"}, {"state": "HALF"}, {"finish_reason": "HALF"}])
def test_anywhere_else_it_is_a_usual_refusal(horde: Horde, change: dict[str, Any]) -> None:
    _, generation_id = horde.in_flight()

    status, body = submit_with_half(horde, reply_body(generation_id) | change)

    assert 400 <= status < 500
    assert body["rc"] in {"InvalidJobID", "ChatSubmitInvalid", "BadRequest"}
    assert horde.reply(generation_id)[0] == 200


def test_a_fault_is_taken_all_the_same(horde: Horde) -> None:
    _, generation_id = horde.in_flight()
    fault = {"id": generation_id, "state": "faulted", "model_id": "demo/echo", "fault_reason": "HALF"}

    assert submit_with_half(horde, fault) == (200, {"reward": 0.0})


def test_a_text_reply_is_refused_and_may_be_sent_again(horde: Horde) -> None:
    horde.queued_text()
    generation_id = horde.pop_text()[1]["id"]

    status, body = submit_with_half(horde, {"id": generation_id, "generation": "cut HALF"})

    assert (status, body["rc"]) == (400, "BadRequest")
    assert body["errors"] == {"generation": "The reply holds half of a surrogate pair, which is no text."}
    assert horde.reply_text(generation_id)[0] == 200


@pytest.mark.parametrize(
    "body", [b'{"a": "\\ud83d"', b'["\\ud83d"]', b'{"a": ["\\ud83d", NaN]}', b"\\ud83d", b'{"a": "\\Ud83d"}']
)
def test_what_is_no_object_of_strict_json_stays_that(horde: Horde, body: bytes) -> None:
    status, answer = horde.call("POST", "generate/text/submit", body, api_key=horde.owner.api_key)

    assert (status, answer["rc"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (b"\\uD800\\ud83d\\uDE00", "\ufffd\U0001f600"),
        (b"\\ud83d\\ude00\\ude00", "\U0001f600\ufffd"),
        (b"\\\\ud800\\udfff", "\\ud800\ufffd"),
        (b"\\\\\\ud800", "\\\ufffd"),
        (b"\\ud800u\\ud7ff\\ue000", "\ufffdu\ud7ff\ue000"),
    ],
)
def test_each_half_alone_is_replaced_and_nothing_else(escaped: bytes, text: str) -> None:
    found = parse_reply(b'{"a": "' + escaped + b'"}')

    assert (found.values, found.holds_half_pairs) == ({"a": text}, True)


def test_any_row_of_escapes_is_read_as_python_reads_it() -> None:
    dice = random.Random(SEED)
    pieces = ["\\ud83d", "\\ude00", "\\uD800", "\\uDFFF", "\\ud7ff", "\\ue000", "\\\\", "\\n", '\\"', "ud800", "u", "x"]
    for _ in range(5000):
        sent = "".join(dice.choices(pieces, k=dice.randrange(8)))
        # Decoded to UTF-16 and back, halves that are alone are replaced and pairs become characters.
        read: str = json.loads(f'"{sent}"').encode("utf-16", "surrogatepass").decode("utf-16", "replace")

        assert parse_reply(f'{{"a": "{sent}"}}'.encode()).values == {"a": read}, sent


def test_a_body_of_too_many_values_is_refused_before_it_takes_memory() -> None:
    body = b'{"a": "' + HALF + b'", "b": [' + b"[]," * (MAX_REPLY_BODY_BYTES // 3 - 50) + b"1]}"
    assert body.count(b",") + body.count(b"[") > MAX_JSON_SEPARATORS

    tracemalloc.start()
    try:
        with pytest.raises(BadRequest):
            parse_reply(body)
        most_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert most_bytes < 4 * MAX_REPLY_BODY_BYTES
