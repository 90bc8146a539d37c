"""Store a reply: the claim, the charge and the reward are one transaction, and of several replies one wins."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import orjson
from django.db import transaction
from psycopg.types.json import Jsonb

from billing_app.rules import pricing
from billing_app.rules.accounts import HouseAccount, TransferKind
from billing_app.rules.earnings import part_reward
from billing_app.rules.pricing import PricedGeneration, Settlement
from billing_app.services import holds, ledger, spending
from billing_app.services.ledger import NewTransfer
from hordechat.contract.limits import REQUEST_LIFE_SECONDS
from hordechat.contract.submit import ChatReply, TextReply
from hordechat.contract.vocabulary import CompletionEvent, GenerationState
from hordechat.infra import sql
from hordechat.infra.transactions import retry_on_conflict
from hordechat.model_reference import reference
from requests_app.selectors import progress
from requests_app.selectors.progress import RequestProgress
from requests_app.selectors.submit_facts import SubmitFacts
from requests_app.services import completion_signal, upfront
from workers_app.rules import speed
from workers_app.rules.backends import is_validated

Reply = ChatReply | TextReply


def settle_reply(reply: Reply, *, facts: SubmitFacts, now: datetime) -> Decimal | None:
    """Store a reply, charge and pay it; return what its worker's owner earned, None when another submit was faster.

    A fake generation ends as if it were stored: the answer is a usual reward, nothing is kept and nobody is paid.
    """
    settlement = _price(reply, facts)
    if facts.is_fake:
        is_taken = bool(sql.execute(sql.load(__file__, "end_fake.sql"), {"generation_id": facts.id, "now": now}))
    else:
        is_taken = _store(reply, facts=facts, settlement=settlement, now=now)
    return settlement.reward if is_taken else None


def _price(reply: Reply, facts: SubmitFacts) -> Settlement:
    """Return what the generation is worth by the text kudos formula (PRC-01, PRC-02), at the model that served it."""
    return pricing.settle(
        PricedGeneration(
            model=reference.find(facts.model),
            reply_characters=reply.characters,
            prompt_characters=facts.prompt_characters,
            max_length=facts.max_length,
            is_backend_validated=is_validated(facts.bridge_agent),
            is_owner_trusted=facts.is_owner_trusted,
            is_censored=reply.state is not GenerationState.OK,
        )
    )


@retry_on_conflict
def _store(reply: Reply, *, facts: SubmitFacts, settlement: Settlement, now: datetime) -> bool:
    """Store, charge and pay in one transaction; return whether this submit won the generation."""
    tokens = pricing.token_estimate(reply.characters, max_length=facts.max_length)
    sample = speed.sample_of(tokens, seconds=(now - facts.assigned_at).total_seconds())
    with transaction.atomic(durable=True):
        won = sql.execute(
            sql.load(__file__, "store_reply.sql"),
            {
                **_columns(reply),
                "request_id": facts.request_id,
                "generation_id": facts.id,
                "state": reply.state.value,
                "charge_basis": settlement.basis.value if facts.is_chat else None,
                "reward": settlement.reward,
                "charge": settlement.charge,
                "written_tokens": tokens,
                "speed_sample": sample,
                "is_suspicious": speed.is_suspicious(
                    sample,
                    model=reference.find(facts.model),
                    model_name=facts.model,
                    is_owner_trusted=facts.is_owner_trusted,
                ),
                "is_owner_trusted": facts.is_owner_trusted,
                "most_suspicions": speed.MAX_SUSPICIONS,
                "speed_samples": speed.SPEED_SAMPLES,
                "now": now,
                "expiry": now + timedelta(seconds=REQUEST_LIFE_SECONDS),
            },
        )
        if not won:
            return False
        found = progress.find(request_id=facts.request_id)
        assert found is not None, "the request's row is locked by this transaction"
        _announce(facts, found)
        _post(_transfers(settlement, facts), facts=facts, found=found, now=now)
        if facts.shared_key_id is not None:
            spending.charge_shared_key(shared_key_id=facts.shared_key_id, kudos=settlement.charge)
    return True


def _post(transfers: Sequence[NewTransfer], *, facts: SubmitFacts, found: RequestProgress, now: datetime) -> None:
    """Move the kudos; with the last reply of a request also end the hold they were covered by."""
    if found.is_done and found.upfront_kudos is not None:
        charged = found.consumed_kudos - pricing.tax()
        holds.settle(key=upfront.hold_key(facts.request_id), kudos=charged, transfers=transfers, now=now)
    else:
        ledger.post(transfers, now=now)


def _columns(reply: Reply) -> dict[str, object]:
    """Return what a reply's family stores; the other's columns stay as they were made."""
    if isinstance(reply, TextReply):
        chat = ("message", "finish_reason", "native_finish_reason", "prompt_tokens", "completion_tokens")
        return {
            **dict.fromkeys((*chat, "reasoning_tokens")),
            "content": reply.text,
            "seed": reply.seed,
            "metadata": Jsonb(list(reply.metadata), dumps=orjson.dumps),
        }
    return {
        # A reply of calls alone has an empty text, so that what asks for a stored one finds it (SUB-33, SUB-36).
        "content": reply.content or "",
        "seed": 0,
        "metadata": Jsonb([], dumps=orjson.dumps),
        "message": Jsonb(reply.message, dumps=orjson.dumps),
        "finish_reason": reply.finish_reason.value,
        "native_finish_reason": reply.native_finish_reason,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "reasoning_tokens": reply.reasoning_tokens,
    }


def _transfers(settlement: Settlement, facts: SubmitFacts) -> list[NewTransfer]:
    """Return what a stored reply moves: the reward, parted for an owner who is not yet trusted, and the burn."""
    # A censored reply costs its requester the burn alone; its worker is paid in full, out of the mint.
    is_charged = settlement.charge > pricing.BURN
    payer = facts.requester_account if is_charged else HouseAccount.MINT
    earnings = part_reward(settlement.reward, is_trusted=facts.is_owner_trusted)
    moved = [
        (f"reply:{facts.id}", payer, facts.owner_account, earnings.balance, TransferKind.REPLY),
        (f"escrow:{facts.id}", payer, facts.owner_escrow, earnings.escrow, TransferKind.REPLY),
        (f"burn:{facts.id}", facts.requester_account, HouseAccount.BURN, pricing.BURN, TransferKind.BURN),
    ]
    return [
        NewTransfer(
            idempotency_key=key, debit_account=debit, credit_account=credit, amount=amount, kind=kind, cause=facts.id
        )
        for key, debit, credit, amount, kind in moved
        if amount
    ]


def _announce(facts: SubmitFacts, found: RequestProgress) -> None:
    """Tell who waits for a chat request of the generation, and of the end if this was it."""
    if not facts.is_chat:
        return
    completion_signal.publish_after_commit(facts.request_id, CompletionEvent.GENERATION, generations=found.stored)
    if found.is_done and not found.is_faulted:
        completion_signal.publish_after_commit(facts.request_id, CompletionEvent.DONE, generations=found.stored)
