"""VolumeAttachments of a dump, which no component of a simulation deletes."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.question import what_if
from fairlead.whatif.snapshot.volume_attachment import simulated_contents

DRIVER = "csi.example.com"


def storage(name):
    """Return a volume and the claim of the same name that is bound to it."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "x"}
    claim = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": name}
    size, bound = {"storage": "1Gi"}, {"pv.kubernetes.io/bind-completed": "yes"}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                **spec,
                "capacity": size,
                "claimRef": claim,
                "csi": {"driver": DRIVER, "volumeHandle": name},
            },
            "status": {"phase": "Bound"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": bound},
            "spec": {**spec, "resources": {"requests": size}, "volumeName": name},
            "status": {"phase": "Bound"},
        },
    ]


def attachment(volume, node):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": f"{volume}-{node}", "finalizers": ["external-attacher/csi"]},
        "spec": {
            "attacher": DRIVER,
            "nodeName": node,
            "source": {"persistentVolumeName": volume},
        },
        "status": {"attached": True},
    }


def user(make, name, node=""):
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    return make.pod(name, node_name=node, volumes=[claim])


@pytest.fixture
def cluster(make):
    """A node for one volume, which the pod old uses, and the pending pod new."""
    limits = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "a"},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": "a", "allocatable": {"count": 1}}]},
    }
    pods = [user(make, "old", "a"), user(make, "new")]
    return [make.node("a"), limits, *pods, *storage("old"), *storage("new")]


def test_a_volume_is_detached_when_its_pod_leaves_the_node(snapshot, cluster):
    change = ClusterChange(delete=("pod/old",))
    answer = what_if(snapshot(*cluster, attachment("old", "a")), change)
    assert [pod.name for pod in answer.difference.placed] == ["new"]


def test_a_volume_that_no_pod_uses_stays_attached(snapshot, make, cluster):
    """Volume new is attached for a pod that has left, or that another controller has created."""
    change = ClusterChange(delete=("pod/old",))
    other = [*storage("other"), attachment("other", "a"), attachment("old", "a")]
    answer = what_if(snapshot(*cluster, *other), change)
    assert not answer.difference.placed


def test_only_attachments_of_volumes_in_use_on_their_node_are_left_out(found, make, cluster):
    done = user(make, "done", "a")
    done["status"]["phase"] = "Succeeded"
    kept = [attachment("old", "b"), attachment("new", "a"), attachment("done", "a")]
    objects = [*cluster, done, *storage("done"), attachment("old", "a"), *kept]
    contents = [*simulated_contents(found(*objects))]
    names = [
        one["metadata"]["name"]
        for one in (one if isinstance(one, dict) else one.value for one in contents)
        if one["kind"] == "VolumeAttachment"
    ]
    assert names == [one["metadata"]["name"] for one in kept]
