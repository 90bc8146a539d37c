"""Few large bodies are parsed at a time; the next one waits, and is told when to come back."""

import json

import pytest
from django.test import RequestFactory

from hordechat.http import body
from hordechat.http.refusals import ServerBusy, as_refusal
from tests.horde import Horde, one_value

LARGE = json.dumps({"text": "x" * body.LARGE_BODY_BYTES}).encode()


def read(sent: bytes) -> dict[str, object]:
    request = RequestFactory().post("/", sent, content_type="application/json")
    return body.read_object(request, limit_bytes=2 * body.LARGE_BODY_BYTES)


def test_a_large_body_waits_for_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "LARGE_BODY_WAIT_SECONDS", 0.05)
    for _ in range(body.LARGE_BODIES_AT_ONCE):
        assert body._large_bodies.acquire(blocking=False)
    try:
        with pytest.raises(ServerBusy):
            read(LARGE)
        assert read(b'{"a": 1}') == {"a": 1}
    finally:
        for _ in range(body.LARGE_BODIES_AT_ONCE):
            body._large_bodies.release()

    assert len(str(read(LARGE)["text"])) == body.LARGE_BODY_BYTES


def test_a_row_the_database_refuses_stays_out_of_the_log(horde: Horde, caplog: pytest.LogCaptureFixture) -> None:
    request_id = horde.queued(messages=[{"role": "user", "content": "a secret of the client"}])

    with pytest.raises(Exception, match="a secret of the client") as caught:
        one_value("UPDATE waiting_prompts SET n = 5 WHERE id = %s RETURNING 1", [request_id])
    refusal = as_refusal(caught.value)

    assert refusal.code == "InternalServerError"
    assert "waiting_prompts_n_in_range" in caplog.text
    assert "a secret of the client" not in caplog.text
