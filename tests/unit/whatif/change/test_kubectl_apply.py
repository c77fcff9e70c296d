"""--apply changes objects as `kubectl apply` does."""

from __future__ import annotations

import json
import re

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.kubectl_apply import applied, merge_patch_between
from fairlead.whatif.input.error import InputError
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
    """`result(existing, change)` returns the spec after the apply."""

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


def test_fields_that_the_new_manifest_no_longer_has_are_removed(result):
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


def test_a_changed_strategy_or_volume_keeps_no_other_fields(result):
    def change(strategy, **source):
        template = {"spec": {"volumes": [{"name": "data", **source}]}}
        return deployment(strategy=strategy, template=template)

    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
    existing = change(rolling, emptyDir={})
    spec = result(existing, change({"type": "Recreate"}, configMap={"name": "c"}))
    assert spec["strategy"] == {"type": "Recreate"}
    assert spec["template"]["spec"]["volumes"] == [{"name": "data", "configMap": {"name": "c"}}]
    assert result(existing, change({"type": "RollingUpdate"}))["strategy"] == rolling


def test_the_annotation_holds_the_new_manifest(found):
    change = deployment(container("app", "a:2"))
    [manifest] = found(deployment(container("app", "a:1"), last_applied={"spec": {}}))
    annotations = applied(manifest, change)["metadata"]["annotations"]
    assert json.loads(annotations[LAST_APPLIED]) == change


def test_an_annotation_that_is_nested_too_deeply_counts_as_absent(result):
    existing = deployment(container("app", "a:1"), paused=True)
    existing["metadata"]["annotations"] = {LAST_APPLIED: "[" * 100_000}
    assert result(existing, deployment(container("app", "a:2")))["paused"]


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


def workload(kind, app="a", **fields):
    """A workload whose pods have the label `app`, with these `fields` of its spec."""
    labels = {"app": app}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container("c", "i")]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **fields},
    }


@pytest.mark.parametrize(
    ("existing", "other", "says"),
    [
        (workload("Deployment"), workload("Deployment", "b"), "spec.selector: Invalid value: "),
        (workload("DaemonSet"), workload("DaemonSet", "b"), "field is immutable"),
        (
            workload("StatefulSet", serviceName="a"),
            workload("StatefulSet", serviceName="b"),
            "updates to statefulset spec for fields other than",
        ),
        (
            workload("StatefulSet"),
            workload("StatefulSet", podManagementPolicy="Parallel"),
            "'minReadySeconds' are forbidden",
        ),
    ],
)
def test_fixed_fields_of_a_workload_cannot_be_changed(snapshot, make, write, existing, other, says):
    """The refusal is that of an API server."""
    cluster = snapshot(make.node("n"), existing)
    with pytest.raises(InputError, match=re.escape(says)):
        what_if(cluster, ClusterChange(apply=(write("new.json", other),)))
    what_if(cluster, ClusterChange(apply=(write("same.json", existing),)))


def service(**spec):
    """A Service with an address of the cluster, and these fields of its spec."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"ports": [{"port": 80}], **spec},
    }


STORED = service(type="ClusterIP", clusterIP="10.0.0.5", clusterIPs=["10.0.0.5"])


@pytest.mark.parametrize("server_side", [False, True])
@pytest.mark.parametrize("address", ["10.0.0.9", "None"])
def test_the_cluster_ip_of_a_service_cannot_be_changed(snapshot, make, write, address, server_side):
    change = ClusterChange(
        apply=(write("new.json", service(clusterIP=address)),), server_side=server_side
    )
    with pytest.raises(InputError) as refused:
        what_if(snapshot(make.node("n"), STORED), change)
    assert str(refused.value).endswith(
        "new.json: Service default/web: spec.clusterIPs[0]: Invalid value: "
        f'["{address}"]: may not change once set'
    )


@pytest.mark.parametrize(
    ("existing", "spec"),
    [
        (STORED, {"type": "NodePort"}),
        (STORED, {"clusterIP": "10.0.0.5"}),
        (STORED, {"clusterIP": ""}),
        (STORED, {"type": "ExternalName", "externalName": "a.example"}),
        (service(type="ExternalName", externalName="a.example"), {"clusterIP": "10.0.0.9"}),
    ],
    ids=["type", "same address", "no address", "to a name", "from a name"],
)
def test_a_service_that_keeps_or_loses_its_cluster_ip_can_be_changed(
    snapshot, make, write, existing, spec
):
    path = write("new.json", service(**{"type": "ClusterIP"} | spec))
    what_if(snapshot(make.node("n"), existing), ClusterChange(apply=(path,)))


@pytest.mark.parametrize("server_side", [False, True])
def test_the_status_of_an_existing_node_is_not_changed(snapshot, make, write, server_side):
    """The file may be an old copy of the node; a note says that its status has no effect."""
    old = make.node("a", cpu="1")
    path = write("change.json", {**old, "metadata": {"name": "a", "labels": {"pool": "b"}}})
    change = ClusterChange(apply=(path,), server_side=server_side)
    answer = what_if(snapshot(make.node("a", cpu="4"), make.pod("p", cpu="2")), change)
    assert answer.difference.is_empty
    assert (
        "--apply changes no status, like kubectl apply: Node a. To change one, use --set, such as "
        "--set node/a:status.allocatable.cpu=8."
    ) in answer.changed.notes
