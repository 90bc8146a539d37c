"""Making a client's schema ready: checked, its patterns compiled, its references found to lead somewhere."""

import json
from dataclasses import dataclass

from referencing import Registry
from referencing.jsonschema import Schema

from hordechat.json_schema.bounds import Stopwatch, UnusableSchema
from hordechat.json_schema.dialects import DIALECTS, get_dialect
from hordechat.json_schema.metaschemas import list_patterns
from hordechat.json_schema.patterns import STEP_BYTES, Patterns
from hordechat.json_schema.walk import REFERENCES, Dialect, Judgement, Object, Walk

CHARACTER_BYTES = 50
"""What a character of a schema's JSON becomes in memory at most, as in `[],` or `{"$id":"a"},`."""


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A schema values can be judged by; threads may share it."""

    schema: Object
    dialect: Dialect
    uri: str
    registry: Registry[Schema]
    """What its references lead to: the schema itself under that address, and no more."""
    patterns: Patterns
    bytes: int
    """How much memory it may take."""

    def start(self, stopwatch: Stopwatch) -> Walk:
        """Return the walk that a value's judgement begins with."""
        judgement = Judgement(stopwatch=stopwatch, patterns=self.patterns, dialects=DIALECTS)
        return Walk(self.schema, dialect=self.dialect, resolver=self.registry.resolver(self.uri), judgement=judgement)


def compile_schema(text: str, stopwatch: Stopwatch) -> CompiledSchema:
    """Return the schema that stands in a JSON text.

    Raises:
        UnusableSchema: it is no schema of its draft, or a pattern in it cannot be compiled.
        OutOfBounds: it takes too long.
        and what the library raises for a reference that leads nowhere.
    """
    schema = json.loads(text)
    dialect = get_dialect(schema)
    patterns = Patterns()
    for expression in list_patterns(schema, dialect, stopwatch):
        stopwatch.check()
        patterns.compile(expression)
    resource = dialect.specification.create_resource(schema)
    uri = resource.id() or ""
    compiled = CompiledSchema(
        schema=schema,
        dialect=dialect,
        uri=uri,
        registry=_crawl(Registry().with_resource(uri, resource)),
        patterns=patterns,
        bytes=CHARACTER_BYTES * len(text) + STEP_BYTES * patterns.steps,
    )
    _check_references(compiled.start(stopwatch))
    return compiled


def _crawl(registry: Registry[Schema]) -> Registry[Schema]:
    """Return a registry that knows its anchors, or else each reference to one would look through the schema again."""
    try:
        return registry.crawl()
    except AttributeError:
        # The library stumbles over `dependencies` of both kinds, which do no harm as long as no anchor is looked for.
        return registry


def _check_references(root: Walk) -> None:
    """Resolve every reference in known places.

    Raises:
        UnusableSchema: one leads to what is no schema.
    """
    ahead = [root]
    while ahead:
        walk = ahead.pop()
        schema = walk.schema
        if not isinstance(schema, dict):
            continue
        for keyword in REFERENCES:
            if keyword in schema and keyword in walk.dialect.keywords:
                target = walk.refer(keyword, schema[keyword])
                if not isinstance(target.schema, dict | bool):
                    raise UnusableSchema
        ahead.extend(walk.evolve(schema=each) for each in walk.dialect.specification.subresources_of(schema))
