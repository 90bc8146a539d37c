"""Read the numbered rows of docs/behaviours and the markers that name them."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
BEHAVIOURS = PROJECT / "docs" / "behaviours"

_ROW = re.compile(r"^- (?P<id>[A-Z]{3}-\d{2,3}): (?P<text>.+)$", re.MULTILINE)
_NOT_BUILT = "(not built)"


@dataclass(frozen=True, slots=True)
class Row:
    """One numbered assertion of a section."""

    id: str
    section: str
    text: str

    @property
    def is_built(self) -> bool:
        """Tell whether a test may name this row."""
        return not self.text.startswith(_NOT_BUILT)


def list_rows(folder: Path = BEHAVIOURS) -> list[Row]:
    """Return every row of every section, in file order."""
    return [
        Row(id=match["id"], section=path.stem, text=match["text"])
        for path in sorted(folder.glob("[A-Z][A-Z][A-Z].md"))
        for match in _ROW.finditer(path.read_text(encoding="utf-8"))
    ]


def find_marker_faults(*, source: str, filename: str, rows: dict[str, Row]) -> list[str]:
    """Return one sentence for each `spec` marker in a test's source that does not name a row a test can prove.

    The source is read, not imported, so that a test left out by a marker expression or a missing service is judged too.
    """
    tree = ast.parse(source, filename=filename)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    faults = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_spec_marker(node.func):
            faults += [f"{filename}:{node.lineno}: {fault}" for fault in _judge_call(node, rows)]
        elif _is_spec_marker(node) and id(node) not in called and isinstance(node, ast.expr):
            faults.append(f"{filename}:{node.lineno}: a spec marker has to name its rows.")
    return faults


def _is_spec_marker(node: ast.AST) -> bool:
    """Recognise `pytest.mark.spec` and `mark.spec`."""
    if not (isinstance(node, ast.Attribute) and node.attr == "spec"):
        return False
    owner = node.value
    return (isinstance(owner, ast.Attribute) and owner.attr == "mark") or (
        isinstance(owner, ast.Name) and owner.id == "mark"
    )


def _judge_call(call: ast.Call, rows: dict[str, Row]) -> Iterator[str]:
    if call.keywords:
        yield "a spec marker takes row ids by position only."
    if not call.args:
        yield "a spec marker has to name at least one row."
    named: set[str] = set()
    for argument in call.args:
        if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
            yield f"a row id has to be a string literal, not {ast.unparse(argument)}."
            continue
        row_id = argument.value
        row = rows.get(row_id)
        if row is None:
            yield f"{row_id!r} is no row of docs/behaviours."
        elif not row.is_built:
            yield f"{row_id} is marked (not built); no test can prove it."
        if row_id in named:
            yield f"{row_id} is named twice."
        named.add(row_id)
