"""The history of nodes can be reverted from the state at the end to the state at the start."""

from __future__ import annotations

from collections import Counter

import pytest

from fairlead.api.objects import Node, ObjectMeta
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.question import what_if
from fairlead.whatif.run.recorders.cluster_history_recorder import ClusterHistoryRecorder

NODE_A, NODE_B = (Node(metadata=ObjectMeta(name=name)) for name in "ab")


@pytest.fixture
def recorder():
    """A recorder that knows node `a` and a pod on it from the start."""
    recorder = ClusterHistoryRecorder(is_loading=True)
    recorder.update_node(NODE_A, 0, is_serving=True)
    recorder.place("u1", "a", 0)
    recorder.is_loading = False
    return recorder


def pods(end, changes):
    """Return the pods on each node before `changes`; `end` is the state after them."""
    found = Counter(end)
    for one in changes:
        found[one.node, one.pod.key] += -1 if one.is_arrival else 1
    return sorted(found.elements())


def test_reverting_all_changes_gives_the_pods_at_the_start(snapshot, make):
    initial = [make.pod(f"web-{n}", cpu="1", node_name="a", owner="rs") for n in range(2)]
    change = ClusterChange(drain=("a",))
    cluster = snapshot(make.node("a"), make.node("b"), *initial)
    found = what_if(cluster, change, Conditions(seed=7)).changed
    end = Counter((node.name, pod.key) for node in found.nodes for pod in node.pods)
    assert pods(end, []) == [("b", "default/web-0"), ("b", "default/web-1")]
    placements = found.cluster_history.placements
    assert pods(end, placements) == [("a", "default/web-0"), ("a", "default/web-1")]
    assert [one.at for one in placements] == sorted(one.at for one in placements)


def test_a_failed_node_is_out_of_service_until_it_is_back(snapshot, make):
    failures = Failures(fail_node=("a",))
    change = ClusterChange(failures=failures, lasts="2m")
    answer = what_if(snapshot(make.node("a"), make.node("b")), change, Conditions(seed=7))
    history = answer.changed.cluster_history
    assert [(one.node, one.is_serving) for one in history.statuses] == [("a", False), ("a", True)]
    assert history.out_of_service == ()
    assert answer.without.cluster_history.statuses == ()


def test_pods_on_a_node_that_never_existed_are_left_out(snapshot, make):
    cluster = snapshot(make.node("a"), make.pod("lost", node_name="gone"))
    history = what_if(cluster, ClusterChange(), Conditions(seed=7)).changed.cluster_history
    assert history.placements == ()


def test_a_deleted_node_is_kept_without_its_pods(recorder):
    recorder.delete_node(NODE_A, 5)
    history = recorder.history(0, lambda uid: uid)
    assert [node.name for node in history.deleted] == ["a"]
    assert [(one.at, one.pod, one.is_arrival) for one in history.placements] == [(5, "u1", False)]
    assert [(one.at, one.exists) for one in history.statuses] == [(0, True), (5, False)]


def test_pods_that_move_after_a_deletion_leave_their_new_node_with_it(recorder):
    recorder.update_node(NODE_B, 1, is_serving=True)
    recorder.delete_node(NODE_A, 5)
    recorder.place("u1", "b", 6)
    recorder.place("u2", "b", 7)
    recorder.place("u2", "", 8)
    recorder.delete_node(NODE_B, 9)
    history = recorder.history(0, lambda uid: uid)
    assert [(one.at, one.node, one.pod, one.is_arrival) for one in history.placements] == [
        (5, "a", "u1", False),
        (6, "b", "u1", True),
        (7, "b", "u2", True),
        (8, "b", "u2", False),
        (9, "b", "u1", False),
    ]


def test_a_node_that_is_deleted_at_the_start_of_the_history_is_left_out(recorder):
    """Its pods leave it at the same instant; no instant of the history has the node."""
    recorder.delete_node(NODE_A, 7)
    found = recorder.history(7, lambda uid: uid)
    assert (found.deleted, found.placements, found.statuses) == ((), (), ())


def test_a_new_node_is_absent_before_its_creation(recorder):
    recorder.update_node(NODE_B, 5, is_serving=True)
    statuses = recorder.history(2, lambda uid: uid).statuses
    assert [(one.at, one.exists) for one in statuses] == [(2, False), (5, True)]


def test_too_many_placements_are_not_kept(recorder):
    recorder.placements_max = 3
    for at in range(5):
        recorder.place(f"p{at}", "a", at)
    assert recorder.history(0, lambda uid: uid) is None
