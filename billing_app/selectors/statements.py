"""What one account has, and every transfer that made it so."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from billing_app.models import Account
from billing_app.rules.accounts import AccountKind, HouseAccount
from hordechat.infra import sql


@dataclass(frozen=True, slots=True)
class UserAccount:
    """One purse of a user, as it is now."""

    id: int
    kind: str
    unique_alias: str
    posted_kudos: Decimal
    held_kudos: Decimal
    minimum_kudos: Decimal
    open_holds: int

    @property
    def free_kudos(self) -> Decimal:
        """What a hold can reserve; less than nothing where charges went below what is held and the minimum."""
        return self.posted_kudos - self.held_kudos - self.minimum_kudos


@dataclass(frozen=True, slots=True)
class UserBalance:
    """Both purses of a user."""

    unique_alias: str
    balance: UserAccount
    escrow: UserAccount


@dataclass(frozen=True, slots=True)
class Line:
    """A transfer as one account sees it."""

    created_at: datetime
    kind: str
    other_account: int
    other_alias: str | None
    other_kind: str | None
    amount: Decimal
    change: Decimal
    """The amount with its sign for this account; 0 where it paid itself."""
    balance: Decimal
    """What the account had after it."""
    idempotency_key: str
    cause: UUID | None


def find_user_balance(*, user_id: int) -> UserBalance | None:
    """Return what a user has, or None for nobody and for a user without accounts."""
    rows = sql.fetch_all(sql.load(__file__, "user_accounts.sql"), {"user_id": user_id}, UserAccount)
    accounts = {row.kind: row for row in rows}
    if not accounts:
        return None
    return UserBalance(
        unique_alias=rows[0].unique_alias,
        balance=accounts[AccountKind.BALANCE],
        escrow=accounts[AccountKind.ESCROW],
    )


def find_account_name(*, account_id: int) -> str | None:
    """Return what an account is called, or None when there is none of this id."""
    if account_id in {house.value for house in HouseAccount}:
        return HouseAccount(account_id).name.lower()
    account = Account.objects.select_related("user").filter(id=account_id).first()
    return None if account is None else f"{account.kind} of {account.user.unique_alias}"


def list_lines(*, account_id: int, limit: int, since: datetime | None = None) -> list[Line]:
    """Return an account's newest transfers, the newest first, none of them before `since`."""
    return sql.fetch_all(
        sql.load(__file__, "statement.sql"), {"account_id": account_id, "limit": limit, "since": since}, Line
    )
