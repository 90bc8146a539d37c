"""Thousands of bodies near to valid ones: an orderly answer to each, and nothing crooked in the database afterwards."""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from hordechat.errors import ErrorCode
from hordechat.local import stack
from tests.contract.broken_bodies import broken
from tests.contract.strategies import TEXT_BODIES, pop_bodies, reply_bodies, valid_bodies
from tests.http.test_hostile_values import SERVED_CHAT
from tests.http.wire import MODEL, Job, Site, refusal
from tests.seeds import SEED

CHAT = "/api/v2/generate/chat/async"
TEXT = "/api/v2/generate/text/async"
POP = "/api/v2/generate/text/pop"
SUBMIT = "/api/v2/generate/text/submit"
JOB_ID = "<id of the job>"
JOB_MODEL = "<model of the job>"
"""Stand for the job that is in a worker's hands when the body is sent."""

JOB_IDS = st.sampled_from([*[JOB_ID] * 6, f"{{{JOB_ID}}}", f"urn:uuid:{JOB_ID}", f"{JOB_ID} "])

BODIES = {
    CHAT: st.just(SERVED_CHAT)
    | st.just({**SERVED_CHAT, "horde": {}})
    | valid_bodies().map(lambda body: {**{key: body[key] for key in body if key != "models"}, "model": MODEL}),
    TEXT: TEXT_BODIES,
    POP: pop_bodies(MODEL),
    SUBMIT: reply_bodies(JOB_IDS, JOB_MODEL),
}
FEW_BODIES, MANY_BODIES = 200, 5000

CROOKED_ROWS = """
    WITH waiting AS (
        SELECT id
          FROM waiting_prompts
         WHERE active
           AND n > 0
           AND NOT faulted
           AND cancelled_at IS NULL
    )
    SELECT count(*)
      FROM waiting
      FULL JOIN queue_rows ON queue_rows.request_id = waiting.id
     WHERE waiting.id IS NULL
        OR queue_rows.request_id IS NULL
"""
"""Queue rows that lead to no waiting request, and waiting requests no queue row leads to."""


def chunked(body: bytes) -> Iterable[bytes]:
    size = max(1, len(body) // 3)
    return [body[start : start + size] for start in range(0, len(body), size)]


def declare(name: str, value: str) -> Callable[[bytes], tuple[bytes, dict[str, str]]]:
    return lambda body: (body, {name: value})


FRAMINGS: dict[str, Callable[[bytes], tuple[bytes | Iterable[bytes], dict[str, str]]]] = {
    "plain": lambda body: (body, {}),
    "chunked": lambda body: (chunked(body), {}),
    "gzip": lambda body: (gzip.compress(body), {"Content-Encoding": "gzip"}),
    "gzip in name": declare("Content-Encoding", "gzip"),
    "form": declare("Content-Type", "application/x-www-form-urlencoded"),
    "multipart": declare("Content-Type", "multipart/form-data; boundary=a"),
    "UTF-16 in name": declare("Content-Type", "application/json; charset=utf-16"),
    "expected": declare("Expect", "100-continue"),
}
FRAMING_NAMES = st.sampled_from(["plain"] * 8 + [*FRAMINGS])


@dataclass
class Horde:
    """A client and a worker that send broken bodies, and make good what those used up."""

    site: Site
    job: Job
    statuses: Counter[int] = field(default_factory=Counter)

    def send(self, path: str, body: bytes, framing: str) -> None:
        for marker, value in ((JOB_ID, self.job.generation_id), (JOB_MODEL, self.job.model)):
            body = body.replace(marker.encode(), value.encode())
        sent, headers = FRAMINGS[framing](body)
        key = self.site.key_of("owner" if path in {POP, SUBMIT} else "client")

        answer = self.site.post(path, sent, apikey=key, **headers)

        self.statuses[answer.status] += 1
        is_refused_image = answer.status == 503 and answer.json["rc"] == ErrorCode.CHAT_IMAGE_STORAGE_UNAVAILABLE
        assert answer.status < 500 or is_refused_image, (framing, body, answer.body)
        if answer.status >= 400:
            refusal(answer)
        elif path == SUBMIT:
            # A job given back waits again.
            self.cancel(CHAT, self.job.request_id)
            self.job = self.site.take_job()
        elif path != POP:
            self.cancel(path, answer.json.get("id"))
        elif answer.json["id"] is not None:
            self.offer_job()

    def cancel(self, path: str, request_id: str | None) -> None:
        """Take a request back, if there is one: a user may have few waiting."""
        if request_id is not None:
            self.site.send("DELETE", path.replace("async", f"status/{request_id}"))

    def offer_job(self) -> None:
        """Leave one request for the next pop to take."""
        answer = self.site.post(CHAT, json.dumps(SERVED_CHAT).encode(), apikey=self.site.key_of("client"))
        assert answer.status == 202, answer.body


def send_many(site: Site, path: str, *, count: int) -> Counter[int]:
    """Send that many broken bodies to a route and return how often each status came back."""
    site.pop()
    horde = Horde(site=site, job=site.take_job())
    if path == POP:
        horde.offer_job()

    @seed(SEED)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        # What a body meets depends on those before it, so a smaller one would fail for another reason or none.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(broken(BODIES[path]), FRAMING_NAMES)
    def send_one(body: bytes, framing: str) -> None:
        horde.send(path, body, framing)

    send_one()
    return horde.statuses


def assert_nothing_crooked(site: Site) -> None:
    done = stack.manage(site.environment, "ledger", "reconcile", "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    assert site.read(CROOKED_ROWS) == 0
    assert site.send("GET", "/healthz/ready").status == 200
    assert site.take_job().generation_id


def assert_mutated_bodies_are_survived(site: Site, *, count: int) -> None:
    errors = site.list_errors()

    for path in BODIES:
        statuses = send_many(site, path, count=count // len(BODIES))
        assert statuses.total() == count // len(BODIES)
        assert [status for status in statuses if status < 300], "some bodies have to get past every check"
        assert [status for status in statuses if status >= 400], "some bodies have to be refused"

    assert site.list_errors() == errors
    assert_nothing_crooked(site)


def test_two_hundred_mutated_bodies_leave_nothing_crooked(site: Site) -> None:
    assert_mutated_bodies_are_survived(site, count=FEW_BODIES)


@pytest.mark.slow
def test_five_thousand_mutated_bodies_leave_nothing_crooked(site: Site) -> None:
    assert_mutated_bodies_are_survived(site, count=MANY_BODIES)
