"""The body of a text submit: open to unknown keys, strict about the known ones (decision W1, text-path 3)."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, SkipValidation

from hordechat.contract.limits import (
    DEFAULT_CONTEXT_TOKENS,
    DEFAULT_TEXT_OUTPUT_TOKENS,
    MAX_CONTEXT_TOKENS,
    MAX_MODEL_NAME_CHARACTERS,
    MAX_PROMPT_BYTES,
    MAX_PROXIED_ACCOUNT_CHARACTERS,
    MAX_SAMPLER_ORDER,
    MAX_TEXT_GENERATIONS,
    MAX_TEXT_MODEL_COUNT,
    MAX_TEXT_OUTPUT_TOKENS,
    MAX_WEBHOOK_CHARACTERS,
    MIN_CONTEXT_TOKENS,
    MIN_OUTPUT_TOKENS,
    MIN_SAMPLERS,
)
from hordechat.contract.refusals import BadRequest, ListFirst, StrictModel, Strings, validate
from hordechat.contract.sampling import check_stop_sequences
from hordechat.errors import ErrorCode, HordeError

ContextFit = Literal["ignore", "reject", "grow"]
CONTEXT_FITS = ("ignore", "reject", "grow")


class TokenOverflow(HordeError):
    """The output asked for is longer than the context it has to fit in."""

    code: ClassVar = ErrorCode.TOKEN_OVERFLOW

    def __init__(self) -> None:
        super().__init__("'params.max_length' is above 'params.max_context_length'.")


class MissingFullSamplerOrder(HordeError):
    """An order of samplers that leaves some out."""

    code: ClassVar = ErrorCode.MISSING_FULL_SAMPLER_ORDER

    def __init__(self) -> None:
        super().__init__(f"'params.sampler_order' has to hold at least {MIN_SAMPLERS} different samplers.")


def _absent(*, ge: float | None = None, le: float | None = None) -> Any:
    """Return a field that has no value when it is left out, and whose null is refused like any wrong type."""
    return Field(None, ge=ge, le=le)


class TextParams(StrictModel):
    """How the text is generated. A key without a default is left to the worker when it is left out."""

    n: int = Field(1, ge=1, le=MAX_TEXT_GENERATIONS, description="How many generations of the prompt.")
    max_length: int = Field(DEFAULT_TEXT_OUTPUT_TOKENS, ge=MIN_OUTPUT_TOKENS, le=MAX_TEXT_OUTPUT_TOKENS)
    max_context_length: int = Field(DEFAULT_CONTEXT_TOKENS, ge=MIN_CONTEXT_TOKENS, le=MAX_CONTEXT_TOKENS)
    temperature: float = _absent(ge=0, le=5)
    top_p: float = _absent(ge=0.001, le=1)
    top_k: int = _absent(ge=0, le=200)
    top_a: float = _absent(ge=0, le=1)
    typical: float = _absent(ge=0, le=1)
    tfs: float = _absent(ge=0, le=1)
    min_p: float = _absent(ge=0, le=1)
    rep_pen: float = _absent(ge=1, le=3)
    rep_pen_range: int = _absent(ge=0, le=4096)
    rep_pen_slope: float = _absent(ge=0, le=10)
    smoothing_factor: float = _absent(ge=0, le=10)
    dynatemp_range: float = _absent(ge=0, le=5)
    dynatemp_exponent: float = _absent(ge=0, le=5)
    sampler_order: Annotated[list[int], Field(fail_fast=True, max_length=MAX_SAMPLER_ORDER)] = []
    stop_sequence: Strings = []
    singleline: bool = _absent()
    frmtadsnsp: bool = _absent()
    frmtrmblln: bool = _absent()
    frmtrmspch: bool = _absent()
    frmttriminc: bool = _absent()
    use_default_badwordsids: bool = _absent()

    @property
    def sampling(self) -> Mapping[str, object]:
        """What the client sent of the sampling keys, and nothing else: defaults are filled in at the pop.

        Of stop sequences each once: repeats count towards no limit, and a worker would get a million of them.
        """
        sent = self.model_dump(exclude_unset=True, exclude={"n", "max_length", "max_context_length"})
        if "stop_sequence" in sent:
            sent["stop_sequence"] = list(dict.fromkeys(self.stop_sequence))
        return sent


class TextBody(StrictModel):
    """A text request."""

    prompt: str
    params: TextParams = Field(default_factory=TextParams)
    models: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=MAX_MODEL_NAME_CHARACTERS)]],
        Field(fail_fast=True, max_length=MAX_TEXT_MODEL_COUNT, description="The acceptable models; empty: any."),
    ] = []
    workers: Strings = Field([], description="Only these workers serve the request; the first five are kept.")
    worker_blacklist: bool = Field(False, description="The workers of the list never serve the request instead.")
    trusted_workers: bool = False
    validated_backends: bool = False
    slow_workers: bool = Field(True, description="False keeps slow workers away, and holds the kudos first.")
    dry_run: bool = Field(False, description="Answer what the request would cost, and queue nothing.")
    allow_downgrade: bool = Field(
        False, description="Lower the output to what is free when the kudos of more cannot be held."
    )
    disable_batching: bool = Field(False, description="A privilege of trusted users when `n` is above 1.")
    context_fit: ContextFit = Field(
        "ignore", description="What happens to a prompt over the context: nothing, a refusal, or a larger context."
    )
    proxied_account: str = Field("", max_length=MAX_PROXIED_ACCOUNT_CHARACTERS, description="For whom a service asks.")
    webhook: str = Field("", max_length=MAX_WEBHOOK_CHARACTERS, description="An https address; kept, not called yet.")
    extra_source_images: Annotated[SkipValidation[list[object]], ListFirst] = Field(
        [], description="Refused unless empty: text requests hold no images."
    )


def parse(body: Mapping[str, object]) -> TextBody:
    """Return the body as values.

    Raises:
        BadRequest: `context_fit` is none of its values, or the prompt is too long.
        InvalidPayload: fields that do not validate, each under its path; a null among them.
    """
    if body.get("context_fit", "ignore") not in CONTEXT_FITS:
        raise BadRequest("'context_fit' has to be one of " + ", ".join(CONTEXT_FITS) + ".")
    sent = validate(TextBody, body)
    if len(sent.prompt.encode()) > MAX_PROMPT_BYTES:
        raise BadRequest(f"'prompt' holds more than {MAX_PROMPT_BYTES} bytes of UTF-8.")
    return sent


def check_params(params: TextParams) -> None:
    """Judge the params as a whole, after the context was sized.

    Raises:
        TokenOverflow, MissingFullSamplerOrder, TooManyStopSequences, ExcessiveStopSequence: see each.
    """
    if params.max_length > params.max_context_length:
        raise TokenOverflow
    if params.sampler_order and len(set(params.sampler_order)) < MIN_SAMPLERS:
        raise MissingFullSamplerOrder
    check_stop_sequences(params.stop_sequence, path="params.stop_sequence")
