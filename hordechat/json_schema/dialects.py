"""The drafts of JSON Schema: the library's keywords and types, with our own keywords among them."""

from collections.abc import Mapping

from jsonschema.validators import (
    Draft3Validator,
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
)
from referencing.jsonschema import DRAFT3, DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from hordechat.json_schema.keywords import BOUNDED, BOUNDED_DRAFT3
from hordechat.json_schema.walk import Dialect, Object, find_dialect

_DRAFT_3 = "http://json-schema.org/draft-03/schema"
_DRAFT_4 = "http://json-schema.org/draft-04/schema"
_NEWEST = "https://json-schema.org/draft/2020-12/schema"
_LIBRARY = {
    _DRAFT_3: (Draft3Validator, DRAFT3),
    _DRAFT_4: (Draft4Validator, DRAFT4),
    "http://json-schema.org/draft-06/schema": (Draft6Validator, DRAFT6),
    "http://json-schema.org/draft-07/schema": (Draft7Validator, DRAFT7),
    "https://json-schema.org/draft/2019-09/schema": (Draft201909Validator, DRAFT201909),
    _NEWEST: (Draft202012Validator, DRAFT202012),
}


def _make_dialect(uri: str) -> Dialect:
    library, specification = _LIBRARY[uri]
    # A format is an annotation and nothing a reply is held to.
    keywords = {name: keyword for name, keyword in library.VALIDATORS.items() if name != "format"}
    bounded = BOUNDED_DRAFT3 if uri == _DRAFT_3 else BOUNDED
    return Dialect(
        uri=uri,
        keywords=keywords | {name: keyword for name, keyword in bounded.items() if name in keywords},
        type_checker=library.TYPE_CHECKER,
        specification=specification,
        id_keyword="id" if uri in {_DRAFT_3, _DRAFT_4} else "$id",
        is_reference_alone="$recursiveRef" not in keywords and "$dynamicRef" not in keywords,
    )


DIALECTS: Mapping[str, Dialect] = {uri: _make_dialect(uri) for uri in _LIBRARY}
"""The rules of each draft by its name, which is without the `#` at the end that some have."""


def get_dialect(schema: Object) -> Dialect:
    """Return the rules a schema follows: of the draft it names, or of the newest if it names none or an unknown one."""
    return find_dialect(DIALECTS, schema, DIALECTS[_NEWEST])
