"""InterPodAffinity: the events after which a pod is retried."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind, wakes

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WEB, DB = {"app": "web"}, {"app": "db"}


def woken(scene, pod, event):
    """Return whether the plugin, which rejected `pod`, wakes it after `event`."""
    return wakes(scene.plugin("InterPodAffinity"), pod, event)


def term(labels, key=ZONE, **more):
    """A term for pods with `labels`."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **more}


def must(kind, *terms):
    """Return required (anti-)affinity; `kind` is the field."""
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def near(*terms):
    """Required affinity."""
    return must("podAffinity", *terms)


def apart(*terms):
    """Required anti-affinity."""
    return must("podAntiAffinity", *terms)


def node(labels):
    """A node with those labels only."""
    return decode({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}})


TWO = ({"app": "web"}, {"tier": "fe"})


@pytest.mark.parametrize(
    ("case", "affinity", "labels", "expected"),
    [
        ("it matches all affinity terms", near(term(WEB)), WEB, True),
        ("it does not", near(term(WEB)), DB, False),
        ("it matches one of two", near(*map(term, TWO)), WEB, False),
        ("there is no affinity", apart(term(WEB)), WEB, False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_placed_pod_that_matches_affinity_wakes_the_pod(scene, case, affinity, labels, expected):
    """`case` states the pod that wakes, or does not wake, the rejected pod."""
    pod = scene.incoming(affinity=affinity)
    placed = scene.incoming("placed", node="a", labels=labels)
    event = ClusterEvent(EventKind.ASSIGNED_POD_ADD, None, placed)
    assert woken(scene, pod, event) is expected


@pytest.mark.parametrize(
    ("case", "affinity", "gone_labels", "gone_affinity", "expected"),
    [
        ("it matched all anti-affinity terms", apart(term(WEB)), WEB, {}, True),
        ("it matched one of two", apart(*map(term, TWO)), WEB, {}, False),
        ("its anti-affinity meant the pod", {}, DB, apart(term({"app": "asker"})), True),
        ("part of it did", {}, DB, apart(term({"app": "asker"}), term(DB)), False),
        ("it attracted", near(term(WEB)), WEB, {}, False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_deleted_pod_that_matches_anti_affinity_wakes_the_pod(
    scene, case, affinity, gone_labels, gone_affinity, expected
):
    """`case` states the pod that wakes, or does not wake, the rejected pod."""
    pod = scene.incoming(labels={"app": "asker"}, affinity=affinity)
    gone = scene.incoming("gone", node="a", labels=gone_labels, affinity=gone_affinity)
    event = ClusterEvent(EventKind.ASSIGNED_POD_DELETE, gone, None)
    assert woken(scene, pod, event) is expected


@pytest.mark.parametrize(
    ("case", "affinity", "before", "after", "expected"),
    [
        ("begins to attract", near(term(WEB)), DB, WEB, True),
        ("ceases to attract", near(term(WEB)), WEB, DB, False),
        ("attracts as before", near(term(WEB)), WEB, {**WEB, "x": "y"}, False),
        ("ceases to repel", apart(term(WEB)), WEB, DB, True),
        ("begins to repel", apart(term(WEB)), DB, WEB, False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_placed_pod_with_changed_labels_may_wake_the_pod(
    scene, case, affinity, before, after, expected
):
    """`case` states the change that wakes, or does not wake, the rejected pod."""
    pod = scene.incoming(affinity=affinity)
    old = scene.incoming("other", node="a", labels=before)
    new = scene.incoming("other", node="a", labels=after)
    event = ClusterEvent(EventKind.ASSIGNED_POD_LABEL, old, new)
    assert woken(scene, pod, event) is expected


def test_changed_labels_of_the_pod_always_wake_it(scene):
    """The anti-affinity of placed pods may not match the pod any more."""
    pod = scene.incoming()
    event = ClusterEvent(EventKind.POD_LABEL, pod, pod)
    assert woken(scene, pod, event)


@pytest.mark.parametrize(
    ("case", "affinity", "before", "after", "expected"),
    [
        ("new with the key", near(term(WEB)), None, {ZONE: "a"}, True),
        ("new without the key", near(term(WEB)), None, {}, False),
        ("new, and there is anti-affinity", apart(term(WEB)), None, {}, True),
        ("the key is added", near(term(WEB)), {}, {ZONE: "a"}, True),
        ("the key changes", near(term(WEB)), {ZONE: "b"}, {ZONE: "a"}, True),
        ("the key is removed", near(term(WEB)), {ZONE: "b"}, {}, False),
        ("another label changes", near(term(WEB)), {ZONE: "b"}, {ZONE: "b", "x": "y"}, False),
        ("the key of a repellent is added", apart(term(WEB)), {}, {ZONE: "a"}, False),
        ("the key of a repellent changes", apart(term(WEB)), {ZONE: "b"}, {ZONE: "a"}, True),
        ("the key of a repellent is removed", apart(term(WEB)), {ZONE: "b"}, {}, True),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_node_with_a_new_domain_wakes_the_pod(scene, case, affinity, before, after, expected):
    """The topology keys of the terms decide."""
    pod = scene.incoming(affinity=affinity)
    kind = EventKind.NODE_ADD if before is None else EventKind.NODE_LABEL
    event = ClusterEvent(kind, None if before is None else node(before), node(after))
    assert woken(scene, pod, event) is expected


def test_pods_in_selected_namespaces_do_not_wake(scene):
    """Upstream's hint reads no namespace labels, only listed namespaces and `{}`."""
    meta = {"name": "x", "labels": {"team": "t"}}
    scene.put({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    placed = scene.incoming("placed", node="a", labels=WEB, namespace="x")
    event = ClusterEvent(EventKind.ASSIGNED_POD_ADD, None, placed)
    terms = (
        term(WEB, namespaceSelector={"matchLabels": {"team": "t"}}),
        term(WEB, namespaceSelector={}),
        term(WEB, namespaces=["x"]),
        term(WEB),
    )
    answers = [woken(scene, scene.incoming(affinity=near(one)), event) for one in terms]
    assert answers == [False, True, True, False]


def test_changed_taints_always_wake_the_pod(scene):
    """Taints may have excluded new nodes from the plugin; cordons are taints, too."""
    event = ClusterEvent(EventKind.NODE_TAINT, node({}), node({}))
    assert woken(scene, scene.incoming(), event)
    gone = ClusterEvent(EventKind.NODE_DELETE, node({}), None)
    assert not woken(scene, scene.incoming(), gone)
