"""Count what is charged under a shared key against what the key may spend; its owner's account pays (text-path 7.9)."""

from decimal import Decimal
from uuid import UUID

from django.db import connection

from hordechat.infra import sql


def charge_shared_key(*, shared_key_id: UUID, kudos: Decimal, needed: Decimal = Decimal(0)) -> bool:
    """Take kudos from what a shared key may spend; return False, and take none, when less than `needed` is left.

    A part: it runs in the transaction of the charge, after the owner's account was locked, which all writers of the
    row do first.
    """
    assert connection.in_atomic_block, "a shared key is charged in the transaction of what its owner pays"
    return bool(
        sql.execute(
            sql.load(__file__, "charge_shared_key.sql"),
            {"shared_key_id": shared_key_id, "kudos": kudos, "needed": needed},
        )
    )
