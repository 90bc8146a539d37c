"""How long keys are kept that nobody can call with any more."""

from datetime import timedelta

KEPT_AFTER_END = timedelta(days=30)
"""So long an owner sees which key it was, and whoever calls with an expired shared key is told so."""
