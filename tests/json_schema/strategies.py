"""Ordinary JSON Schemas of every draft, and values they are about, as Hypothesis draws them."""

from collections.abc import Mapping

from hypothesis import strategies as st

DRAFTS = (
    "http://json-schema.org/draft-03/schema#",
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
NEWEST = DRAFTS[-1]

Strategy = st.SearchStrategy[object]
Schema = dict[str, object]

NAMES = st.sampled_from(["a", "b", "ab", "1", ""])
TWO_NAMES = st.lists(NAMES, max_size=2, unique=True)
PATTERNS = st.sampled_from(["^a", "b$", "[0-9]", "^(a|b)*$", ".", "^$", "a{2,}", r"\d+", r"[\[a]", "^[^]]$", "{"])
COUNTS = st.integers(0, 3)
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -1.5, 0.1, 1e300])
DIVISORS = st.sampled_from([1, 2, 3, 0.5, 0.1, 1e-300])
VALUES: Strategy = st.recursive(
    st.none() | st.booleans() | NUMBERS | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=10,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
LEAVES: Mapping[str, Strategy] = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    **dict.fromkeys(["minimum", "maximum"], NUMBERS),
    **dict.fromkeys(["exclusiveMinimum", "exclusiveMaximum"], NUMBERS | st.booleans()),
    **dict.fromkeys(["multipleOf", "divisibleBy"], DIVISORS),
    **dict.fromkeys(["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"], COUNTS),
    **dict.fromkeys(["minContains", "maxContains"], COUNTS),
    "pattern": PATTERNS,
    "format": st.just("email"),
    "uniqueItems": st.booleans(),
    "required": TWO_NAMES | st.booleans(),
    "dependentRequired": st.dictionaries(NAMES, TWO_NAMES, max_size=2),
    "$ref": st.sampled_from(["#/$defs/a", "#/$defs/b", "#"]),
}


def _list_branches(inner: Strategy) -> Mapping[str, Strategy]:
    schemas = inner | st.booleans()
    some = st.lists(schemas, min_size=1, max_size=3)
    named = st.dictionaries(NAMES, schemas, max_size=3)
    return {
        **dict.fromkeys(["allOf", "anyOf", "oneOf", "prefixItems", "extends"], some),
        **dict.fromkeys(["not", "if", "then", "else", "contains", "propertyNames", "disallow"], schemas),
        **dict.fromkeys(["additionalProperties", "additionalItems"], schemas),
        **dict.fromkeys(["unevaluatedProperties", "unevaluatedItems"], schemas),
        **dict.fromkeys(["properties", "dependentSchemas"], named),
        "items": schemas | some,
        "patternProperties": st.dictionaries(PATTERNS, schemas, max_size=2),
        "dependencies": st.dictionaries(NAMES, schemas | TWO_NAMES, max_size=2),
    }


@st.composite
def _some_of(draw: st.DrawFn, keywords: Mapping[str, Strategy]) -> dict[str, object]:
    names = draw(st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True))
    return {name: draw(keywords[name]) for name in names}


_INNER: Strategy = st.recursive(
    _some_of(LEAVES), lambda inner: _some_of({**LEAVES, **_list_branches(inner)}), max_leaves=6
)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, object]:
    """Draw a schema of some draft; not all have sense in it."""
    schema = draw(_some_of({**LEAVES, **_list_branches(_INNER)}))
    schema["$defs"] = draw(st.fixed_dictionaries({"a": _INNER, "b": _INNER}))
    return schema | {"$schema": draw(st.sampled_from(DRAFTS))}


def nest(levels: int, value: object = 1) -> object:
    """Put a value into so many lists."""
    for _ in range(levels):
        value = [value]
    return value
