"""PodTopologySpread: the events after which a pod is retried."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind, wakes

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WEB, DB = {"app": "web"}, {"app": "db"}
BOTH = {ZONE: "a", HOST: "h"}
TAINT = {"key": "k", "effect": "NoSchedule"}


@pytest.fixture
def plugin(scene):
    return scene.plugin("PodTopologySpread")


def spread(key=ZONE, selector=WEB, when="DoNotSchedule", **more):
    """A hard constraint."""
    found = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, **more}
    return {**found, "labelSelector": {"matchLabels": selector}}


def waiting(scene, *constraints):
    """Return a pod that was rejected because of its constraints."""
    return scene.incoming(labels=WEB, topologySpreadConstraints=list(constraints))


def node(labels, *taints):
    """A node with those labels only."""
    meta = {"name": "n", "labels": labels}
    return decode(
        {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"taints": list(taints)}}
    )


@pytest.mark.parametrize("kind", [EventKind.ASSIGNED_POD_ADD, EventKind.ASSIGNED_POD_DELETE])
@pytest.mark.parametrize(
    ("case", "more", "expected"),
    [
        ("of the namespace that a constraint selects", {"labels": WEB}, True),
        ("that the other constraint selects", {"labels": DB}, True),
        ("that none selects", {"labels": {"app": "x"}}, False),
        ("of another namespace", {"labels": WEB, "namespace": "other"}, False),
        ("that is terminating", {"labels": WEB, "leaving": True}, True),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_added_or_deleted_pod_may_reduce_the_skew(scene, plugin, kind, case, more, expected):
    """`case` states the pod that wakes, or does not wake, the rejected pod."""
    pod = waiting(scene, spread(), spread(HOST, DB))
    moved = scene.incoming("moved", node="a", **more)
    added = kind is EventKind.ASSIGNED_POD_ADD
    event = ClusterEvent(kind, None if added else moved, moved if added else None)
    assert wakes(plugin, pod, event) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(WEB, DB, True), (DB, WEB, True), (WEB, {**WEB, "x": "y"}, False), (DB, {}, False)],
)
@pytest.mark.parametrize("kind", [EventKind.ASSIGNED_POD_LABEL, EventKind.POD_LABEL])
def test_changed_labels_wake_the_pod_if_they_change_a_match(
    scene, plugin, kind, before, after, expected
):
    """Labels of placed pods and of the pod itself."""
    pod = waiting(scene, spread())
    old, new = (scene.incoming("other", node="a", labels=labels) for labels in (before, after))
    assert wakes(plugin, pod, ClusterEvent(kind, old, new)) is expected


@pytest.mark.parametrize(("policy", "expected"), [("Honor", True), ("Ignore", False)])
def test_a_new_toleration_wakes_the_pod_if_taints_are_honored(scene, plugin, policy, expected):
    """More nodes may count."""
    pod = waiting(scene, spread(nodeTaintsPolicy=policy))
    assert wakes(plugin, pod, ClusterEvent(EventKind.POD_TOLERATION, pod, pod)) is expected


@pytest.mark.parametrize(
    ("case", "before", "after", "expected"),
    [
        ("added with all keys", None, node(BOTH), True),
        ("added without one of them", None, node({ZONE: "a"}), False),
        ("deleted with all keys", node(BOTH), None, True),
        ("deleted without one of them", node({ZONE: "a"}), None, False),
        ("begins to have all keys", node({ZONE: "a"}), node(BOTH), True),
        ("ceases to have all keys", node(BOTH), node({ZONE: "a"}), True),
        ("moves", node(BOTH), node({**BOTH, ZONE: "b"}), True),
        ("gets an unrelated label", node(BOTH), node({**BOTH, "x": "y"}), False),
        ("gets a taint", node(BOTH), node(BOTH, TAINT), True),
        ("gets a taint, but lacks a key", node({ZONE: "a"}), node({ZONE: "a"}, TAINT), False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_node_that_changes_the_domains_may_wake_the_pod(
    scene, plugin, case, before, after, expected
):
    """`case` states the change of a node that wakes, or does not wake, the pod."""
    pod = waiting(scene, spread(), spread(HOST))
    kind = {
        (False, True): EventKind.NODE_ADD,
        (True, False): EventKind.NODE_DELETE,
    }.get((before is not None, after is not None), EventKind.NODE_TAINT)
    assert wakes(plugin, pod, ClusterEvent(kind, before, after)) is expected


def test_soft_constraints_wake_no_pods(scene, plugin):
    """They do not reject pods."""
    pod = waiting(scene, spread(), spread(HOST, DB, when="ScheduleAnyway"))
    moved = scene.incoming("moved", node="a", labels=DB)
    assert not wakes(plugin, pod, ClusterEvent(EventKind.ASSIGNED_POD_ADD, None, moved))
