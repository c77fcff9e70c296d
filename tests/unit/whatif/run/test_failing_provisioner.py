"""Claims of a dump that have waited for their provisioner stay unbound in a simulation."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.explain.every_pod import explain_pods
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.question import what_if

CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "now"},
    "provisioner": "example.com",
    "volumeBindingMode": "Immediate",
}
NOTE = (
    "PersistentVolumeClaim default/data has waited for at least 5m for example.com, so this "
    "answer assumes that the provisioner fails."
)


LATER = {**CLASS, "volumeBindingMode": "WaitForFirstConsumer"}
SELECTED = {"volume.kubernetes.io/selected-node": "a"}
NOT_BOUND = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'


def claim(created, **annotations):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data",
            "namespace": "default",
            "creationTimestamp": created,
            "annotations": annotations,
        },
        "spec": {
            "storageClassName": "now",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }


def waiting_pod(make, **meta):
    """A pending pod with the claim, which no scheduler has tried."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pod = make.pod("p", volumes=volumes)
    pod["metadata"] |= meta
    pod["status"] = {"phase": "Pending"}
    return pod


def rejected_pod(make, reason="Unschedulable", message=""):
    """A pending pod with the claim, whose last attempt failed at the time of the dump."""
    pod = waiting_pod(make)
    scheduled = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    scheduled["lastTransitionTime"] = "2026-01-01T01:00:00Z"
    pod["status"]["conditions"] = [scheduled]
    return pod


@pytest.fixture
def cluster(snapshot, make):
    def read(*objects):
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T01:00:00Z"}
        node = make.node("a")
        node["status"]["conditions"] = [ready]  # the time of the dump
        return snapshot(node, make.node("b"), *objects)

    return read


@pytest.mark.parametrize(
    ("created", "waits"),
    [("2026-01-01T00:55:00Z", True), ("2026-01-01T00:56:00Z", False)],
    ids=["for five minutes", "for four minutes"],
)
def test_a_claim_that_has_waited_for_its_provisioner_stays_unbound(cluster, make, created, waits):
    """The explanation of all pods says that the pod waits for the provisioner."""
    read = cluster(CLASS, claim(created), rejected_pod(make))
    found = what_if(read, ClusterChange(cordon=("b",))).changed
    assert [one.name for one in found.pending] == (["p"] if waits else [])
    assert (NOTE in found.notes) is waits


OLD = {"creationTimestamp": "2026-01-01T00:55:00Z"}


@pytest.mark.parametrize(
    ("annotations", "pod", "waits"),
    [
        (SELECTED, lambda make: rejected_pod(make, "SchedulerError", NOT_BOUND), True),
        (SELECTED, lambda make: waiting_pod(make, **OLD), True),
        (SELECTED, rejected_pod, False),
        (SELECTED, waiting_pod, False),
        ({}, lambda make: waiting_pod(make, **OLD), False),
    ],
    ids=[
        "a failed binding",
        "a first attempt that has not ended",
        "a rejected pod",
        "a pod of unknown age",
        "no selected node",
    ],
)
def test_a_delayed_claim_stays_unbound_if_a_pod_has_waited_for_it(
    cluster, make, annotations, pod, waits
):
    """The scheduler selects the node of such a claim and then waits for the volume."""
    created = "2026-01-01T00:00:00Z"
    read = cluster(LATER, claim(created, **annotations), pod(make))
    found = what_if(read, ClusterChange(cordon=("b",))).changed
    assert [one.name for one in found.pending] == (["p"] if waits else [])
    assert (NOTE in found.notes) is waits
    sentence = (
        "PersistentVolumeClaim default/data is not bound: it waits for the provisioner "
        "example.com on node a."
    )
    explained = explain_pods(ClusterModel(read, SchedulerConfig()), read)
    assert (sentence in explained.findings) is waits
    [row] = next(one.rows for one in explained.tables if one.name == "pending")
    assert ("waits for the provisioner example.com" in row["why"]) is waits


def test_each_pod_of_a_delayed_claim_waits_if_one_of_them_has_waited_for_it(cluster, make):
    """The failed binding of one pod is evidence for the other pod, as in a simulation."""
    other = waiting_pod(make)
    other["metadata"] |= {"name": "q"}
    failed = rejected_pod(make, "SchedulerError", NOT_BOUND)
    read = cluster(LATER, claim("2026-01-01T00:00:00Z", **SELECTED), failed, other)
    explained = explain_pods(ClusterModel(read, SchedulerConfig()), read)
    rows = next(one.rows for one in explained.tables if one.name == "pending")
    assert len(rows) == 2
    assert all("waits for the provisioner example.com" in row["why"] for row in rows)
