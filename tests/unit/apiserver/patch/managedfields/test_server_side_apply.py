"""Server-side apply: field owners, conflicts, and the removal of fields without an owner."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.patch.managedfields.field_set import set_of_paths
from fairlead.apiserver.patch.managedfields.managed_fields import (
    ManagerIdentifier,
    TrackedResource,
    updated,
)
from fairlead.apiserver.patch.managedfields.server_side_apply import (
    LAST_APPLIED,
    ApplyRequest,
    server_side_apply,
)
from fairlead.apiserver.schema.model import schemas

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
CONFIG_MAP = TrackedResource(schema=schemas().of_definition("io.k8s.api.core.v1.ConfigMap"))
POD = TrackedResource(
    schema=schemas().of_definition("io.k8s.api.core.v1.Pod"), reset_fields=set_of_paths(("status",))
)


def config(data=None, **metadata):
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **metadata}}
    return made if data is None else {**made, "data": data}


def apply(live, manifest, manager="a", *, force=False, timestamp=NOW, tracking=CONFIG_MAP):
    application = ApplyRequest(config=manifest, manager=manager, force=force)
    return server_side_apply(tracking, live, application, timestamp)


def update(old, new, manager="ctl", timestamp=NOW, tracking=CONFIG_MAP):
    writer = ManagerIdentifier(manager, "Update", "v1")
    return updated(tracking, old, new, writer, timestamp)


def stored(obj):
    """Return `obj` with the metadata of a stored object."""
    return {**obj, "metadata": {"uid": "u", "resourceVersion": "1", **obj["metadata"]}}


def owned(obj):
    """Return the owned fields by manager and operation."""
    entries = obj["metadata"].get("managedFields", [])
    return {(one["manager"], one["operation"]): one["fieldsV1"] for one in entries}


def test_an_applier_owns_the_applied_fields():
    made = apply(None, config({"k": "1"}))
    assert made["data"] == {"k": "1"}
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "a",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:k": {}}},
        }
    ]


def test_a_creator_owns_its_fields_and_their_parent_maps():
    made = update(None, config({"k": "1"}))
    assert owned(made) == {("ctl", "Update"): {"f:data": {".": {}, "f:k": {}}}}


def test_applying_the_same_again_changes_nothing():
    made = stored(apply(None, config({"k": "1"}), timestamp=THEN))
    assert apply(made, config({"k": "1"}), timestamp=NOW) == made


def test_fields_that_are_no_longer_applied_are_removed():
    live = stored(apply(None, config({"k": "1", "l": "2"})))
    assert apply(live, config({"k": "1"}))["data"] == {"k": "1"}


def test_fields_with_another_owner_are_kept():
    live = stored(apply(None, config({"k": "1"})))
    live = stored(apply(live, config({"k": "1"}), "b"))
    made = apply(live, config({}), "a")
    assert made["data"] == {"k": "1"}
    assert owned(made)["b", "Apply"] == {"f:data": {"f:k": {}}}


def test_an_equal_value_has_two_owners():
    live = stored(apply(None, config({"k": "1"}), timestamp=THEN))
    made = apply(live, config({"k": "1"}), "b")
    assert set(owned(made)) == {("a", "Apply"), ("b", "Apply")}
    entry = next(one for one in made["metadata"]["managedFields"] if one["manager"] == "b")
    assert "time" not in entry


def test_a_different_value_is_a_conflict():
    live = stored(apply(None, config({"k": "1"})))
    with pytest.raises(ApiError) as refused:
        apply(live, config({"k": "2"}), "b")
    assert refused.value.code == 409
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "a": .data.k'
    (cause,) = refused.value.causes
    assert (cause.reason, cause.message, cause.field) == (
        "FieldManagerConflict", 'conflict with "a"', ".data.k",
    )  # fmt: skip


def test_several_conflicts_are_listed_by_manager():
    live = stored(apply(None, config({"a": "1", "b": "1"}), "m1"))
    live = stored(update(live, {**live, "data": {"a": "1", "b": "1", "c": "1"}}, "m2"))
    with pytest.raises(ApiError) as refused:
        apply(live, config({"a": "2", "b": "2", "c": "2"}), "m3")
    assert refused.value.message == (
        'Apply failed with 3 conflicts: conflicts with "m1":\n- .data.a\n- .data.b\n'
        'conflicts with "m2" using v1:\n- .data.c'
    )


def test_a_forced_apply_takes_over_the_field():
    live = stored(apply(None, config({"k": "1"})))
    made = apply(live, config({"k": "2"}), "b", force=True)
    assert made["data"] == {"k": "2"}
    assert owned(made) == {("b", "Apply"): {"f:data": {"f:k": {}}}}


def test_an_update_takes_over_the_changed_fields():
    live = stored(apply(None, config({"k": "1", "l": "1"})))
    made = update(live, {**live, "data": {"k": "2", "l": "1"}})
    assert owned(made) == {
        ("a", "Apply"): {"f:data": {"f:l": {}}},
        ("ctl", "Update"): {"f:data": {"f:k": {}}},
    }


def test_an_update_entry_without_fields_is_removed():
    live = stored(update(None, config({"k": "1"})))
    made = update(live, config(), "other")
    assert owned(made) == {}


@pytest.mark.parametrize("cleared", [[], [{}]])
def test_clearing_managed_fields_ends_tracking(cleared):
    live = stored(apply(None, config({"k": "1"})))
    new = {**live, "metadata": {**live["metadata"], "managedFields": cleared}}
    made = stored(update(live, new))
    assert "managedFields" not in made["metadata"]
    assert "managedFields" not in update(made, {**made, "data": {"k": "9"}})["metadata"]


def test_the_first_apply_to_an_untracked_object_adds_before_first_apply():
    live = stored(config({"k": "1", "l": "2"}))
    made = apply(live, config({"k": "1"}))
    assert owned(made) == {
        ("a", "Apply"): {"f:data": {"f:k": {}}},
        ("before-first-apply", "Update"): {"f:data": {".": {}, "f:k": {}, "f:l": {}}},
    }


def test_defaults_of_list_map_keys_are_used():
    ports = [{"containerPort": 80}]
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x"},
        "spec": {"containers": [{"name": "c", "ports": ports}]},
    }
    made = apply(None, manifest, tracking=POD)
    container = owned(made)["a", "Apply"]["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert container["f:ports"] == {
        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
    }


def test_two_managers_can_own_different_items_of_a_list():
    def pod(name):
        containers = [{"name": name, "image": "i"}]
        return {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
            "spec": {"containers": containers},
        }  # fmt: skip

    live = stored(apply(None, pod("c1"), "a", tracking=POD))
    live = stored(apply(live, pod("c2"), "b", tracking=POD))
    assert [one["name"] for one in live["spec"]["containers"]] == ["c1", "c2"]
    made = apply(live, {**pod("c1"), "spec": {}}, "a", tracking=POD)
    assert [one["name"] for one in made["spec"]["containers"]] == ["c2"]


@pytest.mark.parametrize(
    ("manifest", "code", "message"),
    [
        (config({}, managedFields=[]), 400, "metadata.managedFields must be nil"),
        (
            {**config(), "bogus": 1},
            500,
            (
                "failed to create typed patch object (/x; /v1, Kind=ConfigMap): "
                ".bogus: field not declared in schema"
            ),
        ),
        (
            config({"a": 1}),
            500,
            (
                "failed to create typed patch object (/x; /v1, Kind=ConfigMap): "
                ".data.a: expected string, got &value.valueUnstructured{Value:1}"
            ),
        ),
        (
            config({}, finalizers=["a/b", "a/b"]),
            500,
            (
                "failed to create typed patch object (/x; /v1, Kind=ConfigMap): "
                '.metadata.finalizers: duplicate entries for key [="a/b"]'
            ),
        ),
    ],
)
def test_an_invalid_configuration_is_refused(manifest, code, message):
    """A refused configuration gets upstream's message."""
    with pytest.raises(ApiError) as refused:
        apply(None, manifest)
    assert (refused.value.code, refused.value.message) == (code, message)


def test_kubectl_takes_over_fields_of_its_client_side_apply():
    annotation = '{"apiVersion":"v1","data":{"k":"1"},"kind":"ConfigMap","metadata":{"name":"x"}}'
    manifest = config({"k": "1"}, annotations={LAST_APPLIED: annotation})
    live = stored(update(None, manifest, "kubectl-client-side-apply"))
    made = apply(live, config({"k": "2"}), "kubectl")
    assert made["data"] == {"k": "2"}
    assert '"data":{"k":"2"}' in made["metadata"]["annotations"][LAST_APPLIED]


@pytest.mark.parametrize("metadata", [{"annotations": None}, {"annotations": {LAST_APPLIED: None}}])
def test_kubectl_can_apply_null_annotations(metadata):
    live = stored(update(None, config({"k": "1"}, annotations={LAST_APPLIED: "{}"})))
    made = apply(live, config({"k": "2"}, **metadata), "kubectl", force=True)
    assert made["data"] == {"k": "2"}


def test_kubectl_can_apply_null_metadata():
    live = stored(update(None, config({"k": "1"}, annotations={LAST_APPLIED: "{}"})))
    made = apply(live, {**config({"k": "2"}), "metadata": None}, "kubectl", force=True)
    assert made["data"] == {"k": "2"}


@pytest.mark.parametrize("text", ["{", "[]", '{"data":' + "[" * 100_000])
def test_an_invalid_last_applied_annotation_does_not_waive_conflicts(text):
    live = stored(update(None, config({"k": "1"}, annotations={LAST_APPLIED: text})))
    with pytest.raises(ApiError) as refused:
        apply(live, config({"k": "2"}), "kubectl")
    assert refused.value.code == 409


DATA = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)


@given(DATA, st.lists(st.tuples(st.sampled_from("pqr"), DATA), max_size=5))
def test_a_forced_apply_succeeds_after_any_history(wanted, history):
    live = stored(apply(None, config({"a": "1"}), "p"))
    for manager, data in history:
        live = stored(apply(live, config(data), manager, force=True))
    made = apply(live, config(wanted), "z", force=True)
    assert wanted.items() <= made.get("data", {}).items()
    assert apply(stored(made), config(wanted), "z") == stored(made)
