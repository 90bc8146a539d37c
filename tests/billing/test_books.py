"""Operators read an account's statement and balance, and reconcile a ledger of any length."""

import io
import json
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import DjangoAssertNumQueries

from billing_app.models import Account
from billing_app.rules.accounts import AccountKind, HouseAccount, TransferKind
from billing_app.selectors import ledger as books
from billing_app.selectors import statements
from billing_app.services import holds, ledger
from tests.billing.books import CAUSE, NOW, hold, open_balance, transfer

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command("ledger", *arguments, stdout=output)
    return output.getvalue()


def user_of(account_id: int) -> int:
    return Account.objects.get(id=account_id).user_id


def escrow_of(account_id: int) -> int:
    return Account.objects.get(user_id=user_of(account_id), kind=AccountKind.ESCROW).id


@pytest.fixture
def payer() -> int:
    """A requester's balance with four transfers on it, an hour apart, the last of them forgiven in part."""
    account, owner = open_balance("100"), open_balance("40")
    ledger.post([transfer("tax:a", account, HouseAccount.TAX, "1", kind=TransferKind.TAX, cause=CAUSE)], now=NOW)
    ledger.post([transfer("reply:a", account, escrow_of(owner), "12.34")], now=NOW + timedelta(hours=1))
    ledger.post([transfer("reply:b", account, account, "5")], now=NOW + timedelta(hours=2))
    ledger.post([transfer("reply:c", account, owner, "70")], now=NOW + timedelta(hours=3))
    return account


def test_a_statement_reads_like_a_bank_statement(payer: int) -> None:
    user = user_of(payer)
    owner = user + 1

    lines = run("statement", str(user)).splitlines()

    assert lines == [
        f"Account {payer}, balance of someone#{user}: 6 transfers.",
        "2026-03-01 12:00:00  start             +100.00         100.00  mint                     -",
        f"2026-03-01 12:00:00  tax                 -1.00          99.00  tax                      {CAUSE}",
        f"2026-03-01 13:00:00  reply              -12.34          86.66  {f'someone#{owner} (escrow)':<24} -",
        "2026-03-01 14:00:00  reply               +0.00          86.66  itself                   -",
        f"2026-03-01 15:00:00  reply              -70.00          16.66  {f'someone#{owner}':<24} -",
        "2026-03-01 15:00:00  forgiven            +8.34          25.00  mint                     -",
    ]


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (["--limit", "2"], ["reply:c", "forgiven:reply:c"]),
        (["--since", "2026-03-01T14:00"], ["reply:b", "reply:c", "forgiven:reply:c"]),
        (["--since", "2026-03-01T16:00+02:00"], ["reply:b", "reply:c", "forgiven:reply:c"]),
        (["--since", "2026-03-01T14:00Z", "--limit", "1"], ["forgiven:reply:c"]),
        (["--since", "2026-03-02"], []),
    ],
)
def test_a_statement_can_be_cut_and_keeps_its_running_balance(payer: int, options: list[str], keys: list[str]) -> None:
    whole = json.loads(run("statement", str(user_of(payer)), "--json"))

    cut = json.loads(run("statement", f"someone#{user_of(payer)}", *options, "--json"))

    assert (cut["account"], cut["name"]) == (payer, f"balance of someone#{user_of(payer)}")
    assert [line["key"] for line in cut["lines"]] == keys
    assert cut["lines"] == whole["lines"][6 - len(keys) :]


def test_a_statement_as_json_has_every_column(payer: int) -> None:
    output = run("statement", str(user_of(payer)), "--json")

    assert output.count("\n") == 1
    assert json.loads(output)["lines"][1] == {
        "at": "2026-03-01T12:00:00+00:00",
        "kind": "tax",
        "other_account": -1,
        "other_alias": None,
        "amount": "1.00",
        "change": "-1.00",
        "balance": "99.00",
        "key": "tax:a",
        "cause": str(CAUSE),
    }


def test_a_house_account_counts_back_from_the_sum_of_its_transfers(payer: int) -> None:
    found = json.loads(run("statement", "--account", "-3", "--json"))

    assert found["name"] == "mint"
    assert [(line["key"].split(":")[0], line["balance"]) for line in found["lines"]] == [
        ("start", "-100.00"), ("start", "-140.00"), ("forgiven", "-148.34"),
    ]  # fmt: skip


def test_an_escrow_account_has_a_statement(payer: int) -> None:
    escrow = payer + 3

    lines = run("statement", "--account", str(escrow)).splitlines()

    assert lines[0].endswith(f"escrow of someone#{user_of(escrow)}: 1 transfers.")
    assert f"+12.34          12.34  someone#{user_of(payer)} " in lines[1]


def test_an_account_without_transfers_has_an_empty_statement() -> None:
    account = open_balance()

    assert run("statement", str(user_of(account))).splitlines() == [
        f"Account {account}, balance of someone#{user_of(account)}: 0 transfers."
    ]


def test_a_statement_is_one_statement(payer: int, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(1):
        statements.list_lines(account_id=payer, limit=10)


def test_a_line_with_a_lost_account_still_reads(payer: int) -> None:
    Account.objects.filter(id=payer).update(posted_kudos=Decimal(7))
    lost = 2**40

    with pytest.raises(CommandError, match=f"There is no account {lost}"):
        run("statement", "--account", str(lost))

    # The running balance counts back from the sum the account keeps, drifted or not.
    assert run("statement", str(user_of(payer)), "--limit", "1").splitlines()[1].split()[4] == "7.00"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["statement", "99999"], "There is no user with the id 99999 who has accounts."),
        (["balance", "alice#0"], "The user with the id 0 is Anonymous#0, not alice#0."),
        (["balance", "99999"], "There is no user with the id 99999 who has accounts."),
        (["statement", "alice"], "'alice' is neither a user's number nor an alias"),
        (["statement", "0", "--limit", "0"], "'0' is not a number of lines"),
        (["statement", "0", "--limit", "many"], "'many' is not a number of lines"),
        (["statement", "0", "--since", "yesterday"], "'yesterday' is not a moment such as"),
        (["statement", "0", "--account", "1"], "not allowed with argument"),
        (["statement"], "one of the arguments .* is required"),
        (["statement", "--account", "-4"], "There is no account -4."),
        (["statement", "9" * 30], "There is no user with the id 9+"),
        (["statement", "--account", "9" * 30], "There is no account 9+"),
        (["balance", "9" * 30], "There is no user with the id 9+"),
    ],
)
def test_refuses_with_a_sentence(arguments: list[str], complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint):
        run(*arguments)


def test_a_balance_says_what_is_free_and_why() -> None:
    account = open_balance("100")
    user = user_of(account)
    hold("upfront:a", account, "30.50")
    hold("upfront:b", account, "10")
    hold("upfront:c", account, "1")
    holds.void(keys=["upfront:c"], now=NOW)
    ledger.post([transfer("reply:a", HouseAccount.MINT, escrow_of(account), "7.25")], now=NOW)

    assert run("balance", f"someone#{user}").splitlines() == [
        f"someone#{user}: account {account}, escrow account {escrow_of(account)}.",
        "posted            100.00  what its transfers add up to",
        "held               40.50  reserved by 2 open holds",
        "minimum            25.00  no debit takes it lower",
        "free               34.50  posted - held - minimum: what a hold can reserve",
        "escrow              7.25  earned, paid out with trust",
    ]
    assert json.loads(run("balance", str(user), "--json")) == {
        "alias": f"someone#{user}",
        "account": account,
        "escrow_account": escrow_of(account),
        "posted": "100.00",
        "held": "40.50",
        "open_holds": 2,
        "minimum": "25.00",
        "free": "34.50",
        "escrow": "7.25",
    }


def test_the_anonymous_user_has_a_balance() -> None:
    assert json.loads(run("balance", "0", "--json"))["free"] == "50.00"


def test_reconcile_fails_and_says_which_sum_drifted() -> None:
    account = open_balance("100")
    hold("upfront:a", account, "10")
    Account.objects.filter(id=account).update(held_kudos=Decimal(11))

    with pytest.raises(CommandError) as failure:
        run("reconcile")
    Account.objects.filter(id=account).update(posted_kudos=Decimal(99))
    with pytest.raises(CommandError) as both:
        run("reconcile")

    assert str(failure.value) == f"The ledger has drifted: account {account} holds 11.00, by its open holds 10.00."
    assert str(both.value) == (
        f"The ledger has drifted: account {account} has 99.00, by its transfers 100.00 "
        "and holds 11.00, by its open holds 10.00."
    )


def test_a_long_reconciliation_says_how_far_it_is(payer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "SLICE_TRANSFERS", 3)
    parts: list[float] = []
    errors = io.StringIO()

    found = books.reconcile(report=parts.append)
    call_command("ledger", "reconcile", stdout=io.StringIO(), stderr=errors)

    assert (found.transfers, found.is_sound) == (7, True)
    assert parts
    assert parts == sorted(parts)
    assert all(0 < part < 1 for part in parts)
    assert errors.getvalue().splitlines() == [f"{part:.0%} of the ledger read" for part in parts]
