"""Both forms of the activation: at once, and in two transactions around objects that have to be stored."""

import os
import signal
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, connection
from pytest_django import Settings

from billing_app.rules import pricing
from billing_app.selectors import ledger
from hordechat.contract.vocabulary import Conformance
from hordechat.infra import clock
from requests_app.errors import TooManyPrompts
from requests_app.rules.needs import Needs
from requests_app.rules.targeting import Targeting
from requests_app.selectors import requesters
from requests_app.services import activation, expiry
from requests_app.services.activation import ChatParts, NewRequest, Operation
from requests_app.services.upfront import Upfront
from tests.horde import MODEL, TRACES, Answer, Horde, count_rows, make_person, one_value
from tests.races import at_once, codes, deadlock_at, slow_writes

KEY = "9d1cf3a4-6a09-4f6e-93ae-64fd7b9d6a0e"
HELD = Decimal(500)


def new_request(*, key: str | None = KEY, fingerprint: str = "a" * 64, is_held: bool = True) -> NewRequest:
    """Return a chat request of which something is held."""
    return NewRequest(
        submitted_prompt="user: Hello",
        prompt="user: Hello",
        params={},
        models=[MODEL],
        n=1,
        max_length=64,
        max_context_length=2048,
        quote=Decimal(8),
        upfront=Upfront(required_kudos=HELD, is_held=is_held, allowance_tokens=16, can_be_served=True),
        targeting=Targeting(),
        address=None,
        client_agent="test",
        operation=None if key is None else Operation(key=UUID(key), fingerprint=fingerprint),
        chat=ChatParts(
            messages=[{"role": "user", "content": "Hello"}],
            extras=None,
            context_adjustments=None,
            needs=Needs(capabilities=(), feature_mask=0, tools_temperature=None),
            conformance=Conformance.STRICT,
        ),
    )


def store(horde: Horde, request: NewRequest) -> UUID:
    requester = requesters.find(api_key=horde.requester.api_key, models=[MODEL])
    return activation.store(request, requester=requester, now=clock.now())


def activate(horde: Horde, request_id: UUID, request: NewRequest) -> bool:
    requester = requesters.find(api_key=horde.requester.api_key, models=[MODEL])
    return activation.activate(request_id, request, requester=requester, now=clock.now())


def held(horde: Horde) -> Decimal:
    return Decimal(
        one_value("SELECT held_kudos FROM accounts WHERE user_id = %s AND kind = 'balance'", [horde.requester.id])
    )


def rows_of(table: str) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON, but for what differs from one request to the next."""
    different = "'{id,request_id,created,expiry,order_key,key,cause,placed_at,idempotency_key,created_at}'::text[]"
    rows = one_value(f"SELECT json_agg(to_jsonb(r) - {different} ORDER BY r.ctid) FROM {table} r")
    return rows or []


@pytest.mark.spec("OPK-11", "OPK-12", "ORD-10")
def test_a_stored_request_is_claimed_queued_and_taxed_by_its_activation(committed_horde: Horde) -> None:
    request = new_request()

    request_id = store(committed_horde, request)

    columns = "(active, operation_key IS NULL, order_key IS NULL, consumed_kudos)::text"
    assert one_value(f"SELECT {columns} FROM waiting_prompts") == "(f,t,t,0.00)"
    assert count_rows("queue_rows", "holds") == {"queue_rows": 0, "holds": 1}
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'tax'") == 0
    assert held(committed_horde) == HELD

    assert activate(committed_horde, request_id, request) is True

    assert one_value(f"SELECT {columns} FROM waiting_prompts") == "(t,f,f,1.00)"
    assert one_value("SELECT operation_key::text FROM waiting_prompts") == KEY
    assert count_rows("queue_rows") == {"queue_rows": 1}
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'tax'") == 1
    assert activate(committed_horde, request_id, request) is False, "once is enough"
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'tax'") == 1


def test_both_forms_leave_the_same_rows(committed_horde: Horde) -> None:
    requester = requesters.find(api_key=committed_horde.requester.api_key, models=[MODEL])
    activation.activate_at_once(new_request(), requester=requester, now=clock.now())
    tables = ("waiting_prompts", "queue_rows", "holds", "transfers")
    at_once_rows = {table: rows_of(table) for table in tables}
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE waiting_prompts, queue_rows, processing_gens, holds CASCADE")
        cursor.execute("UPDATE accounts SET held_kudos = 0")
    one_value("SELECT 1")

    request_id = store(committed_horde, new_request())
    activate(committed_horde, request_id, new_request())

    after = {table: rows_of(table) for table in tables}
    # Transfers cannot be taken back: there is one tax more, like the first.
    assert after.pop("transfers")[-1] == at_once_rows.pop("transfers")[-1]
    assert after == at_once_rows


def test_a_shared_key_is_charged_the_tax_once_by_the_activation(committed_horde: Horde) -> None:
    key = committed_horde.share_key(committed_horde.requester, left_kudos=501)
    requester = requesters.find(api_key=key, models=[MODEL])
    spent = "SELECT (left_kudos, used_kudos)::text FROM shared_keys"

    request_id = activation.store(new_request(), requester=requester, now=clock.now())
    assert one_value(spent) == "(501.00,0.00)"

    assert activation.activate(request_id, new_request(), requester=requester, now=clock.now()) is True
    assert one_value(spent) == "(500.00,1.00)"


def test_as_many_stored_requests_are_activated_as_the_user_may_have(committed_horde: Horde) -> None:
    one_value("UPDATE users SET concurrency = 3 WHERE id = %s RETURNING 1", [committed_horde.requester.id])
    request = new_request(key=None)
    stored = [store(committed_horde, request) for _ in range(8)]

    def finish(request_id: UUID) -> str:
        try:
            assert activate(committed_horde, request_id, request) is True
        except TooManyPrompts:
            assert activation.discard(request_id, now=clock.now()) is True
            return "refused"
        return "active"

    with slow_writes("queue_rows"):
        ends = at_once(*[partial(finish, request_id) for request_id in stored])

    assert sorted(ends) == ["active"] * 3 + ["refused"] * 5
    assert count_rows("waiting_prompts", "queue_rows") == {"waiting_prompts": 3, "queue_rows": 3}
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'tax'") == 3
    assert held(committed_horde) == 3 * HELD
    assert ledger.reconcile().is_sound


@pytest.mark.spec("OPK-54")
def test_an_inactive_row_answers_no_repeat(committed_horde: Horde) -> None:
    committed_horde.pop()
    store(committed_horde, new_request())

    status, body = committed_horde.submit(horde={"operation_key": KEY})

    assert status == 202
    assert one_value("SELECT id FROM waiting_prompts WHERE active") == UUID(body["id"])


@pytest.mark.spec("OPK-16", "OPK-17", "OPK-15")
def test_the_loser_of_a_key_discards_its_row_and_its_hold(committed_horde: Horde) -> None:
    request = new_request()

    def submit() -> str:
        request_id = store(committed_horde, request)
        try:
            activate(committed_horde, request_id, request)
        except IntegrityError:
            assert activation.discard(request_id, now=clock.now()) is True
            return "lost"
        return "won"

    assert sorted(at_once(*[submit] * 8)) == ["lost"] * 7 + ["won"]

    assert count_rows("waiting_prompts", "queue_rows") == {"waiting_prompts": 1, "queue_rows": 1}
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'tax'") == 1
    assert one_value("SELECT count(*) FROM holds WHERE resolved_at IS NULL") == 1
    assert held(committed_horde) == HELD
    assert ledger.reconcile().is_sound


def test_an_active_request_is_not_discarded(committed_horde: Horde) -> None:
    request_id = store(committed_horde, new_request())
    activate(committed_horde, request_id, new_request())

    assert activation.discard(request_id, now=clock.now()) is False
    assert activation.discard(uuid4(), now=clock.now()) is False
    assert count_rows("waiting_prompts") == {"waiting_prompts": 1}
    assert held(committed_horde) == HELD


def test_a_request_that_is_gone_is_not_activated(committed_horde: Horde) -> None:
    request_id = store(committed_horde, new_request())
    activation.discard(request_id, now=clock.now())

    assert activate(committed_horde, request_id, new_request()) is False
    assert held(committed_horde) == 0


@pytest.mark.spec("OPK-13")
@pytest.mark.parametrize("table", ["queue_rows", "transfers"])
@pytest.mark.parametrize("form", ["at once", "stored"])
def test_an_activation_undone_by_a_deadlock_is_tried_again_with_its_claim(
    committed_horde: Horde, table: str, form: str
) -> None:
    committed_horde.pop()
    if form == "at once":
        with deadlock_at(table):
            status, body = committed_horde.submit(horde={"operation_key": KEY})
        assert status == 202
        request_id = UUID(body["id"])
        assert committed_horde.submit(horde={"operation_key": KEY})[0] == 200
    else:
        request_id = store(committed_horde, new_request())
        with deadlock_at(table):
            assert activate(committed_horde, request_id, new_request()) is True

    assert one_value("SELECT operation_key::text FROM waiting_prompts") == KEY
    assert one_value("SELECT id FROM waiting_prompts") == request_id
    assert count_rows("queue_rows") == {"queue_rows": 1}
    assert one_value("SELECT count(*) FROM transfers WHERE kind = 'tax'") == 1
    assert ledger.reconcile().is_sound


STORE_AND_WAIT = """
import sys, time
import django
django.setup()
from hordechat.infra import clock
from requests_app.selectors import requesters
from requests_app.services import activation
from tests.concurrency.test_activation import MODEL, new_request
requester = requesters.find(api_key=sys.argv[1], models=[MODEL])
print(activation.store(new_request(), requester=requester, now=clock.now()), flush=True)
time.sleep(600)
"""


def test_a_process_killed_between_the_two_transactions_leaves_nothing_after_the_sweep(committed_horde: Horde) -> None:
    before = count_rows(*TRACES)
    with subprocess.Popen(
        [sys.executable, "-c", STORE_AND_WAIT, committed_horde.requester.api_key],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "hordechat.settings.django"},
    ) as process:
        assert process.stdout is not None
        stored_id = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
    assert one_value("SELECT id::text FROM waiting_prompts") == stored_id
    assert held(committed_horde) == HELD

    assert expiry.expire_batch(now=clock.now() + timedelta(minutes=21)) == 1

    assert count_rows(*TRACES) == before | {"holds": 1}
    assert one_value("SELECT resolution FROM holds") == "voided"
    assert held(committed_horde) == 0
    assert ledger.reconcile().is_sound
    committed_horde.pop()
    assert committed_horde.submit(horde={"operation_key": KEY})[0] == 202, "the key is free"


def test_money_for_three_admits_three(committed_horde: Horde, settings: Settings) -> None:
    settings.HORDE = settings.HORDE.model_copy(update={"free_output_ceiling": 16, "free_output_floor": 16})
    committed_horde.pop()
    # 512 tokens of a billion parameters: 24.38 each, above the 25 no debit goes below; the taxes come out of them too.
    each = pricing.upfront_amount([None], max_length=512, n=1)
    requester = make_person("requester", kudos=25 + 3 * 25 + 3)

    answers = at_once(*[lambda: committed_horde.submit(max_tokens=512, api_key=requester.api_key)] * 20)

    assert codes(answers) == ["202"] * 3 + ["KudosUpfront"] * 17
    assert count_rows("waiting_prompts", "queue_rows") == {"waiting_prompts": 3, "queue_rows": 3}
    account = "FROM accounts WHERE user_id = %s AND kind = 'balance'"
    assert one_value(f"SELECT held_kudos {account}", [requester.id]) == 3 * each
    assert one_value(f"SELECT posted_kudos - held_kudos - minimum_kudos {account}", [requester.id]) < each
    assert one_value("SELECT count(*) FROM holds") == 3
    assert ledger.reconcile().is_sound


def test_parallel_uses_of_a_shared_key_never_take_more_than_it_has(committed_horde: Horde) -> None:
    committed_horde.pop()
    # Each of these has to find 3.05 left, and takes one of tax.
    key = committed_horde.share_key(committed_horde.requester, left_kudos=Decimal("5.50"))

    answers = at_once(*[lambda: committed_horde.submit(api_key=key)] * 12)

    assert codes(answers) == ["202"] * 3 + ["SharedKeyInsufficientKudos"] * 9
    assert one_value("SELECT (left_kudos, used_kudos)::text FROM shared_keys") == "(2.50,3.00)"
    assert count_rows("waiting_prompts") == {"waiting_prompts": 3}


def test_requests_lowered_to_what_is_free_do_not_go_on_under_a_used_up_shared_key(committed_horde: Horde) -> None:
    # Each would need 24.38 and is lowered, since the key has 3 left, of which each takes one of tax.
    key = committed_horde.share_key(committed_horde.requester, left_kudos=3)

    def submit() -> Answer:
        return committed_horde.submit_text(
            api_key=key, allow_downgrade=True, models=[MODEL], params={"max_length": 512}
        )

    with slow_writes("waiting_prompts"):
        answers = at_once(*[submit] * 8)

    assert codes(answers) == ["202"] * 3 + ["SharedKeyEmpty"] * 5
    assert one_value("SELECT (left_kudos, used_kudos)::text FROM shared_keys") == "(0.00,3.00)"
    assert count_rows("waiting_prompts", "queue_rows") == {"waiting_prompts": 3, "queue_rows": 3}
    assert ledger.reconcile().is_sound


def test_chat_and_text_at_once_stay_within_one_limit(committed_horde: Horde) -> None:
    committed_horde.pop()
    one_value("UPDATE users SET concurrency = 7 WHERE id = %s RETURNING 1", [committed_horde.requester.id])

    answers = at_once(*[committed_horde.submit, committed_horde.submit_text] * 8)

    assert codes(answers) == ["202"] * 7 + ["TooManyPrompts"] * 9
    assert one_value("SELECT sum(n) FROM waiting_prompts") == 7


def test_another_violation_is_not_taken_for_a_lost_claim(committed_horde: Horde) -> None:
    committed_horde.pop()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE queue_rows ADD CONSTRAINT injected CHECK (max_length < 65)")
    try:
        assert committed_horde.submit(horde={"operation_key": KEY})[0] == 202
        status, body = committed_horde.submit(max_tokens=65, horde={"operation_key": str(uuid4())})
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE queue_rows DROP CONSTRAINT injected")

    assert (status, body["rc"]) == (500, "InternalServerError")
    assert count_rows("waiting_prompts") == {"waiting_prompts": 1}
