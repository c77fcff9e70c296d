"""Explanations name the volumes that keep a pod off nodes, and the claims that are not bound."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.pod import explain_pod
from fairlead.whatif.explain.target import explain_object

ZONE = "topology.kubernetes.io/zone"


def volume(zone):
    """A volume of the zone, and its claim."""
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    claim = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv"},
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
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "pv"},
            "status": {"phase": "Bound"},
        },
    ]


def workload(make):
    """A ReplicaSet whose pending pod uses the claim."""
    spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    owner = make.workload("ReplicaSet", "web", **spec)
    owner["metadata"]["uid"] = "web"
    pod = make.pod("web-0", owner="web", **spec)
    pod["status"] = {"phase": "Pending"}
    return [owner, pod]


@pytest.mark.parametrize(
    ("zone", "cordoned", "where"),
    [
        ("c", False, f"needs a node with {ZONE}=c, but no node has this."),
        ("a", True, f"can be used only on a ({ZONE}=a), which takes no new pods."),
    ],
)
def test_the_place_of_a_volume_is_named(snapshot, make, zone, cordoned, where):
    nodes = [make.node(name, **{ZONE: name}) for name in "ab"]
    nodes[0]["spec"] = {"unschedulable": cordoned}
    cluster = snapshot(*nodes, *workload(make), *volume(zone))
    sentence = f"Volume pv of claim default/data {where}"
    answer = explain_object(cluster, "rs/web", SchedulerConfig(), NO_CHOICE)
    assert sentence in answer.findings
    assert sentence in explain_pod(cluster, "pod/web-0").notes


@pytest.mark.parametrize("tolerates", [True, False])
def test_only_nodes_with_taints_that_the_pod_does_not_tolerate_admit_no_pod(
    snapshot, make, tolerates
):
    """The node with the volume has a taint, and lacks room."""
    nodes = [make.node("a", cpu="1m", **{ZONE: "a"}), make.node("b", **{ZONE: "b"})]
    nodes[0]["spec"] = {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}
    owner, pod = workload(make)
    if tolerates:
        pod["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    rest = "." if tolerates else ", which does not admit new pods of this kind."
    notes = explain_pod(snapshot(*nodes, owner, pod, *volume("a")), "pod/web-0").notes
    assert f"Volume pv of claim default/data can be used only on a ({ZONE}=a){rest}" in notes


@pytest.mark.parametrize(("zone", "cpu"), [("a", "500m"), (None, "500m")])
def test_a_volume_that_all_nodes_can_use_is_not_named(snapshot, make, zone, cpu):
    """Nodes lack room for the pod, or the pod would fit."""
    nodes = [make.node("a", cpu=cpu, **{ZONE: "a"})]
    volumes = volume("a")
    if zone is None:
        del volumes[0]["spec"]["nodeAffinity"]
    cluster = snapshot(*nodes, *workload(make), *volumes)
    answer = explain_object(cluster, "rs/web", SchedulerConfig(), NO_CHOICE)
    assert not any(one.startswith("Volume") for one in answer.findings)


def test_a_volume_is_not_named_if_its_pod_fits(snapshot, make):
    nodes = [make.node(name, **{ZONE: name}) for name in "ab"]
    cluster = snapshot(*nodes, *workload(make), *volume("b"))
    answer = explain_object(cluster, "rs/web", SchedulerConfig(), NO_CHOICE)
    assert not any(one.startswith("Volume") for one in answer.findings)


def test_the_answer_about_all_pods_names_claims_that_are_not_bound(snapshot, make):
    claim = volume("a")[1]
    claim["spec"] |= {"storageClassName": "fast"}
    del claim["spec"]["volumeName"]
    other = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p"}
    other["metadata"] = {"name": "slow"}
    cluster = snapshot(make.node("a"), *workload(make), claim, other)
    answer = explain_object(cluster, "pods", SchedulerConfig(), NO_CHOICE)
    assert answer.findings[0] == (
        "PersistentVolumeClaim default/data is not bound: StorageClass fast does not exist."
    )
