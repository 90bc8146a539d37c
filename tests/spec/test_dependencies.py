"""docs/dependencies.md has one line for every direct dependency, with the version that is locked."""

import re

from tests.spec.rows import PROJECT

_NAME = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)")
_LINE = re.compile(
    r"^\| (?P<name>[a-z][a-z0-9.-]*) \| (?P<version>[^ |]+) \| (?P<rest>[^|]+\|[^|]+\|[^|]+) \|$", re.MULTILINE
)
_PIN = re.compile(r"^(?P<name>[a-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>[^ \\;]+)", re.MULTILINE)


def _list_direct(requirements: str) -> list[str]:
    """Return the names a requirements file asks for, comments and options left out."""
    lines = (line.strip() for line in requirements.splitlines())
    return [match["name"].lower() for line in lines if (match := _NAME.match(line))]


def test_every_direct_dependency_has_one_line_with_its_locked_version() -> None:
    folder = PROJECT / "requirements"
    locked: dict[str, str] = {}
    for source in sorted(folder.glob("*.in")):
        pins = {pin["name"]: pin["version"] for pin in _PIN.finditer(source.with_suffix(".txt").read_text("utf-8"))}
        locked |= {name: pins[name] for name in _list_direct(source.read_text(encoding="utf-8"))}

    page = (PROJECT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    lines = [(match["name"], match["version"]) for match in _LINE.finditer(page) if match["name"] != "name"]

    assert sorted(lines) == sorted(locked.items())


def test_reads_names_with_extras_ranges_and_comments() -> None:
    requirements = "# a comment\n-r base.in\nPsycopg[binary,pool]~=3.3\nuv\n\ndjango-redis~=7.0  # why\n"

    assert _list_direct(requirements) == ["psycopg", "uv", "django-redis"]
