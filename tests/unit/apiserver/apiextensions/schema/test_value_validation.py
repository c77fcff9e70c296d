"""Bounds and alternatives that are not in the recordings, with upstream's messages."""

from __future__ import annotations

import pytest

from fairlead.apiserver.apiextensions.schema.structural import structural
from fairlead.apiserver.apiextensions.schema.value_validation import value_causes

NOWHERE = "<nil>"
TWO = "schema (oneOf). Found 2 valid alternatives"


def said(schema, value):
    return [
        f"{cause.field}: {cause.message}" for cause in value_causes(structural(schema), value, "a")
    ]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, 1,
         ["a: Invalid value: 1: a in body should be greater than 1"]),
        ({"type": "integer", "maximum": 5, "exclusiveMaximum": True}, 5,
         ["a: Invalid value: 5: a in body should be less than 5"]),
        ({"type": "array", "minItems": 2}, [1],
         ["a: Invalid value: [1]: a in body should have at least 2 items"]),
        ({"type": "object", "minProperties": 1}, {},
         ["a: Invalid value: {}: a in body should have at least 1 properties"]),
        ({"type": "object", "maxProperties": 1}, {"x": 1, "y": 2},
         ["a: Too many: 2: must have at most 1 items"]),
        ({"type": "integer", "format": "int32"}, 2**31,
         [(f'{NOWHERE}: Invalid value: "": Checked value must be of type integer with format int32 '
           "in a")]),
        ({"type": "boolean"}, 1,
         ['a: Invalid value: "integer": a in body must be of type boolean: "integer"']),
        ({"type": "number"}, 1, []),
        ({"type": "string", "nullable": True}, None, []),
        ({"type": "string"}, None,
         ['a: Invalid value: "null": a in body must be of type string: "null"']),
        ({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}, 3,
         ['<nil>: Invalid value: "": "a" must validate at least one schema (anyOf)']),
        ({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}, 7, []),
        ({"type": "integer", "oneOf": [{"minimum": 1}, {"minimum": 2}]}, 1, []),
        ({"type": "integer", "oneOf": [{"minimum": 1}, {"minimum": 2}]}, 3,
         [f'{NOWHERE}: Invalid value: "": "a" must validate one and only one {TWO}']),
        ({"type": "integer", "not": {"minimum": 1}}, 3,
         ['<nil>: Invalid value: "": "a" must not validate the schema (not)']),
        ({"type": "integer", "allOf": [{"minimum": 5}]}, 3,
         ["a: Invalid value: 3: a in body should be greater than or equal to 5"]),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
         "50%", []),
        ({"type": "string", "pattern": "("}, "x",
         ["a: Invalid value: \"x\": a in body should match '('"]),
    ],
)  # fmt: skip
def test_a_value_is_validated_against_its_schema(schema, value, expected):
    assert said(schema, value) == expected


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2026-01-01T00:00:00Z", "yesterday"),
        ("date", "2026-01-01", "2026-13-01"),
        ("duration", "1h30m", "long"),
        ("ipv4", "10.0.0.1", "10.0.0"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/99"),
        ("uuid", "dc5b970a-f254-4556-81f3-4dc24719dd20", "dc5b"),
        ("byte", "YQ==", "a"),
        ("email", "a@b.c", "a"),
        ("hostname", "a.b", "-"),
        ("uri", "https://a.b", "a b"),
        ("mac", "01:02:03:04:05:06", "01:02"),
    ],
)
def test_formats_are_validated(name, good, bad):
    schema = {"type": "string", "format": name}
    assert said(schema, good) == []
    expected = f'a: Invalid value: "{bad}": a in body must be of type {name}: "{bad}"'
    assert said(schema, bad) == [expected]


def test_an_unknown_format_is_ignored():
    assert said({"type": "string", "format": "nobody-knows"}, "x") == []


KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["n"],
    "items": {"type": "object", "properties": {"m": {"type": "integer", "maximum": 3}}},
}


@pytest.mark.parametrize(
    ("schema", "old", "value", "fields"),
    [
        ({"type": "integer", "maximum": 3}, 5, 5, []),
        ({"type": "integer", "maximum": 3}, 5, 4, ["a"]),
        (KEYED, [{"n": "x", "m": 5}], [{"n": "y", "m": 6}, {"n": "x", "m": 5}], ["a[0].m"]),
        ({**KEYED, "x-kubernetes-list-map-keys": None}, [{"m": 5}], [{"m": 5}, {}], ["a[0].m"]),
    ],
)
def test_an_unchanged_invalid_value_is_accepted(schema, old, value, fields):
    """An unchanged value is not validated again; list items are matched by their keys."""
    found = value_causes(structural(schema), value, "a", old)
    assert [cause.field for cause in found] == fields
