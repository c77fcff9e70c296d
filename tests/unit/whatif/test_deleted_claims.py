"""What-ifs that delete PersistentVolumeClaims."""

from __future__ import annotations

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.question import what_if

OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db-1"}
CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "ssd"},
    "provisioner": "csi.example.com",
}
SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def volume(name, claim, policy):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": claim, "uid": f"u-{claim}"},
            "persistentVolumeReclaimPolicy": policy,
            "storageClassName": "ssd",
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
        },
        "status": {"phase": "Bound"},
    }


def claim(name, volume_name, owners=()):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"u-{name}",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            "finalizers": ["kubernetes.io/pvc-protection"],
            "ownerReferences": list(owners),
        },
        "spec": {**SPEC, "storageClassName": "ssd", "volumeName": volume_name},
        "status": {"phase": "Bound"},
    }


def test_a_moved_pod_of_a_stateful_set_gets_a_new_ephemeral_claim(make, snapshot):
    # The claim of the new pod has the name of the old one, which pvc-protection still holds.
    ephemeral = {
        "name": "scratch",
        "ephemeral": {"volumeClaimTemplate": {"spec": {**SPEC, "storageClassName": "ssd"}}},
    }
    stateful_set = make.workload("StatefulSet", "db")
    stateful_set["metadata"]["uid"] = "db-1"
    stateful_set["spec"]["template"]["spec"]["volumes"] = [ephemeral]
    pod = make.pod("db-0", node_name="a")
    pod["metadata"] |= {
        "uid": "p-1",
        "labels": {"app": "db"},
        "ownerReferences": [{**OWNER, "controller": True}],
    }
    pod["spec"]["volumes"] = [ephemeral]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "db-0", "uid": "p-1", "controller": True}
    answer = what_if(
        snapshot(
            make.node("a"),
            make.node("b"),
            stateful_set,
            pod,
            CLASS,
            claim("db-0-scratch", "v", [owner]),
            volume("v", "db-0-scratch", "Delete"),
        ),
        ClusterChange(drain=("a",)),
    )
    assert [(one.pod.key, one.target) for one in answer.difference.moved] == [("default/db-0", "b")]
