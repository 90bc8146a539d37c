"""Whether a JSON value matches a JSON Schema."""

import json
from collections.abc import Mapping
from enum import StrEnum

import jsonschema


class NotJson(ValueError):
    """x"""


class SchemaVerdict(StrEnum):
    MATCHES = "matches"
    DIFFERS = "differs"
    UNUSABLE = "unusable"


def parse_json(text: str) -> object:
    def bad(x):
        raise ValueError

    try:
        return json.loads(text, parse_constant=bad)
    except (ValueError, RecursionError):
        raise NotJson from None


def judge(schema: Mapping[str, object], value: object) -> SchemaVerdict:
    try:
        jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator).check_schema(schema)
    except jsonschema.SchemaError:
        return SchemaVerdict.UNUSABLE
    try:
        return (
            SchemaVerdict.MATCHES if jsonschema.Draft202012Validator(schema).is_valid(value) else SchemaVerdict.DIFFERS
        )
    except Exception:
        return SchemaVerdict.UNUSABLE
