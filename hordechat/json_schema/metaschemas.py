"""What a schema of each draft may look like.

The newer drafts spread that over vocabularies, and following dynamic references from one to the next would take most of
the time that compiling takes. Here each draft's is one document, whose references are few and known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urldefrag, urljoin

from jsonschema.validators import Draft202012Validator
from jsonschema_specifications import REGISTRY
from referencing import Registry

from hordechat.json_schema.bounds import Stopwatch, UnusableSchema
from hordechat.json_schema.dialects import DIALECTS
from hordechat.json_schema.patterns import Patterns
from hordechat.json_schema.walk import Dialect, Judgement, Object, Walk

_DEFINITIONS = ("definitions", "$defs")
_patterns = Patterns()


def list_patterns(schema: Object, dialect: Dialect, stopwatch: Stopwatch) -> list[str]:
    """Hold a schema to the metaschema of its draft, and return what stands in it as a pattern.

    Raises:
        UnusableSchema: it is no schema of that draft.
        OutOfBounds: to find out takes too long.
    """
    metaschema = _METASCHEMAS[dialect.uri]
    judgement = Judgement(stopwatch=stopwatch, patterns=_patterns, dialects={})
    walk = Walk(metaschema.document, dialect=metaschema.dialect, resolver=Registry().resolver(), judgement=judgement)
    if not walk.is_valid(schema):
        raise UnusableSchema
    return judgement.found_patterns


@dataclass(frozen=True, slots=True)
class _Metaschema:
    document: Object
    dialect: Dialect


def _make_metaschema(dialect: Dialect) -> _Metaschema:
    document = _join(dialect.uri)
    targets: dict[object, object] = {"#": document}
    for place in _DEFINITIONS:
        targets |= {f"#/{place}/{name}": schema for name, schema in document[place].items()}

    def follow(walk: Walk, reference: object, value: object, _: Object) -> Iterable[object]:
        return walk.evolve(schema=targets[reference]).iter_errors(value)

    keywords = {
        **dialect.keywords,
        "$ref": follow,
        "format": _note_pattern,
        # Other drafts have it already; drafts 3 and 4 need it for the names in `patternProperties`.
        "propertyNames": Draft202012Validator.VALIDATORS["propertyNames"],
    }
    return _Metaschema(document=document, dialect=replace(dialect, keywords=keywords))


def _join(uri: str) -> dict[str, dict[str, object]]:
    """Return a metaschema and its vocabularies as one document, without its name."""
    root = REGISTRY.contents(uri)
    parts = [root, *(REGISTRY.contents(urljoin(uri, each["$ref"])) for each in root.get("allOf", ()))]
    document = {key: root[key] for key in ("type", "dependencies") if key in root}
    for place in ("properties", *_DEFINITIONS):
        document[place] = {name: _shorten(each) for part in parts for name, each in part.get(place, {}).items()}
    document["properties"]["patternProperties"]["propertyNames"] = {"format": "regex"}
    return document


def _shorten(schema: object) -> object:
    """Return a part of a metaschema whose references all lead into the one document."""
    if isinstance(schema, list):
        return [_shorten(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    shortened = {key: _shorten(value) for key, value in schema.items() if key not in {"$dynamicRef", "$recursiveRef"}}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        shortened["$ref"] = f"#{urldefrag(reference).fragment}"
    elif len(shortened) < len(schema):
        shortened["$ref"] = "#"
    return shortened


def _note_pattern(walk: Walk, name: object, value: object, _: Object) -> Iterable[object]:
    if name == "regex" and isinstance(value, str):
        walk.judgement.found_patterns.append(value)
    return ()


_METASCHEMAS: Mapping[str, _Metaschema] = {uri: _make_metaschema(dialect) for uri, dialect in DIALECTS.items()}
