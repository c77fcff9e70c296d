"""Fields that contain a JSON schema or a simpler value."""

from __future__ import annotations

import pytest

from fairlead.apiserver.schema.decoder import decoded, walked
from fairlead.apiserver.schema.model import schemas
from fairlead.apiserver.schema.scalar import TypeMismatchError
from fairlead.apiserver.schema.union import NEITHER

PROPS = schemas().of_definition(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (
            {"items": {"type": "string", "zork": 1, "nullable": False}},
            {"items": {"type": "string"}},
        ),
        ({"items": [{"type": "string", "title": ""}]}, {"items": [{"type": "string"}]}),
        ({"items": 5}, {}),
        ({"items": "x", "type": "array"}, {"type": "array"}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        (
            {"additionalProperties": {"items": {"default": None, "type": "object"}}},
            {"additionalProperties": {"items": {"type": "object"}}},
        ),
        ({"dependencies": {"a": ["b"], "c": {"zork": 1}}}, {"dependencies": {"a": ["b"], "c": {}}}),
        ({"default": {"a": [None, 1.0]}}, {"default": {"a": [None, 1.0]}}),
    ],
)
def test_unknown_and_empty_fields_of_nested_schemas_are_dropped_silently(sent, read):
    assert decoded(PROPS, sent) == (read, [])
    assert walked(PROPS, sent) == (read, [])


@pytest.mark.parametrize("sent", [5, "x", []])
def test_a_value_that_is_neither_schema_nor_boolean_is_refused(sent):
    with pytest.raises(TypeMismatchError, match=NEITHER):
        decoded(PROPS, {"additionalProperties": sent})


@pytest.mark.parametrize("sent", [{"items": [0]}, {"items": {"maxLength": "x"}}])
def test_a_schema_with_a_field_of_a_wrong_type_is_refused(sent):
    with pytest.raises(TypeMismatchError, match="json: cannot unmarshal"):
        decoded(PROPS, sent)


def test_unknown_fields_outside_of_unions_are_reported():
    sent = {"zork": 1, "not": {"zork": 2}, "items": {"zork": 3}}
    assert decoded(PROPS, sent)[1] == ['unknown field "zork"', 'unknown field "not.zork"']
