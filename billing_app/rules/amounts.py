"""How an amount of kudos is rounded: once for each documented formula, half to even (decision K1)."""

from decimal import ROUND_HALF_EVEN, Decimal

from billing_app.rules.accounts import HUNDREDTH


def to_kudos(amount: float | Decimal) -> Decimal:
    """Return the amount in whole hundredths, as the ledger holds it."""
    return Decimal(amount).quantize(HUNDREDTH, rounding=ROUND_HALF_EVEN)


def to_whole_kudos(amount: Decimal) -> Decimal:
    """Return the amount in whole kudos, as a quote is told to a client."""
    return amount.quantize(Decimal(1), rounding=ROUND_HALF_EVEN)
