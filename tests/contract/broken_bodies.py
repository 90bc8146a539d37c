"""Bodies near to valid ones: wrong values, odd spellings, broken bytes, other encodings."""

import copy
from random import Random

import orjson
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.contract.strategies import Json, valid_bodies

JUNK: tuple[Json, ...] = (
    *(None, True, False, 0, -1, 1, 2**63, 2**64 - 1, 2.0**64, 1e300, 0.5, "", "x", "\0", "é" * 70, "json"),
    *([], {}, [[]], [None], {"": None}, {"type": "text"}, {"type": "function"}, {"role": "tool"}, {"a": {"b": [1]}}),
    *("user", "tool", "assistant", "function", "image_url", "data:image/png;base64,", "http://", "json_schema"),
    *(
        2**31,
        -(2**31) - 1,
        -(2**63),
        -1e300,
        5e-324,
        -0.0,
        "a" * 10_000,
        "\U0001f600" * 500,
        "\u202e\ufeff",
        "%s {} $1",
    ),
    *(orjson.loads(b"[" * 12 + b"]" * 12), [{"a": 1}] * 10, "00000000-0000-0000-0000-000000000000", "0" * 32),
    *("{6F9619FF-8B86-D011-B42D-00C04FC964FF}", "urn:uuid:6f9619ff-8b86-d011-b42d-00c04fc964ff", "\uff16" * 32),
)
KEYS = ("", "role", "content", "type", "name", "tools", "tool_calls", "strict", "properties", "horde", "logprobs", "é")


def mutate(body: Json, *, seed: int, changes: int) -> Json:
    """Return the body with a few places changed: replaced, removed, repeated, renamed, wrapped or filled with junk."""
    random = Random(seed)
    changed = copy.deepcopy(body)
    for _ in range(changes):
        container = random.choice(_containers(changed))
        places = list(container) if isinstance(container, dict) else list(range(len(container)))
        if not places or random.random() < 0.2:
            _add(container, random)
            continue
        place = random.choice(places)
        match random.randrange(5):
            case 0:
                container[place] = copy.deepcopy(random.choice(JUNK))
            case 1:
                del container[place]
            case 2:
                container[place] = [container[place]]
            case 3:
                container[place] = {random.choice(KEYS): container[place]}
            case _:
                _add(container, random, value=copy.deepcopy(container[place]))
    return changed


SPELLINGS: tuple[bytes, ...] = (
    *(
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"nan",
        b"1e400",
        b"-1e400",
        b"1e-400",
        b"1" * 400,
        b"9" * 5000,
        b"-0",
        b"1.0",
    ),
    *(
        b"18446744073709551616",
        b"-9223372036854775809",
        b"0x10",
        b"01",
        b"+1",
        b".5",
        b"1.",
        b"1_0",
        b"True",
        b"undefined",
    ),
    *(b'"\\ud83d"', b'"\\ude00\\ud83d"', b'"\\u0000"', b'"\\x41"', b"'a'", b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"'),
    *(
        b'"\t"',
        b'"a\0b"',
        b'"',
        b"",
        b"[",
        b"[" * 900 + b"]" * 900,
        b'{"a":' * 900 + b"1" + b"}" * 900,
        b"/**/1",
        b"[1,]",
    ),
    *(b'{"a":1,"a":[]}', b'{"\\ud83d":1}', b'{"a":1,}', b"{1:1}", b'"' + b"\\u00e9" * 2000 + b'"', b"[" * 5000),
)
"""Values no encoder of ours writes: outside of strict JSON, or at its edge, where parsers differ."""


def misspell(body: Json, *, seed: int, changes: int) -> bytes:
    """Return the body's bytes with a few values in odd spellings, or with a key twice."""
    random = Random(seed)
    changed = copy.deepcopy(body)
    spellings: dict[bytes, bytes] = {b'<again>"': b'"'}
    for number in range(changes):
        container = random.choice(_containers(changed))
        marker = f"<spelling {number}>"
        places = list(container) if isinstance(container, dict) else list(range(len(container)))
        if not places:
            continue
        place = random.choice(places)
        if isinstance(container, dict) and random.random() < 0.3:
            container[f"{place}<again>"] = copy.deepcopy(random.choice([*JUNK, container[place]]))
        else:
            container[place] = marker
            spellings[f'"{marker}"'.encode()] = random.choice(SPELLINGS)
    sent = orjson.dumps(changed)
    for written, spelling in spellings.items():
        sent = sent.replace(written, spelling)
    return sent


def _containers(value: Json) -> list[Json]:
    found = [value]
    for container in found:
        inner = container.values() if isinstance(container, dict) else container
        found.extend(item for item in inner if isinstance(item, dict | list))
    return found


def _add(container: Json, random: Random, value: Json = None) -> None:
    value = copy.deepcopy(random.choice(JUNK)) if value is None else value
    if isinstance(container, dict):
        container[random.choice(KEYS)] = value
    else:
        container.insert(random.randrange(len(container) + 1), value)


def mutated_bodies() -> SearchStrategy[dict[str, Json]]:
    """Return bodies that are valid JSON objects and mostly not valid chat bodies."""
    return st.builds(
        lambda body, seed, changes: mutate(body, seed=seed, changes=changes),
        valid_bodies(),
        st.integers(0, 2**32),
        st.integers(1, 4),
    )


def mutate_bytes(sent: bytes, *, seed: int, changes: int) -> bytes:
    """Return the bytes with a few of them flipped, inserted, removed or repeated, or cut off."""
    random = Random(seed)
    changed = bytearray(sent)
    for _ in range(changes):
        start = random.randrange(len(changed) + 1)
        end = start + random.randrange(1, 9)
        match random.randrange(5):
            case 0:
                changed[start:end] = random.randbytes(random.randrange(1, 5))
            case 1:
                changed[start:start] = random.choice([b"[", b"{", b'"', b"\\u0000", b"\\ud800", b"1e400", b",", b"99"])
            case 2:
                del changed[start:end]
            case 3 if random.random() < 0.3:
                del changed[start:]
            case _:
                changed[start:start] = changed[start:end]
    return bytes(changed)


ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "utf-7", "cp037", "latin-1")


@st.composite
def broken(draw: st.DrawFn, bodies: SearchStrategy[dict[str, Json]]) -> bytes:
    """Return bytes near those of a body: some values changed, misspelt, some bytes changed, or another encoding."""
    body = draw(bodies)
    seed = draw(st.integers(0, 2**32))
    changes = draw(st.integers(1, 4))
    match draw(st.integers(0, 9)):
        case 0 | 1 | 2 | 3 | 4:
            return orjson.dumps(mutate(body, seed=seed, changes=changes))
        case 5 | 6:
            return misspell(body, seed=seed, changes=changes)
        case 7 | 8:
            return mutate_bytes(orjson.dumps(body), seed=seed, changes=changes)
        case _:
            text = orjson.dumps(body).decode()
            return text.encode(Random(seed).choice(ENCODINGS), "replace")


def mutated_bytes() -> SearchStrategy[bytes]:
    """Return bytes near those of a valid body."""
    return st.builds(
        lambda body, seed, changes: mutate_bytes(orjson.dumps(body), seed=seed, changes=changes),
        valid_bodies(),
        st.integers(0, 2**32),
        st.integers(1, 6),
    )
