"""A request's lengths and messages fit what workers give, changed no more than its `context_fit` allows."""

import cProfile
import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hordechat.contract import chat
from hordechat.contract.chat import Message
from hordechat.contract.chat.submission import Tool
from hordechat.contract.limits import MAX_CHAT_MESSAGE_COUNT, MAX_CHAT_TEXT_BYTES, MAX_CONTEXT_TOKENS
from hordechat.contract.vocabulary import Role
from requests_app.errors import PromptExceedsContext
from requests_app.rules import sizing
from requests_app.rules.flattening import flatten, flatten_message
from requests_app.rules.sizing import ContextFit, Sized
from tests.rules.strategies import conversations, tool_lists
from tests.rules.submissions import CLOCK, answer, assistant, calls, pictures, submission, system, tools, user

mark = pytest.mark
FITS: list[ContextFit] = ["reject", "grow", "truncate_oldest"]
GROWING: list[ContextFit] = ["grow", "truncate_oldest"]


def prompt(tokens: int) -> tuple[Message, ...]:
    """Return one message whose estimate this is exactly, with no character to spare."""
    return (user("x" * (tokens * 3 - len("user: "))),)


def spoken(role: Role, tokens: int) -> Message:
    """Return a message that adds this many tokens to a prompt, its newline included."""
    return Message(role=role, content="x" * (tokens * 3 - len(f"{role}: \n")))


def size(messages: tuple[Message, ...], **changes: object) -> Sized:
    asked: dict[str, Any] = {
        "tools": (),
        "max_length": 80,
        "max_context_length": None,
        "context_fit": "truncate_oldest",
        "largest_length": 512,
        "largest_context": 8192,
    }
    return sizing.size(messages=messages, **asked | changes)


def estimate(messages: tuple[Message, ...], used: tuple[Tool, ...] = ()) -> int:
    """Return the documented estimate, said in another way."""
    return math.ceil(len(flatten(submission(tools=used), messages=messages)) / 3) + 512 * sum(
        message.image_count for message in messages
    )


# -- Lowering ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("asked", "largest", "runs_with"),
    [
        pytest.param(512, 512, 512, marks=mark.spec("CTX-08")),
        pytest.param(300, 512, 300, marks=mark.spec("CTX-08")),
        pytest.param(513, 512, 512, marks=mark.spec("CTX-07")),
        pytest.param(4096, 2048, 2048, marks=mark.spec("CTX-07")),
        pytest.param(16, 8, 8, marks=mark.spec("CTX-51")),
        pytest.param(512, None, 512),
    ],
)
@pytest.mark.parametrize("context_fit", FITS)
def test_a_length_is_lowered_to_the_workers_largest(
    asked: int, largest: int | None, runs_with: int, context_fit: ContextFit
) -> None:
    sized = size(prompt(20), max_length=asked, largest_length=largest, max_context_length=8192, context_fit=context_fit)

    lowered = {"from": asked, "to": runs_with, "reason": "worker_max_length"}
    assert sized.max_length == runs_with
    assert sized.adjustments_as_json == (None if asked == runs_with else [lowered])


@pytest.mark.spec("CTX-12")
def test_a_lowering_starts_from_the_default_when_no_length_was_sent() -> None:
    sent = chat.parse({"model": "demo/echo", "messages": [{"role": "user", "content": "Hello"}]})

    sized = size(sent.messages, max_length=sent.max_length, largest_length=100)

    assert sized.adjustments_as_json == [{"from": 512, "to": 100, "reason": "worker_max_length"}]


@pytest.mark.spec("CTX-09", "CTX-11")
def test_a_length_is_lowered_before_anything_is_sized() -> None:
    history = (spoken(Role.USER, 1000), *prompt(1000))

    needless = size(history, max_length=4096, largest_length=48, largest_context=2048)
    grown = size(history, max_length=4096, largest_length=500, largest_context=8192)
    with pytest.raises(PromptExceedsContext) as refused:
        size(history, max_length=4096, largest_length=49, context_fit="reject")

    assert (needless.messages, needless.max_length, needless.max_context_length) == (history, 48, 2048)
    assert needless.adjustments_as_json == [{"from": 4096, "to": 48, "reason": "worker_max_length"}]
    assert grown.adjustments_as_json == [
        {"from": 4096, "to": 500, "reason": "worker_max_length"},
        {"from": 2048, "to": 4096, "reason": "grow"},
    ]
    assert "2000 tokens, which with max_length 49 does not fit a context of 2048" in refused.value.message


@pytest.mark.spec("CTX-49")
@pytest.mark.parametrize(
    ("asked", "largest", "buckets"),
    [
        (512, 16, ("<=512", "<=512")),
        (513, 512, ("513-1024", "<=512")),
        (1024, 513, ("513-1024", "513-1024")),
        (1025, 1024, ("1025-2048", "513-1024")),
        (2048, 1025, ("1025-2048", "1025-2048")),
        (2049, 2048, ("2049-4096", "1025-2048")),
        (4096, 2049, ("2049-4096", "2049-4096")),
        (4097, 4096, (">4096", "2049-4096")),
        (16384, 4097, (">4096", ">4096")),
        (512, 512, None),
    ],
)
def test_a_lowering_is_counted_by_the_length_asked_for_and_the_workers_largest(
    asked: int, largest: int, buckets: tuple[str, str] | None
) -> None:
    sized = size(prompt(20), max_length=asked, largest_length=largest, largest_context=100_000)

    assert sized.lowering_buckets == buckets


# -- Growing -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("context_fit", GROWING)
@pytest.mark.parametrize(
    ("prompt_tokens", "requested", "largest", "context"),
    [
        pytest.param(1968, None, 8192, 2048, marks=mark.spec("CTX-40", "CTX-41")),
        pytest.param(1969, None, 8192, 4096, marks=mark.spec("CTX-42", "CTX-04")),
        pytest.param(1969, None, 3000, 3000, marks=mark.spec("CTX-42", "CTX-19")),
        pytest.param(1969, None, 2049, 2049, marks=mark.spec("CTX-42", "CTX-19")),
        pytest.param(4016, None, 8192, 4096, marks=mark.spec("CTX-42")),
        pytest.param(4017, None, 8192, 8192, marks=mark.spec("CTX-42")),
        pytest.param(8112, None, 8192, 8192, marks=mark.spec("CTX-42", "CTX-19")),
        pytest.param(500, 512, 8192, 1024, marks=mark.spec("CTX-04", "CTX-42")),
        pytest.param(432, 512, 8192, 512, marks=mark.spec("CTX-41")),
        pytest.param(2920, 3000, 8192, 3000, marks=mark.spec("CTX-41")),
        pytest.param(2921, 3000, 8192, 4096, marks=mark.spec("CTX-42")),
        pytest.param(5000, 6000, 4096, 6000, marks=mark.spec("CTX-34")),
        pytest.param(100, 100_000, 8192, 100_000),
        pytest.param(20, None, 1024, 2048),
        pytest.param(1968, None, None, 2048),
        pytest.param(1_000_000, None, 2**31 - 1, MAX_CONTEXT_TOKENS),
    ],
)
@pytest.mark.spec("CTX-03", "CTX-05", "CTX-21", "CTX-33")
def test_a_context_grows_as_far_as_it_has_to(
    context_fit: ContextFit, prompt_tokens: int, requested: int | None, largest: int | None, context: int
) -> None:
    messages = prompt(prompt_tokens)

    sized = size(messages, max_context_length=requested, largest_context=largest, context_fit=context_fit)

    grown = {"from": requested or 2048, "to": context, "reason": "grow"}
    assert (sized.messages, sized.max_length, sized.prompt_tokens) == (messages, 80, prompt_tokens)
    assert sized.max_context_length == context
    assert sized.adjustments_as_json == (None if context == (requested or 2048) else [grown])


@pytest.mark.parametrize(
    ("context_fit", "prompt_tokens", "requested", "largest", "quoted"),
    [
        pytest.param("reject", 1969, None, 8192, 2048, marks=mark.spec("CTX-43")),
        pytest.param("reject", 433, 512, 8192, 512, marks=mark.spec("CTX-43")),
        pytest.param("grow", 1969, None, 2048, 2048, marks=mark.spec("CTX-20")),
        pytest.param("grow", 8113, None, 8192, 8192, marks=mark.spec("CTX-20")),
        pytest.param("grow", 1969, None, None, 2048, marks=mark.spec("CTX-20")),
        pytest.param("grow", 1969, None, 1024, 2048, marks=mark.spec("CTX-20")),
        pytest.param("grow", 9000, 6000, 4096, 6000, marks=mark.spec("CTX-20")),
        pytest.param("grow", 1_048_497, None, 2**31 - 1, MAX_CONTEXT_TOKENS, marks=mark.spec("CTX-20")),
        pytest.param("truncate_oldest", 8113, None, 8192, 8192, marks=mark.spec("CTX-29")),
        pytest.param("truncate_oldest", 9000, 6000, 4096, 6000, marks=mark.spec("CTX-29")),
    ],
)
@pytest.mark.spec("CTX-44")
def test_what_does_not_fit_is_refused_with_its_three_numbers(
    context_fit: ContextFit, prompt_tokens: int, requested: int | None, largest: int | None, quoted: int
) -> None:
    with pytest.raises(PromptExceedsContext) as refused:
        size(prompt(prompt_tokens), max_context_length=requested, largest_context=largest, context_fit=context_fit)

    assert refused.value.message == (
        f"The prompt is estimated at {prompt_tokens} tokens, which with max_length 80 "
        f"does not fit a context of {quoted} tokens."
    )


@pytest.mark.spec("CTX-43")
def test_a_rejected_request_is_neither_grown_nor_trimmed() -> None:
    history = (spoken(Role.USER, 1000), *prompt(1000))

    fitting = size(history, max_length=48, context_fit="reject")

    assert (fitting.messages, fitting.max_context_length, fitting.adjustments) == (history, 2048, ())
    with pytest.raises(PromptExceedsContext):
        size(history, max_length=49, context_fit="reject")


@pytest.mark.spec("CTX-20")
def test_a_request_that_may_only_grow_is_not_trimmed() -> None:
    history = (spoken(Role.USER, 1000), *prompt(1000))

    with pytest.raises(PromptExceedsContext) as refused:
        size(history, largest_context=2048, context_fit="grow")

    assert "2000 tokens, which with max_length 80 does not fit a context of 2048" in refused.value.message


@pytest.mark.spec("CTX-52")
@pytest.mark.parametrize("context_fit", FITS)
def test_a_context_smaller_than_the_reply_alone_is_refused(context_fit: ContextFit) -> None:
    with pytest.raises(PromptExceedsContext) as refused:
        size(
            (system(), user(), assistant(), user()),
            max_length=400,
            max_context_length=100,
            largest_context=300,
            context_fit=context_fit,
        )

    assert " with max_length 400 does not fit a context of " in refused.value.message


@pytest.mark.spec("FLT-12", "FLT-33")
def test_an_image_counts_its_placeholder_and_512() -> None:
    assert size((pictures(2),)).prompt_tokens == math.ceil(len("user: Look\n[image]\n[image]") / 3) + 2 * 512


@pytest.mark.spec("FLT-07")
def test_the_tools_count() -> None:
    without, beside = size((user(),)), size((user(),), tools=tools(CLOCK))

    definitions = len('\n[{"function":{"name":"read_clock"},"type":"function"}]')
    assert without.prompt_tokens == math.ceil(len("user: Hello") / 3)
    assert beside.prompt_tokens == math.ceil((len("user: Hello") + definitions) / 3)


# -- Trimming ----------------------------------------------------------------------------------------------------------
@pytest.mark.spec("CTX-06", "CTX-22", "CTX-30", "CTX-31", "CTX-32", "CTX-33")
def test_the_reference_example() -> None:
    exchange = (spoken(Role.USER, 1310), spoken(Role.ASSISTANT, 1310))
    history = (*exchange * 5, *prompt(7900))

    sized = size(history, max_length=292, largest_length=4096, largest_context=8192)

    assert sized.messages == history[10:]
    assert (sized.max_context_length, sized.prompt_tokens) == (8192, 7900)
    assert sized.adjustments_as_json == [
        {"from": 2048, "to": 8192, "reason": "grow"},
        {"from": 21000, "to": 7900, "reason": "truncate_oldest", "dropped_messages": 10},
    ]


@pytest.mark.spec("CTX-06", "CTX-11", "CTX-30")
def test_every_change_is_recorded_in_the_order_it_was_done() -> None:
    history = (spoken(Role.USER, 3000), spoken(Role.ASSISTANT, 1000), *prompt(1000))

    sized = size(history, max_length=1024, largest_length=512, largest_context=4096)

    assert sized.adjustments_as_json == [
        {"from": 1024, "to": 512, "reason": "worker_max_length"},
        {"from": 2048, "to": 4096, "reason": "grow"},
        {"from": 5000, "to": 1000, "reason": "truncate_oldest", "dropped_messages": 2},
    ]


@pytest.mark.spec("CTX-22", "CTX-34", "CTX-54")
@pytest.mark.parametrize(("requested", "largest"), [(2048, 2048), (2048, 1024), (None, None), (None, 2048)])
def test_a_request_trimmed_without_growth_records_the_trimming_alone(
    requested: int | None, largest: int | None
) -> None:
    history = (spoken(Role.USER, 2000), *prompt(100))

    sized = size(history, max_context_length=requested, largest_context=largest)

    assert sized.max_context_length == 2048
    assert sized.adjustments_as_json == [{"from": 2100, "to": 100, "reason": "truncate_oldest", "dropped_messages": 1}]


@pytest.mark.spec("CTX-23", "CTX-32")
@pytest.mark.parametrize(("max_length", "dropped"), [(48, 0), (49, 2), (548, 2), (549, 5), (1048, 5), (1049, 6)])
def test_turns_go_one_at_a_time_until_the_rest_fits(max_length: int, dropped: int) -> None:
    older = (
        spoken(Role.USER, 200),
        spoken(Role.ASSISTANT, 300),
        spoken(Role.USER, 100),
        Message(role=Role.ASSISTANT, content="x" * 599, tool_calls=calls("c1").tool_calls),
        spoken(Role.TOOL, 200 - math.ceil(len(flatten_message(calls("c1"))) / 3)),
        spoken(Role.ASSISTANT, 500),
    )
    history = (*older, user("x" * 3 * (2000 - estimate((*older, user(""))))))

    sized = size(history, max_length=max_length, largest_length=4096, largest_context=2048)

    assert sized.messages == history[dropped:]
    assert sized.prompt_tokens == estimate(history[dropped:])


@pytest.mark.spec("CTX-27", "CTX-38", "CTX-48")
def test_system_messages_stay_in_their_places() -> None:
    first, second, third = system("One."), system("Two."), system("Three.")
    old = spoken(Role.USER, 1000)
    history = (first, old, second, spoken(Role.ASSISTANT, 1000), old, third, assistant("Kept?"), user("Now"))

    sized = size(history, largest_context=2048)

    assert sized.messages == (first, second, old, third, assistant("Kept?"), user("Now"))


@pytest.mark.spec("CTX-25", "CTX-28", "CTX-46")
def test_no_tool_message_is_left_without_its_call() -> None:
    asked = spoken(Role.USER, 1500)
    open_round = (user("Now"), calls("c2"), answer("c2"), assistant("One moment"), calls("c3"), answer("c3"))
    history = (asked, calls("c1"), answer("c1"), spoken(Role.ASSISTANT, 400), *open_round)

    sized = size(history, largest_context=2048)

    assert sized.messages == history[3:]
    assert size(history, max_length=1900, largest_length=4096, largest_context=2048).messages == open_round


@pytest.mark.spec("CTX-29")
def test_protected_messages_that_do_not_fit_are_refused_with_the_estimate_of_all() -> None:
    history = (spoken(Role.USER, 1000), system(), *prompt(2000))

    with pytest.raises(PromptExceedsContext) as refused:
        size(history, largest_context=2048)

    assert f"estimated at {estimate(history)} tokens" in refused.value.message


# -- Properties --------------------------------------------------------------------------------------------------------
def drop_oldest_naively(
    messages: tuple[Message, ...], used: tuple[Tool, ...], *, room: int
) -> tuple[Message, ...] | None:
    """Take the first turn off and estimate all the rest anew, over and over: quadratic, and easy to believe."""
    kept = list(messages)
    while estimate(tuple(kept), used) > room:
        movable = [message for message in kept if message.role != Role.SYSTEM]
        turn = [movable.pop(0)] if movable else []
        if turn and turn[-1].role == Role.USER and movable and movable[0].role == Role.ASSISTANT:
            turn.append(movable.pop(0))
        while turn and turn[-1].role in {Role.ASSISTANT, Role.TOOL} and movable and movable[0].role == Role.TOOL:
            turn.append(movable.pop(0))
        had_user = any(message.role == Role.USER for message in messages)
        if not turn or (had_user and not any(message.role == Role.USER for message in movable)) or not movable:
            return None
        for message in turn:
            kept.remove(message)  # the first that is equal: of two equal messages the older is in the older turn
    return tuple(kept)


lengths = st.integers(16, 300)
shares = st.floats(0, 1.1)


def take(share: float, messages: tuple[Message, ...], used: tuple[Tool, ...] = (), *, beside: int) -> int:
    """Return a context that holds a share of the prompt beside a reply."""
    return round(share * estimate(messages, used)) + beside


@pytest.mark.spec("CTX-23", "CTX-28", "CTX-29", "CTX-38")
@settings(max_examples=300)
@given(conversations(), tool_lists(), lengths, shares, shares)
def test_trimming_keeps_what_a_naive_reading_of_the_rules_keeps(
    messages: tuple[Message, ...], used: tuple[Tool, ...], max_length: int, asked: float, given_share: float
) -> None:
    requested = take(asked, messages, used, beside=max_length)
    largest = take(given_share, messages, used, beside=max_length)
    context = max(largest, requested)
    expected = drop_oldest_naively(messages, used, room=context - max_length)

    try:
        sized = size(messages, tools=used, max_length=max_length, max_context_length=requested, largest_context=largest)
    except PromptExceedsContext:
        assert expected is None
        return

    assert sized.messages == expected
    assert sized.prompt_tokens == estimate(sized.messages, used)
    assert sized.prompt_tokens + sized.max_length <= sized.max_context_length <= context


@pytest.mark.spec("CTX-23", "CTX-27", "CTX-28", "CTX-38")
@settings(max_examples=300)
@given(conversations(), lengths, shares)
def test_trimming_drops_whole_turns_and_no_more_than_it_has_to(
    messages: tuple[Message, ...], max_length: int, share: float
) -> None:
    context = take(share, messages, beside=max_length)
    try:
        sized = size(messages, max_length=max_length, max_context_length=context, largest_context=context)
    except PromptExceedsContext:
        return

    kept = list(sized.messages)
    dropped = len(messages) - len(kept)
    assert [message for message in kept if message.role == Role.SYSTEM] == [
        message for message in messages if message.role == Role.SYSTEM
    ]
    last_user = max((place for place, message in enumerate(messages) if message.role == Role.USER), default=None)
    if last_user is not None:
        assert tuple(kept[last_user - len(messages) :]) == messages[last_user:]
    spoken_kept = [message for message in kept if message.role != Role.SYSTEM]
    spoken_sent = [message for message in messages if message.role != Role.SYSTEM]
    assert spoken_kept == spoken_sent[dropped:], "the oldest are dropped, and the rest keep their order"
    assert not spoken_kept or spoken_kept[0].role != Role.TOOL, "no answer without its call"
    if dropped:
        turn = newest_turn(spoken_sent[:dropped])
        assert estimate((*turn, *kept)) + max_length > context, "with the newest dropped turn back it does not fit"


def newest_turn(dropped: list[Message]) -> list[Message]:
    """Return the last whole turn of a run of messages, from its end."""
    start = len(dropped) - 1
    while dropped[start].role == Role.TOOL:
        start -= 1
    if dropped[start].role == Role.ASSISTANT and start and dropped[start - 1].role == Role.USER:
        start -= 1
    return dropped[start:]


@given(conversations(), tool_lists(), lengths, shares, shares, st.sampled_from(FITS))
def test_sizing_what_was_sized_changes_nothing(
    messages: tuple[Message, ...],
    used: tuple[Tool, ...],
    max_length: int,
    asked: float,
    given_share: float,
    context_fit: ContextFit,
) -> None:
    requested = take(asked, messages, used, beside=max_length)
    rules: dict[str, object] = {
        "tools": used,
        "context_fit": context_fit,
        "largest_context": take(given_share, messages, used, beside=max_length),
        "largest_length": 200,
    }
    try:
        once = size(messages, max_length=max_length, max_context_length=requested, **rules)
    except PromptExceedsContext:
        return

    again = size(once.messages, max_length=once.max_length, max_context_length=once.max_context_length, **rules)
    from_the_start = size(once.messages, max_length=max_length, max_context_length=requested, **rules)

    assert again == dataclasses.replace(once, adjustments=())
    assert from_the_start.messages == once.messages


def test_the_work_of_trimming_grows_with_the_conversation_and_not_with_its_square() -> None:
    quarter, whole = (
        count_calls(MAX_CHAT_MESSAGE_COUNT // 4),
        count_calls(MAX_CHAT_MESSAGE_COUNT),
    )

    assert whole < 4.2 * quarter


def count_calls(count: int) -> int:
    """Return how many functions are called to trim the longest text in so many messages down to a few."""
    text = "x" * (MAX_CHAT_TEXT_BYTES // MAX_CHAT_MESSAGE_COUNT)
    history = tuple(user(text) if place % 2 == 0 else assistant(text) for place in range(count))
    profile = cProfile.Profile()
    sized = profile.runcall(size, history, largest_context=4096)
    assert len(sized.messages) < 20
    return sum(entry.callcount for entry in profile.getstats())
