"""OpenAI's structural rules for strict schemas: each object is closed, and requires all its properties (SCH)."""

from collections.abc import Iterator

from hordechat.contract.chat.submission import JsonObject
from hordechat.contract.limits import MAX_REFUSED_KEY_CHARACTERS
from hordechat.contract.refusals import UnsupportedChatParameter

SCHEMA_KEYWORDS = frozenset(
    {
        "items",
        "not",
        "if",
        "then",
        "else",
        "contains",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords whose value is a schema."""
LIST_KEYWORDS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})
"""Keywords whose value is a list of schemas; `items` was one in older drafts."""
MAP_KEYWORDS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose value is an object of named schemas. All other keywords hold data, and are not searched (SCH-21)."""

Context = tuple[str, ...]


def check_strict(path: str, schema: JsonObject, *, subject: str) -> None:
    """Refuse the first break, an object before what it holds, and that in document order (SCH-17).

    `subject` says whose schema it is, in OpenAI's words: `function 'get_weather'`. The schema's nesting is checked
    before, which bounds the contexts (SCH-25).

    Raises:
        UnsupportedChatParameter: an object schema that is open, or that leaves a property optional.
    """
    stack: list[tuple[Context, JsonObject]] = [((), schema)]
    while stack:
        context, current = stack.pop()
        if fault := _find_fault(current):
            raise UnsupportedChatParameter(f"{path}: Invalid schema for {subject}: In context={context!r}, {fault}")
        stack.extend(reversed([((*context, *steps), found) for steps, found in _list_subschemas(current)]))


def _find_fault(schema: JsonObject) -> str | None:
    """Return what OpenAI says of an object schema that breaks a rule."""
    if not _is_object_schema(schema):
        return None
    if schema.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return None
    named = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    missing = next((name for name in properties if name not in named), None)
    if missing is None:
        return None
    return (
        "'required' is required to be supplied and to be an array including every key in properties. "
        f"Missing '{missing[:MAX_REFUSED_KEY_CHARACTERS]}'."
    )


def _is_object_schema(schema: JsonObject) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema


def _list_subschemas(schema: JsonObject) -> Iterator[tuple[Context, JsonObject]]:
    """Return the schemas that stand directly inside one, each with the steps that lead to it (SCH-06, SCH-21)."""
    for keyword, value in schema.items():
        if isinstance(value, dict) and keyword in SCHEMA_KEYWORDS:
            yield (keyword,), value
        elif isinstance(value, dict) and keyword in MAP_KEYWORDS:
            for name, inner in value.items():
                if isinstance(inner, dict):
                    yield (keyword, name[:MAX_REFUSED_KEY_CHARACTERS]), inner
        elif isinstance(value, list) and keyword in LIST_KEYWORDS:
            for index, inner in enumerate(value):
                if isinstance(inner, dict):
                    yield (keyword, str(index)), inner
