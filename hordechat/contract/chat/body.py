"""The JSON body of a chat submit as pydantic models: its keys, types and ranges, and what OpenAPI shows of it."""

from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, SkipValidation, WithJsonSchema, field_validator

from hordechat.contract.chat.messages import MessageBody
from hordechat.contract.chat.options import ChatHordeOptions
from hordechat.contract.chat.tools import ResponseFormatBody, ToolBody, ToolChoiceBody
from hordechat.contract.limits import (
    DEFAULT_CHAT_OUTPUT_TOKENS,
    MAX_CHAT_MODEL_COUNT,
    MAX_CHAT_OUTPUT_TOKENS,
    MAX_CHAT_TOOL_COUNT,
    MAX_MODEL_NAME_CHARACTERS,
    MAX_STOP_SEQUENCE_CHARACTERS,
    MAX_STOP_SEQUENCES,
    MIN_OUTPUT_TOKENS,
)
from hordechat.contract.refusals import ListFirst, ObjectFirst, StrictModel, StringFirst, Strings
from hordechat.contract.vocabulary import ReasoningEffort

ModelName = Annotated[str, Field(min_length=1, max_length=MAX_MODEL_NAME_CHARACTERS)]
OutputTokens = Annotated[int, Field(ge=MIN_OUTPUT_TOKENS, le=MAX_CHAT_OUTPUT_TOKENS)]
Penalty = Annotated[float, Field(ge=-2, le=2)]
StopSequences = Annotated[
    Strings,
    # One type inside, so that a fault is reported under `stop` and not under each form of it.
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class ChatBody(StrictModel):
    """The JSON body of `POST generate/chat/async`: OpenAI's chat completion keys and one object of our own."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"model": "demo/echo", "messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 64},
                {
                    "models": ["org/model-a", "org/model-b"],
                    "messages": [
                        {"role": "system", "content": "You answer in one sentence."},
                        {"role": "user", "content": [{"type": "text", "text": "What is a horde?"}]},
                    ],
                    "temperature": 0.7,
                    "stop": ["END"],
                    "horde": {"context_fit": "truncate_oldest"},
                },
            ]
        },
    )

    model: ModelName | None = Field(
        None, description="The model the request accepts; exactly one of `model` and `models`."
    )
    models: Annotated[list[ModelName], Field(fail_fast=True)] | None = Field(
        None, min_length=1, max_length=MAX_CHAT_MODEL_COUNT, description="Models of which any may serve the request."
    )
    messages: Annotated[
        SkipValidation[list[MessageBody]], ListFirst, Field(description="The conversation, oldest message first.")
    ]
    max_tokens: OutputTokens | None = Field(
        None, description=f"The longest reply, in tokens; {DEFAULT_CHAT_OUTPUT_TOKENS} when left out."
    )
    max_completion_tokens: OutputTokens | None = Field(None, description="The same as `max_tokens`.")
    temperature: float | None = Field(None, ge=0, le=5, description="Sent to the worker; 1 when left out.")
    top_p: float | None = Field(None, ge=0.001, le=1, description="Sent to the worker; 1 when left out.")
    frequency_penalty: Penalty | None = Field(None, description="Needs a worker with the feature, unless it is 0.")
    presence_penalty: Penalty | None = Field(None, description="Needs a worker with the feature, unless it is 0.")
    seed: int | None = Field(
        None, ge=-(2**63), le=2**63 - 1, description="Needs a worker with the feature, whatever its value."
    )
    reasoning_effort: Annotated[ReasoningEffort, Field(strict=False), StringFirst] | None = Field(
        None, description="Needs a worker with the feature, `none` included; null is refused."
    )
    stop: StopSequences | None = Field(
        None,
        description=f"Where to stop: at most {MAX_STOP_SEQUENCES} different sequences of "
        f"{MAX_STOP_SEQUENCE_CHARACTERS} characters together.",
    )
    n: int | None = Field(None, description="Only 1.")
    stream: bool | None = Field(None, description="True asks the worker for progress while it generates.")
    stream_options: object = Field(None, description="Accepted and not applied.")
    user: object = Field(None, description="Accepted and not applied.")
    metadata: object = Field(None, description="Accepted and not applied.")
    tools: Annotated[SkipValidation[list[ToolBody]], ListFirst] | None = Field(
        None,
        json_schema_extra={"maxItems": MAX_CHAT_TOOL_COUNT},
        description="The functions the model may call; an empty list is none.",
    )
    tool_choice: SkipValidation[ToolChoiceBody | None] = Field(None, description="Beside `tools` alone.")
    parallel_tool_calls: bool | None = Field(None, description="Beside `tools` alone.")
    response_format: Annotated[SkipValidation[ResponseFormatBody], ObjectFirst] | None = Field(
        None, description="The format of the reply's content."
    )
    horde: ChatHordeOptions = Field(default_factory=ChatHordeOptions, description="What OpenAI has no key for.")

    @field_validator("horde", mode="before")
    @classmethod
    def _default_horde(cls, value: object) -> object:
        return {} if value is None else value
