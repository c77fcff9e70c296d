"""Which objects a deletion deletes, and which objects it leaves to controllers."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.change_script import script_of_change
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.question import what_if

SHOP = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}

OTHER = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}


def deleted(cluster, text="ns/shop"):
    steps = script_of_change(ClusterChange(delete=(text,)), cluster).steps
    return [f"{one.target.kind}/{one.target.name}" for step in steps for one in step.commands]


def test_the_namespace_controller_deletes_the_objects_in_a_namespace(snapshot, make):
    workload = make.workload("ReplicaSet", "web", "shop")
    pods = [make.pod("solo", "shop"), make.pod("web-1", "shop", owner="web"), make.pod("other")]
    cluster = snapshot(make.node("n"), SHOP, workload, *pods)
    assert deleted(cluster) == ["Namespace/shop"]


@pytest.mark.parametrize("others", [(), (OTHER,)], ids=["only namespace", "another namespace"])
def test_pods_of_a_deleted_namespace_are_not_replaced(snapshot, make, others):
    """Their controllers are not in the dump, but they cannot create pods in this namespace."""
    database = make.pod("db-0", "shop", node_name="n", owner="db")
    database["metadata"]["ownerReferences"][0] |= {"apiVersion": "example.com/v1", "kind": "Db"}
    web = make.pod("web-1", "shop", node_name="n", owner="web")
    kept = make.pod("kept", "other", node_name="n", owner="kept")
    cluster = snapshot(make.node("n"), SHOP, *others, database, web, kept)
    answer = what_if(cluster, ClusterChange(delete=("ns/shop",)))
    assert answer.changed.settled
    assert [*answer.changed.pods] == ["other/kept"]


def test_drained_pods_of_a_deleted_namespace_are_removed_and_not_gone(snapshot, make):
    """Nothing would replace them anyway."""
    database = make.pod("db-0", "shop", node_name="n", owner="db")
    database["metadata"]["ownerReferences"][0] |= {"apiVersion": "example.com/v1", "kind": "Db"}
    solo = make.pod("solo", "shop", node_name="n")
    kept = make.pod("kept", "other", node_name="n")
    cluster = snapshot(make.node("n"), SHOP, OTHER, database, solo, kept)
    answer = what_if(cluster, ClusterChange(delete=("ns/shop",), drain=("n",)))
    found = answer.difference
    assert [pod.key for pod in found.removed] == ["shop/db-0", "shop/solo"]
    assert [pod.key for pod in found.gone] == ["other/kept"]


def test_pods_of_a_deleted_custom_resource_are_not_created_again(snapshot, make):
    """The garbage collector would delete each replacement, and the cluster would never settle."""
    api = "apps.kruise.io/v1alpha1"
    meta = {"name": "web", "namespace": "shop", "uid": "web-uid"}
    owner = {"apiVersion": api, "kind": "CloneSet", "metadata": meta, "spec": {"replicas": 1}}
    pod = make.pod("web-1", "shop", node_name="n", owner="web")
    pod["metadata"]["ownerReferences"][0] |= {
        "apiVersion": api, "kind": "CloneSet", "uid": "web-uid",
    }  # fmt: skip
    cluster = snapshot(make.node("n"), SHOP, owner, pod)
    answer = what_if(cluster, ClusterChange(delete=("cloneset/shop/web",)))
    assert answer.changed.settled
    assert not answer.changed.pods


@pytest.mark.parametrize("kind", ["statefulset", "statefulsets"])
def test_a_custom_resource_named_like_a_built_in_kind_is_deleted_by_its_group(snapshot, make, kind):
    """OpenKruise has a StatefulSet too; the answers call it statefulset.apps.kruise.io."""
    api = "apps.kruise.io/v1beta1"
    pods = [make.pod(name, "a", node_name="n", owner="db") for name in ("db-0", "db-1")]
    sets = [make.workload("StatefulSet", "db", "a", replicas=1) for _ in pods]
    for one, pod, version in zip(sets, pods, ("apps/v1", api), strict=True):
        one["metadata"]["uid"] = version
        one["apiVersion"] = version
        pod["metadata"]["ownerReferences"][0] |= {
            "apiVersion": version, "kind": "StatefulSet", "uid": version,
        }  # fmt: skip
    cluster = snapshot(make.node("n"), *sets, *pods)
    answer = what_if(cluster, ClusterChange(delete=(f"{kind}.apps.kruise.io/a/db",)))
    assert [pod.name for pod in answer.changed.pods.values()] == ["db-0"]


@pytest.mark.parametrize(
    ("deleted", "left"), [("postgresql.cnpg.io", "db-1"), ("cluster.x-k8s.io", "db-0")]
)
def test_custom_resources_of_one_kind_and_name_are_told_apart_by_their_group(
    snapshot, make, deleted, left
):
    """CloudNativePG and Cluster API both have a Cluster; neither is known to Fairlead."""
    objects = []
    for number, group in enumerate(("postgresql.cnpg.io", "cluster.x-k8s.io")):
        owner = {"apiVersion": f"{group}/v1", "kind": "Cluster", "name": "db", "uid": group}
        meta = {"name": "db", "namespace": "a", "uid": group}
        pod = make.pod(f"db-{number}", "a", node_name="n", owner="db")
        pod["metadata"]["ownerReferences"][0] |= owner
        objects += [{"apiVersion": f"{group}/v1", "kind": "Cluster", "metadata": meta}, pod]
    answer = what_if(
        snapshot(make.node("n"), *objects), ClusterChange(delete=(f"cluster.{deleted}/a/db",))
    )
    assert [pod.name for pod in answer.changed.pods.values()] == [left]


def test_finalizers_of_operators_do_not_keep_the_pods_of_a_deleted_resource(snapshot, make):
    """The pod of a KubeVirt VM belongs to an instance with finalizers, which belongs to the VM."""
    api = "kubevirt.io/v1"
    vm = {"apiVersion": api, "kind": "VirtualMachine", "name": "vm", "uid": "vm-uid"}
    vmi = {**vm, "kind": "VirtualMachineInstance", "uid": "vmi-uid", "controller": True}
    meta = {"name": "vm", "namespace": "shop"}
    held = {**meta, "uid": "vmi-uid", "ownerReferences": [vm], "finalizers": ["kubevirt.io/hold"]}
    pod = make.pod("virt-launcher-vm", "shop", node_name="n", owner="vm")
    pod["metadata"]["ownerReferences"] = [vmi]
    cluster = snapshot(
        make.node("n"),
        {"apiVersion": api, "kind": "VirtualMachine", "metadata": {**meta, "uid": "vm-uid"}},
        {"apiVersion": api, "kind": "VirtualMachineInstance", "metadata": held},
        pod,
    )
    answer = what_if(cluster, ClusterChange(delete=("virtualmachine/shop/vm",)))
    assert answer.changed.settled
    assert not answer.changed.pods


def test_a_namespace_with_a_pod_on_a_failed_node_stays_terminating(snapshot, make):
    """The kubelet cannot confirm that the pod stopped; the namespace waits for its pods."""
    dead, pods = make.node("n"), [make.pod("solo", "shop", node_name="n")]
    change = ClusterChange(delete=("ns/shop",))

    def noted(*objects):
        notes = what_if(snapshot(SHOP, *objects), change).changed.notes
        return [note for note in notes if "stays Terminating" in note]

    assert noted(dead, *pods) == []
    dead["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    [note] = noted(dead, *pods)
    assert note.startswith(
        "Namespace shop stays Terminating and keeps its other objects, because 1 pod on n cannot "
        "stop: the kubelet does not answer."
    )


def test_the_deletion_of_a_terminating_pod_has_a_note(snapshot, make):
    """Without the note, the answer would only say that nothing changes."""
    pods = [make.pod(f"db-{n}", "shop", node_name="n") for n in range(3)]
    for pod in pods[:2]:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster = snapshot(make.node("n"), SHOP, *pods)

    def notes(*names):
        change = ClusterChange(delete=tuple(f"pod/shop/{name}" for name in names))
        return script_of_change(change, cluster).notes

    changes_nothing = "already being deleted in the dump, so a second deletion changes nothing"
    [note] = notes("db-0", "db-2")
    assert note == f"shop/db-0 is {changes_nothing}. kubectl delete --force is not simulated."
    [note] = notes("db-0", "db-1")
    assert note.startswith(f"shop/db-0 and 1 more are {changes_nothing}")
    assert notes("db-2") == ()


def test_a_claim_that_a_pod_uses_is_kept_until_the_pod_is_deleted(snapshot, make):
    """The pod continues to run, but the claim is Terminating, so "nothing changes" is wrong."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop"},
        "spec": {"accessModes": ["ReadWriteOnce"]},
    }
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    pods = [make.pod(f"db-{n}", "shop", node_name="n", volumes=volumes) for n in range(2)]
    cluster = snapshot(make.node("n"), SHOP, claim, *pods)

    def notes(*texts):
        return script_of_change(ClusterChange(delete=texts), cluster).notes

    [note] = notes("pvc/shop/data")
    assert note.startswith(
        "PersistentVolumeClaim shop/data stays Terminating while a pod uses it (shop/db-0 and 1 "
        "more). Then the claim is deleted, and a pod that names it cannot start before a new claim "
        "with this name exists. A StatefulSet creates one"
    )
    [note] = notes("pvc/shop/data", "pod/shop/db-1")
    assert "uses it (shop/db-0)." in note
    assert notes("pvc/shop/data", "pod/shop/db-0", "pod/shop/db-1") == ()
    done = make.pod("db", "shop", node_name="n", volumes=volumes)
    done["status"]["phase"] = "Succeeded"
    finished = snapshot(make.node("n"), SHOP, claim, done)
    assert script_of_change(ClusterChange(delete=("pvc/shop/data",)), finished).notes == ()


def test_a_bound_volume_is_kept_until_its_claim_is_deleted(snapshot, make):
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk", "finalizers": ["kubernetes.io/pv-protection"]},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/d"},
            "claimRef": {"namespace": "shop", "name": "data"},
        },
        "status": {"phase": "Bound"},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop"},
        "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "disk"},
    }
    cluster = snapshot(make.node("n"), SHOP, claim, volume)

    def notes(*texts):
        return script_of_change(ClusterChange(delete=texts), cluster).notes

    [note] = notes("pv/disk")
    assert note == (
        "PersistentVolume disk stays Terminating while PersistentVolumeClaim shop/data is bound to "
        "it, and pods keep using it. It is deleted when the claim is deleted."
    )
    assert notes("pv/disk", "pvc/shop/data") == ()


@pytest.mark.parametrize(
    ("finalizers", "noted"),
    [
        ([], []),
        (["example.com/a", "example.com/b"], ["example.com/a, example.com/b."]),
        (["kubernetes.io/pvc-protection", "example.com/a"], ["example.com/a."]),
    ],
)
def test_finalizers_of_other_controllers_do_not_keep_an_object(snapshot, make, finalizers, noted):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "finalizers": finalizers},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    cluster = snapshot(make.node("a"), claim)
    answer = what_if(cluster, ClusterChange(delete=("pvc/data",)))
    assert [one.claim for one in answer.effect.deleted_claims] == ["default/data"]
    notes = [one for one in answer.changed.notes if "finalizers" in one]
    assert [one.split(": ")[1] for one in notes] == noted
