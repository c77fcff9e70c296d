"""Guard pods of OpenShift: deleted by a drain, created again when their node is schedulable."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import NODE, POD
from fairlead.engine.core.instant import seconds
from fairlead.engine.engine import Engine
from fairlead.engine.kubelet.controller import Kubelets
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.workloads.guard_pods import GuardPods
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_900_000_000)


def world_with(name, **metadata):
    world = SimulatedWorld(Engine(Cluster(), [Kubelets(), GuardPods()]), start=START)
    ready = {"type": "Ready", "status": "True"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"conditions": [ready]},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "openshift-etcd", **metadata},
        "spec": {"nodeName": "n1", "containers": [{"name": "guard", "image": "i"}]},
        "status": {"phase": "Running", "conditions": [ready]},
    }
    world.load([node, pod])
    return world


def cordoned(value):
    return lambda store, now: store.patch(NODE, "", "n1", {"spec": {"unschedulable": value}}, now)


def exists_after_drain(world, name, *, returns):
    """Cordon the node, delete the pod, and uncordon the node after 10 s if `returns` is set."""
    world.at(START + seconds(1), cordoned(True))
    world.at(START + seconds(2), lambda store, now: store.delete(POD, "openshift-etcd", name, now))
    if returns:
        world.at(START + seconds(60), cordoned(None))
    world.run(START + seconds(120))
    return world.store.find(POD, "openshift-etcd", name) is not None


@pytest.mark.parametrize("returns", [True, False])
def test_a_guard_pod_waits_until_its_node_is_schedulable(returns):
    world = world_with("etcd-guard-n1", labels={"app": "guard"})
    assert exists_after_drain(world, "etcd-guard-n1", returns=returns) is returns


@pytest.mark.parametrize(
    ("name", "labels"),
    [("etcd-guard-n1", {"app": "web"}), ("etcd-guard-n2", {"app": "guard"})],
    ids=["another label", "the name of another node"],
)
def test_other_pods_without_a_controller_are_lost(name, labels):
    assert not exists_after_drain(world_with(name, labels=labels), name, returns=True)


def test_no_guard_pod_is_created_while_its_node_has_a_no_execute_taint():
    """The taint would evict it again and again."""
    world = world_with("etcd-guard-n1", labels={"app": "guard"})

    def tainted(*taints):
        return lambda store, now: store.patch(NODE, "", "n1", {"spec": {"taints": taints}}, now)

    def deleted(store, now):
        store.delete(POD, "openshift-etcd", "etcd-guard-n1", now)

    world.at(START + seconds(1), tainted({"key": "x", "effect": "NoExecute"}))
    world.at(START + seconds(2), deleted)
    world.run(START + seconds(120))
    assert world.store.find(POD, "openshift-etcd", "etcd-guard-n1") is None
    world.at(START + seconds(121), tainted())
    world.run(START + seconds(125))
    assert world.store.find(POD, "openshift-etcd", "etcd-guard-n1") is not None
