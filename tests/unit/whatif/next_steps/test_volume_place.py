"""Notes name the volumes that keep pods pending; a next step ends the failure of their nodes."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.configuration.autoscaling.autoscaler import AutoscaleOptions
from fairlead.whatif.question import what_if

ZONE = "topology.kubernetes.io/zone"
ELSEWHERE = "or a volume elsewhere with a copy of the data."


def volume(number, key, value):
    """A volume that only nodes with the label can use, and its claim."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    name = f"data-{number}"
    claim = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pv-{number}"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "claimRef": claim,
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
            "status": {"phase": "Bound"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": f"pv-{number}"},
            "status": {"phase": "Bound"},
        },
    ]


@pytest.fixture
def cluster(snapshot, make):
    """Returns a cluster with nodes a0, a1, ... and b0; a pod with a volume runs on each `a` node.

    Each volume needs the label `key` of the pod's node.
    """

    def made(count, key=ZONE):
        found = [make.node("b0", **{ZONE: "b"})]
        for number in range(count):
            node = make.node(f"a{number}", **{ZONE: "a"})
            labels = node["metadata"]["labels"]
            labels["kubernetes.io/hostname"] = f"a{number}"
            labels["eks.amazonaws.com/nodegroup"] = "group-a"
            claim = {"persistentVolumeClaim": {"claimName": f"data-{number}"}}
            spec = {"volumes": [{"name": "v", **claim}]}
            owner = make.workload("ReplicaSet", f"db-{number}", **spec)
            owner["metadata"]["uid"] = f"db-{number}"
            pod = make.pod(f"db-{number}-x", node_name=f"a{number}", owner=f"db-{number}", **spec)
            found += [node, owner, pod, *volume(number, key, labels[key])]
        return snapshot(*found)

    return made


FAILED = ClusterChange(failures=Failures(fail_zone=("a",)))


@pytest.mark.parametrize("autoscale", ["off", "cluster-autoscaler"])
def test_the_volumes_of_a_failed_zone_and_a_shorter_failure_are_named(cluster, autoscale):
    conditions = Conditions(autoscale=AutoscaleOptions(autoscale))
    answer = what_if(cluster(2), FAILED, conditions)
    [note] = [one for one in answer.changed.notes if "used only" in one]
    assert note.startswith("2 volumes (pv-0, pv-1) can be used only on a")
    assert note.endswith(f"no new pods; their pods need such a node {ELSEWHERE}")
    [step] = [one for one in answer.next_steps if one.code == "--for 1h"]
    assert step.words == (
        "ask what happens if the failed nodes, which 2 volumes need, come back after an hour"
    )
    shorter = ClusterChange(failures=FAILED.failures, lasts="1h")
    assert not what_if(cluster(2), shorter, conditions).difference.pending


def test_the_volume_of_one_pending_pod_is_named_with_its_claim(cluster):
    answer = what_if(cluster(1), ClusterChange(cordon=("a0",), delete=("pod/db-0-x",)))
    assert answer.changed.notes[0] == (
        f"Volume pv-0 of claim default/data-0 can be used only on a0 ({ZONE}=a), which takes no "
        f"new pods; its pod needs such a node {ELSEWHERE}"
    )
    assert not any("--for" in one.code for one in answer.next_steps)


def test_only_the_first_places_of_many_local_volumes_are_named(cluster):
    answer = what_if(cluster(5, "kubernetes.io/hostname"), FAILED)
    named = [one for one in answer.changed.notes if one.startswith("Volume pv-")]
    assert len(named) == 3
    assert (
        "2 other volumes that pending pods need can be used only elsewhere." in answer.changed.notes
    )
