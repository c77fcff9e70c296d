"""Pending pods whose claims name a StorageClass that does not exist."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.question import what_if

NOTE = (
    "Pods wait for claims of a StorageClass that does not exist: fast (for default/data-db-0). If "
    "the cluster has the class, add storageclasses to the dump."
)


def storage_class(name, mode):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "csi.example.com",
        "volumeBindingMode": mode,
    }


@pytest.mark.parametrize(
    ("classes", "noted"),
    [
        ([], True),
        ([storage_class("slow", "Immediate")], True),
        ([storage_class("fast", "Immediate")], False),
        ([storage_class("fast", "WaitForFirstConsumer")], False),
    ],
    ids=["the dump has no classes", "it has another class", "it has the class", "the class waits"],
)
def test_a_note_names_the_class_that_claims_of_a_new_workload_lack(snapshot, make, classes, noted):
    """The scheduler says only that the pod has unbound immediate claims."""
    change = ClusterChange(apply=(database(make),))
    answer = what_if(snapshot(make.node("a"), *classes), change)
    assert (NOTE in answer.changed.notes) is noted
    assert not any("StorageClass" in one for one in answer.without.notes)


def test_a_class_that_the_change_deletes_is_not_missing_in_the_dump(snapshot, make):
    classes = [storage_class("fast", "Immediate"), storage_class("slow", "Immediate")]
    change = ClusterChange(apply=(database(make),), delete=("storageclass/fast",))
    answer = what_if(snapshot(make.node("a"), *classes), change)
    assert NOTE.partition(" If the")[0] in answer.changed.notes


def database(make):
    """A StatefulSet whose claims have the class `fast`."""
    database = make.workload("StatefulSet", name="db", replicas=2)
    database["spec"]["serviceName"] = "db"
    database["spec"]["volumeClaimTemplates"] = [
        {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    ]
    return database
