"""Write `docs/settings.md` from the typed environment: `python -m hordechat.settings.document [--check]`."""

import sys

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from hordechat.generated_page import GeneratedPage
from hordechat.settings.env import Environment

HEAD = """\
# Settings

Generated from `hordechat/settings/env.py` by `python -m hordechat.settings.document`; change the descriptions there.

Every process of hordechat reads its settings from environment variables, once, when it starts. An empty variable counts
as absent. A required variable that is absent, or a value that cannot be used, stops the process with exit code 1 and a
line for each variable on standard error; values are not shown, secrets may be among them. `script/server` sets what a
local site needs.
"""


def render() -> str:
    """Return the page."""
    fields = list(Environment.model_fields.values())
    required = [field for field in fields if field.is_required()]
    optional = [field for field in fields if not field.is_required()]
    return "\n".join(
        [
            HEAD,
            "## Required",
            "",
            "| Variable | Meaning |",
            "| --- | --- |",
            *(f"| `{field.alias}` | {field.description} |" for field in required),
            "",
            "## With a default",
            "",
            "| Variable | Default | Values | Meaning |",
            "| --- | --- | --- | --- |",
            *(
                f"| `{field.alias}` | {_default_of(field)} | {_values_of(field)} | {field.description} |"
                for field in optional
            ),
            "",
        ]
    )


def _default_of(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "of the machine"
    value = str(field.default).lower() if isinstance(field.default, bool) else field.default
    return f"`{value}`" if value != "" else "empty"


def _values_of(field: FieldInfo) -> str:
    schema = Environment.model_json_schema()["properties"][field.alias]
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema["type"] == "boolean":
        return "`true`, `false`"
    if schema["type"] in {"integer", "number"}:
        return f"{schema['minimum']} to {schema['maximum']}"
    if "pattern" in schema:
        return f"`{schema['pattern']}`"
    return "text"


PAGE = GeneratedPage("settings.md", "hordechat.settings.document", render)

if __name__ == "__main__":
    sys.exit(PAGE.main())
