"""What judging a chat body costs: processor time and memory, for usual, large and hostile bodies.

    python -m benchmarks.contract

Each body is judged as the API does, from bytes to a submission or a refusal, in a process of its own. The time is the
best of several rounds; the memory is what the process grew by while it judged one body.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from hordechat.contract import chat
from hordechat.contract.json_body import parse_object
from hordechat.contract.limits import MAX_CHAT_BODY_BYTES, MIB
from hordechat.errors import HordeError

KIB_PER_MIB = 1024


@dataclass(frozen=True)
class Figure:
    """What one body cost."""

    name: str
    mebibytes: float
    verdict: str
    cpu_milliseconds: float
    grown_mebibytes: float


def usual() -> bytes:
    """Return a body of 10 messages as chat clients send them."""
    messages = [{"role": "system", "content": "You are a helpful assistant. " * 5}]
    messages += [
        {"role": "assistant" if turn % 2 else "user", "content": f"Message {turn}. " + "Lorem ipsum. " * 40}
        for turn in range(9)
    ]
    return json.dumps({"model": "org/model", "messages": messages, "max_tokens": 512, "temperature": 0.7}).encode()


def full() -> bytes:
    """Return 1,024 messages with 1 MiB of text together."""
    messages = [{"role": "assistant" if number % 2 else "user", "content": "x" * 1024} for number in range(1024)]
    return json.dumps({"model": "org/model", "messages": messages}).encode()


def deep_schema() -> bytes:
    """Return a tool whose schema nests 1,000 objects."""
    schema = '{"properties":{"a":' * 500 + "{}" + "}}" * 500
    tool = '{"type":"function","function":{"name":"f","parameters":' + schema + "}}"
    return b'{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[' + tool.encode() + b"]}"


def padded(opening: bytes, unit: bytes, closing: bytes) -> bytes:
    """Return a body of 36 MiB that repeats one unit between its opening and its closing."""
    room = MAX_CHAT_BODY_BYTES - len(opening) - len(closing)
    return opening + unit * (room // len(unit)) + closing


BODIES: Mapping[str, Callable[[], bytes]] = {
    "10 messages": usual,
    "1,024 messages, 1 MiB of text": full,
    "a schema of 1,000 objects": deep_schema,
    "36 MiB: one string": lambda: padded(b'{"model":"m","messages":[{"role":"user","content":"', b"x", b'"}]}'),
    "36 MiB: empty arrays": lambda: padded(b'{"model":"m","messages":[', b"[],", b"0]}"),
    "36 MiB: opening brackets": lambda: padded(b'{"model":"m","messages":', b"[", b""),
    "36 MiB: unknown keys": lambda: padded(
        b'{"model":"m","messages":[{"role":"user","content":"x"}],"z":0',
        b',"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk":1',
        b"}",
    ),
    "36 MiB: one image": lambda: padded(
        b'{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,',
        b"A",
        b'"}}]}]}',
    ),
}


def judge(raw: bytes) -> str:
    """Judge one body and say how it ended."""
    try:
        chat.parse(parse_object(raw))
    except HordeError as refusal:
        return refusal.code.value
    return "taken"


def measure(name: str) -> Figure:
    """Measure one body in this process, which does nothing else before."""
    judge(usual())
    raw = BODIES[name]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    verdict = judge(raw)
    best = time.process_time() - started
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    for _ in range(200 if len(raw) < MIB else 5):
        started = time.process_time()
        judge(raw)
        best = min(best, time.process_time() - started)
    return Figure(name, len(raw) / MIB, verdict, best * 1000, grown / KIB_PER_MIB)


def main() -> int:
    """Measure every body and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contract", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, for a script")
    options = parser.parse_args()
    # A process for each body: memory that one freed must not hide what the next one takes.
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=1) as pool:
        figures = [pool.apply(measure, (name,)) for name in BODIES]
    if options.json:
        print(json.dumps([asdict(figure) for figure in figures]))
        return 0
    print("| body | MiB | verdict | processor ms | memory MiB |\n| --- | --- | --- | --- | --- |")
    for figure in figures:
        print(
            f"| {figure.name} | {figure.mebibytes:.2f} | {figure.verdict} | {figure.cpu_milliseconds:.2f} "
            f"| {figure.grown_mebibytes:.0f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
