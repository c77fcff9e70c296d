"""New pods get what mutating admission gave to the pods of their workload in the dump."""

from __future__ import annotations

import pytest

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
