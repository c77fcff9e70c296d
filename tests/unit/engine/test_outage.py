"""Outages in a simulated cluster: the effects on nodes and pods, and their times."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fairlead.api.timestamp import format_timestamp, parse_timestamp
from fairlead.apiserver.kind import NODE, POD, find_kind
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import (
    NodeMarkedUnknown,
    NodeTainted,
    PodEvicted,
    SilentReporter,
    ZoneAssessed,
)
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.flag import config_of_flags
from fairlead.engine.nodelifecycle.profile import V1_16
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_900_000_000)
LEASE = find_kind("lease")
TAKING_OVER = {"is_taking_over": True}
ZONE = "topology.kubernetes.io/zone"


def node_json(name, *, annotation=None, ready="True"):
    stamp = format_timestamp(START - seconds(3_600))
    annotations = {} if annotation is None else {"fairlead.dev/kubelet": annotation}
    condition = {"type": "Ready", "status": ready}
    stamps = {"lastHeartbeatTime": stamp, "lastTransitionTime": stamp}
    offered = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: name[0]}, "annotations": annotations},
        "status": {
            "capacity": offered,
            "allocatable": offered,
            "conditions": [condition | stamps] if ready else [],
        },
    }


def replica_set(replicas, on):
    """Return a ReplicaSet, and its pods on the given nodes."""
    labels = {"app": "web"}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": "web",
        "controller": True,
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    yield {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }
    for number, name in enumerate(on):
        meta = {"name": f"web-{number}", "namespace": "default", "ownerReferences": [owner]}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta | {"labels": labels},
            "spec": spec | {"nodeName": name},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


class Cluster:
    def __init__(self, *objects, **options):
        self.records = []
        lifecycle = NodeLifecycleConfig(**TAKING_OVER | options)
        config = EngineConfig(start=START, node_lifecycle=lifecycle)
        self.world = SimulatedWorld(build_engine(config, self), start=START)
        self.world.load(objects)

    def report(self, record):
        self.records.append(((self.world.now - START) / seconds(1), record))

    def records_of(self, kind):
        return [(at, record) for at, record in self.records if isinstance(record, kind)]

    def steer(self, after_s, name, annotation):
        patch = {"metadata": {"annotations": {"fairlead.dev/kubelet": annotation}}}
        self.world.at(
            START + seconds(after_s), lambda store, now: store.patch(NODE, "", name, patch, now)
        )

    def run(self, until_s):
        self.world.run(START + seconds(until_s))
        return self

    def taints(self, name):
        node = self.world.store.get(NODE, "", name)
        taints = node.get("spec", {}).get("taints", ())
        return {f"{one['key'].rpartition('/')[2]}:{one['effect']}" for one in taints}

    def pods(self):
        """Return {name: (node, ready)} of the pods that are not terminating."""
        return {
            pod["metadata"]["name"]: (pod["spec"].get("nodeName", ""), is_ready(pod))
            for pod in self.world.store.list(POD)
            if "deletionTimestamp" not in pod["metadata"]
        }


def is_ready(pod):
    return {"type": "Ready", "status": "True"}.items() <= next(
        (one for one in pod["status"].get("conditions", ()) if one["type"] == "Ready"), {}
    ).items()


def test_a_day_without_outages_changes_nothing():
    """Only the Leases are written at first."""
    cluster = Cluster(node_json("a1"), node_json("b1"), *replica_set(1, ["a1"])).run(1)
    before = cluster.world.last_change
    cluster.run(86_400)
    assert cluster.world.last_change == before
    assert {type(record) for _, record in cluster.records} == {ZoneAssessed}


def test_pods_of_an_unreachable_node_are_recreated_on_other_nodes():
    """The node is tainted after the grace period, and its pods evicted after five minutes."""
    cluster = Cluster(node_json("a1"), node_json("b1"), *replica_set(1, ["a1"]))
    cluster.steer(100, "a1", "stopped")
    cluster.run(600)
    ((silenced, _),) = cluster.records_of(NodeMarkedUnknown)
    ((tainted, _),) = cluster.records_of(NodeTainted)
    ((evicted, _),) = cluster.records_of(PodEvicted)
    assert 140 < silenced < 156
    assert 0 < tainted - silenced < 0.2
    assert evicted == pytest.approx(tainted + 300)
    (pod,) = cluster.pods().values()
    assert pod == ("b1", True)
    assert cluster.taints("a1") == {"unreachable:NoSchedule", "unreachable:NoExecute"}


def test_a_node_that_recovers_in_time_keeps_its_pods():
    """Its pods become ready again, and its taints are removed."""
    cluster = Cluster(node_json("a1"), node_json("b1"), *replica_set(1, ["a1"]))
    cluster.steer(100, "a1", "stopped")
    cluster.steer(400, "a1", None)
    assert cluster.run(200).pods() == {"web-0": ("a1", False)}
    assert cluster.run(410).pods() == {"web-0": ("a1", True)}
    assert cluster.taints("a1") == set()
    assert cluster.run(3_600).records_of(PodEvicted) == []


def test_a_paused_kubelet_sends_no_heartbeats_like_a_stopped_machine():
    cluster = Cluster(node_json("a1"), node_json("b1"), *replica_set(1, ["a1"]))
    cluster.steer(100, "a1", "paused")
    assert len(cluster.run(200).records_of(NodeTainted)) == 1


def test_a_node_with_a_slow_kubelet_flaps():
    """It is Unknown after each grace period, and ready after each renewal."""
    cluster = Cluster(node_json("a1"), node_json("b1"))
    cluster.steer(100, "a1", "slow 70s")
    silenced = [at for at, _ in cluster.run(1_000).records_of(NodeMarkedUnknown)]
    assert len(silenced) == 13
    assert {round(b - a) for a, b in pairwise(silenced)} == {70}


def test_pods_are_evicted_from_a_node_that_reports_not_ready():
    """NoSchedule is added immediately, NoExecute when the queue accepts it; no pod is marked."""
    cluster = Cluster(node_json("a1"), node_json("b1"), *replica_set(1, ["a1"]))
    cluster.steer(101, "a1", "not-ready")
    cluster.run(104)
    assert cluster.taints("a1") == {"not-ready:NoSchedule"}
    cluster.run(110)
    assert cluster.taints("a1") == {"not-ready:NoSchedule", "not-ready:NoExecute"}
    assert cluster.pods() == {"web-0": ("a1", True)}
    (pod,) = cluster.run(500).pods().values()
    assert pod == ("b1", True)


def test_a_node_under_pressure_takes_no_new_pods():
    """It is tainted, and its pods are kept."""
    cluster = Cluster(node_json("a1", annotation="memory-pressure"), *replica_set(2, ["a1"]))
    assert cluster.run(500).taints("a1") == {"memory-pressure:NoSchedule"}
    assert sorted(cluster.pods().values()) == [("", False), ("a1", True)]


def test_a_loaded_unknown_node_stays_unknown_until_it_is_set_to_run():
    cluster = Cluster(node_json("a1", ready="Unknown"), node_json("b1"), *replica_set(1, ["a1"]))
    cluster.steer(200, "a1", "running")
    assert cluster.run(10).taints("a1") == {"unreachable:NoSchedule", "unreachable:NoExecute"}
    assert cluster.run(210).taints("a1") == set()
    assert cluster.run(900).records_of(PodEvicted) == []


def test_a_node_without_status_becomes_ready():
    """The simulated kubelet registers the node."""
    cluster = Cluster(node_json("a1", ready=None), *replica_set(1, ["a1"]))
    assert cluster.run(600).taints("a1") == set()
    assert cluster.pods() == {"web-0": ("a1", True)}


def daemon_set():
    labels = {"app": "agent"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def test_daemon_set_pods_stay_on_an_unreachable_node():
    """The pods tolerate the taints of the node forever, and become ready again when it recovers."""
    cluster = Cluster(node_json("a1"), node_json("b1"), daemon_set())
    before = cluster.run(50).pods()
    assert {ready for _, ready in before.values()} == {True}
    cluster.steer(100, "a1", "stopped")
    cluster.steer(2_000, "a1", None)
    assert sorted(ready for _, ready in cluster.run(1_999).pods().values()) == [False, True]
    assert cluster.run(2_100).pods() == before
    assert cluster.records_of(PodEvicted) == []


def old_mode(*flags):
    config = config_of_flags(dict(flags), V1_16)
    return {name: getattr(config, name) for name in type(config).__slots__}


def test_the_older_mode_deletes_pods_after_a_timeout():
    """After the timeout since the last heartbeat, pods are deleted without a NoExecute taint."""
    options = old_mode(
        ("feature-gates", "TaintBasedEvictions=false"), ("pod-eviction-timeout", "2m")
    )
    cluster = Cluster(
        node_json("a1"), node_json("b1"), *replica_set(1, ["a1"]), **options | TAKING_OVER
    )
    cluster.steer(100, "a1", "stopped")
    cluster.run(600)
    ((silenced, _),) = cluster.records_of(NodeMarkedUnknown)
    ((evicted, _),) = cluster.records_of(PodEvicted)
    assert 130 < silenced < 146
    assert 90 + 120 < evicted < 106 + 126
    assert cluster.taints("a1") == {"unreachable:NoSchedule"}
    assert list(cluster.pods().values()) == [("b1", True)]


def test_without_the_taint_manager_pods_are_deleted_after_the_timeout():
    options = old_mode(("enable-taint-manager", "false"), ("pod-eviction-timeout", "2m"))
    cluster = Cluster(
        node_json("a1"), node_json("b1"), *replica_set(1, ["a1"]), **options | TAKING_OVER
    )
    cluster.steer(100, "a1", "stopped")
    cluster.run(600)
    ((evicted, _),) = cluster.records_of(PodEvicted)
    assert 90 + 120 < evicted < 106 + 126
    assert cluster.taints("a1") == {"unreachable:NoSchedule"}
    assert list(cluster.pods().values()) == [("b1", True)]


def test_no_pod_is_evicted_while_all_zones_are_disrupted():
    """At first, one node of a zone may be tainted; then evictions stop until a zone recovers."""
    nodes = [node_json(name) for name in ("a1", "a2", "b1")]
    cluster = Cluster(*nodes, *replica_set(3, ["a1", "a2", "b1"]))
    for name in ("a1", "a2", "b1"):
        cluster.steer(100, name, "stopped")
    cluster.run(2_000)
    assert cluster.records_of(PodEvicted) == []
    assert all(cluster.taints(name) == {"unreachable:NoSchedule"} for name in ("a1", "a2", "b1"))
    tainted = len(cluster.records_of(NodeTainted))
    assert tainted <= 2
    cluster.steer(2_000, "b1", None)
    cluster.run(2_600)
    assert min(at for at, _ in cluster.records_of(NodeTainted)[tainted:]) > 2_000
    assert {node for node, _ in cluster.pods().values()} == {"b1"}


def test_pods_of_a_deleted_node_are_garbage_collected():
    """They are deleted in the second pass without the node, at most a minute later."""
    cluster = Cluster(node_json("a1"), node_json("b1"), *replica_set(1, ["a1"]))
    cluster.world.at(START + seconds(100), lambda store, now: store.delete(NODE, "", "a1", now))
    cluster.run(161)
    assert list(cluster.pods().values()) == [("b1", True)]


def test_every_renewal_is_written_for_another_node_lifecycle_controller():
    """Other controllers do not read the annotation with the renewal interval."""
    config = EngineConfig(start=START)
    engine = build_engine(config, SilentReporter(), without=["node-lifecycle"])
    world = SimulatedWorld(engine, start=START)
    world.load([node_json("a1")])
    world.run(START + seconds(95))
    (lease,) = world.store.list(LEASE)
    assert "annotations" not in lease["metadata"]
    assert START + seconds(85) < parse_timestamp(lease["spec"]["renewTime"]) <= world.now
