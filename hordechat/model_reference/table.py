"""The table of known text models: what it is made from, and how a worker's name for a model is found in it.

A model is listed under one name, `org/name`, and found under three: that one, `aphrodite/org/name` and
`koboldcpp/name`. Names are compared as they are written, capitals included. A name that is not listed is tried again:

1. without one `::user#id` suffix, by which a worker's owner marks a model as their own;
2. without what names a quantisation at its end, one part after the other, as far as a listed name is reached.

The second step differs from the one other hordes use. There, whatever stands between a dash or dot and a capital Q goes
too, anywhere in the name and at least one character of it: `Llama-3-8B-Q4_K_M` is looked up as `Llama-3`, which is
another model or none, and `Llama-3-8B.Q4_K_M` and `A-Q4` as they are. Here a part goes only from the end and only when
it names a quantisation, so all three are found, and so are those that name no number of a K-quant (`GGUF`, `AWQ`,
`fp16`, `4bit`). A quantised model that is listed itself is found as it is.
"""

import csv
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path

from hordechat.model_reference.facts import ModelFacts

BUNDLED = Path(__file__).parent / "models.csv"
"""Well-known open text models: parameters to the hundredth of a billion, all experts of a mixture counted."""

APHRODITE_PREFIX = "aphrodite/"
KOBOLDCPP_PREFIX = "koboldcpp/"

MAX_NAME_CHARACTERS = 255
"""A longer name is no model's, and is not searched for suffixes."""

LARGEST_PARAMETERS = 10**14
"""A hundred times the largest model there is; a price by more would not fit the ledger."""

MAX_SUFFIXES = 6
"""More parts than a quantised model's name ever has; a bound to what a hostile name costs."""

_OWNER_SUFFIX = re.compile(r"::(?:(?!::).)+#\d+\Z", re.ASCII)
_QUANTISATION_SUFFIX = re.compile(
    r"""
    [-._,]
    (?: (?:i1[-.])? I?Q\d (?:_[0-9A-Z]+)*   # Q4_K_M, IQ3_XS, i1-Q6_K
      | i1 | UD                             # left of i1-GGUF and of UD-Q4_K_XL
      | GGUF | GGML | MLX | HQQ | BNB | AQLM
      | AWQ | GPTQ | EXL[23] | quantized
      | (?:128|64|32)g
      | \d{1,2} (?:\.\d{1,2})? bpw | h[68]  # 6.0bpw-h6
      | \d{1,2} -? bits?
      | (?:Int|FP|NVFP|MXFP|NF|BF|F) (?:4|6|8|16|32) (?:-dynamic)?
      | W\d{1,2}A\d{1,2}                    # W4A16
    ) \Z
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)


class Table:
    """Models by every name a listed one has. It never changes; a new reference is a new table."""

    def __init__(self, models: Mapping[str, ModelFacts]) -> None:
        self._facts = dict(models)
        self._listed_names = dict(_with_backend_names(models))

    def __len__(self) -> int:
        return len(self._listed_names)

    def find(self, name: str) -> ModelFacts | None:
        """Return the facts of a model by a worker's name for it, or None when it is not known."""
        listed_name = self.find_listed_name(name)
        return None if listed_name is None else self._facts[listed_name]

    def find_listed_name(self, name: str) -> str | None:
        """Return the name a model is listed under by a worker's name for it, or None when it is not known."""
        if len(name) > MAX_NAME_CHARACTERS:
            return None
        for spelling in _spellings(name):
            if listed_name := self._listed_names.get(spelling):
                return listed_name
        return None


def _with_backend_names(models: Collection[str]) -> Iterable[tuple[str, str]]:
    """Yield the three names of each model, with the listed one; one that is listed itself comes last and so counts."""
    for name in models:
        if not name.startswith((APHRODITE_PREFIX, KOBOLDCPP_PREFIX)):
            yield APHRODITE_PREFIX + name, name
            yield KOBOLDCPP_PREFIX + name.rpartition("/")[2], name
    yield from ((name, name) for name in models)


def _spellings(name: str) -> Iterable[str]:
    """Yield a name as it is, then with less and less of what its worker may have put behind the model's own."""
    yield name
    rest = _OWNER_SUFFIX.sub("", name)
    if rest != name:
        yield rest
    for _ in range(MAX_SUFFIXES):
        suffix = _QUANTISATION_SUFFIX.search(rest)
        if suffix is None:
            return
        rest = rest[: suffix.start()]
        yield rest


@cache
def bundled() -> Table:
    """Return the table this version of the project comes with."""
    with BUNDLED.open(encoding="utf-8", newline="") as file:
        return Table({row["name"]: ModelFacts(parameters=int(row["parameters"])) for row in csv.DictReader(file)})
