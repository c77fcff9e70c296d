"""Claims of a dump that have waited for their provisioner stay unbound in a simulation."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
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


def claim(created):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "creationTimestamp": created},
        "spec": {
            "storageClassName": "now",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    }


@pytest.fixture
def answer(snapshot, make):
    """The answer to an unrelated change; the pending pod waits for a claim since `created`."""

    def ask(created):
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        pod = make.pod("p", volumes=volumes)
        scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        scheduled["lastTransitionTime"] = "2026-01-01T01:00:00Z"  # the time of the dump
        pod["status"] = {"phase": "Pending", "conditions": [scheduled]}
        read = snapshot(make.node("a"), make.node("b"), CLASS, claim(created), pod)
        return what_if(read, ClusterChange(cordon=("b",))).changed

    return ask


@pytest.mark.parametrize(
    ("created", "waits"),
    [("2026-01-01T00:55:00Z", True), ("2026-01-01T00:56:00Z", False)],
    ids=["for five minutes", "for four minutes"],
)
def test_a_claim_that_has_waited_for_its_provisioner_stays_unbound(answer, created, waits):
    """The explanation of all pods says that the pod waits for the provisioner."""
    found = answer(created)
    assert [one.name for one in found.pending] == (["p"] if waits else [])
    assert (NOTE in found.notes) is waits
