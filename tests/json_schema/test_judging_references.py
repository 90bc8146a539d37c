"""References of a client's schema lead into the schema alone, even back to where they came from."""

import socket
from collections.abc import Callable

import pytest

from hordechat.contract.limits import MAX_REPLY_NESTING
from hordechat.json_schema.judging import SchemaVerdict, judge, parse_json
from tests.json_schema.strategies import DRAFTS, NEWEST, Schema

MATCHES, DIFFERS, UNUSABLE = SchemaVerdict.MATCHES, SchemaVerdict.DIFFERS, SchemaVerdict.UNUSABLE
DRAFT_3, DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020 = DRAFTS

NODE: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]},
        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}
TREE: Schema = {"$ref": "#/$defs/node", "$defs": {"node": NODE}}


def chain(nodes: int, last: object = None) -> object:
    for _ in range(nodes):
        last = {"name": "x", "next": last}
    return last


def grow(generations: int) -> object:
    tree: dict[str, object] = {"name": "leaf"}
    for _ in range(generations - 1):
        tree = {"name": "x", "children": [tree, {"name": "other"}]}
    return tree


def below(frames: int, call: Callable[[], SchemaVerdict]) -> SchemaVerdict:
    return call() if frames == 0 else below(frames - 1, call)


@pytest.mark.parametrize(
    ("schema", "fitting", "unfitting"),
    [
        ({"items": {"$ref": "#"}, "type": "array"}, [[], [[]]], [[], 1]),
        ({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"type": "null"}}}, None, 1),
        ({"$ref": "#there", "$defs": {"a": {"$anchor": "there", "type": "null"}}}, None, 1),
        ({"$id": "https://a.example/s", "$ref": "/s#/$defs/a", "$defs": {"a": {"type": "null"}}}, None, 1),
        ({"$ref": "other", "$defs": {"a": {"$id": "other", "type": "null"}}}, None, 1),
        ({"$ref": "urn:own:a", "$defs": {"a": {"$id": "urn:own:a", "$ref": "#/b", "b": {"type": "null"}}}}, None, 1),
        ({"allOf": [{"$id": "x/", "$ref": "y"}], "$defs": {"a": {"$id": "x/y", "type": "null"}}}, None, 1),
        ({"not": {"$id": "x/", "$ref": "y"}, "$defs": {"a": {"$id": "x/y", "type": "null"}}}, 1, None),
        ({"$ref": "#/x-parts/0", "x-parts": [{"type": "null"}]}, None, 1),
        ({"$schema": DRAFT_7, "$ref": "#a", "definitions": {"x": {"$id": "#a", "type": "null"}}}, None, 1),
        ({"$schema": DRAFT_4, "$ref": "#a", "definitions": {"x": {"id": "#a", "type": "null"}}}, None, 1),
        ({"$schema": DRAFT_3, "extends": {"$ref": "#/a"}, "a": {"type": "null"}}, None, 1),
    ],
)  # fmt: skip
def test_references_lead_into_the_schema(schema: Schema, fitting: object, unfitting: object) -> None:
    assert judge(schema, fitting) is MATCHES
    assert judge(schema, unfitting) is DIFFERS


@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/missing", "#missing", "#/properties/a/0", "#/allOf/x", "#/title/0", "#/minimum/x", "#/title", "other",
        "https://example.com/schema", "//example.com/", "file:///etc/hostname", "urn:none", "http://[", NEWEST, DRAFT_7,
        "#/" + "a/" * 50_000,
    ],
)  # fmt: skip
def test_a_reference_that_leads_nowhere_makes_a_schema_unusable(reference: str) -> None:
    holder = {"$ref": reference}
    base = {"title": "t", "minimum": 0, "allOf": [{}]}

    assert judge(base | holder, 1) is UNUSABLE
    assert judge(base | {"properties": {"a": holder}}, {}) is UNUSABLE
    assert judge(base | {"$defs": {"unused": {"items": holder}}}, 1) is UNUSABLE
    assert judge({"$schema": DRAFT_3, "extends": holder}, 1) is UNUSABLE


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        {"$dynamicAnchor": "a", "not": {"$dynamicRef": "#a"}},
        {"$schema": DRAFT_2019, "allOf": [{"$recursiveRef": "#"}]},
        {"unevaluatedProperties": False, "$ref": "#"},
        {"unevaluatedItems": False, "anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/a"}}},
    ],
)
@pytest.mark.parametrize("value", [1, {"a": 1}, [1]])
def test_references_in_a_circle_make_a_schema_unusable(schema: Schema, value: object) -> None:
    assert judge(schema, value) is UNUSABLE


def test_nothing_is_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        uri = f"http://127.0.0.1:{server.getsockname()[1]}/schema"
        for schema in (
            {"$ref": uri},
            {"$ref": f"{uri}#/$defs/a"},
            {"$dynamicRef": f"{uri}#a"},
            {"$id": uri, "$ref": "other"},
            {"properties": {"a": {"$id": uri, "$ref": "other#there"}}},
            {"$schema": DRAFT_4, "id": uri, "items": {"$ref": "other"}},
            {"$schema": DRAFT_2019, "$id": uri, "$ref": "x", "$recursiveRef": "#"},
        ):
            assert judge(schema, {"a": 1}) is UNUSABLE
        assert judge({"$schema": uri, "type": "null"}, None) is MATCHES
        assert judge({"$id": uri, "$ref": "#/$defs/a", "$defs": {"a": {"$schema": uri}}}, None) is MATCHES

        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("frames", [0, 100])
@pytest.mark.parametrize("value", [chain(60), grow(30)], ids=["chain", "tree"])
def test_a_schema_may_use_itself(frames: int, value: object) -> None:
    assert below(frames, lambda: judge(TREE, value)) is MATCHES
    assert below(frames, lambda: judge(TREE, chain(59, last=1))) is DIFFERS


@pytest.mark.parametrize("nodes", [200, 400, MAX_REPLY_NESTING])
def test_a_reply_nested_too_deep_for_a_schema_that_uses_itself_differs(nodes: int) -> None:
    value = parse_json('{"name":"x","next":' * nodes + "null" + "}" * nodes)

    assert judge(TREE, value) is DIFFERS


@pytest.mark.parametrize("frames", range(12))
def test_it_differs_wherever_the_stack_is_full(frames: int) -> None:
    value = parse_json("[" * MAX_REPLY_NESTING + "]" * MAX_REPLY_NESTING)

    assert below(frames, lambda: judge({"items": {"$ref": "#"}}, value)) is DIFFERS


@pytest.mark.parametrize("frames", [0, 100])
@pytest.mark.parametrize(
    "schema",
    [{"not": {"type": "string"}}, {"uniqueItems": True}, {"not": {"enum": [[[1]]]}}, {"items": {"minItems": 1}}],
)
def test_a_deep_reply_is_judged_where_the_schema_does_not_go_as_deep(frames: int, schema: Schema) -> None:
    value = parse_json("[" * MAX_REPLY_NESTING + "]" * MAX_REPLY_NESTING)

    assert below(frames, lambda: judge(schema, value)) is MATCHES


def test_references_too_many_for_the_stack_make_a_schema_unusable() -> None:
    steps = {f"s{step}": {"$ref": f"#/$defs/s{step + 1}"} for step in range(1000)}

    assert judge({"$ref": "#/$defs/s0", "$defs": steps | {"s1000": {}}}, 1) is UNUSABLE
