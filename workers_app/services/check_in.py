"""Check a pop's worker in: who pops, under which name, declaring what. The worker's row is written here alone."""

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID, uuid4

from django.db import transaction

from billing_app.errors import DeletedUser, InvalidApiKey
from billing_app.rules.accounts import ANONYMOUS_USER_ID, AccountKind, HouseAccount, TransferKind
from billing_app.rules.earnings import part_uptime_reward, uptime_reward
from billing_app.selectors import locked
from billing_app.services import ledger
from billing_app.services.ledger import NewTransfer
from hordechat.contract import pop as pop_contract
from hordechat.contract.limits import (
    MAX_PRIORITY_USERS,
    MAX_WORKERS,
    MAX_WORKERS_AT_ADDRESS,
    MAX_WORKERS_AT_ADDRESS_TRUSTED,
    MAX_WORKERS_TRUSTED,
)
from hordechat.contract.pop import PopBody
from hordechat.contract.refusals import BadRequest
from hordechat.infra import address_timeouts, sql
from hordechat.infra.transactions import retry_on_conflict
from hordechat.model_reference import reference
from workers_app.errors import (
    AddressTimedOut,
    AnonymousForbiddenWorker,
    InvalidPriorityUsername,
    TooManySameAddresses,
    TooManyWorkers,
    TooManyWorkersTrusted,
    WorkerFlaggedMaintenance,
    WrongCredentials,
)
from workers_app.rules.backends import is_validated
from workers_app.rules.capabilities import mask_of
from workers_app.rules.check_in import (
    CheckedInWorker,
    CheckIn,
    find_bad_username,
    find_foreign_model,
    find_reserved_word,
    ids_of,
    is_inside_window,
)
from workers_app.rules.eligibility import WorkerSnapshot
from workers_app.rules.speed import is_slow
from workers_app.rules.uptime import Uptime
from workers_app.selectors import pop_facts
from workers_app.selectors.pop_facts import PopFacts


def check_in(*, api_key: str, pop: PopBody, address: str | None, now: datetime) -> CheckedInWorker:
    """Return the worker a pop comes from, its row written where the pop changed it.

    Everything is judged before a new worker's first row, so a refused pop leaves no trace.

    Raises, in this order:
        InvalidApiKey, DeletedUser, WorkerFlaggedMaintenance, AnonymousForbiddenWorker: whose key it is.
        WrongCredentials: the name belongs to another user's worker.
        AddressTimedOut: the connection's address is refused for a while.
        BadRequest: a new worker's name holds a reserved word, or a model is somebody else's.
        TooManyWorkers, TooManyWorkersTrusted, TooManySameAddresses: a new worker is one too many.
        InvalidPriorityUsername, InvalidPayload, ChatDeclarationInvalid: the declaration (DCL-27..36).
    """
    facts = _get_facts(api_key=api_key, worker_name=pop.name, now=now)
    if facts.last_check_in is None or not is_inside_window(last_check_in=facts.last_check_in, now=now):
        # Not inside the window: the pops that come every few seconds ask nothing but the database.
        _require_no_timeout(address, now=now)
    if facts.worker_id is None:
        if (word := find_reserved_word(pop.name)) is not None:
            raise BadRequest(f"A worker's name may not hold '{word}'.")
        _require_room(facts, address=address)
    if (model := find_foreign_model(pop.models, owner=facts.unique_alias)) is not None:
        raise BadRequest(f"'models' holds '{model[:64]}', which is another user's.")
    first_users = pop.priority_usernames[:MAX_PRIORITY_USERS]
    if (name := find_bad_username(first_users)) is not None:
        raise InvalidPriorityUsername(name=name)
    declaration = pop_contract.read_declaration(pop)
    check = CheckIn.of(pop, declaration=declaration, address=address, now=now)
    if facts.worker_id is None:
        worker_id = uuid4()
        if not _register(worker_id, facts, check):
            # Another pop took the name between the look and the insert: judge again by the row it made.
            facts = _get_facts(api_key=api_key, worker_name=check.name, now=now)
    if facts.worker_id is not None:
        worker_id = facts.worker_id
        _write_changes(facts, check)
    return CheckedInWorker(
        snapshot=WorkerSnapshot(
            id=worker_id,
            owner_id=facts.user_id,
            is_owner_trusted=facts.is_trusted,
            is_in_maintenance=bool(facts.is_in_maintenance),
            is_backend_validated=is_validated(check.bridge_agent),
            is_slow=is_slow(facts.speed, first_model=reference.find(check.models[0])),
            speed=facts.speed,
            models=check.models,
            max_length=check.max_length,
            max_context_length=check.max_context_length,
            declaration=declaration,
            feature_mask=mask_of(declaration.features or ()),
        ),
        first_users=ids_of(first_users),
        is_paused=bool(facts.is_paused),
        maintenance_message=facts.maintenance_message,
        messages=facts.told_messages,
    )


def _get_facts(*, api_key: str, worker_name: str, now: datetime) -> PopFacts:
    facts = pop_facts.find(api_key=api_key, worker_name=worker_name, now=now)
    if facts is None:
        raise InvalidApiKey
    if facts.is_deleted:
        raise DeletedUser
    if facts.is_flagged:
        raise WorkerFlaggedMaintenance
    if facts.user_id == ANONYMOUS_USER_ID:
        raise AnonymousForbiddenWorker
    if facts.owner_id is not None and facts.owner_id != facts.user_id:
        raise WrongCredentials(worker_name=worker_name)
    return facts


def _require_no_timeout(address: str | None, *, now: datetime) -> None:
    seconds = address_timeouts.find_seconds_left(address, now=now)
    if seconds is not None:
        raise AddressTimedOut(seconds=seconds)


def _require_room(facts: PopFacts, *, address: str | None, made: int = 0) -> None:
    """Refuse a new worker that is one too many, beside those just made."""
    count = pop_facts.count_workers(user_id=facts.user_id, address=address)
    others = count.all - made
    if not facts.is_trusted and others >= MAX_WORKERS:
        raise TooManyWorkers(limit=MAX_WORKERS)
    if others >= MAX_WORKERS_TRUSTED:
        raise TooManyWorkersTrusted(limit=MAX_WORKERS_TRUSTED)
    limit = MAX_WORKERS_AT_ADDRESS_TRUSTED if facts.is_trusted else MAX_WORKERS_AT_ADDRESS
    if count.at_address - made >= limit:
        raise TooManySameAddresses(limit=limit)


@retry_on_conflict
def _register(worker_id: UUID, facts: PopFacts, check: CheckIn) -> bool:
    """Make the worker's row; False when another pop took the name.

    First pops of one owner stand in line for the owner's row, so that together they stay within the limits.
    """
    with transaction.atomic(durable=True):
        locked.find_user(user_id=facts.user_id)
        made = sql.execute(
            sql.load(__file__, "register.sql"), {**_columns(check), "worker_id": worker_id, "user_id": facts.user_id}
        )
        if made:
            _require_room(facts, address=check.address, made=made)
    return bool(made)


def _write_changes(facts: PopFacts, check: CheckIn) -> None:
    assert facts.last_check_in is not None, "a worker's row has the time of its last check-in"
    inside_window = is_inside_window(last_check_in=facts.last_check_in, now=check.now)
    if inside_window and facts.declaration == check.declaration:
        return
    uptime = Uptime(seconds=facts.uptime_seconds or 0, rewarded_seconds=facts.rewarded_uptime_seconds or 0).after(
        last_check_in=facts.last_check_in,
        now=check.now,
        is_serving=not (facts.is_paused or facts.is_in_maintenance),
    )
    columns = {
        **_columns(check),
        "worker_id": facts.worker_id,
        "last_check_in": facts.last_check_in,
        "is_inside_window": inside_window,
        "uptime_seconds": uptime.seconds,
        "rewarded_uptime_seconds": uptime.rewarded_seconds,
    }
    if inside_window or not uptime.is_reward_due:
        sql.execute(sql.load(__file__, "check_in.sql"), columns)
    else:
        _write_rewarded(columns, facts=facts, check=check, uptime=uptime)


@retry_on_conflict
def _write_rewarded(columns: Mapping[str, object], *, facts: PopFacts, check: CheckIn, uptime: Uptime) -> None:
    """Check the worker in and pay its owner for its time online, in one transaction, once for all pops of a moment."""
    reward = uptime_reward(
        reference.find(check.models[0]),
        max_context_length=check.max_context_length,
        is_backend_validated=is_validated(check.bridge_agent),
    )
    with transaction.atomic(durable=True):
        if not sql.execute(sql.load(__file__, "check_in.sql"), columns):
            return
        accounts = locked.list_accounts(user_id=facts.user_id)
        earnings = part_uptime_reward(reward, is_trusted=facts.is_trusted)
        ledger.post(
            [
                NewTransfer(
                    idempotency_key=f"uptime:{facts.worker_id}:{uptime.seconds}:{kind.value}",
                    debit_account=HouseAccount.MINT,
                    credit_account=accounts[kind].id,
                    amount=amount,
                    kind=TransferKind.UPTIME,
                    cause=facts.worker_id,
                )
                for kind, amount in (
                    (AccountKind.BALANCE, earnings.balance),
                    (AccountKind.ESCROW, earnings.escrow),
                )
                if amount
            ],
            now=check.now,
        )


def _columns(check: CheckIn) -> dict[str, object]:
    declaration = check.declaration
    return {
        "name": check.name,
        "bridge_agent": check.bridge_agent,
        "models": list(check.models),
        "threads": check.threads,
        "max_length": check.max_length,
        "max_context_length": check.max_context_length,
        "nsfw": check.nsfw,
        "address": check.address,
        "now": check.now,
        "accepts_chat_jobs": declaration.accepts_chat_jobs,
        "accepts_prompt_jobs": declaration.accepts_prompt_jobs,
        "chat_features": None if declaration.features is None else list(declaration.features),
        "chat_max_context_length": declaration.max_context_length,
        "chat_max_length": declaration.max_length,
        "chat_tools_max_temperature": declaration.tools_max_temperature,
        "chat_model_id": declaration.model_id,
        "image_transports": None if declaration.image_transports is None else list(declaration.image_transports),
    }
