"""How a body is refused: the typed refusals of the wire contract, and pydantic's findings put into their words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from hordechat.contract.limits import MAX_REFUSED_VALUE_CHARACTERS
from hordechat.errors import ErrorCode, HordeError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class BadRequest(HordeError):
    """A body, or a value in it, has the wrong shape, type or range; the message names the path."""

    code: ClassVar = ErrorCode.BAD_REQUEST


class InvalidPayload(BadRequest):
    """Some fields do not validate; `errors` has a sentence for each path (REQ-35)."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("Input payload validation failed", extra={"errors": dict(errors)})


class UnsupportedChatParameter(HordeError):
    """A key or value outside the chat contract, or one this server does not serve yet."""

    code: ClassVar = ErrorCode.UNSUPPORTED_CHAT_PARAMETER

    @classmethod
    def key(cls, path: str) -> "UnsupportedChatParameter":
        """Return the refusal of a key."""
        return cls(f"{path} is not supported on chat requests.")

    @classmethod
    def value(cls, path: str, value: object) -> "UnsupportedChatParameter":
        """Return the refusal of a value, which the message quotes in part."""
        return cls(f"{path}={str(value)[:MAX_REFUSED_VALUE_CHARACTERS]} is not supported on chat requests.")

    @classmethod
    def not_yet(cls, path: str) -> "UnsupportedChatParameter":
        """Return the refusal of a documented key this server does not serve yet."""
        return cls(f"{path} is not supported yet.")


class ChatRequestConflict(HordeError):
    """Two values of a body contradict each other."""

    code: ClassVar = ErrorCode.CHAT_REQUEST_CONFLICT


class NulByteInPayload(HordeError):
    """A string or key holds a NUL character, which the database cannot."""

    code: ClassVar = ErrorCode.NUL_BYTE_IN_PAYLOAD

    def __init__(self) -> None:
        super().__init__("The payload holds a NUL character, which cannot be stored.")


class TooManyStopSequences(HordeError):
    """More different stop sequences than a worker takes."""

    code: ClassVar = ErrorCode.TOO_MANY_STOP_SEQUENCES


class ExcessiveStopSequence(HordeError):
    """The stop sequences are too long together."""

    code: ClassVar = ErrorCode.EXCESSIVE_STOP_SEQUENCE


class TooManyExtraSourceImages(HordeError):
    """More images than a request may hold."""

    code: ClassVar = ErrorCode.TOO_MANY_EXTRA_SOURCE_IMAGES


class SourceImageSizeExceeded(HordeError):
    """An image, or all images together, hold too many bytes."""

    code: ClassVar = ErrorCode.SOURCE_IMAGE_SIZE_EXCEEDED


class StrictModel(BaseModel):
    """A body, or a part of one, that takes each JSON type as itself and no other (REQ-38)."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", hide_input_in_errors=True)


class ClosedModel(StrictModel):
    """A part of the chat body as the API page shows it; `contract.chat` reads it by hand, up to its first fault."""

    model_config = ConfigDict(extra="forbid")


def _require_string(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError("Input should be a valid string")  # noqa: TRY004 - pydantic collects this one alone
    return value


StringFirst = BeforeValidator(_require_string)
"""Keeps other types from an enum: its own look-up describes what it refuses, which fails over a deeply nested list."""


def _require_list(value: object) -> object:
    if not isinstance(value, list):
        raise ValueError("Input should be a valid list")  # noqa: TRY004 - as above
    return value


ListFirst = BeforeValidator(_require_list)
"""Holds to its type what is read by hand later, and is behind `SkipValidation` for pydantic."""


NO_OBJECT = "Input should be a valid dictionary"


def _require_object(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError(NO_OBJECT)  # noqa: TRY004 - as above
    return value


ObjectFirst = BeforeValidator(_require_object)
"""The same for an object."""

Strings = Annotated[list[str], Field(fail_fast=True)]
"""A list that is refused at its first fault: a million of them would be a million findings, of a kilobyte each."""

Model = TypeVar("Model", bound=BaseModel)


def path_of(location: Sequence[str | int]) -> str:
    """Return the path as messages write it: `messages[0].content`."""
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


def validate(model: type[Model], body: Mapping[str, object], *, at: Sequence[str | int] = ()) -> Model:
    """Return the body as a model.

    Raises:
        InvalidPayload: fields that do not validate, each under its path below `at`.
    """
    try:
        return model.model_validate(body)
    except ValidationError as error:
        findings = error.errors(include_url=False, include_context=False, include_input=False)
        raise InvalidPayload(_sentences(findings, at)) from None


def describe(finding: "ErrorDetails") -> str:
    """Return what is wrong with a value, in words for its sender: pydantic's own name the class it had in mind."""
    return NO_OBJECT if finding["type"] == "model_type" else finding["msg"].removeprefix("Value error, ")


def _sentences(findings: "Iterable[ErrorDetails]", at: Sequence[str | int]) -> dict[str, str]:
    return {path_of([*at, *finding["loc"]]): f"{describe(finding)}." for finding in findings}
