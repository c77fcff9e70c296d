"""New pods get what mutating admission gave to the pods of their workload in the dump."""

from __future__ import annotations

import pytest

from fairlead.api.well_known_label import HOSTNAME
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.question import what_if

PROXY = {"name": "proxy", "image": "p", "resources": {"requests": {"cpu": "1"}}}
GPU = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}


@pytest.fixture
def drained(make, snapshot):
    """Return a function that drains node `a` and returns the pod of `web` at the end."""

    def run(*others, change=None, generation=1, annotations=None, **admitted):
        owner = make.workload("ReplicaSet")
        owner["metadata"]["uid"] = "web"
        pod = make.pod("web-1", node_name="a", owner="web", **admitted)
        pod["metadata"] |= {
            "labels": {"app": "web"},
            "generation": generation,
            "annotations": annotations or {},
        }
        cluster = snapshot(make.node("a"), *others, owner, pod)
        answer = what_if(cluster, change or ClusterChange(drain=("a",)))
        return next(
            end for end in answer.changed.pods.values() if end.key.startswith("default/web-")
        )

    return run


def container(cpu):
    return {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}


def test_injected_containers_need_room(drained, make):
    """The template alone would fit on `b`."""
    assert drained(make.node("b", cpu="1"), containers=[container("1"), PROXY]).is_pending
    assert drained(make.node("b", cpu="2"), containers=[container("1"), PROXY]).node == "b"


def test_injected_sidecars_need_room(drained, make):
    sidecar = {**PROXY, "restartPolicy": "Always"}
    assert drained(make.node("b", cpu="1"), initContainers=[sidecar]).is_pending


def test_injected_tolerations_and_selectors_decide_the_node(drained, make):
    tainted = make.node("b", pool="x")
    tainted["spec"] = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    found = drained(tainted, make.node("c"), tolerations=[GPU], nodeSelector={"pool": "x"})
    assert found.node == "b"


@pytest.fixture
def gated(make, snapshot):
    """Return a function that drains node `a` and returns the ends of the pods of `web`.

    The template of `web` has a scheduling gate, as that of a Job with topology-aware scheduling.
    `selectors` are the nodeSelectors of its pods on the nodes `a` and `b`.
    """

    def run(*selectors, nodes=("a", "b")):
        owner = make.workload("ReplicaSet", replicas=2)
        owner["metadata"]["uid"] = "web"
        owner["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/topology"}]
        pods = [
            make.pod(f"web-{number}", node_name=node, owner="web", nodeSelector=selectors[number])
            for number, node in enumerate(nodes)
        ]
        for pod in pods:
            pod["metadata"]["labels"] = {"app": "web"}
            if not pod["spec"].get("nodeName"):
                pod["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/topology"}]
        racks = {"a": "1", "b": "1", "c": "2"}
        found = [make.node(name, rack=rack, **{HOSTNAME: name}) for name, rack in racks.items()]
        outcome = what_if(snapshot(*found, owner, *pods), ClusterChange(drain=("a",))).changed
        return [one for one in outcome.pods.values() if one.key.startswith("default/web-")]

    return run


def test_gates_that_the_bound_pods_do_not_have_are_removed(gated):
    """Each pod was assigned to its node when its gate was removed."""
    found = gated({HOSTNAME: "a", "rack": "1"}, {HOSTNAME: "b", "rack": "1"})
    assert [one.node for one in found] == ["b", "b"]


def test_a_node_that_was_assigned_to_the_only_pod_is_not_repeated(gated):
    found = gated({HOSTNAME: "a", "rack": "1"}, {}, nodes=("a", ""))
    assert [one.node for one in found] == ["b", ""]


def test_gates_stay_if_no_pod_is_bound(gated):
    found = gated({}, {}, nodes=("", ""))
    assert all(one.is_pending for one in found)


def test_admitted_amounts_are_repeated(drained, make):
    assert drained(make.node("b", cpu="1"), containers=[container("2")]).is_pending


def test_amounts_of_a_resize_are_not_repeated(drained, make):
    """The ReplicaSet creates the new pod from its template."""
    room = make.node("b", cpu="1")
    assert drained(room, generation=2, containers=[container("2")]).node == "b"
    by_vpa = {"vpaUpdates": "resources updated"}
    found = drained(room, generation=2, annotations=by_vpa, containers=[container("2")])
    assert found.is_pending


def test_a_new_replica_set_of_the_deployment_repeats_them(make, snapshot):
    deployment, owner = make.workload(), make.workload("ReplicaSet", "web-1")
    deployment["metadata"]["uid"] = "deployment"
    labels = {"app": "web", "pod-template-hash": "1"}
    owner["metadata"] |= {
        "uid": "web-1",
        "labels": labels,
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "deployment",
             "controller": True}
        ],
    }  # fmt: skip
    owner["spec"]["selector"] = {"matchLabels": labels}
    owner["spec"]["template"]["metadata"] = {"labels": labels}
    pod = make.pod("web-1-a", node_name="a", owner="web-1", containers=[container("1"), PROXY])
    pod["metadata"]["labels"] = labels
    cluster = snapshot(make.node("a"), deployment, owner, pod)
    change = ClusterChange(set_resources=("deploy/web=cpu=500m",))
    after = what_if(cluster, change).changed.allocations
    assert next(one for one in after if one.resource == "cpu").requested == 1500
