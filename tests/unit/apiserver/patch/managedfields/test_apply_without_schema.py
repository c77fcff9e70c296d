"""Server-side apply without a schema: each nested field has its own owner."""

from __future__ import annotations

import pytest

from fairlead.apiserver.apiextensions.schema.managed_field_schema import object_schema
from fairlead.apiserver.apiextensions.schema.structural import structural
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.patch.managedfields.managed_fields import (
    ManagerIdentifier,
    TrackedResource,
    updated,
)
from fairlead.apiserver.patch.managedfields.server_side_apply import ApplyRequest, server_side_apply

NOW = "2026-01-01T00:00:00Z"
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TRACKING = TrackedResource(
    schema=object_schema(structural({"type": "object", "properties": {"spec": OPEN}}))
)


def manifest(spec):
    return {"apiVersion": "x.io/v1", "kind": "Group", "metadata": {"name": "g"}, "spec": spec}


def apply(live, spec, manager="a", *, force=False):
    application = ApplyRequest(config=manifest(spec), manager=manager, force=force)
    return server_side_apply(TRACKING, live, application, NOW)


def owned(obj):
    return {one["manager"]: one["fieldsV1"] for one in obj["metadata"].get("managedFields", [])}


def test_fields_are_owned_separately_and_lists_as_a_whole():
    made = apply(None, {"n": 1, "o": {"p": {"q": "x"}}, "l": [1, {"a": 2}], "e": {}})
    assert owned(made)["a"] == {
        "f:spec": {
            "f:e": {},
            "f:l": {},
            "f:n": {},
            "f:o": {".": {}, "f:p": {".": {}, "f:q": {}}},
        }
    }


def test_a_number_is_stored_as_a_number():
    assert apply(None, {"minMember": 1})["spec"] == {"minMember": 1}


def test_a_different_value_of_a_nested_field_is_a_conflict():
    live = apply(None, {"o": {"p": 1, "q": 1}})
    with pytest.raises(ApiError) as refused:
        apply(live, {"o": {"p": 2}}, "b")
    assert refused.value.code == 409
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "a": .spec.o.p'


def test_an_equal_value_has_two_owners():
    made = apply(apply(None, {"o": {"p": 1}}), {"o": {"p": 1}}, "b")
    assert owned(made)["a"] == owned(made)["b"]


def test_a_forced_apply_takes_over_the_field():
    made = apply(apply(None, {"o": {"p": 1, "q": 1}}), {"o": {"p": 2}}, "b", force=True)
    assert made["spec"] == {"o": {"p": 2, "q": 1}}
    assert owned(made) == {
        "a": {"f:spec": {"f:o": {".": {}, "f:q": {}}}},
        "b": {"f:spec": {"f:o": {".": {}, "f:p": {}}}},
    }


def test_omitted_fields_are_removed_unless_they_have_another_owner():
    live = apply(apply(None, {"x": 1, "o": {"p": 1}}), {"o": {"p": 1}}, "b")
    assert apply(live, {"y": 2})["spec"] == {"y": 2, "o": {"p": 1}}


@pytest.mark.parametrize("value", [2, "two", True, [1, 2], {"b": 1}, None])
@pytest.mark.parametrize("before", [1, "one", False, [0], {"a": 1}, {}, None])
def test_a_value_can_be_replaced_by_a_value_of_another_type(before, value):
    made = apply(apply(None, {"x": before}), {"x": value})
    assert made["spec"] == {"x": value}


@pytest.mark.parametrize(
    ("before", "value"),
    [(1, 2), (1, [1]), (1, {"b": 1}), ([0], {"b": 1}), ({"a": 1}, [1]), ({}, 1), ("1", 1)],
)
def test_a_value_of_another_type_is_a_conflict(before, value):
    with pytest.raises(ApiError) as refused:
        apply(apply(None, {"x": before}), {"x": value}, "b")
    assert refused.value.code == 409


@pytest.mark.parametrize("before", [{"a": 1}, {}])
def test_fields_of_two_managers_are_merged(before):
    made = apply(apply(None, {"x": before}), {"x": {"b": 1}}, "b")
    assert made["spec"] == {"x": {**before, "b": 1}}


def test_replacing_a_map_by_a_number_removes_the_owned_nested_fields():
    live = apply(None, {"x": {"a": {"b": 1}}})
    changed = updated(
        TRACKING,
        live,
        manifest({"x": 3}) | {"metadata": live["metadata"]},
        ManagerIdentifier("c", "Update", "x.io/v1"),
        NOW,
    )
    assert owned(changed)["c"] == {"f:spec": {"f:x": {}}}
    assert apply(changed, {"y": 1})["spec"] == {"x": 3, "y": 1}


def test_null_removes_only_the_fields_of_the_applying_manager():
    live = apply(apply(None, {"o": {"p": 1}}), {"o": {"q": 1}}, "b")
    assert apply(live, {"o": None})["spec"] == {"o": {"q": 1}}


def test_an_apply_to_an_object_that_violates_the_new_schema_is_refused():
    strict = {"type": "object", "properties": {"spec": {"type": "string"}}}
    tracking = TrackedResource(schema=object_schema(structural(strict)))
    live = apply(None, {"n": 1})
    config = {**manifest({}), "spec": "x"}
    application = ApplyRequest(config=config, manager="a", force=False)
    with pytest.raises(ApiError) as refused:
        server_side_apply(tracking, live, application, NOW)
    assert refused.value.message == (
        "failed to create typed live object (/g; x.io/v1, Kind=Group): .spec: expected string, "
        'got &value.valueUnstructured{Value:map[string]interface {}{"n":1}}'
    )
