"""Valid bodies for property tests, and the chat submissions they parse to; `broken_bodies` spoils them."""

import string
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from hordechat.contract import chat
from hordechat.contract.chat import ChatSubmission
from hordechat.contract.limits import MAX_CHAT_OUTPUT_TOKENS, MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS, MIN_OUTPUT_TOKENS
from hordechat.contract.vocabulary import Capability, ImageTransport, ReasoningEffort

Json = Any

# No NUL: it is valid for the contract, and the HTTP edge refuses it.
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
NAMES = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=8)
IDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
FLAGS = st.booleans()
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(-1e18, 1e18)
NOTHING: SearchStrategy[Json] = st.just({})
SCALARS = st.none() | FLAGS | NUMBERS | TEXTS


def one_of_none(strategy: SearchStrategy[Json]) -> SearchStrategy[Json]:
    """Return the strategy's values, or null, which is the same as leaving a key out (REQ-39)."""
    return st.none() | strategy


def json_values(max_leaves: int = 5) -> SearchStrategy[Json]:
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=max_leaves,
    )


# -- Messages ----------------------------------------------------------------------------------------------------------

TEXT_PARTS = st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS})
IMAGE_PARTS = st.fixed_dictionaries(
    {
        "type": st.just("image_url"),
        "image_url": st.fixed_dictionaries(
            {"url": st.sampled_from(["data:image/png;base64,aGVsbG8=", "https://example.org/cat.jpg"])},
            optional={"detail": st.sampled_from(["auto", "low", "high"])},
        ),
    }
)


def contents(parts: SearchStrategy[Json]) -> SearchStrategy[Json]:
    return TEXTS | st.lists(parts, min_size=1, max_size=3)


def spoken(*roles: str, parts: SearchStrategy[Json] = TEXT_PARTS) -> SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {"role": st.sampled_from(roles), "content": contents(parts)},
        optional={"name": st.text(string.ascii_letters, min_size=1, max_size=64)},
    )


@st.composite
def tool_rounds(draw: st.DrawFn) -> list[Json]:
    """Return an assistant message with calls, and their answers in any order."""
    ids = draw(st.lists(IDS, min_size=1, max_size=3, unique=True))
    calls = [
        {"id": each, "type": "function", "function": {"name": draw(NAMES), "arguments": draw(TEXTS)}} for each in ids
    ]
    said: dict[str, Json] = draw(NOTHING | st.fixed_dictionaries({"content": st.none() | TEXTS}))
    answers = [
        {"role": "tool", "tool_call_id": each, "content": draw(contents(TEXT_PARTS))}
        for each in draw(st.permutations(ids))
    ]
    return [{"role": "assistant", **said, "tool_calls": calls}, *answers]


SPOKEN = spoken("system", "developer", "assistant") | spoken("user", parts=TEXT_PARTS | IMAGE_PARTS)
CONVERSATIONS = st.lists(SPOKEN.map(lambda message: [message]) | tool_rounds(), min_size=1, max_size=4).map(
    lambda turns: [message for turn in turns for message in turn]
)

# -- Tools and formats -------------------------------------------------------------------------------------------------

LEAF_SCHEMAS = st.sampled_from(
    [{}, {"type": "string"}, {"type": "integer", "minimum": 1}, {"enum": ["a", {"type": "object"}]}, {"$ref": "#"}]
)


def closed(properties: dict[str, Json]) -> Json:
    """Return the strict schema of an object with these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


STRICT_SCHEMAS = st.recursive(
    LEAF_SCHEMAS,
    lambda inner: (
        st.dictionaries(NAMES, inner, max_size=2).map(closed)
        | inner.map(lambda items: {"type": "array", "items": items})
        | st.lists(inner, min_size=1, max_size=2).map(lambda branches: {"anyOf": branches})
    ),
    max_leaves=4,
).map(lambda schema: schema if isinstance(schema, dict) else {"type": "object"})
FREE_SCHEMAS = st.dictionaries(TEXTS, json_values(), max_size=3)


def described(schema_key: str, schemas: SearchStrategy[Json], *, strict: SearchStrategy[Json]) -> SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {"name": NAMES, schema_key: schemas, "strict": strict}, optional={"description": TEXTS}
    )


def with_schema(schema_key: str) -> SearchStrategy[Json]:
    """Return what a tool and a JSON schema format have in common."""
    return described(schema_key, FREE_SCHEMAS, strict=st.sampled_from([None, False])) | described(
        schema_key, STRICT_SCHEMAS, strict=st.just(True)
    )


TOOLS: SearchStrategy[Json] = (st.fixed_dictionaries({"name": NAMES}) | with_schema("parameters")).map(
    lambda function: {"type": "function", "function": function}
)
RESPONSE_FORMATS = st.sampled_from([{"type": "text"}, {"type": "json_object"}]) | with_schema("schema").map(
    lambda json_schema: {"type": "json_schema", "json_schema": json_schema}
)


@st.composite
def tool_keys(draw: st.DrawFn) -> dict[str, Json]:
    """Return `tools` with the keys that stand beside them alone."""
    tools = draw(st.lists(TOOLS, min_size=1, max_size=3))
    forced = [{"type": "function", "function": {"name": each["function"]["name"]}} for each in tools]
    keys: dict[str, Json] = draw(
        st.fixed_dictionaries(
            {"tools": st.just(tools)},
            optional={
                "tool_choice": one_of_none(st.sampled_from(["none", "auto", "required", *forced])),
                "parallel_tool_calls": one_of_none(FLAGS),
            },
        )
    )
    return keys


# -- Bodies ------------------------------------------------------------------------------------------------------------

WORKERS = st.lists(TEXTS, min_size=1, max_size=2)
HORDE_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "trusted_workers": FLAGS,
        "validated_backends": FLAGS,
        "slow_workers": FLAGS,
        "max_context_length": one_of_none(st.integers(MIN_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS)),
        "context_fit": st.sampled_from(["grow", "reject", "truncate_oldest"]),
        "conformance": st.sampled_from(["strict", "best_effort"]),
        "include_reasoning": FLAGS,
        "availability_mode": st.sampled_from(["wait", "fail_fast"]),
        "max_kudos": one_of_none(st.integers(1, 10**9)),
        "dry_run": FLAGS,
        "operation_key": one_of_none(st.uuids().map(str)),
    },
)
MODELS = st.fixed_dictionaries({"model": st.text(string.printable, min_size=1, max_size=30)}) | st.fixed_dictionaries(
    {"models": st.lists(st.text(string.printable, min_size=1, max_size=30), min_size=1, max_size=5, unique=True)}
)
LENGTHS = st.integers(MIN_OUTPUT_TOKENS, MAX_CHAT_OUTPUT_TOKENS)
SAMPLING = st.fixed_dictionaries(
    {},
    optional={
        "temperature": one_of_none(st.floats(0, 5) | st.integers(0, 5)),
        "top_p": one_of_none(st.floats(0.001, 1)),
        "frequency_penalty": one_of_none(st.floats(-2, 2)),
        "presence_penalty": one_of_none(st.floats(-2, 2)),
        "seed": one_of_none(st.integers(-(2**63), 2**63 - 1)),
        "reasoning_effort": st.sampled_from([effort.value for effort in ReasoningEffort]),
        "stop": one_of_none(TEXTS | st.lists(TEXTS, max_size=5)),
        "n": st.sampled_from([None, 1]),
        "stream": one_of_none(FLAGS),
        "stream_options": json_values(),
        "user": json_values(),
        "metadata": json_values(),
    },
)


@st.composite
def valid_bodies(draw: st.DrawFn) -> dict[str, Json]:
    """Return a body the chat route takes, whatever the order of its keys."""
    options: dict[str, Json] = draw(HORDE_OPTIONS)
    if workers := draw(st.sampled_from([None, None, "only", "ignore"])):
        options[workers] = draw(WORKERS)
    messages: list[Json] = draw(CONVERSATIONS)
    if draw(FLAGS):
        options["openai_guards"] = True
        messages = [*messages, {"role": "user", "content": "As JSON, please."}]
    length: int = draw(LENGTHS)
    keys: list[str] = draw(
        st.sampled_from([[], ["max_tokens"], ["max_completion_tokens"], ["max_tokens", "max_completion_tokens"]])
    )
    response_format: dict[str, Json] = draw(
        NOTHING | st.fixed_dictionaries({"response_format": one_of_none(RESPONSE_FORMATS)})
    )
    tools: dict[str, Json] = draw(NOTHING | st.fixed_dictionaries({"tools": st.sampled_from([None, []])}) | tool_keys())
    body = {
        **draw(MODELS),
        "messages": messages,
        **dict.fromkeys(keys, length),
        **draw(SAMPLING),
        **tools,
        **response_format,
        **({"horde": options} if options else {}),
    }
    order = draw(st.permutations(list(body)))
    return {key: body[key] for key in order}


def submissions() -> SearchStrategy[ChatSubmission]:
    """Return what valid bodies parse to."""
    return valid_bodies().map(chat.parse)


NUMBER_PARAMS = ("temperature", "top_p", "top_a", "typical", "tfs", "min_p", "smoothing_factor", "dynatemp_range")
TEXT_BODIES = st.fixed_dictionaries(
    {"prompt": TEXTS.map(lambda text: f"Once {text}")},
    optional={
        "params": st.fixed_dictionaries(
            {},
            optional={
                "n": st.integers(1, 3),
                "max_length": st.integers(MIN_OUTPUT_TOKENS, 80),
                "max_context_length": st.integers(MIN_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS),
                **dict.fromkeys(NUMBER_PARAMS, st.floats(0.001, 1)),
                "rep_pen": st.floats(1, 3),
                "top_k": st.integers(0, 200),
                "sampler_order": st.permutations(range(7)),
                "stop_sequence": st.lists(TEXTS, max_size=3),
                "singleline": FLAGS,
            },
        ),
        "models": st.lists(st.text(string.printable, min_size=1, max_size=30), max_size=3),
        **dict.fromkeys(("trusted_workers", "validated_backends", "slow_workers", "dry_run", "allow_downgrade"), FLAGS),
        "context_fit": st.sampled_from(["ignore", "grow"]),
        "webhook": st.just("https://example.org/hook"),
        "extra_source_images": st.just([]),
        "style": json_values(),
    },
)


def pop_bodies(model: str) -> SearchStrategy[Json]:
    """Return the pops of a worker that takes chat jobs for a model."""
    return st.fixed_dictionaries(
        {
            "name": st.sampled_from(["mutated worker", "another mutated worker"]),
            "models": st.just([model, "other"]),
            "chat_jobs": st.just(True),
            "chat_limits": st.fixed_dictionaries(
                {"max_context_length": st.integers(8192, 2**31 - 1), "max_length": st.integers(1024, 2**31 - 1)},
                optional={"tools_max_temperature": st.floats(0, 2)},
            ),
            # Strict requests, which most are, go to workers with this feature alone.
            "chat_features": st.lists(st.sampled_from([*Capability, "unheard of"]), max_size=4).map(
                lambda features: [Capability.PROMPT_OVERFLOW_REFUSED, *features]
            ),
            "model_id": st.just(model),
        },
        optional={
            "prompt_jobs": FLAGS,
            "image_transports": st.lists(st.sampled_from([*ImageTransport, "pigeon"]), max_size=2),
            "max_length": st.integers(0, 2**31 - 1),
            "max_context_length": st.integers(0, 2**31 - 1),
            "bridge_agent": TEXTS,
            "threads": st.integers(1, 50),
            "amount": st.integers(1, 20),
            "nsfw": FLAGS,
            "softprompts": json_values(),
        },
    )


def reply_bodies(ids: SearchStrategy[str], model: str) -> SearchStrategy[Json]:
    """Return replies to a chat job, and the job given back."""
    reply = st.fixed_dictionaries(
        {
            "id": ids,
            "message": st.fixed_dictionaries(
                {"role": st.just("assistant"), "content": TEXTS}, optional={"reasoning_content": one_of_none(TEXTS)}
            ),
            "finish_reason": st.sampled_from(["stop", "length"]),
            "model_id": st.just(model),
        },
        optional={
            "state": st.sampled_from(["ok", "censored", "csam"]),
            "native_finish_reason": TEXTS,
            **dict.fromkeys(("prompt_tokens", "completion_tokens", "reasoning_tokens"), st.integers(0, 10**7)),
            "gen_metadata": json_values(),
        },
    )
    fault = st.fixed_dictionaries(
        {"id": ids, "state": st.just("faulted"), "model_id": st.just(model)},
        optional={"fault_reason": TEXTS, "generation": st.none() | TEXTS},
    )
    return reply | reply | fault
