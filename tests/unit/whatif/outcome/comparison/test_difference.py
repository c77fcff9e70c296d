"""One outcome minus another: which facts are differences."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.outcome.assessment.verdict import verdict_of
from fairlead.whatif.outcome.comparison.difference import difference, moves_within
from fairlead.whatif.outcome.comparison.effect import effect_of
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect
from fairlead.whatif.outcome.run_outcome import (
    Evicted,
    NodeEnd,
    ObjectError,
    PdbBreach,
    PodEnd,
    Preempted,
    RunOutcome,
)
from fairlead.whatif.outcome.workload import WorkloadReadiness, WorkloadRef


def pod(name, node="", **fields):
    started = seconds(fields.pop("started_s")) if "started_s" in fields else None
    return PodEnd(namespace="ns", name=name, node=node, started_at=started, **fields)


def evicted(name, node, at_s=1):
    return Evicted(pod=pod(name, node), node=node, at=seconds(at_s), why="drain")


def preempted(name, node, by_workload=None):
    return Preempted(
        pod=pod(name, node), node=node, at=0, by="ns/by", by_priority=9, rule="r", candidates=1,
        by_workload=by_workload,
    )  # fmt: skip


def outcome(*pods, nodes=("a", "b"), **fields):
    ends = [
        NodeEnd(name=name, zone="", unschedulable=False, allocatable={}, requested={}, pods=())
        for name in nodes
    ]
    facts = {
        "started_at": 0, "ended_at": seconds(60), "settled": True, "preempted": (), "evicted": (),
        "pdb_breaches": (), "undrained": (), "skipped": (), "errors": (), "recurrences": (),
        "allocations": (),
        "priority_names": {}, "samples": (), "choices_among_equals": 0,
    }  # fmt: skip
    pods_by_key = {each.key: each for each in pods}
    return RunOutcome(pods=pods_by_key, nodes=tuple(ends), **{**facts, **fields})


def keys(pods):
    return [each.key for each in pods]


def test_a_rollout_updates_a_pod_whose_predecessor_still_terminates():
    """The first pod is on a dead node; its replacement, on node a, has its key."""
    web = WorkloadRef("Deployment", "ns", "web")
    replacement = pod("p", "a", owner=web, revision="1", is_initial=True)
    rest = pod("p", "b", owner=web, revision="1", is_initial=True, is_terminating=True)
    new = pod("q", "a", owner=web, revision="2")
    found = difference(outcome(replacement), outcome(rest, new))
    assert [(one.before, one.pod) for one in found.updated] == [(replacement, new)]
    assert not found.placed
    assert not found.removed


def test_equal_outcomes_do_not_differ():
    one = outcome(pod("p", "a"), pod("q"), evicted=(evicted("p", "b"),))
    assert difference(one, one).is_empty


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ([], [pod("p", "a")], "placed"),
        ([pod("p")], [pod("p", "a")], "placed"),
        ([pod("p", "a")], [pod("p")], "pending"),
        ([], [pod("p")], "pending"),
        ([pod("p", "a")], [], "removed"),
        ([pod("p")], [], "removed"),
    ],
)
def test_the_end_of_a_pod_is_listed_once(before, after, field):
    found = difference(outcome(*before), outcome(*after))
    assert keys(getattr(found, field)) == ["ns/p"]
    others = {"placed", "pending", "removed", "moved", "preempted", "evicted"} - {field}
    assert not any(getattr(found, other) for other in others)
    assert not found.is_empty


def test_a_pod_on_another_node_has_moved():
    [move] = difference(outcome(pod("p", "a")), outcome(pod("p", "b"))).moved
    assert (move.origin, move.target) == ("a", "b")


def test_a_pod_that_a_failed_node_cannot_end_has_not_moved():
    """Without the change, its replacement runs; with the change, nothing replaces the old pod."""
    left_over = pod("p", "b", is_initial=True, is_terminating=True)
    found = difference(outcome(pod("p", "a")), outcome(left_over))
    assert not found.moved
    assert keys(found.removed) == ["ns/p"]


def test_a_completed_pod_is_neither_placed_nor_removed():
    done = pod("p", "a", phase="Succeeded")
    assert difference(outcome(done), outcome()).is_empty
    assert difference(outcome(), outcome(done)).is_empty


def test_only_additional_displacements_count():
    before = outcome(evicted=(evicted("p", "a"),), preempted=(preempted("q", "a"),))
    after = outcome(
        evicted=(evicted("p", "a", 5), evicted("p", "a", 6), evicted("p", "b")),
        preempted=(preempted("q", "a"), preempted("q", "b")),
    )
    found = difference(before, after)
    assert [(one.node, one.at) for one in found.evicted] == [("a", seconds(6)), ("b", seconds(1))]
    assert [one.node for one in found.preempted] == ["b"]


def test_a_preemptor_that_is_deleted_is_named_by_its_workload():
    web = WorkloadRef("Deployment", "ns", "web")
    changed = outcome(pod("p", "b"), preempted=(preempted("p", "a", web),))
    (row,) = effect_of(outcome(pod("p", "a")), changed).workloads
    assert row.by == ("deploy/ns/web",)


def test_only_additional_breaches_count():
    breach = PdbBreach(pdb="ns/b", pod="ns/p", by="ns/x", at=0)
    found = difference(outcome(pdb_breaches=(breach,)), outcome(pdb_breaches=(breach, breach)))
    assert found.pdb_breaches == (breach,)
    assert not found.is_empty


def test_displaced_pods_were_evicted_or_lost_their_node():
    before = outcome(pod("moved", "a"), pod("waits", "a"), pod("always"), pod("scaled", "a"),
                     pod("evicted", "a"), pod("orphan", "gone"),
                     pod("stays", "gone", started_s=0), nodes=("a", "b", "gone"))  # fmt: skip
    after = outcome(pod("moved", "b"), pod("waits"), pod("always"), pod("new"), pod("evicted", "b"),
                    pod("stays", "b", started_s=9), evicted=(evicted("evicted", "a"),))  # fmt: skip
    found = difference(before, after)
    assert keys(found.displaced) == ["ns/evicted", "ns/stays", "ns/orphan"]
    assert keys(found.elsewhere) == ["ns/moved"]
    assert keys(one.pod for one in found.moved) == ["ns/evicted", "ns/moved", "ns/stays"]


WEB = WorkloadRef("Deployment", "ns", "web")
OLD = {"owner": WEB, "revision": "1", "is_initial": True, "started_s": 0}
NEW = {"owner": WEB, "revision": "1", "started_s": 30}


def test_new_pods_of_both_runs_on_other_nodes_are_not_displaced():
    """The change deletes node c, but one pod was created on c only without the change."""
    before = outcome(pod("old", "a", **OLD), pod("x", "a", **NEW), pod("y", "c", **NEW),
                     nodes=("a", "b", "c"))  # fmt: skip
    back = {**OLD, "is_initial": False, "started_s": 2}
    drained = Evicted(pod=pod("old", "a", **OLD), node="a", at=seconds(1), why="drain")
    after = outcome(pod("old", "b", **back), pod("y", "b", **NEW), pod("z", "b", **NEW),
                    evicted=(drained,))  # fmt: skip
    found = difference(before, after)
    assert keys(found.displaced) == ["ns/old"]
    assert sorted(keys(found.elsewhere)) == ["ns/y", "ns/z"]
    assert not found.placed
    assert not found.removed
    assert found.recovered_after == seconds(2)
    (row,) = effect_of(before, after).workloads
    assert row.short_words == "1 moved (drain), 2 placed elsewhere"


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"evicted": 1}, "1 evicted (drain), 2 moved"),
        ({"evicted": 2}, "2 moved (drain)"),
        ({"evicted": 1, "pending": 1}, "1 pending, 2 moved"),
        (
            {"evicted": 1, "preempted": 1, "moved_by_preemption": 1},
            "1 preempted, 1 evicted (drain), 2 moved",
        ),
    ],
)
def test_the_cause_of_evictions_is_not_stated_for_pods_that_were_not_evicted(counts, words):
    """Pods that were not evicted move, too, for example if their node is deleted."""
    readiness = effect_of(outcome(pod("old", "a", **OLD)), outcome(pod("old", **OLD))).workloads[0]
    effect = WorkloadEffect(
        workload=WEB, readiness=readiness.readiness, moved=2, by=("drain",), **counts
    )
    assert effect.short_words == words


def test_a_narrow_column_names_three_of_the_workloads_that_preempted_pods():
    readiness = effect_of(outcome(pod("old", "a", **OLD)), outcome(pod("old", **OLD))).workloads[0]
    by = tuple(f"deploy/ns/{name}" for name in "vwxyz")
    effect = WorkloadEffect(workload=WEB, readiness=readiness.readiness, preempted=9, by=by)
    assert effect.short_words == ("9 preempted by deploy/ns/v, deploy/ns/w, deploy/ns/x and 2 more")
    assert effect.words == f"9 preempted by {', '.join(by)}"


def test_a_pod_that_was_deleted_and_created_again_is_no_new_pod():
    again = {**OLD, "is_initial": False, "started_s": 2}
    before = outcome(pod("p", "a", **OLD), pod("x", "a", **NEW))
    found = difference(before, outcome(pod("p", "b", **again), pod("x", "b", **NEW)))
    assert keys(found.elsewhere) == ["ns/p", "ns/x"]
    assert keys(found.recreated) == ["ns/p"]
    assert not found.displaced


def test_a_pod_that_only_the_run_without_the_change_moves_stays():
    """For example, the change prevents an autoscaler from removing the node."""
    again = {**OLD, "is_initial": False, "started_s": 2}
    before, after = outcome(pod("q", "b", **again)), outcome(pod("p", "a", **OLD))
    found = difference(before, after)
    assert keys(found.unmoved) == keys(found.elsewhere) == ["ns/p"]
    assert [one.how for one in found.moved] == ["moves only without the change"]
    effect = effect_of(before, after)
    assert effect.workloads[0].short_words == "1 moved only without the change"
    stays = "1 pod of deploy/ns/web stays on its node, and moves only without the change."
    assert verdict_of(effect).first.sentence == stays


@pytest.mark.parametrize("node", ["a", "b"])
def test_pods_that_a_scale_up_creates_do_not_replace_removed_ones(node):
    before = outcome(pod("p", "a", **OLD), pod("q", "a", **OLD))
    found = difference(before, outcome(pod("p", "a", **OLD), pod("r", node, **NEW)))
    assert (keys(found.removed), keys(found.placed)) == (["ns/q"], ["ns/r"])
    assert not found.displaced
    assert not found.moved


def test_pods_of_a_new_revision_replace_removed_ones():
    newer = {**NEW, "revision": "2"}
    before = outcome(pod("p", "a", **OLD), pod("q", "a", **OLD))
    found = difference(before, outcome(pod("r", "b", **newer), pod("s", "b", **newer)))
    assert [(one.before.name, one.pod.name) for one in found.updated] == [("p", "r"), ("q", "s")]
    assert not found.removed


def test_the_running_pods_of_an_incomplete_rollout_replace_removed_ones():
    newer = {**OLD, "is_initial": False, "revision": "2"}
    before = outcome(pod("p", "a", **OLD), pod("q", "b", **OLD))
    found = difference(
        before, outcome(pod("q", "b", **OLD), pod("r", **newer), pod("s", "b", **newer))
    )
    assert [(one.before.name, one.pod.name) for one in found.updated] == [("p", "s")]
    assert keys(found.pending) == ["ns/r"]
    assert not found.placed


@pytest.mark.parametrize("is_evicted", [True, False])
def test_a_pod_with_another_name_replaces_a_displaced_pod(is_evicted):
    """The pod was evicted, or its node was deleted."""
    gone = () if is_evicted else ("c",)
    before = outcome(pod("p", "c", **OLD), nodes=("a", "b", "c"))
    nodes = ("a", "b", "c") if is_evicted else ("a", "b")
    events = (evicted("p", "c"),) if is_evicted else ()
    found = difference(before, outcome(pod("q", "b", **NEW), evicted=events, nodes=nodes))
    assert [(one.origin, one.target) for one in found.moved] == [("c", "b")]
    assert keys(found.displaced) == (["ns/q"] if gone else ["ns/p"])
    assert not found.removed


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_pod_that_was_removed_before_its_node_was_deleted_is_not_displaced(is_lost):
    """For example, an autoscaler removed replicas, then another one removed the empty node."""
    before = outcome(pod("p", "c", **OLD), nodes=("a", "b", "c"))
    lost = frozenset({"ns/p"} if is_lost else ())
    found = difference(before, outcome(pod("q", "b", **NEW), on_deleted_nodes=lost))
    assert keys(found.displaced) == (["ns/q"] if is_lost else [])
    assert keys(found.removed) == ([] if is_lost else ["ns/p"])
    assert keys(found.placed) == ([] if is_lost else ["ns/q"])


@pytest.mark.parametrize(
    ("after", "recovered_s"),
    [
        ([pod("p", "b", started_s=31), pod("q", "a", started_s=99)], 31),  # q is not affected
        ([pod("p", "b"), pod("q", "a")], None),  # p has a node, and is not running yet
        ([pod("p"), pod("q", "a")], None),
        ([pod("q", "a")], None),  # p is not replaced
        ([pod("p", "b", phase="Succeeded"), pod("q", "a")], 0),
    ],
)
def test_the_recovery_time_is_when_the_last_affected_pod_runs(after, recovered_s):
    before = outcome(pod("p", "a"), pod("q", "a"))
    found = difference(before, outcome(*after, evicted=(evicted("p", "a"),)))
    expected = None if recovered_s is None else seconds(recovered_s)
    assert found.recovered_after == expected


@pytest.mark.parametrize(
    ("kind", "wanted", "failed", "fate"),
    [
        pytest.param("Deployment", 1, (), "removed", id="scaled to the remaining pod"),
        pytest.param("Deployment", 2, (), "not_created", id="one is missing"),
        pytest.param("Job", 1, (), "removed", id="a Job with a lower parallelism"),
        pytest.param("Job", 1, (0,), "gone", id="a Job with a failed index"),
        pytest.param("StrimziPodSet", 1, (), "gone", id="no replicas"),
    ],
)
def test_an_evicted_pod_that_its_workload_does_not_want_is_removed(kind, wanted, failed, fate):
    workload = WorkloadRef(kind, "ns", "web")
    left, evictee = pod("left", "a", owner=workload), pod("p", "b", owner=workload)
    ready = WorkloadReadiness(
        wanted=wanted,
        before=2,
        lowest=1,
        lowest_for=None,
        at_end=1,
        failed_indexes=frozenset(failed),
    )
    one = Evicted(pod=evictee, node="b", at=seconds(1), why="Karpenter")
    after = outcome(left, evicted=(one,), workloads={workload: ready})
    found = difference(outcome(left, evictee), after)
    fates = {name: getattr(found, name) for name in ("removed", "gone")}
    fates["not_created"] = tuple(one.pod for one in found.not_created)
    assert {name for name, pods in fates.items() if pods} == {fate}
    assert (found.recovered_after is None) == (fate != "removed")
    assert keys(found.displaced) == ["ns/p"]


@pytest.mark.parametrize(
    ("kind", "wanted", "fate"),
    [
        pytest.param("StatefulSet", 1, "removed", id="a StatefulSet scaled to the remaining pod"),
        pytest.param("StatefulSet", 2, "not_created", id="a StatefulSet waits for another pod"),
        pytest.param("Deployment", 2, "removed", id="a rollout that cannot create new pods"),
    ],
)
def test_a_pod_that_its_stateful_set_deletes_and_still_wants_is_not_created_again(
    kind, wanted, fate
):
    workload = WorkloadRef(kind, "ns", "web")
    left, deleted = pod("web-0", "a", owner=workload), pod("web-1", "b", owner=workload)
    ready = WorkloadReadiness(wanted=wanted, before=2, lowest=1, lowest_for=None, at_end=1)
    found = difference(outcome(left, deleted), outcome(left, workloads={workload: ready}))
    fates = {"removed": found.removed, "not_created": [one.pod for one in found.not_created]}
    assert {name: keys(pods) for name, pods in fates.items() if pods} == {fate: ["ns/web-1"]}
    assert found.gone == found.displaced == ()


@pytest.mark.parametrize(
    ("revision", "wanted", "fate"),
    [
        pytest.param("1", 2, "not_created", id="a quota refuses a pod like the deleted one"),
        pytest.param("2", 2, "removed", id="a quota refuses the pods of a new revision"),
        pytest.param("1", 1, "removed", id="the workload wants only the other pod"),
    ],
)
def test_a_deleted_pod_whose_replacement_is_refused_is_not_created_again(revision, wanted, fate):
    workload = WorkloadRef("Deployment", "ns", "web")
    left, deleted = (pod(name, "a", owner=workload, revision="1") for name in ("web-0", "web-1"))
    ready = WorkloadReadiness(wanted=wanted, before=2, lowest=1, lowest_for=None, at_end=1)
    refused = ObjectError("ReplicaSet ns/web-1", "exceeded quota", 1, workload, revision=revision)
    after = outcome(left, workloads={workload: ready}, errors=(refused,))
    found = difference(outcome(left, deleted), after)
    fates = {"removed": found.removed, "not_created": [one.pod for one in found.not_created]}
    assert {name: keys(pods) for name, pods in fates.items() if pods} == {fate: ["ns/web-1"]}


@pytest.mark.parametrize(
    ("message", "awaited"),
    [
        ("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1", "quota/ns/q"),
        ("denied", ""),
    ],
)
def test_a_refused_pod_waits_for_the_quota_that_refuses_it(message, awaited):
    workload = WorkloadRef("Deployment", "ns", "web")
    ready = WorkloadReadiness(wanted=1, before=1, lowest=0, lowest_for=None, at_end=0)
    refused = ObjectError("ReplicaSet ns/web-1", f"is forbidden: {message}", 1, workload)
    old = pod("web-0", "a", owner=workload)
    left = Evicted(pod=old, node="a", at=seconds(1), why="drain")
    after = outcome(workloads={workload: ready}, errors=(refused,), evicted=(left,))
    [found] = difference(outcome(old), after).not_created
    assert found.awaited == awaited


def test_fewer_replicas_remove_the_pods_with_the_highest_ordinals():
    """The StatefulSet is scaled from 11 to 10 pods, and does not create web-9 again."""
    workload = WorkloadRef("StatefulSet", "ns", "web")
    pods = [pod(f"web-{ordinal}", "a", owner=workload) for ordinal in range(11)]
    ready = WorkloadReadiness(wanted=10, before=11, lowest=9, lowest_for=None, at_end=9)
    found = difference(outcome(*pods), outcome(*pods[:9], workloads={workload: ready}))
    assert [one.pod.name for one in found.not_created] == ["web-9"]
    assert keys(found.removed) == ["ns/web-10"]


@pytest.mark.parametrize(
    ("left", "words"),
    [("a", "1 back on the same node (drain)"), ("b", "1 moved as without the change")],
)
def test_a_displaced_pod_that_ends_on_the_same_node_in_both_runs_has_returned(left, words):
    """The run without the change may also move it to this node, as autoscalers do."""
    here = pod("p", "a", owner=WorkloadRef("Deployment", "ns", "web"))
    changed = outcome(here, evicted=(Evicted(pod=here, node=left, at=1, why="drain"),))
    (effect,) = effect_of(outcome(here), changed).workloads
    assert (effect.returned, effect.short_words) == (1, words)


def test_moves_within_a_run_begin_at_the_node_of_the_first_displacement():
    one = outcome(
        pod("p", "c"), pod("back", "a"), pod("waits"),
        evicted=(evicted("p", "a"), evicted("p", "b"), evicted("back", "a"), evicted("waits", "a")),
    )  # fmt: skip
    assert [(m.pod.key, m.origin, m.target) for m in moves_within(one)] == [("ns/p", "a", "c")]
