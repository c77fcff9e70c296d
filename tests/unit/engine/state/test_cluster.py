"""Cluster: the known pods and nodes, with observed, assumed and reverted changes."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import Bind, ObjectRef
from fairlead.engine.core.stimulus import CommandSucceeded, ObjectChanged, ObjectsLoaded
from fairlead.engine.state.cluster import NodeChange, PodsLoaded
from fairlead.testing.builders import make_budget, make_node, make_pod

WAITING = make_pod("a", requests={"cpu": "1"})
BOUND = make_pod("a", node="n1", requests={"cpu": "1"})


@pytest.fixture
def nodes(believer):
    believer.put(make_node("n1"), make_node("n2"))
    return believer


@pytest.fixture
def assumed(nodes):
    """The pod `a` is pending, and assumed on n1."""
    nodes.put(WAITING)
    nodes.cluster.assume(nodes.known("default/a"), "n1")
    return nodes


def versions(change):
    """Return the old and new versions in a change."""
    if isinstance(change, NodeChange):
        return change.old, change.new
    return tuple(side and side.pod for side in (change.old, change.new))


# --- what happened ---------------------------------------------------------------------------


def test_changes_have_the_old_and_the_new_version(nodes):
    """Only those of the last stimulus, so that controllers can compare them."""
    assert [versions(c) for c in nodes.put(WAITING)] == [(None, WAITING)]
    assert [versions(c) for c in nodes.put(BOUND)] == [(WAITING, BOUND)]
    assert [versions(c) for c in nodes.gone(BOUND)] == [(BOUND, None)]
    assert [versions(c) for c in nodes.gone(make_node("n1"))] == [(make_node("n1"), None)]
    nodes.cluster.apply(CommandSucceeded(Bind(ObjectRef("Pod", "default", "a"), "n1")))
    assert nodes.cluster.changes == []


@pytest.mark.parametrize("gone", [make_pod("x"), make_node("x"), make_budget("x", {}, allowed=0)])
def test_unknown_objects_may_be_deleted(believer, gone):
    """A watch may begin after the object was created."""
    assert believer.gone(gone) == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_is_not_counted(nodes, phase):
    """Whether it is loaded as finished or finishes later; its resources are free at once."""
    finished = make_pod("a", node="n1", requests={"cpu": "1"}, status={"phase": phase})
    assert nodes.put(finished) == []
    nodes.put(BOUND)
    assert [versions(c) for c in nodes.put(finished)] == [(BOUND, None)]
    assert (nodes.on("n1"), nodes.requested("n1"), nodes.cluster.pods) == ([], 0, {})


def test_nodes_are_loaded_before_pods(believer):
    """A load may list them in any order; the order of pods is kept."""
    pods = [make_pod(name, node="n1") for name in ("c", "a", "b")]
    believer.cluster.apply(ObjectsLoaded([*pods, make_node("n1")]))
    loaded = [c for c in believer.cluster.changes if isinstance(c, PodsLoaded)]
    keys = [change.new.key for one in loaded for change in one.changes()]
    assert keys == ["default/c", "default/a", "default/b"]
    assert isinstance(believer.cluster.changes[0], NodeChange)
    assert believer.on("n1") == ["default/a", "default/b", "default/c"]


def test_a_pod_on_an_unknown_node_is_counted_when_the_node_is_added(believer):
    """And only once if the pod has changed before."""
    believer.put(BOUND, make_pod("a", node="n1", requests={"cpu": "2"}), make_pod("b", node="n1"))
    believer.gone(make_pod("b", node="n1"))
    believer.put(make_node("n1"))
    assert (believer.on("n1"), believer.requested("n1")) == (["default/a"], 2000)


def test_a_recreated_node_has_its_pods_again(nodes):
    """The pods are still bound to it, until they are deleted."""
    nodes.put(BOUND, make_pod("b", node="n1"))
    nodes.gone(make_node("n1"))
    assert sorted(nodes.cluster.pods) == ["default/a", "default/b"]
    nodes.gone(make_pod("b", node="n1"))
    nodes.put(make_node("n1", cpu="8"))
    assert (nodes.on("n1"), nodes.requested("n1")) == (["default/a"], 1000)
    assert nodes.table.allocatable[0, nodes.node("n1").row] == 8000


def test_a_recreated_pod_is_a_new_pod(nodes):
    """There are two changes: the deletion of the old pod and the addition of the new one."""
    nodes.put(BOUND)
    successor = make_pod("a", uid="other", requests={"cpu": "3"})
    assert [versions(c) for c in nodes.put(successor)] == [(BOUND, None), (None, successor)]
    assert (nodes.on("n1"), nodes.requested("n1")) == ([], 0)


@pytest.mark.parametrize(
    ("newer", "milli_cpu"),
    [
        (make_pod("a", node="n1", requests={"cpu": "3"}), 3000),
        (make_pod("a", node="n1", requests={"cpu": "1"}, labels={"x": "y"}), 1000),
        (make_pod("a", node="n1", requests={"cpu": "1"}, terminating=True), 1000),
    ],
    ids=["resized", "relabelled", "told to go"],
)
def test_a_newer_version_replaces_the_older_version(nodes, newer, milli_cpu):
    """Only one version counts; a terminating pod still uses its resources."""
    nodes.put(BOUND, newer)
    assert (nodes.on("n1"), nodes.requested("n1")) == (["default/a"], milli_cpu)
    (found,) = nodes.node("n1").pods.values()
    assert found.pod is newer


# --- what was decided ------------------------------------------------------------------------


def test_an_assumed_pod_uses_resources(assumed):
    """Before the binding is confirmed."""
    pod = assumed.known("default/a")
    assert (assumed.on("n1"), assumed.requested("n1")) == (["default/a"], 1000)
    assert (assumed.cluster.is_assumed(pod), assumed.cluster.node_of(pod)) == (True, "n1")


def test_a_confirmed_pod_is_no_longer_assumed(assumed):
    """It is counted once."""
    assert [versions(c) for c in assumed.put(BOUND)] == [(WAITING, BOUND)]
    assert not assumed.cluster.is_assumed(assumed.known("default/a"))
    assert (assumed.on("n1"), assumed.requested("n1")) == (["default/a"], 1000)
    assumed.gone(BOUND)
    assert assumed.on("n1") == []


def test_forgetting_reverts_the_assumption(assumed):
    """The pod is known and pending."""
    assumed.cluster.forget(assumed.known("default/a"))
    assert (assumed.on("n1"), assumed.requested("n1")) == ([], 0)
    assert assumed.cluster.node_of(assumed.known("default/a")) == ""


def test_forgetting_twice_or_after_the_binding_does_nothing(assumed):
    """A Bind may fail after another client has bound the pod."""
    pod = assumed.known("default/a")
    assumed.put(make_pod("a", node="n2", requests={"cpu": "1"}))
    assumed.cluster.forget(pod)
    assumed.cluster.forget(assumed.known("default/a"))
    assert (assumed.on("n1"), assumed.on("n2")) == ([], ["default/a"])


def test_a_pod_bound_to_another_node_by_a_client_counts_there(assumed):
    """It does not count on the node where it was assumed."""
    assumed.put(make_pod("a", node="n2", requests={"cpu": "1"}))
    assert (assumed.on("n1"), assumed.on("n2"), assumed.requested("n1")) == ([], ["default/a"], 0)


@pytest.mark.parametrize("cpu", ["1", "2"], ids=["same shape", "resized"])
def test_an_update_without_node_name_keeps_the_assumption(assumed, cpu):
    """The update was made before the Bind."""
    newer = make_pod("a", requests={"cpu": cpu}, labels={"new": "label"})
    assumed.put(newer)
    assert (assumed.on("n1"), assumed.requested("n1")) == (["default/a"], int(cpu) * 1000)
    assumed.cluster.forget(assumed.known("default/a"))
    assert (assumed.on("n1"), assumed.requested("n1")) == ([], 0)


def test_forgetting_works_with_the_assumed_version_after_an_update(assumed):
    """The scheduler has the assumed version; the table has a newer one."""
    pod = assumed.known("default/a")
    assumed.put(make_pod("a", requests={"cpu": "2"}))
    assumed.cluster.forget(pod)
    assert (assumed.on("n1"), assumed.requested("n1")) == ([], 0)


def test_the_deletion_of_an_assumed_pod_frees_its_resources(assumed):
    """The later failure of its Bind changes nothing."""
    pod = assumed.known("default/a")
    assumed.gone(WAITING)
    assert (assumed.on("n1"), assumed.cluster.is_assumed(pod)) == ([], False)
    assumed.cluster.forget(pod)
    assert assumed.requested("n1") == 0


def test_a_pod_deleted_before_its_assumption_can_be_forgotten(nodes):
    """A cycle may end after the deletion of its pod."""
    nodes.put(WAITING)
    pod = nodes.known("default/a")
    nodes.gone(WAITING)
    nodes.cluster.assume(pod, "n1")
    assert nodes.requested("n1") == 1000
    nodes.cluster.forget(pod)
    assert (nodes.on("n1"), nodes.requested("n1")) == ([], 0)


def test_forgetting_a_pod_does_not_affect_its_recreated_pod(assumed):
    """Both pods have the same name; the late failure of the first keeps the second assumed."""
    old = assumed.known("default/a")
    assumed.put(make_pod("a", uid="other", requests={"cpu": "3"}))
    assumed.cluster.assume(assumed.known("default/a"), "n1")
    assumed.cluster.forget(old)
    assert (assumed.on("n1"), assumed.requested("n1")) == (["default/a"], 3000)
    assumed.put(make_pod("a", uid="other", node="n1", requests={"cpu": "3"}))
    assert assumed.requested("n1") == 3000


def test_the_deletion_of_the_node_of_an_assumed_pod(assumed):
    """Forgetting works without the node; the pod counts again if the node is recreated first."""
    pod = assumed.known("default/a")
    assumed.gone(make_node("n1"))
    assumed.put(make_node("n1"))
    assert assumed.on("n1") == ["default/a"]
    assumed.gone(make_node("n1"))
    assumed.cluster.forget(pod)
    assumed.put(make_node("n1"))
    assert assumed.on("n1") == []


def test_a_pod_may_be_assumed_on_a_deleted_node(nodes):
    """A cycle may end after the deletion of its node."""
    nodes.put(WAITING)
    nodes.gone(make_node("n1"))
    nodes.cluster.assume(nodes.known("default/a"), "n1")
    nodes.put(make_node("n1"))
    assert nodes.on("n1") == ["default/a"]


# --- beside nodes and pods -------------------------------------------------------------------


def test_budgets_are_listed_by_namespace_and_name(believer):
    """In any order of arrival; a change of one budget changes the version of all."""
    related = believer.cluster.related
    versions = [related.budgets.version]
    for budget in (
        make_budget("b", {"x": "y"}, allowed=1),
        make_budget("a", {"x": "y"}, allowed=1),
        make_budget("a", {"x": "y"}, allowed=0),
    ):
        believer.put(budget)
        versions.append(related.budgets.version)
    found = [(b.key, b.status.disruptions_allowed) for b in believer.cluster.budgets()]
    assert found == [("default/a", 0), ("default/b", 1)]
    assert len(set(versions)) == 4
    believer.gone(make_budget("b", {}, allowed=0))
    assert [b.key for b in believer.cluster.budgets()] == ["default/a"]


def test_applying_the_same_version_again_changes_no_sum(nodes):
    """Updates may be delivered twice."""
    for _ in range(3):
        nodes.cluster.apply(ObjectChanged(BOUND))
    assert nodes.requested("n1") == 1000
