"""A text request as its client submitted it, for that client alone."""

from dataclasses import dataclass
from uuid import UUID

import orjson

from billing_app.errors import InvalidApiKey
from billing_app.selectors import keys
from hordechat.contract.status import StoredTextRequest
from hordechat.infra import sql
from requests_app.errors import NotTheSubmitter, RequestNotFound


@dataclass(frozen=True, kw_only=True)
class StoredText:
    """The row of `stored_text.sql`."""

    submitted_prompt: str
    params: str
    models: list[str]
    jobs: int
    max_length: int
    max_context_length: int
    workers: list[UUID]
    worker_blacklist: bool
    trusted_workers: bool
    validated_backends: bool
    slow_workers: bool
    is_key_known: bool
    is_submitters_key: bool


def get(*, request_id: UUID, api_key: str) -> StoredTextRequest:
    """Return the request; its prompt is what was sent, never what screening made of it.

    Raises:
        RequestNotFound: there is no such text request.
        InvalidApiKey: nobody has the key.
        NotTheSubmitter: it was submitted under another key.
    """
    row = sql.find_one(
        sql.load(__file__, "stored_text.sql"),
        {
            "request_id": request_id,
            "key_hashes": keys.candidate_hashes(api_key),
            "shared_key_id": keys.parse_shared(api_key),
        },
        StoredText,
    )
    if row is None:
        raise RequestNotFound(request_id=str(request_id))
    if not row.is_key_known:
        raise InvalidApiKey
    if not row.is_submitters_key:
        raise NotTheSubmitter
    lengths = {"n": row.jobs, "max_length": row.max_length, "max_context_length": row.max_context_length}
    return StoredTextRequest(
        prompt=row.submitted_prompt,
        params=lengths | orjson.loads(row.params),
        models=row.models,
        workers=[str(worker) for worker in row.workers],
        worker_blacklist=row.worker_blacklist,
        trusted_workers=row.trusted_workers,
        validated_backends=row.validated_backends,
        slow_workers=row.slow_workers,
    )
