"""An event wakes equal pods as if each of them were examined separately."""

from __future__ import annotations

import pytest

from fairlead.api.json import Json
from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind, wakes_alike
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.random_cluster import Chance

ALIKE = {"matchLabels": {"app": "a"}}
TOLERANT = {"tolerations": [{"key": "k", "operator": "Exists"}]}
SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": ALIKE,
        }
    ]
}
APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": ALIKE, "topologyKey": HOSTNAME}
            ]
        }
    }
}
CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
SPECS: tuple[Json, ...] = ({}, TOLERANT, SPREAD, APART, CLAIM, {"nodeSelector": {"disk": "ssd"}})
PLUGINS = (
    "NodeResourcesFit",
    "TaintToleration",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeAffinity",
    "NodePorts",
    "NodeUnschedulable",
    "VolumeRestrictions",
    "unknown",
)


def random_pod(chance, name, node=""):
    return make_pod(
        name,
        node=node,
        namespace=chance.of(["default", "other"]),
        labels={"app": chance.of("ab")},
        priority=chance.of([0, 5]),
        requests={"cpu": chance.of(["1", "3"])},
        host_ports=chance.of([(), (80,)]),
        terminating=chance.one_in(5),
        spec=chance.of(SPECS),
    )


def random_node(chance):
    return make_node(
        "n1",
        labels={HOSTNAME: "n1", ZONE: chance.of(["z1", "z2"]), "disk": chance.of(["ssd", "hdd"])},
        taints=chance.some(["k=v:NoSchedule", "other:NoExecute"], 2),
        unschedulable=chance.one_in(3),
        cpu=chance.of([2, 4]),
    )


def random_event(chance, waiting):
    kind = chance.of(
        [
            EventKind.ASSIGNED_POD_ADD,
            EventKind.ASSIGNED_POD_DELETE,
            EventKind.NODE_ADD,
            EventKind.NODE_TAINT,
            EventKind.NODE_LABEL,
            EventKind.FLUSH,
        ]
    )
    limit = chance.of([None, None, 3])
    if kind is EventKind.NODE_ADD:
        return ClusterEvent(kind, None, random_node(chance), limit)
    if kind in (EventKind.NODE_TAINT, EventKind.NODE_LABEL):
        return ClusterEvent(kind, random_node(chance), random_node(chance), limit)
    moved = waiting.info(random_pod(chance, "moved", node="n1"))
    if kind is EventKind.ASSIGNED_POD_ADD:
        return ClusterEvent(kind, None, moved, limit)
    return ClusterEvent(kind, moved, None, limit)


@pytest.mark.parametrize("seed", range(25))
def test_equal_pods_are_woken_as_if_each_was_examined(waiting, seed):
    chance, queue = Chance(seed), waiting.queue
    for number in range(40):
        pod = random_pod(chance, f"p{number}")
        queue.add(waiting.info(pod), 0)
    pods = [queue.pop(0) for _ in range(40)]
    for _ in range(20):
        plugins = tuple(chance.some(PLUGINS, 3))
        for queued in pods:
            queued.plugins = plugins
        event = random_event(chance, waiting)
        expected = [queued for queued in pods if queue._is_woken(queued, event)]
        assert queue._woken_among(plugins, pods, event) == expected


def test_a_new_version_of_a_pod_is_examined_again(waiting):
    """For example, it now tolerates a taint."""
    queue, plugins = waiting.queue, ("TaintToleration",)
    for name in "ab":
        waiting.add(name)
        waiting.fail(0, plugins)
    pods = [waiting.find(name) for name in "ab"]
    tainted = make_node("n", taints=["k=v:NoSchedule"])
    event = ClusterEvent(EventKind.NODE_ADD, None, tainted)
    assert queue._woken_among(plugins, pods, event) == []
    pods[1].info = waiting.info(make_pod("b", spec=TOLERANT))
    assert queue._woken_among(plugins, pods, event) == [pods[1]]


class Hint:
    """A plugin with a QueueingHint."""

    def is_woken_by(self, pod, event):
        return True


class AlikeHint(Hint):
    wakes_alike = True


@pytest.mark.parametrize(
    ("plugin", "expected"), [(None, True), (object(), True), (Hint(), False), (AlikeHint(), True)]
)
def test_only_plugins_that_wake_equal_pods_alike_are_called_once(plugin, expected):
    """A plugin without a hint is woken by every relevant event."""
    assert wakes_alike(plugin) is expected
