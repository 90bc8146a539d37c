"""A judgement ends in bounds of time and memory, whatever schema and reply are made for."""

import threading
import time
import tracemalloc
from collections.abc import Callable

import pytest

from hordechat.json_schema import judging
from hordechat.json_schema.judging import SchemaVerdict, judge
from tests.json_schema.strategies import DRAFTS, Schema, nest
from tests.speed import cpu_seconds_of, loops_of

MATCHES, DIFFERS, UNUSABLE = SchemaVerdict.MATCHES, SchemaVerdict.DIFFERS, SchemaVerdict.UNUSABLE
DRAFT_3, DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020 = DRAFTS

SHORT_SECONDS = 0.2
"""What the judgements here may take."""
MOST_SECONDS = 1.5
"""What they take at most on a busy machine: none of them is near its end when its time is over."""
MIB = 2**20
CATASTROPHE = "^(a|aa)+$"
GREED = "^(?:" + "(?:a??|xx)" * 400 + ")*$"
"""Keeps something of each character it has looked at, 400 times."""


def double(keyword: str, leaf: Schema, *, levels: int = 30) -> Schema:
    steps = {f"s{level}": {keyword: [{"$ref": f"#/$defs/s{level + 1}"}] * 2} for level in range(levels)}
    return {"$ref": "#/$defs/s0", "$defs": steps | {f"s{levels}": leaf}}


def wrap(levels: int, value: object) -> object:
    for _ in range(levels):
        value = {"a": value}
    return value


def negate(levels: int) -> Schema:
    schema: Schema = {}
    for _ in range(levels):
        schema = {"not": schema}
    return schema


TWICE: Schema = {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}
WRAPPED = wrap(40, {"b": 1})
ENDLESS: dict[str, tuple[Schema, object]] = {
    "any of any": (double("anyOf", {"type": "integer"}), "text"),
    "one of one": (double("oneOf", {"type": "integer"}), "text"),
    "all of all": (double("allOf", {"type": "integer"}), 1),
    "any of a long text": (double("anyOf", {"type": "integer"}), "\0" * MIB),
    "any of a large object": (double("anyOf", {"minProperties": 2}), {"a": ["\0"] * 200_000}),
    "itself, by its draft": ({"$schema": DRAFT_7, "properties": {"a": TWICE}, "additionalProperties": False}, WRAPPED),
    "the draft of a part": (
        {"items": {"$ref": "#/x"}, "maxItems": 0, "x": {"$schema": DRAFT_4, "items": TWICE}},
        nest(40),
    ),
    "itself, recursively": (
        {"$schema": DRAFT_2019, "items": {"anyOf": [{"$recursiveRef": "#"}] * 2}, "maxItems": 0}, nest(40)
    ),
    "itself, dynamically": (
        {"$dynamicAnchor": "x", "items": {"anyOf": [{"$dynamicRef": "#x"}] * 2}, "maxItems": 0}, nest(40)
    ),
    "types of draft 3": (
        {"$schema": DRAFT_3, "type": [{"items": {"type": [{"$ref": "#"}, {"$ref": "#", "x": 1}]}, "maxItems": 0}]},
        nest(40),
    ),
    "evaluated again and again": (
        {"allOf": [{"additionalProperties": True}] * 5000, "unevaluatedProperties": False},
        {str(number): 1 for number in range(20_000)},
    ),
    "evaluated by itself": ({"properties": {"a": TWICE}, "unevaluatedProperties": {"type": "null"}}, WRAPPED),
    "contained in contained": (
        {"contains": {"contains": {"contains": {"const": 1}}}}, [[list(range(2, 300))] * 100] * 100
    ),
    "many in many": ({"items": {"not": {"enum": [{"a": n} for n in range(9000)]}}}, [{"a": -1}] * 50_000),
    "slow patterns": ({"items": {"anyOf": [{"pattern": CATASTROPHE}, {}]}}, ["a" * 20 + "!"] * 50_000),
    "names by patterns": (
        {"patternProperties": {f"^{number}$": {} for number in range(3000)}, "additionalProperties": False},
        {str(number): 1 for number in range(50_000)},
    ),
    "names by slow patterns": (
        {"patternProperties": {f"^(a|aa)+{number}$": {} for number in range(200)}},
        {"a" * 20 + f"{number}!": 1 for number in range(1000)},
    ),
}  # fmt: skip
"""What a computer would not get done in its life, or not within seconds."""


@pytest.mark.parametrize("name", ENDLESS)
def test_ends_when_its_time_is_over(name: str) -> None:
    schema, value = ENDLESS[name]

    verdicts = set()
    seconds = cpu_seconds_of(lambda: verdicts.add(judge(schema, value, seconds=SHORT_SECONDS)))

    assert verdicts == {UNUSABLE}
    assert seconds < MOST_SECONDS


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (CATASTROPHE, "a" * 40 + "!"),
        (CATASTROPHE, "a" * MIB + "!"),
        (r"^(\w+\s?)+$", "word " * 200_000 + "!"),
        (r"(a*)\1[bc]", "a" * MIB),
        (GREED, "a" * MIB + "!"),
    ],
    ids=["nested", "nested and long", "words", "back", "greed"],
)
@pytest.mark.parametrize("keyword", ["pattern", "patternProperties", "additionalProperties", "unevaluatedProperties"])
def test_a_search_ends_before_the_judgement_would(keyword: str, pattern: str, text: str) -> None:
    schemas: dict[str, Schema] = {
        "pattern": {"pattern": pattern},
        "patternProperties": {"patternProperties": {pattern: True}},
        "additionalProperties": {"patternProperties": {pattern: True}, "additionalProperties": False},
        "unevaluatedProperties": {"allOf": [{"patternProperties": {pattern: True}}], "unevaluatedProperties": False},
    }
    value = text if keyword == "pattern" else {text: 1}

    verdicts = set()
    seconds = cpu_seconds_of(lambda: verdicts.add(judge(schemas[keyword], value, seconds=60)))

    assert verdicts == {UNUSABLE}
    assert seconds < MOST_SECONDS


@pytest.mark.parametrize(
    ("make", "verdict", "most_loops"),
    [
        (lambda: ({"uniqueItems": True}, [{"a": n, "b": [n]} for n in range(3000)]), MATCHES, 3),
        (lambda: ({"uniqueItems": True}, [{"a": n, "b": [n]} for n in range(3000)] * 2), DIFFERS, 3),
        (lambda: ({"uniqueItems": True}, [n * (2**61 - 1) for n in range(30_000)]), MATCHES, 6),
        (lambda: ({"uniqueItems": True}, [nest(500, n) for n in range(100)]), MATCHES, 3),
        (lambda: ({"items": {}}, [{} for _ in range(100_000)]), MATCHES, 20),
        (lambda: ({"items": {"multipleOf": 1e-300}}, [10**4200 + n for n in range(240)]), DIFFERS, 10),
        (lambda: ({"items": {"minimum": 10**4200, "maximum": 10**4290}}, [10**4250] * 240), MATCHES, 3),
        (lambda: ({"enum": [{"a": n} for n in range(9000)]}, {"a": -1}), DIFFERS, 20),
        (lambda: ({"properties": {f"p{n}": {} for n in range(9000)}}, {}), MATCHES, 20),
        (lambda: (negate(100), 1), MATCHES, 5),
        (lambda: (negate(10_000), 1), UNUSABLE, 5),
    ],
    ids=["unique", "equal", "one hash", "unique and deep", "wide", "multiples", "large numbers", "enum", "large schema",
         "deep schema", "too deep a schema"],
)  # fmt: skip
def test_much_is_judged_in_little_time(
    make: Callable[[], tuple[Schema, object]],
    verdict: SchemaVerdict,
    most_loops: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema, value = make()
    verdicts = set()

    def judge_anew() -> None:
        monkeypatch.setattr(judging, "_shelf", judging._Shelf())
        verdicts.add(judge(schema, value, seconds=60))

    loops = loops_of(judge_anew, enough=most_loops)

    assert verdicts == {verdict}
    assert loops <= most_loops


@pytest.mark.parametrize(
    "name", ["any of a long text", "any of a large object", "evaluated again and again", "names by patterns"]
)
def test_takes_little_memory(name: str) -> None:
    schema, value = ENDLESS[name]

    assert _measure_peak(lambda: judge(schema, value, seconds=0.5)) < 32 * MIB


def test_a_greedy_search_ends_before_it_has_taken_all_memory() -> None:
    text = "a" * MIB + "!"

    assert _measure_peak(lambda: judge({"pattern": GREED}, text)) < 512 * MIB


def _measure_peak(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["any of any", "slow patterns", "names by patterns", "evaluated again and again"])
def test_lets_other_threads_run_meanwhile(name: str) -> None:
    schema, value = ENDLESS[name]
    verdicts: list[SchemaVerdict] = []
    hostile = threading.Thread(target=lambda: verdicts.append(judge(schema, value, seconds=0.5)))
    steps = 0

    hostile.start()
    while hostile.is_alive():
        time.sleep(0.001)
        steps += 1

    assert verdicts == [UNUSABLE]
    assert steps > 5


def test_judges_in_many_threads_at_once() -> None:
    schema, value = {"items": {"pattern": "^(a|b)+$"}}, ["ab" * 1000] * 10
    verdicts: list[SchemaVerdict] = []
    threads = [
        threading.Thread(target=lambda: verdicts.extend((judge(schema, value), judge(schema, ["c"])))) for _ in range(8)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(verdicts) == sorted([MATCHES, DIFFERS] * 8)
