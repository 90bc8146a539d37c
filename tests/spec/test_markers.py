"""Every `spec` marker names rows of docs/behaviours that exist and can be proved."""

from collections import Counter

import pytest

from tests.spec.rows import BEHAVIOURS, PROJECT, Row, find_marker_faults, list_rows

_ROWS = {
    "AAA-01": Row(id="AAA-01", section="AAA", text="A thing happens."),
    "AAA-02": Row(id="AAA-02", section="AAA", text="(not built) Outside this project."),
}


def test_every_marker_of_the_tests_names_provable_rows() -> None:
    rows = {row.id: row for row in list_rows()}

    faults = [
        fault
        for path in sorted((PROJECT / "tests").rglob("*.py"))
        for fault in find_marker_faults(
            source=path.read_text(encoding="utf-8"), filename=str(path.relative_to(PROJECT)), rows=rows
        )
    ]

    assert faults == []


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ('@pytest.mark.spec("AAA-01")\ndef test(): ...', None),
        ('pytestmark = [pytest.mark.spec("AAA-01")]', None),
        ('pytest.param(1, marks=pytest.mark.spec("AAA-01"))', None),
        ('openapi.spec("ZZZ-99")', None),
        ('@pytest.mark.spec("AAA-03")\ndef test(): ...', "'AAA-03' is no row of docs/behaviours."),
        ('@mark.spec("aaa-01")\ndef test(): ...', "'aaa-01' is no row of docs/behaviours."),
        ('@pytest.mark.spec("AAA-02")\ndef test(): ...', "AAA-02 is marked (not built); no test can prove it."),
        ('@pytest.mark.spec("AAA-01", "AAA-01")\ndef test(): ...', "AAA-01 is named twice."),
        ("@pytest.mark.spec(ROW)\ndef test(): ...", "a row id has to be a string literal, not ROW."),
        ("@pytest.mark.spec(*ROWS)\ndef test(): ...", "a row id has to be a string literal, not *ROWS."),
        ("@pytest.mark.spec(1)\ndef test(): ...", "a row id has to be a string literal, not 1."),
        ('@pytest.mark.spec("AAA-01", why="x")\ndef test(): ...', "a spec marker takes row ids by position only."),
        ("@pytest.mark.spec()\ndef test(): ...", "a spec marker has to name at least one row."),
        ("@pytest.mark.spec\ndef test(): ...", "a spec marker has to name its rows."),
    ],
)
def test_a_marker_that_proves_nothing_is_reported_with_its_line(source: str, complaint: str | None) -> None:
    faults = find_marker_faults(source=source, filename="test_x.py", rows=_ROWS)

    assert faults == ([] if complaint is None else [f"test_x.py:1: {complaint}"])


def test_every_row_id_is_unique_and_sits_in_the_section_of_its_name() -> None:
    rows = list_rows()

    repeated = [row_id for row_id, count in Counter(row.id for row in rows).items() if count > 1]
    misplaced = [row.id for row in rows if not row.id.startswith(f"{row.section}-")]

    assert (repeated, misplaced) == ([], [])


def test_every_bullet_of_a_section_is_a_row() -> None:
    sections = sorted(BEHAVIOURS.glob("[A-Z][A-Z][A-Z].md"))

    bullets = sum(line.startswith("- ") for path in sections for line in path.read_text(encoding="utf-8").splitlines())

    assert bullets == len(list_rows())


def test_the_index_names_every_section_with_its_count_of_rows() -> None:
    counts = Counter(row.section for row in list_rows())
    index = (BEHAVIOURS / "README.md").read_text(encoding="utf-8")

    missing = [name for name, count in counts.items() if f"| [{name}]({name}.md) | {count} |" not in index]

    assert missing == []
    assert f"{counts.total()} rows in {len(counts)} sections" in index
