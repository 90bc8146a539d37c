"""Bodies made to hurt: deep, wide and long ones are judged in time and memory in proportion to their size."""

import tracemalloc
from typing import Any

import orjson
import pytest

from hordechat.contract import chat
from hordechat.contract.chat import ChatBody
from hordechat.contract.json_body import parse_object
from hordechat.contract.limits import MAX_CHAT_BODY_BYTES, MAX_CHAT_PART_COUNT, MIB
from hordechat.errors import ErrorCode, HordeError
from hordechat.http.refusals import body_of
from tests.contract.bodies import ABSENT, BODY, USER, calling, image, nested, parse, refuse, refuse_messages, tool
from tests.speed import cpu_seconds_of, loops_of

MANY = 100_000
MAX_LOOPS = 20
"""Of the unit of `tests.speed`: about a second of CPU time, where such a body takes a third of it at most."""
LEVELS = 1000


def lists(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


DEEP: tuple[object, ...] = (lists(LEVELS), nested(LEVELS))


@pytest.mark.parametrize("deep", DEEP, ids=["lists", "objects"])
@pytest.mark.parametrize("key", sorted(set(ChatBody.model_fields) - {"metadata", "user", "stream_options"}))
def test_a_thousand_levels_in_any_key_are_refused(key: str, deep: object) -> None:
    assert len(orjson.dumps(body_of(refuse(**{key: deep})))) < 300


@pytest.mark.parametrize("deep", DEEP, ids=["lists", "objects"])
@pytest.mark.parametrize("key", ["metadata", "user", "stream_options"])
def test_a_thousand_levels_in_a_key_without_effect_are_taken(key: str, deep: object) -> None:
    assert parse(**{key: deep}) == parse()


@pytest.mark.spec("TLS-33")
@pytest.mark.parametrize("deep", DEEP, ids=["lists", "objects"])
def test_a_schema_of_a_thousand_levels_is_refused(deep: object) -> None:
    schema = {"a": deep}
    json_schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema, "strict": True}}

    assert refuse(tools=[tool(parameters=schema, strict=True)]).code is ErrorCode.UNSUPPORTED_CHAT_PARAMETER
    assert refuse(response_format=json_schema).code is ErrorCode.UNSUPPORTED_CHAT_PARAMETER


def test_deep_values_inside_messages_are_refused() -> None:
    for deep in DEEP:
        for message in (
            deep,
            {"role": deep},
            {"role": "user", "content": [deep]},
            {"role": "user", "content": [{"type": "image_url", "image_url": deep}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a", "detail": deep}}]},
            {"role": "user", "content": "a", "name": deep},
            {"role": "assistant", "tool_calls": [deep]},
            {"role": "assistant", "tool_calls": [{"type": "function", "id": "c", "function": deep}]},
            {"role": "tool", "content": "a", "tool_call_id": deep},
        ):
            assert len(orjson.dumps(body_of(refuse_messages(message)))) < 300


WIDE: dict[str, dict[str, Any]] = {
    "keys": {f"key{number}": 1 for number in range(MANY)},
    "options": {"horde": {f"key{number}": 1 for number in range(MANY)}},
    "stop": {"stop": [1] * MANY},
    "only": {"horde": {"only": [None] * MANY}},
    "ignore": {"horde": {"ignore": [[]] * MANY}},
    "models": {"model": ABSENT, "models": [""] * MANY},
    "messages": {"messages": [USER] * MANY},
    "faulty messages": {"messages": [1] * MANY},
    "parts": {"messages": [{"role": "user", "content": [1] * MANY}]},
    "images": {"messages": [{"role": "user", "content": [image()] * MANY}]},
    "message keys": {"messages": [{"role": "user", **{f"key{number}": 1 for number in range(MANY)}}]},
    "calls": {"messages": [{"role": "assistant", "tool_calls": [1] * MANY}]},
    "tools": {"tools": [tool()] * MANY},
    "faulty tools": {"tools": [1] * MANY},
    "tool keys": {"tools": [{**tool(), **{f"key{number}": 1 for number in range(MANY)}}]},
    "schema values": {"tools": [tool(parameters={"enum": [1] * 2 * MANY})]},
    "schema containers": {"tools": [tool(parameters={"enum": [[]] * 2 * MANY})]},
    "schema keys": {"tools": [tool(parameters={f"key{number}": {} for number in range(MANY)})]},
    "strict properties": {
        "tools": [tool(parameters={"properties": {f"k{number}": {} for number in range(10_000)}}, strict=True)]
    },
    "unanswered calls": {"messages": [calling(*[f"{'i' * 250}{number}" for number in range(128)])]},
}


@pytest.mark.parametrize("name", WIDE)
def test_a_hundred_thousand_faults_cost_no_more_than_the_first(name: str) -> None:
    error = refuse(**WIDE[name])

    assert loops_of(lambda: refuse(**WIDE[name]), enough=MAX_LOOPS) <= MAX_LOOPS
    assert len(orjson.dumps(body_of(error))) < (300 if name != "unanswered calls" else 40_000)


def test_content_parts_are_bounded_over_all_messages() -> None:
    half = {"role": "user", "content": [{"type": "text", "text": ""}] * (MAX_CHAT_PART_COUNT // 2)}
    one_more = {"role": "user", "content": [{"type": "text", "text": ""}]}

    taken = parse(messages=[half, half])

    assert sum(len(message.parts) for message in taken.messages) == MAX_CHAT_PART_COUNT
    error = refuse(messages=[half, half, one_more])
    assert body_of(error) == {
        "message": "messages holds more than 16384 content parts.",
        "rc": "UnsupportedChatParameter",
    }


LONG = "x" * (35 * MIB)

LARGE: dict[str, dict[str, Any]] = {
    "key": {LONG: 1},
    "option": {"horde": {LONG: 1}},
    "message key": {"messages": [{**USER, LONG: 1}]},
    "schema key": {"tools": [tool(parameters={LONG: 1})]},
    "model": {"model": LONG},
    "role": {"messages": [{"role": LONG}]},
    "content": {"messages": [{"role": "user", "content": LONG}]},
    "name": {"messages": [{**USER, "name": LONG}]},
    "part type": {"messages": [{"role": "user", "content": [{"type": LONG}]}]},
    "image": {"messages": [{"role": "user", "content": [image("data:image/png;base64," + LONG)]}]},
    "image without comma": {"messages": [{"role": "user", "content": [image("data:image/png;" + LONG)]}]},
    "image of semicolons": {"messages": [{"role": "user", "content": [image("data:image/png" + ";a" * (17 * MIB))]}]},
    "image type": {"messages": [{"role": "user", "content": [image("data:image/" + LONG)]}]},
    "arguments": {
        "messages": [
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "a", "arguments": LONG}}],
            }
        ]
    },
    "tool name": {"tools": [tool(LONG)]},
    "description": {"tools": [tool(description=LONG)]},
    "descriptions": {"tools": [tool(description="x" * (250 * 1024))] * 128},
    "tool choice": {"tool_choice": LONG},
    "format": {"response_format": {"type": LONG}},
    "effort": {"reasoning_effort": LONG},
    "operation key": {"horde": {"operation_key": LONG}},
    "number": {"tools": [tool(parameters={"a": [0.5] * 700_000 + [1e300]})]},
}


def refused_by_parse(read: dict[str, object]) -> None:
    with pytest.raises(HordeError):
        chat.parse(read)


@pytest.mark.parametrize("name", LARGE)
def test_a_body_at_the_bound_is_refused_soon_and_in_few_words(name: str) -> None:
    sent = orjson.dumps({**BODY, **LARGE[name]})
    assert len(sent) <= MAX_CHAT_BODY_BYTES
    read = parse_object(sent)
    del sent

    tracemalloc.start()
    try:
        with pytest.raises(HordeError) as refused:
            chat.parse(read)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert loops_of(lambda: refused_by_parse(read), enough=MAX_LOOPS) <= MAX_LOOPS
    assert peak_bytes < 2 * MAX_CHAT_BODY_BYTES
    assert len(orjson.dumps(body_of(refused.value))) < 2500


def test_a_body_of_a_million_small_lists_is_refused() -> None:
    sent = orjson.dumps({**BODY, "tools": [tool(parameters={"a": [[1]] * 700_000})]})

    assert refuse(**parse_object(sent)).code is ErrorCode.UNSUPPORTED_CHAT_PARAMETER


def seconds_of(sent: dict[str, object]) -> float:
    """Return the CPU time of the fastest of three readings."""
    return min(cpu_seconds_of(lambda: chat.parse(sent)) for _ in range(3))


def of_rounds(count: int) -> dict[str, object]:
    ids = [f"id{number}" for number in range(127)]
    answers = [{"role": "tool", "content": "", "tool_call_id": each} for each in ids]
    return {**BODY, "messages": [calling(*ids), *answers] * count}


def of_properties(count: int) -> dict[str, object]:
    properties = {f"k{number}": {"type": "string"} for number in range(count)}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {**BODY, "tools": [tool(parameters=schema, strict=True)]}


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (of_rounds(1), of_rounds(8)),
        (of_properties(700), of_properties(5600)),
        (
            {**BODY, "messages": [{"role": "user", "content": [{"type": "text", "text": ""}] * 2_000}]},
            {**BODY, "messages": [{"role": "user", "content": [{"type": "text", "text": ""}] * 16_000}]},
        ),
        ({**BODY, "metadata": [[]] * 10_000}, {**BODY, "metadata": [[]] * 80_000}),
    ],
    ids=["rounds", "properties", "parts", "metadata"],
)
def test_eight_times_as_much_takes_no_square_of_the_time(small: dict[str, object], large: dict[str, object]) -> None:
    # A square would take 64 times as long in every try; a disturbed try is made again.
    assert any(seconds_of(large) < 8 * 4 * seconds_of(small) + 0.01 for _ in range(3))


def test_a_conversation_at_every_cap_is_taken() -> None:
    content = "é" * 512
    messages = [{"role": "user" if index % 2 else "assistant", "content": content} for index in range(1024)]

    assert len(parse(messages=messages).messages) == 1024
