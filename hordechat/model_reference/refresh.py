"""Read the operator's reference anew when its copy is an hour old, and publish it to all processes."""

import logging
from datetime import datetime

from django.conf import settings

from hordechat.infra.metrics import MODEL_REFERENCE_REFRESHES, MODEL_REFERENCE_REFUSED_ENTRIES
from hordechat.model_reference import published, source
from hordechat.model_reference.source import SourceBroken, SourceUnreachable

logger = logging.getLogger(__name__)

GOOD_FOR_SECONDS = 3600
"""How old the published copy grows. A failed try is repeated at the next run: the copy is no younger for it."""

SHOWN_NAMES = 3


def refresh(*, now: datetime) -> None:
    """Publish the operator's reference unless there is none, or its copy is young enough.

    A place that cannot be read, or holds no reference, leaves the last good copy; it is logged and counted.
    """
    place = settings.HORDE.text_model_reference
    if not place or not _is_due(place, now=now.timestamp()):
        return
    try:
        reading = source.read(place)
    except (SourceUnreachable, SourceBroken) as fault:
        MODEL_REFERENCE_REFRESHES.labels("unreachable" if isinstance(fault, SourceUnreachable) else "broken").inc()
        logger.warning("HORDE_IMAGE_LLM_REFERENCE was not read, the last good copy stays: %s", fault)
        return
    if reading.refused_names:
        MODEL_REFERENCE_REFUSED_ENTRIES.inc(len(reading.refused_names))
        names = ", ".join(repr(name[:80]) for name in reading.refused_names[:SHOWN_NAMES])
        logger.warning(
            "HORDE_IMAGE_LLM_REFERENCE has %d entries that are no models: %s", len(reading.refused_names), names
        )
    is_published = published.publish(reading.models, place=place, now=now.timestamp())
    MODEL_REFERENCE_REFRESHES.labels("published" if is_published else "unpublished").inc()


def _is_due(place: str, *, now: float) -> bool:
    imprint = published.find_imprint()
    if imprint is None:
        return False  # without Redis there is nowhere to publish to; the next run looks again
    return not imprint.is_of(place) or imprint.read_at is None or now - imprint.read_at >= GOOD_FOR_SECONDS
