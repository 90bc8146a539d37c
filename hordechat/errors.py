"""The published return codes and the base of every refusal; ground floor, free of Django and of HTTP.

`hordechat.http.error_status` gives each code its status; nothing else turns an error into a response.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar


class ErrorCode(StrEnum):
    """Every `rc` a response can carry; `docs/errors.md` gives the remedy for each."""

    ABORTED_GENERATION = "AbortedGen"
    ANONYMOUS_FORBIDDEN_WORKER = "AnonForbiddenWorker"
    BAD_REQUEST = "BadRequest"
    CHAT_ADMISSION_DISABLED = "ChatAdmissionDisabled"
    CHAT_DECLARATION_INVALID = "ChatDeclarationInvalid"
    CHAT_IMAGE_STORAGE_UNAVAILABLE = "ChatImageStorageUnavailable"
    CHAT_KUDOS_CAP_EXCEEDED = "ChatKudosCapExceeded"
    CHAT_MODEL_MISMATCH = "ChatModelMismatch"
    CHAT_REQUEST_CONFLICT = "ChatRequestConflict"
    CHAT_SUBMIT_INVALID = "ChatSubmitInvalid"
    CHAT_SUBMIT_NONCONFORMANT = "ChatSubmitNonconformant"
    CORRUPT_PROMPT = "CorruptPrompt"
    DELETED_USER = "DeletedUser"
    DUPLICATE_GENERATION = "DuplicateGen"
    EXCESSIVE_STOP_SEQUENCE = "ExcessiveStopSequence"
    INTERNAL_SERVER_ERROR = "InternalServerError"
    INVALID_API_KEY = "InvalidAPIKey"
    INVALID_EXTRA_SOURCE_IMAGES = "InvalidExtraSourceImages."
    INVALID_JOB_ID = "InvalidJobID"
    INVALID_PRIORITY_USERNAME = "InvalidPriorityUsername"
    KUDOS_UPFRONT = "KudosUpfront"
    MAINTENANCE_MODE = "MaintenanceMode"
    METHOD_NOT_ALLOWED = "MethodNotAllowed"
    MISSING_FULL_SAMPLER_ORDER = "MissingFullSamplerOrder"
    MISSING_PROMPT = "MissingPrompt"
    NO_ELIGIBLE_WORKER = "NoEligibleWorker"
    NUL_BYTE_IN_PAYLOAD = "NulByteInPayload"
    ONLY_SERVICE_ACCOUNT_PROXY = "OnlyServiceAccountProxy"
    OPERATION_KEY_CONFLICT = "OperationKeyConflict"
    PROMPT_EXCEEDS_CONTEXT = "PromptExceedsContext"
    RATE_LIMIT_EXCEEDED = "RateLimitExceeded"
    REQUEST_NOT_FOUND = "RequestNotFound"
    REQUEST_TOO_LARGE = "RequestTooLarge"
    REQUIRES_TRUST = "RequiresTrust"
    ROUTE_NOT_FOUND = "RouteNotFound"
    SERVICE_UNAVAILABLE = "ServiceUnavailable"
    SHARED_KEY_EMPTY = "SharedKeyEmpty"
    SHARED_KEY_EXPIRED = "SharedKeyExpired"
    SHARED_KEY_INSUFFICIENT_KUDOS = "SharedKeyInsufficientKudos"
    SOURCE_IMAGE_SIZE_EXCEEDED = "SourceImageSizeExceeded"
    SOURCE_IMAGE_URL_REFUSED = "SourceImageUrlRefused"
    TIMEOUT_ADDRESS = "TimeoutIP"
    TOKEN_OVERFLOW = "TokenOverflow"  # noqa: S105 - tokens of text
    TOO_MANY_EXTRA_SOURCE_IMAGES = "TooManyExtraSourceImages"
    TOO_MANY_PROMPTS = "TooManyPrompts"
    TOO_MANY_SAME_ADDRESSES = "TooManySameIPs"
    TOO_MANY_STOP_SEQUENCES = "TooManyStopSequences"
    TOO_MANY_WORKERS = "TooManyWorkers"
    TOO_MANY_WORKERS_TRUSTED = "TooManyWorkersTrusted"
    UNKNOWN_CHAT_MODEL = "UnknownChatModel"
    UNSUPPORTED_CHAT_PARAMETER = "UnsupportedChatParameter"
    USER_NOT_FOUND = "UserNotFound"
    WORKER_FLAGGED_MAINTENANCE = "WorkerFlaggedMaintenance"
    WORKER_MAINTENANCE = "WorkerMaintenance"
    WORKER_NOT_FOUND = "WorkerNotFound"
    WRONG_CREDENTIALS = "WrongCredentials"


class HordeError(Exception):
    """A refusal the caller can act on: a code, a finished message and any extra members of the body."""

    code: ClassVar[ErrorCode]

    def __init__(self, message: str, *, extra: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.extra: Mapping[str, object] = extra or {}
