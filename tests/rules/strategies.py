"""Conversations and submissions of every kind the contract takes, as Hypothesis draws them."""

from hypothesis import strategies as st

from hordechat.contract.chat import ChatHordeOptions, ChatSubmission, Message
from hordechat.contract.chat.submission import (
    ImageDetail,
    ImagePart,
    Part,
    Sampling,
    TextPart,
    Tool,
    ToolCall,
    ToolChoice,
)
from hordechat.contract.vocabulary import ReasoningEffort, Role
from tests.rules.submissions import JSON_OBJECT, LOOSE, STRICT

# What the contract lets in: no NUL, no lone surrogate.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
NAMES = st.text("abc_-19", min_size=1, max_size=8)
SHORT_TEXTS = st.text(CHARACTERS, max_size=20)
TEXTS = SHORT_TEXTS | st.integers(0, 400).map("x".__mul__)

IMAGES = st.builds(
    ImagePart, url=st.just("https://images.example/a.jpg"), detail=st.none() | st.sampled_from(ImageDetail)
)
TEXT_PARTS = st.builds(TextPart, text=TEXTS)
CALLS = st.lists(
    st.builds(ToolCall, id=st.text("0123456789", min_size=1, max_size=3), name=NAMES, arguments=SHORT_TEXTS),
    min_size=1,
    max_size=3,
    unique_by=lambda call: call.id,
)


def contents(parts: st.SearchStrategy[Part]) -> st.SearchStrategy[str | tuple[Part, ...]]:
    """Draw a string, or parts."""
    return TEXTS | st.lists(parts, min_size=1, max_size=3).map(tuple)


USERS = st.builds(Message, role=st.just(Role.USER), content=contents(IMAGES | TEXT_PARTS), name=st.none() | NAMES)
SYSTEMS = st.builds(Message, role=st.just(Role.SYSTEM), content=contents(TEXT_PARTS))
ASSISTANTS = st.builds(Message, role=st.just(Role.ASSISTANT), content=contents(TEXT_PARTS))


@st.composite
def tool_rounds(draw: st.DrawFn) -> list[Message]:
    """Draw an assistant message with calls and the answers to them, in any order among themselves."""
    calls = draw(CALLS)
    made = Message(role=Role.ASSISTANT, content=draw(st.none() | TEXTS), tool_calls=tuple(calls))
    return [
        made,
        *[
            Message(role=Role.TOOL, content=draw(contents(TEXT_PARTS)), tool_call_id=call.id)
            for call in draw(st.permutations(calls))
        ],
    ]


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """Draw messages whose tool history is one the contract takes."""
    single = st.tuples(USERS | USERS | ASSISTANTS | ASSISTANTS | SYSTEMS).map(list)
    pieces = draw(st.lists(single | single | tool_rounds(), min_size=1, max_size=12))
    return tuple(message for piece in pieces for message in piece)


JSON_VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(-1e6, 1e6) | SHORT_TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SHORT_TEXTS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def tool_lists(draw: st.DrawFn, *, min_size: int = 0) -> tuple[Tool, ...]:
    """Draw tools with schemas of any kind."""
    names = draw(st.lists(NAMES, min_size=min_size, max_size=3))
    return tuple(
        Tool(
            name=name,
            document={
                "type": "function",
                "function": {"name": name, "parameters": draw(st.dictionaries(SHORT_TEXTS, JSON_VALUES, max_size=3))},
            },
        )
        for name in names
    )


FORMATS = st.sampled_from([JSON_OBJECT, LOOSE, STRICT])
SAMPLINGS = st.builds(
    Sampling,
    temperature=st.none() | st.floats(0, 5),
    top_p=st.none() | st.floats(0.001, 1),
    frequency_penalty=st.none() | st.floats(-2, 2),
    presence_penalty=st.none() | st.floats(-2, 2),
    seed=st.none() | st.integers(-(2**63), 2**63 - 1),
    reasoning_effort=st.none() | st.sampled_from(ReasoningEffort),
    stop_sequence=st.lists(SHORT_TEXTS, max_size=3).map(tuple),
)
WORKER_IDS = st.lists(st.uuids().map(str), min_size=1, max_size=3)
OPTIONS = st.builds(
    ChatHordeOptions,
    only=st.none() | WORKER_IDS,
    ignore=st.none(),
    trusted_workers=st.booleans(),
    validated_backends=st.booleans(),
    slow_workers=st.booleans(),
    max_context_length=st.none() | st.integers(80, 100_000),
    context_fit=st.sampled_from(["grow", "reject", "truncate_oldest"]),
    conformance=st.sampled_from(["strict", "best_effort"]),
    openai_guards=st.booleans(),
    include_reasoning=st.booleans(),
    availability_mode=st.sampled_from(["wait", "fail_fast"]),
    max_kudos=st.none() | st.integers(1, 1000),
    dry_run=st.booleans(),
    operation_key=st.none() | st.uuids(),
)


@st.composite
def submissions(draw: st.DrawFn) -> ChatSubmission:
    """Draw a submission with any of its parts."""
    tools = draw(tool_lists())
    choices = st.sampled_from([ToolChoice(mode="none"), ToolChoice(mode="auto"), ToolChoice(mode="required")])
    if tools:
        choices |= st.sampled_from(tools).map(lambda tool: ToolChoice(mode="function", function_name=tool.name))
    models = tuple(draw(st.lists(NAMES, min_size=1, max_size=5, unique=True)))
    return ChatSubmission(
        models=models,
        names_one_model=len(models) == 1 and draw(st.booleans()),
        messages=draw(conversations()),
        max_length=draw(st.integers(16, 16_384)),
        sampling=draw(SAMPLINGS),
        tools=tools,
        tool_choice=draw(st.none() | choices) if tools else None,
        parallel_tool_calls=draw(st.none() | st.booleans()) if tools else None,
        response_format=draw(st.none() | FORMATS),
        is_streamed=draw(st.booleans()),
        horde=draw(OPTIONS),
    )
