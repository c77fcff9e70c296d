"""Bindings set the node of a pod once."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NAMESPACE, POD
from fairlead.apiserver.registry.subresource.binding import bind


def test_a_binding_sets_node_and_condition_and_ends_the_nomination(store, pod, now):
    store.create(pod(), now)
    store.patch_status(POD, "default", "a", {"nominatedNodeName": "other"}, now)
    stored = bind(store, "default", "a", "n1", now, uid="uid-1")
    assert stored["spec"]["nodeName"] == "n1"
    assert stored["status"] == {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "True",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }
    assert stored["metadata"]["generation"] == 1


def test_a_binding_changes_the_transition_time_of_the_condition(store, pod, now, later):
    store.create(pod(), now)
    failed = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}
    store.patch_status(POD, "default", "a", {}, now, conditions=[failed])
    assert bind(store, "default", "a", "n1", later(7))["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:07Z"}
    ]


@pytest.mark.parametrize(
    ("settings", "uid", "expected"),
    [
        (None, "", ("NotFound", 'pods "a" not found')),
        (
            {},
            "other",
            (
                "Conflict",
                (
                    'Operation cannot be fulfilled on pods "a": StorageError: invalid object, '
                    "Code: 4, "
                    "Key: /registry/pods/default/a, ResourceVersion: 0, AdditionalErrorMsg: "
                    "Precondition failed: UID in precondition: other, UID in object meta: uid-1"
                ),
            ),
        ),
        (
            {"node": "n0"},
            "",
            (
                "Conflict",
                (
                    'Operation cannot be fulfilled on pods/binding "a": pod a is already '
                    "assigned to "
                    'node "n0"'
                ),
            ),
        ),
        (
            {"node": "n0", "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
            "",
            (
                "Conflict",
                (
                    'Operation cannot be fulfilled on pods/binding "a": pod a is being '
                    "deleted, cannot "
                    "be assigned to a host"
                ),
            ),
        ),
        (
            {"schedulingGates": [{"name": "x.io/g"}]},
            "",
            (
                "Conflict",
                (
                    'Operation cannot be fulfilled on pods/binding "a": pod a has non-empty '
                    ".spec.schedulingGates"
                ),
            ),
        ),
    ],
    ids=["missing pod", "another uid", "already bound", "terminating", "gated"],
)
def test_an_invalid_binding_is_refused_and_changes_nothing(
    store, pod, now, settings, uid, expected
):
    if settings is not None:
        store.put_as_is(pod(**settings), now)
    version = store.version
    with pytest.raises(ApiError) as refusal:
        bind(store, "default", "a", "n1", now, uid=uid)
    assert (refusal.value.reason, refusal.value.message) == expected
    assert store.version == version


def test_a_binding_without_a_node_is_an_error(store, pod, now):
    store.create(pod(), now)
    with pytest.raises(ApiError, match=r"target\.name: Required value"):
        bind(store, "default", "a", "", now)


def test_no_pod_is_bound_in_a_namespace_that_is_being_deleted(new_store, pod, now):
    store = new_store(admission=(NamespaceLifecycle(requires_namespace=False),))
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}, now)
    store.create(pod(), now)
    store.patch_status(NAMESPACE, "", "default", {"phase": "Terminating"}, now)
    with pytest.raises(ApiError) as refused:
        bind(store, "default", "a", "n1", now)
    assert refused.value.reason == "Forbidden"
    assert "namespace default because it is being terminated" in refused.value.message
