"""Cluster: what is believed about pods and nodes, told, decided and taken back."""

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
    """`a` waits and is assumed on n1."""
    nodes.put(WAITING)
    nodes.cluster.assume(nodes.known("default/a"), "n1")
    return nodes


def told(change):
    """Object versions of a change."""
    if isinstance(change, NodeChange):
        return change.old, change.new
    return tuple(side and side.pod for side in (change.old, change.new))


# --- what happened ---------------------------------------------------------------------------


def test_changes_have_both_versions(nodes):
    """Controllers react to the difference; the last stimulus' only."""
    assert [told(c) for c in nodes.put(WAITING)] == [(None, WAITING)]
    assert [told(c) for c in nodes.put(BOUND)] == [(WAITING, BOUND)]
    assert [told(c) for c in nodes.gone(BOUND)] == [(BOUND, None)]
    assert [told(c) for c in nodes.gone(make_node("n1"))] == [(make_node("n1"), None)]
    nodes.cluster.apply(CommandSucceeded(Bind(ObjectRef("Pod", "default", "a"), "n1")))
    assert nodes.cluster.changes == []


@pytest.mark.parametrize("gone", [make_pod("x"), make_node("x"), make_budget("x", {}, allowed=0)])
def test_what_was_never_there_can_go(believer, gone):
    """A watch may begin in the middle."""
    assert believer.gone(gone) == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_does_not_exist(nodes, phase):
    """Neither from the start nor later on; its room is free at once."""
    finished = make_pod("a", node="n1", requests={"cpu": "1"}, status={"phase": phase})
    assert nodes.put(finished) == []
    nodes.put(BOUND)
    assert [told(c) for c in nodes.put(finished)] == [(BOUND, None)]
    assert (nodes.on("n1"), nodes.requested("n1"), nodes.cluster.pods) == ([], 0, {})


def test_nodes_are_taken_in_before_pods(believer):
    """A snapshot may list them in any order; among pods the order stays."""
    pods = [make_pod(name, node="n1") for name in ("c", "a", "b")]
    believer.cluster.apply(ObjectsLoaded([*pods, make_node("n1")]))
    loaded = [c for c in believer.cluster.changes if isinstance(c, PodsLoaded)]
    keys = [change.new.key for one in loaded for change in one.changes()]
    assert keys == ["default/c", "default/a", "default/b"]
    assert isinstance(believer.cluster.changes[0], NodeChange)
    assert believer.on("n1") == ["default/a", "default/b", "default/c"]


def test_a_pod_on_an_unknown_node_is_counted_when_the_node_is_added(believer):
    """And not twice if the pod changed meanwhile."""
    believer.put(BOUND, make_pod("a", node="n1", requests={"cpu": "2"}), make_pod("b", node="n1"))
    believer.gone(make_pod("b", node="n1"))
    believer.put(make_node("n1"))
    assert (believer.on("n1"), believer.requested("n1")) == (["default/a"], 2000)


def test_a_node_goes_and_comes_back_with_its_pods(nodes):
    """Its pods are still bound to it, until they are deleted."""
    nodes.put(BOUND, make_pod("b", node="n1"))
    nodes.gone(make_node("n1"))
    assert sorted(nodes.cluster.pods) == ["default/a", "default/b"]
    nodes.gone(make_pod("b", node="n1"))
    nodes.put(make_node("n1", cpu="8"))
    assert (nodes.on("n1"), nodes.requested("n1")) == (["default/a"], 1000)
    assert nodes.table.allocatable[0, nodes.node("n1").row] == 8000


def test_a_successor_of_the_same_name_is_another_pod(nodes):
    """Two changes are told: the old one went, the new one came."""
    nodes.put(BOUND)
    successor = make_pod("a", uid="other", requests={"cpu": "3"})
    assert [told(c) for c in nodes.put(successor)] == [(BOUND, None), (None, successor)]
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
def test_a_newer_version_takes_the_place_of_the_older(nodes, newer, milli_cpu):
    """Never beside it; a terminating pod still takes its room."""
    nodes.put(BOUND, newer)
    assert (nodes.on("n1"), nodes.requested("n1")) == (["default/a"], milli_cpu)
    (found,) = nodes.node("n1").pods.values()
    assert found.pod is newer


# --- what was decided ------------------------------------------------------------------------


def test_an_assumed_pod_takes_room(assumed):
    """It counts before the binding is confirmed."""
    pod = assumed.known("default/a")
    assert (assumed.on("n1"), assumed.requested("n1")) == (["default/a"], 1000)
    assert (assumed.cluster.is_assumed(pod), assumed.cluster.node_of(pod)) == (True, "n1")


def test_confirmed_is_assumed_no_more(assumed):
    """And counted once."""
    assert [told(c) for c in assumed.put(BOUND)] == [(WAITING, BOUND)]
    assert not assumed.cluster.is_assumed(assumed.known("default/a"))
    assert (assumed.on("n1"), assumed.requested("n1")) == (["default/a"], 1000)
    assumed.gone(BOUND)
    assert assumed.on("n1") == []


def test_forgotten_is_as_if_never_assumed(assumed):
    """The pod is known and waits."""
    assumed.cluster.forget(assumed.known("default/a"))
    assert (assumed.on("n1"), assumed.requested("n1")) == ([], 0)
    assert assumed.cluster.node_of(assumed.known("default/a")) == ""


def test_forgetting_twice_or_too_late_does_nothing(assumed):
    """A refusal may come after another client has bound the pod."""
    pod = assumed.known("default/a")
    assumed.put(make_pod("a", node="n2", requests={"cpu": "1"}))
    assumed.cluster.forget(pod)
    assumed.cluster.forget(assumed.known("default/a"))
    assert (assumed.on("n1"), assumed.on("n2")) == ([], ["default/a"])


def test_a_pod_bound_by_others_elsewhere_moves_there(assumed):
    """Nothing of it stays where it was assumed."""
    assumed.put(make_pod("a", node="n2", requests={"cpu": "1"}))
    assert (assumed.on("n1"), assumed.on("n2"), assumed.requested("n1")) == ([], ["default/a"], 0)


@pytest.mark.parametrize("cpu", ["1", "2"], ids=["same shape", "resized"])
def test_an_update_that_overtakes_the_bind_takes_no_room_away(assumed, cpu):
    """It does not know of the node yet."""
    newer = make_pod("a", requests={"cpu": cpu}, labels={"new": "label"})
    assumed.put(newer)
    assert (assumed.on("n1"), assumed.requested("n1")) == (["default/a"], int(cpu) * 1000)
    assumed.cluster.forget(assumed.known("default/a"))
    assert (assumed.on("n1"), assumed.requested("n1")) == ([], 0)


def test_forget_with_the_version_that_was_assumed(assumed):
    """The scheduler remembers the pod as it was; the table has a newer version by now."""
    pod = assumed.known("default/a")
    assumed.put(make_pod("a", requests={"cpu": "2"}))
    assumed.cluster.forget(pod)
    assert (assumed.on("n1"), assumed.requested("n1")) == ([], 0)


def test_a_pod_deleted_while_assumed_leaves_its_room(assumed):
    """The refusal of its binding comes later and changes nothing."""
    pod = assumed.known("default/a")
    assumed.gone(WAITING)
    assert (assumed.on("n1"), assumed.cluster.is_assumed(pod)) == ([], False)
    assumed.cluster.forget(pod)
    assert assumed.requested("n1") == 0


def test_a_pod_deleted_before_it_was_assumed_is_forgotten_all_the_same(nodes):
    """A cycle may end after its pod did."""
    nodes.put(WAITING)
    pod = nodes.known("default/a")
    nodes.gone(WAITING)
    nodes.cluster.assume(pod, "n1")
    assert nodes.requested("n1") == 1000
    nodes.cluster.forget(pod)
    assert (nodes.on("n1"), nodes.requested("n1")) == ([], 0)


def test_a_successor_is_not_taken_for_its_predecessor(assumed):
    """Both had the same name; the late refusal of the one must not cost the other its room."""
    old = assumed.known("default/a")
    assumed.put(make_pod("a", uid="other", requests={"cpu": "3"}))
    assumed.cluster.assume(assumed.known("default/a"), "n1")
    assumed.cluster.forget(old)
    assert (assumed.on("n1"), assumed.requested("n1")) == (["default/a"], 3000)
    assumed.put(make_pod("a", uid="other", node="n1", requests={"cpu": "3"}))
    assert assumed.requested("n1") == 3000


def test_the_node_of_an_assumed_pod_goes(assumed):
    """Forgetting works without the node; if it comes back first, the pod is on it again."""
    pod = assumed.known("default/a")
    assumed.gone(make_node("n1"))
    assumed.put(make_node("n1"))
    assert assumed.on("n1") == ["default/a"]
    assumed.gone(make_node("n1"))
    assumed.cluster.forget(pod)
    assumed.put(make_node("n1"))
    assert assumed.on("n1") == []


def test_assuming_on_a_node_that_is_gone(nodes):
    """A cycle may end after its node did."""
    nodes.put(WAITING)
    nodes.gone(make_node("n1"))
    nodes.cluster.assume(nodes.known("default/a"), "n1")
    nodes.put(make_node("n1"))
    assert nodes.on("n1") == ["default/a"]


# --- beside nodes and pods -------------------------------------------------------------------


def test_budgets_are_listed_by_namespace_and_name(believer):
    """Whatever their order of arrival; a change of one is a new version of them all."""
    related = believer.cluster.related
    versions = [related.budget_version]
    for budget in (
        make_budget("b", {"x": "y"}, allowed=1),
        make_budget("a", {"x": "y"}, allowed=1),
        make_budget("a", {"x": "y"}, allowed=0),
    ):
        believer.put(budget)
        versions.append(related.budget_version)
    found = [(b.key, b.status.disruptions_allowed) for b in believer.cluster.budgets()]
    assert found == [("default/a", 0), ("default/b", 1)]
    assert len(set(versions)) == 4
    believer.gone(make_budget("b", {}, allowed=0))
    assert [b.key for b in believer.cluster.budgets()] == ["default/a"]


def test_apply_is_told_once(nodes):
    """The same version again changes no sum."""
    for _ in range(3):
        nodes.cluster.apply(ObjectChanged(BOUND))
    assert nodes.requested("n1") == 1000
