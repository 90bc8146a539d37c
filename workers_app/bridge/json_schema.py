"""What a JSON Schema says, read keyword by keyword; a keyword whose value has the wrong shape is not understood."""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

Schema = dict[str, JsonValue]
Parts = tuple[Schema, ...]
"""Schemas that all hold of one value."""

TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
MAX_NUMBER = 1e300
"""Above it, arithmetic would leave the floats."""


class NotUnderstood(Exception):
    """The schema says something that cannot be judged here, or is none."""


def read_list(schema: Schema, keyword: str) -> list[JsonValue]:
    """Return a keyword's list, empty when it is absent."""
    value = schema.get(keyword, [])
    if not isinstance(value, list):
        raise NotUnderstood
    return value


def read_names(schema: Schema, keyword: str) -> list[str]:
    """Return a keyword's list of strings, empty when it is absent."""
    names = [name for name in read_list(schema, keyword) if isinstance(name, str)]
    if len(names) != len(read_list(schema, keyword)):
        raise NotUnderstood
    return names


def read_members(schema: Schema, keyword: str) -> Schema:
    """Return a keyword's object, empty when it is absent."""
    value = schema.get(keyword, {})
    if not isinstance(value, dict):
        raise NotUnderstood
    return value


def find_number(schema: Schema, keyword: str) -> int | float | None:
    """Return a keyword's number, None when it is absent."""
    value = schema.get(keyword)
    if value is None and keyword not in schema:
        return None
    # NaN is not within either.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_NUMBER:
        raise NotUnderstood
    return value


def read_types(schema: Schema) -> list[str] | None:
    """Return the types a schema names, None when it names none."""
    if "type" not in schema:
        return None
    names = [schema["type"]] if isinstance(schema["type"], str) else read_list(schema, "type")
    types = [name for name in names if isinstance(name, str) and name in TYPES]
    if not types or len(types) != len(names):
        raise NotUnderstood
    return types


def read_values(schema: Schema) -> list[JsonValue] | None:
    """Return the values a schema lists, None when it lists none."""
    if "const" in schema:
        return [schema["const"]]
    return read_list(schema, "enum") if "enum" in schema else None


def member_schemas(schema: Schema, name: str) -> Iterator[JsonValue]:
    """Yield what an object schema asks of the member of that name."""
    properties = read_members(schema, "properties")
    if name in properties:
        yield properties[name]
    elif "additionalProperties" in schema:
        yield schema["additionalProperties"]


def item_schemas(schema: Schema, index: int) -> Iterator[JsonValue]:
    """Yield what an array schema asks of the item at that place; older drafts list the first ones under `items`."""
    items = schema.get("items", True)
    is_old = isinstance(items, list)
    first = read_list(schema, "items" if is_old else "prefixItems")
    if index < len(first):
        yield first[index]
    else:
        yield schema.get("additionalItems", True) if is_old else items


def greatest(parts: Iterable[Schema], keyword: str) -> float:
    """Return the greatest number a keyword has in any of the schemas, 0 when it has none."""
    return max((bound for part in parts if (bound := find_number(part, keyword)) is not None), default=0)
