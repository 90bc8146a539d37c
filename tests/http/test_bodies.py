"""Bodies over real sockets: bounded while they are read, parsed as strict JSON, refused in the one shape."""

import json
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from hordechat.contract.limits import KIB, MAX_JSON_SEPARATORS, MIB
from tests.http.wire import MODEL, Site, read_answer, refusal

CHAT = "/api/v2/generate/chat/async"
POP = "/api/v2/generate/text/pop"
SUBMIT = "/api/v2/generate/text/submit"
BOUNDS = [(CHAT, 36 * MIB), (SUBMIT, 4 * MIB), (POP, 256 * KIB)]
ABRUPT = struct.pack("ii", 1, 0)
"""SO_LINGER that resets the connection when it is closed."""


def head(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", "apikey: 0000000000", *lines, "", ""]).encode()


def chunked(body: bytes, *, piece_bytes: int = 64 * KIB) -> Iterator[bytes]:
    for start in range(0, len(body), piece_bytes):
        yield body[start : start + piece_bytes]


def padded(body: dict[str, object], length: int) -> bytes:
    sent = json.dumps(body).encode()
    return sent + b" " * (length - len(sent))


@pytest.mark.spec("BDY-02", "BDY-04", "BDY-08", "BDY-10", "BDY-11")
@pytest.mark.parametrize(("path", "limit_bytes"), BOUNDS)
def test_a_declared_length_one_byte_over_is_refused_before_the_body_is_sent(
    site: Site, path: str, limit_bytes: int
) -> None:
    answer = site.exchange(head(path, f"Content-Length: {limit_bytes + 1}"))

    assert refusal(answer) == (413, "RequestTooLarge")
    assert answer.json["message"] == f"The request body is larger than the limit of {limit_bytes} bytes."


@pytest.mark.spec("BDY-03")
@pytest.mark.parametrize(("path", "limit_bytes"), BOUNDS)
def test_a_body_of_exactly_the_bound_is_read_and_judged(site: Site, path: str, limit_bytes: int) -> None:
    answer = site.post(path, padded({"id": 1}, limit_bytes))

    assert refusal(answer)[0] == 400
    assert answer.json["rc"] in {"BadRequest", "UnsupportedChatParameter"}


@pytest.mark.spec("BDY-04", "BDY-06")
@pytest.mark.parametrize(("path", "limit_bytes"), BOUNDS)
def test_a_chunked_body_one_byte_over_is_refused(site: Site, path: str, limit_bytes: int) -> None:
    answer = site.post(path, chunked(b"x" * (limit_bytes + 1), piece_bytes=MIB))

    assert refusal(answer) == (413, "RequestTooLarge")


@pytest.mark.spec("BDY-05")
def test_a_chunked_body_without_end_is_refused_at_the_first_byte_over(site: Site) -> None:
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"

    answer = site.exchange(head(POP, "Transfer-Encoding: chunked"), *[piece] * 4, b"1\r\nx\r\n")

    assert refusal(answer) == (413, "RequestTooLarge")


@pytest.mark.spec("BDY-07")
@pytest.mark.parametrize(("path", "limit_bytes"), BOUNDS)
def test_a_chunked_body_within_the_bound_is_handled_like_any_other(site: Site, path: str, limit_bytes: int) -> None:
    sent = padded({"id": 1}, limit_bytes)

    answers = [site.post(path, chunked(sent, piece_bytes=MIB)), site.post(path, sent)]

    assert [(answer.status, answer.body) for answer in answers] == [(answers[1].status, answers[1].body)] * 2


@pytest.mark.spec("BDY-09")
def test_a_request_at_every_other_cap_at_once_is_not_too_large(site: Site) -> None:
    image = "data:image/png;base64," + "A" * (5 * MIB // 3 * 4)
    parts = [{"type": "text", "text": "\u00e9" * (MIB // 2)}, *[{"type": "image_url", "image_url": {"url": image}}] * 5]
    sent = {"model": "nobody/serves-this", "messages": [{"role": "user", "content": parts}]}
    body = json.dumps(sent, ensure_ascii=False).encode()

    answer = site.post(CHAT, body)

    # Every cap holds: what answers is the first question about facts, whether somebody serves the model.
    assert 34 * MIB < len(body) < 36 * MIB
    assert refusal(answer) == (404, "UnknownChatModel")


@pytest.mark.parametrize("mebibytes", [3, 10, 34])
def test_a_large_body_is_served(site: Site, mebibytes: int) -> None:
    site.pop()
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "metadata": "a" * mebibytes * MIB}

    answer = site.post(CHAT, json.dumps(body).encode(), apikey=site.key_of("client"))

    assert answer.status == 202


@pytest.mark.spec("BDY-12")
@pytest.mark.parametrize("path", [CHAT, POP, SUBMIT])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"[]",
        b"[{}]",
        b'"a"',
        b"1",
        b"null",
        b"true",
        b"{",
        b"{}{}",
        b"{'a': 1}",
        b"a=1",
        b"\xff",
        b"\xef\xbb\xbf{}",
    ],
)
def test_what_is_no_json_object_is_refused(site: Site, path: str, body: bytes) -> None:
    assert refusal(site.post(path, body)) == (400, "BadRequest")


def test_a_request_without_a_length_has_an_empty_body(site: Site) -> None:
    assert refusal(site.exchange(head(CHAT))) == (400, "BadRequest")


@pytest.mark.spec("BDY-13", "BDY-14", "BDY-16")
@pytest.mark.parametrize("path", [CHAT, POP, SUBMIT])
@pytest.mark.parametrize(
    "value",
    [
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e400",
        b"1" * 400,
        b'"\\ud83d"',
        b'"\\ude00 \\ud83d"',
        b'"\xed\xa0\x80"',
        b'{"\\ud83d": 1}',
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
        b"[" * 200_000,
    ],
    ids=lambda value: value[:12].decode("latin-1"),
)
def test_what_strict_json_cannot_say_is_refused(site: Site, path: str, value: bytes) -> None:
    body = b'{"metadata": %s, "id": "x", "name": "a", "models": ["abc"]}' % value

    assert refusal(site.post(path, body)) == (400, "BadRequest")


@pytest.mark.parametrize("path", [CHAT, POP, SUBMIT])
@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_a_thousand_levels_in_any_key_end_in_an_orderly_answer(site: Site, path: str, opening: bytes) -> None:
    nested = opening * 1000 + b"1" + (b"]" if opening == b"[" else b"}") * 1000
    keys = (
        *(
            "model",
            "models",
            "messages",
            "metadata",
            "tools",
            "response_format",
            "reasoning_effort",
            "stop",
            "n",
            "seed",
        ),
        *(
            "horde",
            "id",
            "message",
            "model_id",
            "finish_reason",
            "state",
            "generation",
            "name",
            "chat_limits",
            "chat_jobs",
        ),
    )
    for key in keys:
        answer = site.post(path, b'{"%s": %s}' % (key.encode(), nested))
        assert refusal(answer)[0] == 400, key


def test_more_values_than_a_body_may_hold_are_refused_unparsed(site: Site) -> None:
    body = b'{"metadata":[' + b"0," * MAX_JSON_SEPARATORS + b"0]}"

    answer = site.post(CHAT, body)

    assert refusal(answer) == (400, "BadRequest")
    assert answer.json["message"] == f"The request body holds more than {MAX_JSON_SEPARATORS} values."


@pytest.mark.spec("BDY-15")
@pytest.mark.parametrize(
    "body",
    [
        {"model": MODEL, "messages": [{"role": "user", "content": "a\0b"}]},
        {"model": MODEL, "messages": [{"role": "user", "content": [{"type": "text", "text": "\0"}]}]},
        {"model": MODEL, "messages": [{"role": "user", "content": "a", "name": "\0"}]},
        {"model": MODEL, "messages": [{"role": "user", "content": "a"}], "stop": ["\0"]},
        {"model": MODEL, "messages": [{"role": "user", "content": "a"}], "metadata": {"a": {"\0": 1}}},
        {"model": "a\0", "messages": [{"role": "user", "content": "a"}]},
    ],
)
def test_a_nul_character_anywhere_in_a_chat_body_is_refused(site: Site, body: dict[str, object]) -> None:
    before = site.count("waiting_prompts")

    answer = site.post(CHAT, json.dumps(body).encode())

    assert refusal(answer) == (400, "NulByteInPayload")
    assert site.count("waiting_prompts") == before


@pytest.mark.parametrize("key", ["name", "models", "bridge_agent", "model_id", "softprompts"])
def test_a_nul_character_in_a_pop_is_refused(site: Site, key: str) -> None:
    changes: dict[str, Any] = {key: ["a\0b", MODEL] if key == "models" else "a\0b"}

    assert refusal(site.pop(**changes)) == (400, "NulByteInPayload")


@pytest.mark.spec("BDY-17")
@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=", "\u00ff/;;=", ""],
)
def test_a_body_is_json_whatever_its_content_type_says(site: Site, content_type: str) -> None:
    answer = site.send("POST", CHAT, b'{"n": 1}', {"apikey": "0", "Content-Type": content_type.encode("latin-1")})

    assert refusal(answer) == (400, "BadRequest")
    assert answer.json["errors"] == {"messages": "Field required."}


@pytest.mark.parametrize("is_reset", [False, True])
@pytest.mark.parametrize("framing", ["Content-Length: 100000", "Transfer-Encoding: chunked"])
def test_a_client_that_leaves_half_way_frees_its_thread_and_leaves_nothing(
    site: Site, framing: str, is_reset: bool
) -> None:
    before = site.count("waiting_prompts")

    # The server has two threads: six clients that kept theirs would stop it.
    for _ in range(6):
        with site.connection() as connection:
            connection.sendall(head(CHAT, framing) + b"5\r\n{")
            if is_reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABRUPT)
    started_at = time.monotonic()
    answers = [site.send("GET", "/api/v2/status/heartbeat").status for _ in range(4)]

    assert answers == [200] * 4
    assert time.monotonic() - started_at < 20
    assert site.count("waiting_prompts") == before


@pytest.mark.parametrize(
    ("framing", "sent"), [("Content-Length: 9", b'{"n": 1}'), ("Transfer-Encoding: chunked", b"9\r\n{")]
)
def test_a_body_that_ends_early_is_refused(site: Site, framing: str, sent: bytes) -> None:
    with site.connection() as connection:
        connection.sendall(head(CHAT, framing) + sent)
        connection.shutdown(socket.SHUT_WR)

        answer = read_answer(connection)

    assert refusal(answer) == (400, "BadRequest")


@pytest.mark.parametrize("length", ["-1", "1e3", "0x10", "1 2", "9" * 5000])
def test_a_length_that_is_no_number_is_refused(site: Site, length: str) -> None:
    assert site.exchange(head(CHAT, f"Content-Length: {length}")).status == 400


def test_a_client_that_sends_an_oversized_body_to_its_end_can_read_the_refusal(site: Site) -> None:
    with site.connection() as connection:
        connection.sendall(head(SUBMIT, f"Content-Length: {8 * MIB}"))
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(b" " * 8 * MIB)

        answer = read_answer(connection)

    assert refusal(answer) == (413, "RequestTooLarge")


def test_a_fault_with_a_nested_model_is_refused_and_keeps_the_job(site: Site) -> None:
    job = site.take_job()
    fault = b'{"id": "%s", "state": "faulted", "model_id": %s}'
    nested = fault % (job.generation_id.encode(), b"[" * 1000 + b"]" * 1000)
    plain = fault % (job.generation_id.encode(), json.dumps(job.model).encode())

    refused = site.post(SUBMIT, nested, apikey=site.key_of("owner"))
    given_back = site.post(SUBMIT, plain, apikey=site.key_of("owner"))

    assert refusal(refused) == (400, "ChatSubmitInvalid")
    assert (given_back.status, given_back.json) == (200, {"reward": 0})


def test_a_reply_with_nul_characters_is_stored_with_replacements(site: Site) -> None:
    job = site.take_job()
    reply = {
        "id": job.generation_id,
        "message": {"role": "assistant", "content": "a\0b", "reasoning_content": "\0"},
        "finish_reason": "stop",
        "native_finish_reason": "\0",
        "model_id": job.model,
    }

    answer = site.post(SUBMIT, json.dumps(reply).encode(), apikey=site.key_of("owner"))

    assert answer.status == 200
    stored = site.send("GET", f"/api/v2/generate/chat/status/{job.request_id}").json["generations"][0]
    assert stored["message"] == {"role": "assistant", "content": "a\ufffdb", "reasoning_content": "\ufffd"}
    assert stored["native_finish_reason"] == "\ufffd"
