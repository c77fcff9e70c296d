"""Validation of applied values against their schema, with upstream's messages."""

from __future__ import annotations

import pytest

from fairlead.apiserver.apiextensions.schema.managed_field_schema import value_schema
from fairlead.apiserver.apiextensions.schema.structural import structural
from fairlead.apiserver.patch.managedfields.typed_validation import validation_problems
from fairlead.apiserver.schema.model import schema_of

KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["a", "b"],
    "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}},
}
SET = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}


def errors(schema, value):
    return list(validation_problems(value_schema(structural(schema)), value, ".x"))


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        ({"type": "integer"}, "1", "expected numeric (int or float), got string"),
        ({"type": "number"}, True, "expected numeric (int or float), got bool"),
        ({"type": "integer"}, [1], "expected numeric (int or float), got []interface {}"),
        ({"type": "string"}, 1.5, "expected string, got &value.valueUnstructured{Value:1.5}"),
        (
            {"type": "string"},
            [{"k": None}, True],
            (
                "expected string, got &value.valueUnstructured{Value:[]interface {}"
                '{map[string]interface {}{"k":interface {}(nil)}, true}}'
            ),
        ),
        ({"type": "boolean"}, "yes", "expected boolean, got &{yes}"),
        ({"type": "object"}, [1], "expected map, got &{[1]}"),
        (SET, {"a": 1}, "expected list, got &{map[a:1]}"),
        (SET, ["a", "a"], 'duplicate entries for key [="a"]'),
        (SET, [{}], "element 0: associative list without keys has an element that's a map type"),
        (SET, ["a", []], "element 1: not supported: associative list with lists as elements"),
        (
            SET,
            [None],
            "element 0: associative list without keys has an element that's an explicit null",
        ),
        (KEYED, [None], "element 0: associative list with keys may not have a null element"),
        (KEYED, ["a"], "element 0: associative list with keys may not have non-map elements"),
        (
            KEYED,
            [{}],
            (
                "element 0: associative list with keys has an element that omits all key fields "
                '["a" "b"] (and doesn\'t have default values for any key fields)'
            ),
        ),
        (KEYED, [{"a": "x"}, {"a": "x"}], 'duplicate entries for key [a="x"]'),
    ],
)
def test_a_value_of_a_wrong_type_is_reported(schema, value, problem):
    assert errors(schema, value) == [f".x: {problem}"]


@pytest.mark.parametrize("value", [1, "a", True, 1.5, [1, {"a": None}], {"a": {"b": [1]}}, None])
@pytest.mark.parametrize(
    "schema",
    [{"x-kubernetes-int-or-string": True}, {"x-kubernetes-preserve-unknown-fields": True}],
)
def test_fields_without_a_type_accept_any_value(schema, value):
    assert errors(schema, value) == []


def test_specified_fields_are_validated_within_preserved_unknown_fields():
    schema = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"n": {"type": "integer"}, "o": {"type": "object", "properties": {"p": {}}}},
    }
    assert errors(schema, {"m": [1], "o": {"q": {"r": 1}}}) == []
    assert errors(schema, {"n": "1"}) == [
        ".x.n: expected numeric (int or float), got string",
    ]


def test_the_metadata_of_an_embedded_object_is_validated():
    schema = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"s": {}}}
    assert errors(schema, {"kind": "K", "metadata": {"name": "a"}}) == []
    assert errors(schema, {"metadata": {"zone": 1}}) == [
        ".x.metadata.zone: field not declared in schema"
    ]
    assert errors(schema, {"t": 1}) == [".x.t: field not declared in schema"]


def test_quantities_and_times_accept_any_scalar():
    pod = schema_of("v1", "ResourceQuota")
    assert not list(validation_problems(pod, {"metadata": {"creationTimestamp": 5}}))
    assert list(validation_problems(pod, {"spec": {"hard": {"cpu": {"a": 1}}}})) == [
        ".spec.hard.cpu: expected any scalar, got &{map[a:1]}"
    ]


def test_stored_sets_may_contain_duplicate_items():
    assert not list(validation_problems(value_schema(structural(SET)), ["a", "a"], may_repeat=True))


def test_an_image_pull_secret_without_a_name_has_an_empty_key():
    """The missing name defaults to "", which is a valid key."""
    template = schema_of("v1", "Pod")
    assert not list(validation_problems(template, {"spec": {"imagePullSecrets": [{}]}}))
    twice = {"spec": {"imagePullSecrets": [{}, {"name": ""}]}}
    assert list(validation_problems(template, twice)) == [
        '.spec.imagePullSecrets: duplicate entries for key [name=""]'
    ]
