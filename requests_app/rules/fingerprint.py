"""The operation fingerprint: by it a repeated submission is told from another one under the same key.

It is taken from the mapped submission with its defaults, never from the bytes of the body, and before anything that may
come out differently the second time: moderation, lowering, growth, trimming and stored images.
"""

from collections.abc import Iterable
from hashlib import sha256
from uuid import UUID

import orjson

from hordechat.contract.chat import ChatHordeOptions, ChatSubmission
from requests_app.rules.mapping import STREAM_PROGRESS, stored_extras, stored_params

EXCLUDED_HORDE_KEYS = frozenset({"availability_mode", "dry_run", "include_reasoning", "max_kudos", "operation_key"})
"""Options about how a submission is handled, not about what is asked: a repeat may change them (OPK-35)."""

assert set(ChatHordeOptions.model_fields) > EXCLUDED_HORDE_KEYS


def fingerprint_of(submission: ChatSubmission) -> str:
    """Return the SHA-256 of what was asked, as 64 lower-case hex digits."""
    asked: dict[str, object] = {
        "messages": [message.as_json() for message in submission.messages],
        "params": stored_params(submission) | {"max_length": submission.max_length},
        "models": sorted(submission.models),
        "horde": _compared_options(submission.horde),
    }
    extras = {key: value for key, value in (stored_extras(submission) or {}).items() if key != STREAM_PROGRESS}
    if extras:
        asked["extras"] = extras
    return sha256(canonical_json(asked)).hexdigest()


def canonical_json(value: object) -> bytes:
    """Return the one spelling of a JSON value: keys sorted, no whitespace, UTF-8 without escapes beyond JSON's own.

    orjson descends at most 254 levels and then raises, in its own stack; the contract bounds what is stored to a tenth.
    """
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _compared_options(options: ChatHordeOptions) -> dict[str, object]:
    compared = options.model_dump(mode="json", exclude=set(EXCLUDED_HORDE_KEYS))
    return compared | {"only": _worker_ids(options.only), "ignore": _worker_ids(options.ignore)}


def _worker_ids(ids: Iterable[object] | None) -> list[str] | None:
    """Spell each id in the one way ids have; their order stays as sent."""
    return None if ids is None else [_canonical_id(str(sent)) for sent in ids]


def _canonical_id(sent: str) -> str:
    try:
        return str(UUID(sent))
    except ValueError:  # what no worker can have for an id is refused elsewhere, if at all
        return sent
