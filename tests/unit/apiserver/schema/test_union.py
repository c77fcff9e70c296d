"""Schemas that stand where something simpler may stand are read like all others, but quietly."""

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
def test_what_is_kept(sent, read):
    assert decoded(PROPS, sent) == (read, [])
    assert walked(PROPS, sent) == (read, [])


@pytest.mark.parametrize("sent", [5, "x", []])
def test_neither_a_schema_nor_a_boolean(sent):
    with pytest.raises(TypeMismatchError, match=NEITHER):
        decoded(PROPS, {"additionalProperties": sent})


@pytest.mark.parametrize("sent", [{"items": [0]}, {"items": {"maxLength": "x"}}])
def test_a_schema_of_another_type(sent):
    with pytest.raises(TypeMismatchError, match="json: cannot unmarshal"):
        decoded(PROPS, sent)


def test_what_is_unknown_elsewhere_is_told():
    sent = {"zork": 1, "not": {"zork": 2}, "items": {"zork": 3}}
    assert decoded(PROPS, sent)[1] == ['unknown field "zork"', 'unknown field "not.zork"']
