"""How a schema is walked along a value.

The keywords of the jsonschema library are handed a validator, and here that is a `Walk`. The library's own validators
look at no clock, fetch what a reference names from the network, and start anew, without any bounds put on them,
wherever a schema names its draft.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jsonschema import TypeChecker
from referencing import Specification
from referencing.jsonschema import Schema, lookup_recursive_ref

from hordechat.json_schema.bounds import Stopwatch, UnusableSchema
from hordechat.json_schema.patterns import Patterns

if TYPE_CHECKING:
    # The package has no public name for the type of what `Registry.resolver` returns.
    from referencing._core import Resolver

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
"""The keywords that lead to another schema."""

FAULT = object()
"""What a keyword yields for a value that does not conform; what is wrong with it interests nobody."""

Object = Mapping[str, object]
Keyword = Callable[["Walk", object, object, Object], Iterable[object] | None]
"""Yields something for each fault: given a walk, the keyword's value, the value to judge, the schema it stands in."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The rules of one draft."""

    uri: str
    keywords: Mapping[str, Keyword]
    type_checker: TypeChecker
    specification: Specification[Schema]
    id_keyword: str
    is_reference_alone: bool
    """Whether `$ref` makes everything beside it void, as it did until draft 7."""


class Judgement:
    """What the walks of one judgement share: the time left, the patterns, the references on the way."""

    __slots__ = ("_followed", "dialects", "found_patterns", "patterns", "stopwatch")

    def __init__(self, *, stopwatch: Stopwatch, patterns: Patterns, dialects: Mapping[str, Dialect]) -> None:
        self.stopwatch = stopwatch
        self.patterns = patterns
        self.dialects = dialects
        self.found_patterns: list[str] = []
        """Values that a metaschema says have to be patterns."""
        self._followed: set[tuple[int, int]] = set()

    def is_found(self, pattern: object, text: str) -> bool:
        """Return whether a pattern is found anywhere in a text."""
        return self.patterns.is_found(pattern, text, self.stopwatch)

    @contextmanager
    def following(self, schema: object, value: object) -> Iterator[None]:
        """Mark a reference as being followed for a value.

        Raises:
            UnusableSchema: it is already, so that there would be no end of it.
        """
        step = (id(schema), id(value))
        if step in self._followed:
            raise UnusableSchema
        self._followed.add(step)
        try:
            yield
        finally:
            self._followed.discard(step)


class Walk:
    """One schema on the way through a judgement, with the draft it follows and where its references lead.

    Methods and their arguments are named as keywords of the library call them.
    """

    __slots__ = ("dialect", "judgement", "resolver", "schema")

    def __init__(self, schema: object, *, dialect: Dialect, resolver: "Resolver[Schema]", judgement: Judgement) -> None:
        self.schema = schema
        self.dialect = dialect
        self.resolver = resolver
        self.judgement = judgement

    def is_type(self, instance: object, type: str) -> bool:  # noqa: A002 - the library's name
        """Return whether a value is of a type of the draft's."""
        return bool(self.dialect.type_checker.is_type(instance, type))

    def evolve(self, *, schema: object) -> "Walk":
        """Return the walk of a schema within this one."""
        resolver, keyword = self.resolver, self.dialect.id_keyword
        if isinstance(schema, dict) and keyword in schema:
            resolver = resolver.in_subresource(self.dialect.specification.create_resource(schema))
        return self._enter(schema, resolver)

    def refer(self, keyword: str, reference: object) -> "Walk":
        """Return the walk of the schema that a keyword for references leads to.

        Raises:
            UnusableSchema: the reference is no text.
            referencing.exceptions.Unresolvable: there is nothing it leads to.
        """
        if not isinstance(reference, str):
            raise UnusableSchema
        if keyword == "$recursiveRef":
            resolved = lookup_recursive_ref(self.resolver)
        else:
            resolved = self.resolver.lookup(reference)
        return self._enter(resolved.contents, resolved.resolver)

    def descend(
        self,
        instance: object,
        schema: object,
        path: object = None,  # noqa: ARG002 - the library's keywords say where they are
        schema_path: object = None,  # noqa: ARG002
    ) -> Iterator[object]:
        """Return the faults of a value under a schema within this one."""
        return self.evolve(schema=schema).iter_errors(instance)

    def iter_errors(self, instance: object) -> Iterator[object]:
        """Yield the faults of a value."""
        schema = self.schema
        if schema is True:
            return
        if schema is False:
            yield FAULT
            return
        if not isinstance(schema, dict):
            raise UnusableSchema
        check, keywords = self.judgement.stopwatch.check, self.dialect.keywords
        applied = schema.items()
        if self.dialect.is_reference_alone and schema.get("$ref") is not None:
            applied = {"$ref": schema["$ref"]}.items()
        for name, value in applied:
            keyword = keywords.get(name)
            if keyword is not None:
                check()
                yield from keyword(self, value, instance, schema) or ()

    def is_valid(self, instance: object) -> bool:
        """Return whether a value conforms."""
        return next(self.iter_errors(instance), None) is None

    def _enter(self, schema: object, resolver: "Resolver[Schema]") -> "Walk":
        self.judgement.stopwatch.check()
        dialect = self.dialect
        if isinstance(schema, dict) and "$schema" in schema:
            dialect = find_dialect(self.judgement.dialects, schema, dialect)
        return Walk(schema, dialect=dialect, resolver=resolver, judgement=self.judgement)


def find_dialect(dialects: Mapping[str, Dialect], schema: Object, default: Dialect) -> Dialect:
    """Return the rules of the draft a schema names; an unknown one changes nothing."""
    named = schema.get("$schema")
    return dialects.get(named.removesuffix("#"), default) if isinstance(named, str) else default
