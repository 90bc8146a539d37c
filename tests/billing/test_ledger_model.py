"""Any order of placing, settling, voiding, lapsing, posting, paying out and repeating equals a plain model of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from billing_app.errors import InsufficientKudos
from billing_app.models import Account, Hold
from billing_app.rules.accounts import AccountKind, HoldResolution, HouseAccount, TransferKind
from billing_app.selectors import ledger as books
from billing_app.services import accounts, escrow, holds, ledger
from billing_app.services.ledger import NewTransfer, Posting
from tests.billing.books import NOW, hold, transfer

USERS = 3
NUMBERS = count()
"""Every run of the machine uses keys of its own; the ledger keeps those of the runs before."""

amounts = st.decimals(min_value="0.01", max_value="150", places=2)
charges = st.one_of(st.just(Decimal(0)), amounts)


@dataclass
class Purse:
    """What the model knows of an account."""

    minimum: Decimal
    posted: Decimal = Decimal(0)
    held: Decimal = Decimal(0)
    was_debited: bool = False

    @property
    def free(self) -> Decimal:
        return self.posted - self.held - self.minimum


@dataclass
class Reserved:
    """What the model knows of a hold."""

    account: int
    kudos: Decimal
    expires_at: datetime | None
    resolution: HoldResolution | None = None
    settled: Decimal = Decimal(0)


@dataclass
class Books:
    """The ledger in a few lines of Python; one call after the other, so nothing to lock."""

    purses: dict[int, Purse] = field(default_factory=dict)
    reserved: dict[str, Reserved] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    house: Decimal = Decimal(0)

    def post(self, transfers: Sequence[NewTransfer]) -> Posting:
        new = {entry.idempotency_key: entry for entry in transfers if entry.idempotency_key not in self.keys}
        self.keys |= set(new)
        debited = set()
        for entry in new.values():
            self._move(entry.debit_account, -entry.amount)
            self._move(entry.credit_account, entry.amount)
            debited.add(entry.debit_account)
        forgiven = Decimal(0)
        for account in debited & set(self.purses):
            purse = self.purses[account]
            purse.was_debited = True
            missing = max(purse.minimum - purse.posted, Decimal(0))
            purse.posted += missing
            self.house -= missing
            forgiven += missing
        return Posting(posted_keys=frozenset(new), forgiven_kudos=forgiven)

    def place(self, key: str, account: int, kudos: Decimal, expires_at: datetime | None) -> bool:
        if key in self.reserved:
            return True
        purse = self.purses[account]
        if purse.free < kudos:
            return False
        purse.held += kudos
        self.reserved[key] = Reserved(account, kudos, expires_at)
        assert purse.free >= 0
        return True

    def resolve(self, key: str, resolution: HoldResolution, kudos: Decimal = Decimal(0)) -> bool:
        found = self.reserved.get(key)
        if found is None or found.resolution is not None:
            return False
        found.resolution, found.settled = resolution, min(found.kudos, kudos)
        self.purses[found.account].held -= found.kudos
        return True

    def list_overdue(self, now: datetime) -> list[str]:
        return [
            key
            for key, found in self.reserved.items()
            if found.resolution is None and found.expires_at is not None and found.expires_at <= now
        ]

    def _move(self, account: int, kudos: Decimal) -> None:
        if account > 0:
            self.purses[account].posted += kudos
        else:
            self.house += kudos


class LedgerMachine(RuleBasedStateMachine):
    """Do the same to the ledger and to the model, and compare."""

    def __init__(self) -> None:
        super().__init__()
        self.run_number = next(NUMBERS)
        self.now = NOW
        self.model = Books()
        self.transfers: list[NewTransfer] = []
        self.users: list[int] = []
        self.balances: list[int] = []
        self.escrows: list[int] = []

    @initialize(starts=st.lists(st.sampled_from(["0", "25", "100", "300.33"]), min_size=USERS, max_size=USERS))
    def open_accounts(self, starts: list[str]) -> None:
        for start in starts:
            owner = accounts.create_user(alias="someone", kudos=Decimal(start), now=NOW)
            self.users.append(owner.id)
            self.model.house -= Decimal(start)
            for kind, ids in ((AccountKind.BALANCE, self.balances), (AccountKind.ESCROW, self.escrows)):
                account = Account.objects.get(user_id=owner.id, kind=kind)
                ids.append(account.id)
                self.model.purses[account.id] = Purse(account.minimum_kudos)
            self.model.purses[self.balances[-1]].posted = Decimal(start)

    def _hold_key(self, number: int) -> str:
        return f"upfront:{self.run_number}:{number}"

    def _choose(self, data: st.DataObject) -> list[NewTransfer]:
        """Draw up to four transfers, new ones and repeats, in any order."""
        everyone = [*self.balances, *self.escrows]
        chosen: dict[str, NewTransfer] = {}
        for _ in range(data.draw(st.integers(1, 4))):
            if data.draw(st.booleans()) and self.transfers:
                entry = data.draw(st.sampled_from(self.transfers))
            else:
                debit = data.draw(st.sampled_from([*everyone, HouseAccount.MINT]))
                credit = data.draw(st.sampled_from([*everyone, HouseAccount.BURN, HouseAccount.TAX]))
                key = f"reply:{self.run_number}:{len(self.transfers)}"
                entry = transfer(key, debit, credit, str(data.draw(amounts)), kind=TransferKind.REPLY)
                self.transfers.append(entry)
            chosen[entry.idempotency_key] = entry
        return list(chosen.values())

    @rule(data=st.data())
    def post(self, data: st.DataObject) -> None:
        transfers = self._choose(data)

        with transaction.atomic(durable=True):
            posting = ledger.post(transfers, now=self.now)

        assert posting == self.model.post(transfers)

    @rule(
        number=st.integers(0, 7), user=st.integers(0, USERS - 1), kudos=amounts, minutes=st.sampled_from([None, 1, 5])
    )
    def place(self, number: int, user: int, kudos: Decimal, minutes: int | None) -> None:
        key, account = self._hold_key(number), self.balances[user]
        expires_at = None if minutes is None else self.now + timedelta(minutes=minutes)
        free = self.model.purses[account].free

        if not self.model.place(key, account, kudos, expires_at):
            with pytest.raises(InsufficientKudos) as refusal, transaction.atomic(durable=True):
                hold(key, account, str(kudos), expires_at=expires_at)
            assert (refusal.value.needed_kudos, refusal.value.free_kudos) == (kudos, free)
            return
        with transaction.atomic(durable=True):
            state = hold(key, account, str(kudos), expires_at=expires_at)

        first = self.model.reserved[key]
        assert (state.account_id, state.kudos, state.expires_at, state.resolution, state.settled_kudos) == (
            first.account, first.kudos, first.expires_at, first.resolution, first.settled,
        )  # fmt: skip

    @rule(number=st.integers(0, 7), user=st.integers(0, USERS - 1), kudos=amounts)
    def place_and_be_refused(self, number: int, user: int, kudos: Decimal) -> None:
        def refused() -> None:
            with transaction.atomic(durable=True):
                hold(self._hold_key(number), self.balances[user], str(kudos))
                raise InterruptedError

        with pytest.raises((InterruptedError, InsufficientKudos)):
            refused()

    @rule(number=st.integers(0, 7), kudos=charges, data=st.data())
    def settle(self, number: int, kudos: Decimal, data: st.DataObject) -> None:
        key = self._hold_key(number)
        transfers = self._choose(data) if data.draw(st.booleans()) else []

        with transaction.atomic(durable=True):
            settlement = holds.settle(key=key, kudos=kudos, transfers=transfers, now=self.now)

        was_open = self.model.resolve(key, HoldResolution.SETTLED, kudos)
        assert settlement.settled_kudos == (self.model.reserved[key].settled if was_open else None)
        assert settlement.posting == self.model.post(transfers)

    @rule(numbers=st.sets(st.integers(0, 7), max_size=4))
    def void(self, numbers: set[int]) -> None:
        keys = [self._hold_key(number) for number in numbers]

        with transaction.atomic(durable=True):
            voided = holds.void(keys=keys, now=self.now)

        assert voided == {key for key in keys if self.model.resolve(key, HoldResolution.VOIDED)}

    @rule(minutes=st.sampled_from([0, 1, 4]))
    def lapse(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

        lapsed = holds.lapse_batch(now=self.now)

        overdue = self.model.list_overdue(self.now)
        assert lapsed == len(overdue)
        assert all(self.model.resolve(key, HoldResolution.LAPSED) for key in overdue)

    @precondition(lambda self: self.users)
    @rule(user=st.integers(0, USERS - 1), number=st.integers(0, 2))
    def pay_out(self, user: int, number: int) -> None:
        key = f"promotion:{self.run_number}:{user}:{number}"
        source, target = self.escrows[user], self.balances[user]
        amount = self.model.purses[source].posted

        with transaction.atomic(durable=True):
            moved = escrow.pay_out(user_id=self.users[user], key=key, now=self.now)

        is_new = amount > 0 and key not in self.model.keys
        if is_new:
            self.model.post([transfer(key, source, target, str(amount), kind=TransferKind.PROMOTION)])
        assert moved == (amount if is_new else 0)

    @invariant()
    def equals_the_model(self) -> None:
        rows = Account.objects.filter(id__in=list(self.model.purses)).values_list("id", "posted_kudos", "held_kudos")
        assert {account: (posted, held) for account, posted, held in rows} == {
            account: (purse.posted, purse.held) for account, purse in self.model.purses.items()
        }
        ended = Hold.objects.filter(key__startswith=f"upfront:{self.run_number}:")
        assert {row.key: (row.resolution, row.settled_kudos) for row in ended} == {
            key: (found.resolution, found.settled) for key, found in self.model.reserved.items()
        }

    @invariant()
    def keeps_the_sum_at_zero(self) -> None:
        assert sum((purse.posted for purse in self.model.purses.values()), self.model.house) == 0
        found = books.reconcile()
        assert (found.total, found.drifted) == (Decimal("0.00"), ())

    @invariant()
    def never_leaves_a_debited_account_below_its_minimum(self) -> None:
        assert all(purse.posted >= purse.minimum for purse in self.model.purses.values() if purse.was_debited)

    def teardown(self) -> None:
        """Leave no open hold for the next run to lapse."""
        with transaction.atomic(durable=True):
            holds.void(keys=list(self.model.reserved), now=self.now)


@pytest.mark.slow
@pytest.mark.usefixtures("committed")
def test_the_ledger_equals_its_model() -> None:
    run_state_machine_as_test(
        LedgerMachine,
        settings=settings(
            max_examples=100,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
