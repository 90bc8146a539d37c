"""What judging a reply by its request costs: usual contracts, and schemas made to take all time there is.

    python -m benchmarks.verification

Each reply is judged as a submit does, in a process of its own. `first` is the judgement that compiles the schema,
`next` the best of those that find it compiled; memory is what the process grew by in the first.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from hordechat.contract.submit import ChatReply, ChatSubmitInvalid
from hordechat.contract.vocabulary import Conformance, FinishReason, GenerationState
from requests_app.errors import ChatSubmitNonconformant
from requests_app.rules import verification

KIB_PER_MIB = 1024
ROUNDS_SECONDS = 1.0
Schema = dict[str, object]
Case = tuple[Schema | None, str]


@dataclass(frozen=True)
class Figure:
    """What one reply cost."""

    name: str
    verdict: str
    first_milliseconds: float
    next_milliseconds: float
    grown_mebibytes: float


def usual() -> Case:
    """Return an object of ten properties and a reply that matches."""
    names = [f"property_{number}" for number in range(10)]
    properties = {name: {"type": "string", "maxLength": 100, "pattern": "^[a-z ]*$"} for name in names}
    schema = {"type": "object", "properties": properties, "required": names, "additionalProperties": False}
    return schema, json.dumps(dict.fromkeys(names, "a few words"))


def listed() -> Case:
    """Return a list of the same objects, a thousand of them."""
    schema, one = usual()
    return {"type": "array", "items": schema}, json.dumps([json.loads(one)] * 1000)


def doubling() -> Case:
    """Return alternatives of alternatives, 2 to the power of 30."""
    steps = {f"s{level}": {"anyOf": [{"$ref": f"#/$defs/s{level + 1}"}] * 2} for level in range(30)}
    return {"$ref": "#/$defs/s0", "$defs": {**steps, "s30": {"type": "integer"}}}, '"text"'


CASES: Mapping[str, Callable[[], Case]] = {
    "no format": lambda: (None, "Good morning to you."),
    "10 properties": usual,
    "1,000 objects of 10 properties": listed,
    "3,000 unique objects": lambda: (
        {"type": "array", "uniqueItems": True},
        json.dumps([{"a": number, "b": [number]} for number in range(3000)]),
    ),
    "hostile: a catastrophic pattern": lambda: ({"pattern": "^(a|aa)+$"}, json.dumps("a" * 60 + "!")),
    "hostile: doubling alternatives": doubling,
}


def judge(case: Case) -> str:
    """Judge one reply and say how it ended."""
    schema, content = case
    extras = schema and {
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
    }
    reply = ChatReply(
        content=content,
        tool_calls=(),
        reasoning_content=None,
        finish_reason=FinishReason.STOP,
        native_finish_reason=None,
        prompt_tokens=None,
        completion_tokens=None,
        reasoning_tokens=None,
        model_id="org/model",
        state=GenerationState.OK,
    )
    try:
        verification.verify(reply, verification.read_contract(extras, conformance=Conformance.STRICT))
    except (ChatSubmitInvalid, ChatSubmitNonconformant) as refusal:
        return refusal.code.value
    return "taken"


def measure(name: str) -> Figure:
    """Measure one reply in this process, which does nothing else before."""
    case = CASES[name]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    verdict = judge(case)
    first = time.perf_counter() - started
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    best, ends_at = float("inf"), time.perf_counter() + ROUNDS_SECONDS
    while best == float("inf") or time.perf_counter() < ends_at:
        started = time.perf_counter()
        judge(case)
        best = min(best, time.perf_counter() - started)
    return Figure(name, verdict, first * 1000, best * 1000, grown / KIB_PER_MIB)


def main() -> int:
    """Measure every reply and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.verification", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, for a script")
    options = parser.parse_args()
    # A process for each: a schema one compiled must not be found by the next, nor its freed memory be taken.
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as pool:
        figures = [pool.apply(measure, (name,)) for name in CASES]
    if options.json:
        print(json.dumps([asdict(figure) for figure in figures]))
        return 0
    print("| reply | verdict | first ms | next ms | memory MiB |\n| --- | --- | --- | --- | --- |")
    for figure in figures:
        print(
            f"| {figure.name} | {figure.verdict} | {figure.first_milliseconds:.2f} "
            f"| {figure.next_milliseconds:.3f} | {figure.grown_mebibytes:.0f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
