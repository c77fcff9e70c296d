"""Static pods: the deletion of a static pod deletes only its mirror pod."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.engine.core.instant import seconds
from fairlead.engine.engine import Engine
from fairlead.engine.kubelet.controller import Kubelets
from fairlead.engine.kubelet.pod_lifecycle import MIRROR_REMOVAL
from fairlead.engine.state.cluster import Cluster
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_900_000_000)
MIRRORED = {"kubernetes.io/config.mirror": "abc", "kubernetes.io/config.source": "file"}


@pytest.fixture
def world():
    world = SimulatedWorld(Engine(Cluster(), [Kubelets()]), start=START)
    ready = {"type": "Ready", "status": "True"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"conditions": [ready]},
    }
    resources = {"requests": {"cpu": "1"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "etcd-n1", "namespace": "kube-system", "annotations": MIRRORED},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "c", "image": "i", "resources": resources}],
        },
        "status": {"phase": "Running", "conditions": [ready]},
    }
    world.load([node, pod])
    return world


def found(world):
    return world.store.find(POD, "kube-system", "etcd-n1")


def delete(store, now):
    store.delete(POD, "kube-system", "etcd-n1", now)


def steer(behaviour):
    patch = {"metadata": {"annotations": {"fairlead.dev/kubelet": behaviour}}}
    return lambda store, now: store.patch(NODE, "", "n1", patch, now)


def test_a_deleted_mirror_pod_is_created_again(world):
    """It is created immediately, as a new running object with the same content."""
    before = found(world)
    world.at(START + seconds(5), delete)
    world.run(START + seconds(10))
    after = found(world)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["metadata"]["annotations"] == MIRRORED
    assert after["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}
    assert after["status"]["phase"] == "Running"


def test_the_removal_of_a_mirror_pod_takes_time(world):
    """Otherwise time would stop if the new mirror pod is deleted whenever it is created."""
    world.at(START + seconds(5), delete)
    world.run(START + seconds(5))
    before = found(world)
    assert "deletionTimestamp" in before["metadata"]
    world.run(START + seconds(5) + MIRROR_REMOVAL)
    after = found(world)
    assert "deletionTimestamp" not in after["metadata"]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


def test_a_mirror_pod_of_a_stopped_node_is_created_after_the_recovery(world):
    """The mirror pod was deleted by force during the outage."""
    world.at(START + seconds(5), steer("stopped"))
    world.at(
        START + seconds(6),
        lambda store, now: store.delete(
            POD, "kube-system", "etcd-n1", now, Deletion(grace_period_s=0)
        ),
    )
    world.run(START + seconds(60))
    assert found(world) is None
    world.at(START + seconds(61), steer(None))
    world.run(START + seconds(70))
    assert found(world)["status"]["phase"] == "Running"


def test_a_static_pod_of_a_deleted_node_is_not_created_again(world):
    world.at(START + seconds(5), lambda store, now: store.delete(NODE, "", "n1", now))
    world.at(
        START + seconds(6),
        lambda store, now: store.delete(
            POD, "kube-system", "etcd-n1", now, Deletion(grace_period_s=0)
        ),
    )
    world.run(START + seconds(60))
    assert found(world) is None


def test_a_new_mirror_pod_tolerates_all_no_execute_taints(world):
    """Otherwise a taint would evict it endlessly."""
    for after in (5, 8):
        world.at(START + seconds(after), delete)
    world.run(START + seconds(10))
    tolerations = found(world)["spec"]["tolerations"]
    assert tolerations.count({"operator": "Exists", "effect": "NoExecute"}) == 1
