"""--apply changes objects as `kubectl apply` does."""

from __future__ import annotations

import json

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.kubectl_apply import applied, merge_patch_between
from fairlead.whatif.question import what_if

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def container(name, image=None, **fields):
    return {"name": name, **({"image": image} if image else {}), **fields}


def deployment(*containers, last_applied=None, **spec):
    metadata = {"name": "web", "namespace": "default"}
    if last_applied is not None:
        metadata["annotations"] = {LAST_APPLIED: json.dumps(last_applied)}
    template = {"spec": {"containers": list(containers)}} if containers else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {**({"template": template} if template else {}), **spec},
    }


@pytest.fixture
def result(found):
    """`result(existing, change)`: the spec after the apply."""

    def apply(existing, change):
        [manifest] = found(existing)
        return applied(manifest, change)["spec"]

    return apply


def test_lists_are_merged_by_key_and_a_partial_object_is_enough(result):
    existing = deployment(container("app", "a:1", tty=True), container("log", "l:1"), replicas=3)
    spec = result(existing, deployment(container("app", "a:2")))
    assert spec["replicas"] == 3
    assert spec["template"]["spec"]["containers"] == [
        {"name": "app", "image": "a:2", "tty": True},
        {"name": "log", "image": "l:1"},
    ]


def test_null_removes_a_field(result):
    existing = deployment(container("app", "a:1", tty=True), replicas=3, paused=True)
    spec = result(existing, deployment(container("app", tty=None), paused=None))
    assert "paused" not in spec
    assert spec["template"]["spec"]["containers"] == [{"name": "app", "image": "a:1"}]


def test_what_was_applied_and_is_dropped_is_removed(result):
    """Fields and list items that others have set stay."""
    before = deployment(container("app", "a:1", stdin=True), container("log", "l:1"), paused=True)
    existing = deployment(
        container("app", "a:1", stdin=True, tty=True),
        container("log", "l:1"),
        container("injected", "i:1"),
        last_applied=before,
        paused=True,
        replicas=5,
    )
    spec = result(existing, deployment(container("app", "a:2")))
    assert spec["replicas"] == 5
    assert "paused" not in spec
    assert spec["template"]["spec"]["containers"] == [
        {"name": "app", "image": "a:2", "tty": True},
        {"name": "injected", "image": "i:1"},
    ]


def test_the_annotation_holds_the_new_manifest(found):
    change = deployment(container("app", "a:2"))
    [manifest] = found(deployment(container("app", "a:1"), last_applied={"spec": {}}))
    annotations = applied(manifest, change)["metadata"]["annotations"]
    assert json.loads(annotations[LAST_APPLIED]) == change


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1, "b": 2}, {"a": 1}, {"b": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 2}}, {"a": {"b": 3}}),
        ({"a": [1, 2]}, {"a": [2]}, {"a": [2]}),
    ],
)
def test_the_patch_between_two_objects(before, after, patch):
    assert merge_patch_between(before, after) == patch


def test_a_partial_deployment_changes_requests_without_naming_an_image(make, snapshot, write):
    part = make.workload("Deployment", "web", cpu="2")
    [only] = part["spec"]["template"]["spec"]["containers"]
    del only["image"]
    del part["spec"]["selector"]
    del part["spec"]["replicas"]
    change = ClusterChange(apply=(write("change.json", part),))
    answer = what_if(snapshot(make.node("a", cpu="9"), make.workload(replicas=2)), change)
    requests = [one.requests["cpu"] for one in answer.changed.pods.values()]
    assert requests == [2000, 2000]
