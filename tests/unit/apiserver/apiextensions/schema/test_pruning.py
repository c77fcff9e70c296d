"""Pruning of unknown fields, preserved fields, and defaults."""

from __future__ import annotations

import pytest

from fairlead.apiserver.apiextensions.schema.pruning import pruned_and_defaulted
from fairlead.apiserver.apiextensions.schema.structural import structural
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.schema.field_location import Notes

NUMBER = {"type": "integer"}
KEEPS = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def result(schema, obj):
    notes = Notes()
    made = pruned_and_defaulted(
        structural({"type": "object", "properties": schema}), obj, notes.unknown
    )
    return made, notes.texts


def test_unknown_fields_are_pruned_and_reported_at_any_depth():
    schema = {"a": {"type": "array", "items": {"type": "object", "properties": {"x": NUMBER}}}}
    made, notes = result(schema, {"kind": "K", "a": [{"x": 1, "y": 2}], "b": {}})
    assert made == {"kind": "K", "a": [{"x": 1}]}
    assert notes == ['unknown field "a[0].y"', 'unknown field "b"']


def test_specified_fields_are_pruned_within_preserved_unknown_fields():
    inner = {"type": "object", "properties": {"x": NUMBER}}
    schema = {"a": {**KEEPS, "properties": {"known": inner}}}
    made, notes = result(schema, {"a": {"any": {"y": 1}, "known": {"x": 1, "y": 2}}})
    assert made == {"a": {"any": {"y": 1}, "known": {"x": 1}}}
    assert notes == ['unknown field "a.known.y"']


def test_an_embedded_object_keeps_api_version_kind_and_metadata():
    schema = {"a": {"type": "object", "x-kubernetes-embedded-resource": True}}
    obj = {"a": {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {}}}
    made, notes = result(schema, obj)
    assert made == {"a": {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}}}
    assert notes == ['unknown field "a.spec"']


@pytest.mark.parametrize(
    ("schema", "sent", "expected"),
    [
        ({**NUMBER, "default": 5}, {}, {"a": 5}),
        ({**NUMBER, "default": 5}, {"a": None}, {"a": 5}),
        ({**NUMBER, "default": 5, "nullable": True}, {"a": None}, {"a": None}),
        ({**NUMBER, "nullable": True}, {"a": None}, {"a": None}),
        (NUMBER, {"a": None}, {}),
        (NUMBER, {"a": 3.0}, {"a": 3}),
        (NUMBER, {"a": 2**63 - 1}, {"a": 2**63 - 1}),
        (NUMBER, {"a": -12345678901234567891}, {"a": -12345678901234567000}),
        (NUMBER, {"a": 10**300}, {"a": 1e300}),
        ({"type": "object", "properties": {"b": {**NUMBER, "default": 1}}}, {}, {}),
        ({"type": "object", "properties": {"b": {**NUMBER, "default": 1}}}, {"a": {}},
         {"a": {"b": 1}}),
        ({"type": "array", "items": {"type": "object", "properties": {"b": {"default": 1}}}},
         {"a": [{}]}, {"a": [{"b": 1}]}),
        ({"type": "object", "additionalProperties": {"properties": {"b": {"default": 1}}}},
         {"a": {"k": {}}}, {"a": {"k": {"b": 1}}}),
    ],
)  # fmt: skip
def test_defaults_replace_missing_values_and_nulls(schema, sent, expected):
    assert result({"a": schema}, sent)[0] == expected


def test_defaults_cannot_make_an_object_too_large():
    """A small object whose defaults make it too large for storage is refused."""
    long = {"type": "object", "properties": {"b": {"type": "string", "default": "x" * 100_000}}}
    schema = {"a": {"type": "array", "items": long}}
    assert len(result(schema, {"a": [{}] * 100})[0]["a"][99]["b"]) == 100_000
    with pytest.raises(ApiError) as refused:
        result(schema, {"a": [{}] * 200})
    assert refused.value.code == 413
