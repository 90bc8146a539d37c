"""Refusals around requests, their queue and their replies."""

from collections.abc import Sequence
from decimal import Decimal
from typing import ClassVar
from uuid import UUID

from hordechat.errors import ErrorCode, HordeError


class UnknownChatModel(HordeError):
    """Nobody knows the model: the reference lacks it and no online worker declared it."""

    code: ClassVar = ErrorCode.UNKNOWN_CHAT_MODEL

    def __init__(self, *, path: str, model: str) -> None:
        super().__init__(f"'{path}' names an unknown model: '{model}'.")


class NoEligibleWorker(HordeError):
    """The models are known and no online chat worker serves one of them now."""

    code: ClassVar = ErrorCode.NO_ELIGIBLE_WORKER

    def __init__(self, *, models: Sequence[str]) -> None:
        if len(models) == 1:
            super().__init__(f"No worker is currently serving the model '{models[0]}'.")
        else:
            quoted = ", ".join(f"'{model}'" for model in models)
            super().__init__(f"No worker is currently serving any of the models {quoted}.")


class PromptExceedsContext(HordeError):
    """The conversation and the reply asked for do not fit the context."""

    code: ClassVar = ErrorCode.PROMPT_EXCEEDS_CONTEXT

    def __init__(self, *, prompt_tokens: int, max_length: int, context: int) -> None:
        super().__init__(
            f"The prompt is estimated at {prompt_tokens} tokens, which with max_length {max_length} "
            f"does not fit a context of {context} tokens."
        )


class ChatAdmissionDisabled(HordeError):
    """The operator takes no new chat requests."""

    code: ClassVar = ErrorCode.CHAT_ADMISSION_DISABLED

    def __init__(self) -> None:
        super().__init__("Chat requests are not being admitted at the moment. Please try again later.")


class OperationKeyConflict(HordeError):
    """The key belongs to another request of the same user."""

    code: ClassVar = ErrorCode.OPERATION_KEY_CONFLICT

    def __init__(self) -> None:
        super().__init__("This operation key was already used for a different request.")


class TooManyPrompts(HordeError):
    """The user has as many slots waiting as they may."""

    code: ClassVar = ErrorCode.TOO_MANY_PROMPTS

    def __init__(self, *, waiting: int, limit: int, is_anonymous: bool) -> None:
        hint = " An account of your own has a limit of its own." if is_anonymous else ""
        super().__init__(f"This would make {waiting} waiting requests, and the limit is {limit}.{hint}")


class ChatKudosCapExceeded(HordeError):
    """The request is estimated to cost more than its client is willing to pay."""

    code: ClassVar = ErrorCode.CHAT_KUDOS_CAP_EXCEEDED

    def __init__(self, *, estimate: Decimal, cap: int) -> None:
        super().__init__(
            f"This request is estimated to cost {estimate} kudos at current pricing, above its max_kudos of {cap}."
        )


class ChatImageStorageUnavailable(HordeError):
    """The request carries images and there is nowhere to keep them."""

    code: ClassVar = ErrorCode.CHAT_IMAGE_STORAGE_UNAVAILABLE

    def __init__(self) -> None:
        super().__init__("The server cannot store the images of chat requests now; nothing was queued or charged.")


class CorruptPrompt(HordeError):
    """A request's texts cannot be screened within their bounds, or nothing is left of them; none is quoted."""

    code: ClassVar = ErrorCode.CORRUPT_PROMPT

    def __init__(self) -> None:
        super().__init__("The texts of this request could not be screened, or nothing is left of them.")


class FilterRefused(ValueError):
    """A prompt filter cannot be kept like this, or is not there; the message says what to change."""


class SourceImageUrlRefused(HordeError):
    """An image's address leads to where the server does not fetch from."""

    code: ClassVar = ErrorCode.SOURCE_IMAGE_URL_REFUSED

    def __init__(self, *, path: str) -> None:
        super().__init__(f"'{path}' is no address the server fetches images from.")


class RequestNotFound(HordeError):
    """No request of this family has the id."""

    code: ClassVar = ErrorCode.REQUEST_NOT_FOUND

    def __init__(self, *, request_id: str) -> None:
        super().__init__(f"There is no request with the id {request_id[:64]}; requests are kept for 20 minutes.")


class InvalidJobId(HordeError):
    """No generation has the id."""

    code: ClassVar = ErrorCode.INVALID_JOB_ID

    def __init__(self, *, generation_id: str) -> None:
        super().__init__(f"There is no job with the id {generation_id[:64]}; it may have expired with its request.")


class DuplicateGeneration(HordeError):
    """The generation has a reply already; the worker was paid for it."""

    code: ClassVar = ErrorCode.DUPLICATE_GENERATION

    def __init__(self, *, generation_id: UUID) -> None:
        super().__init__(f"Processing Generation with ID {generation_id} already has a reply.")


class AbortedGeneration(HordeError):
    """The generation was given up: its lease lapsed, or its worker gave it back."""

    code: ClassVar = ErrorCode.ABORTED_GENERATION

    def __init__(self, *, generation_id: UUID, lease_seconds: int) -> None:
        super().__init__(
            f"Processing Generation with ID {generation_id} took too long to process and has been aborted! "
            f"Generations must complete within {lease_seconds} seconds."
        )


class ChatModelMismatch(HordeError):
    """The reply comes from another model than the job was assigned to."""

    code: ClassVar = ErrorCode.CHAT_MODEL_MISMATCH

    def __init__(self, *, sent: str, assigned: str) -> None:
        super().__init__(f"'model_id' is '{sent[:64]}' and the job was assigned to '{assigned}'.")


class ChatSubmitNonconformant(HordeError):
    """A well-formed reply that does not keep what its strict request asks for."""

    code: ClassVar = ErrorCode.CHAT_SUBMIT_NONCONFORMANT


class MaintenanceMode(HordeError):
    """The site takes no new requests while its operator works on it."""

    code: ClassVar = ErrorCode.MAINTENANCE_MODE

    def __init__(self) -> None:
        super().__init__("The horde is in maintenance mode and takes no new requests. Please try again later.")


class KudosUpfront(HordeError):
    """A requester does not have what a request above the free output allowance may cost."""

    code: ClassVar = ErrorCode.KUDOS_UPFRONT

    def __init__(self, *, needed_kudos: Decimal, length_key: str, max_length: int, allowance: int) -> None:
        reason = (
            f"{length_key} {max_length} is above the free output allowance of {allowance} tokens. "
            f"Lower {length_key} or raise your kudos."
            if max_length > allowance
            else "requests without slow workers, or for chosen workers alone, always do. The free output allowance is "
            f"{allowance} tokens."
        )
        super().__init__(f"This request needs {needed_kudos} kudos upfront: {reason}")


class NoAbleWorker(HordeError):
    """No online worker could serve a request that is refused for kudos: more of them would not help it (ALW-60)."""

    code: ClassVar = ErrorCode.NO_ELIGIBLE_WORKER

    def __init__(self) -> None:
        super().__init__("No online worker can serve this request.")


class MissingPrompt(HordeError):
    """A text request without a text."""

    code: ClassVar = ErrorCode.MISSING_PROMPT

    def __init__(self) -> None:
        super().__init__("'prompt' is empty.")


class OnlyServiceAccountProxy(HordeError):
    """A user who is no service says for whom a request is."""

    code: ClassVar = ErrorCode.ONLY_SERVICE_ACCOUNT_PROXY

    def __init__(self) -> None:
        super().__init__("Only service accounts may send 'proxied_account'.")


class RequiresTrust(HordeError):
    """A privilege of trusted users."""

    code: ClassVar = ErrorCode.REQUIRES_TRUST

    def __init__(self) -> None:
        super().__init__("Only trusted users may send 'disable_batching' with more than one generation.")


class InvalidExtraSourceImages(HordeError):
    """A text request with images."""

    code: ClassVar = ErrorCode.INVALID_EXTRA_SOURCE_IMAGES

    def __init__(self) -> None:
        super().__init__("Text requests take no 'extra_source_images'.")


class WorkerNotFound(HordeError):
    """A request names a worker that does not exist."""

    code: ClassVar = ErrorCode.WORKER_NOT_FOUND

    def __init__(self, *, worker_id: str) -> None:
        super().__init__(f"There is no worker with the id '{worker_id[:64]}'.")


class NotTheSubmitter(HordeError):
    """A request's input is asked for under another key than it was submitted under."""

    code: ClassVar = ErrorCode.WRONG_CREDENTIALS

    def __init__(self) -> None:
        super().__init__("Only the key a request was submitted under may read it.")
