"""The verdict is the first row of the table of outcomes that applies; one test for each row."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.kubectl_drain import NO_DRAIN, DrainFlag, KubectlDrain, RefusedDrain
from fairlead.whatif.outcome.assessment.fail_on import check, parse_fail_on
from fairlead.whatif.outcome.assessment.run_verdict import run_verdict
from fairlead.whatif.outcome.assessment.verdict import _TABLE, OutcomeKind, Severity, verdict_of
from fairlead.whatif.outcome.autoscaling.node_group import AutoscalingOutcome, NodeTransition
from fairlead.whatif.outcome.autoscaling.pod_autoscaler import (
    PodAutoscalerOutcome,
    ReplicaChange,
    ReplicaShortage,
)
from fairlead.whatif.outcome.autoscaling.waiting_time import PodWait
from fairlead.whatif.outcome.comparison.effect import effect_of
from fairlead.whatif.outcome.jobs import GangTally, IncompleteGang, JobsOutcome
from fairlead.whatif.outcome.outage import (
    DrainProgress,
    LossCause,
    LostPod,
    NodeHistory,
    OutageOutcome,
)
from fairlead.whatif.outcome.packing import NODES_IN_USE, PRICE, ROOM, PackingRow
from fairlead.whatif.outcome.run_outcome import (
    RESIZE_DEFERRED,
    BudgetHistory,
    DeletedClaim,
    Evicted,
    NodeEnd,
    ObjectError,
    PdbBreach,
    PodEnd,
    Preempted,
    Recurrence,
    RefusedWorkload,
    ResourceAllocation,
    RunOutcome,
    Undrained,
    UndrainedCause,
)
from fairlead.whatif.outcome.workload import WorkloadReadiness, WorkloadRef

WEB = WorkloadRef("Deployment", "ns", "web")
DB = WorkloadRef("StatefulSet", "ns", "db")
PACKING = (
    PackingRow(NODES_IN_USE, 3, 2, 1),
    PackingRow(ROOM, 6, 7, 7),
    PackingRow(PRICE, 1.5, 1.0, 0.5),
)


def pod(name, node="", started_s=None, owner=WEB, **fields):
    started = None if started_s is None else seconds(started_s)
    return PodEnd(namespace="ns", name=name, node=node, started_at=started, owner=owner, **fields)


def evicted(one):
    return Evicted(pod=one, node=one.node, at=seconds(1), why="drain")


def outcome(*pods, nodes=("a", "b"), **fields):
    ends = tuple(
        NodeEnd(name=name, zone="", unschedulable=False, allocatable={}, requested={}, pods=())
        for name in nodes
    )
    facts = {
        "started_at": 0, "ended_at": seconds(60), "settled": True, "preempted": (), "evicted": (),
        "pdb_breaches": (), "undrained": (), "skipped": (), "errors": (), "recurrences": (),
        "allocations": (), "priority_names": {}, "samples": (), "choices_among_equals": 0,
    }  # fmt: skip
    return RunOutcome(pods={one.key: one for one in pods}, nodes=ends, **{**facts, **fields})


def outage(**fields):
    facts = {
        "concerned": 1, "evicted": 0, "first_eviction_at": None, "last_eviction_at": None,
        "first_back_at": None, "last_back_at": None, "last_return_at": None, "replaced": 0,
        "back_with_node": 0, "late_with_node": 0, "last_with_node": 0, "nodes": (), "lost": (),
        "preempted": (), "taints": (), "zones": (),
        "node_samples": (), "pod_samples": (),
    }  # fmt: skip
    return OutageOutcome(**{**facts, **fields})


def lost(cause):
    return LostPod(pod="ns/p", priority=0, node="a", cause=cause, why="")


def failed(name, back_s, returns=1):
    return NodeHistory(
        node=name, zone="", quiet_at=seconds(5), unready_at=None, tainted_at=None,
        first_eviction_at=None, last_eviction_at=None, back_at=seconds(back_s), pods=1, evicted=0,
        returns=returns,
    )  # fmt: skip


def ready(wanted, lowest, at_end, lowest_for_s=5):
    lasted = None if lowest_for_s is None else seconds(lowest_for_s)
    return WorkloadReadiness(
        wanted=wanted, before=wanted, lowest=lowest, lowest_for=lasted, at_end=at_end
    )


def requested(amount):
    return (
        ResourceAllocation(
            resource="cpu",
            allocatable_before=9000,
            allocatable=9000,
            requested_before=0,
            requested=amount,
        ),
    )


def autoscaler(*changes):
    return PodAutoscalerOutcome(
        autoscaler="ns/web", target="Deployment web", minimum=6, maximum=12,
        replicas=changes[-1].after if changes else 6, changes=changes,
    )  # fmt: skip


STARVING = Recurrence("starving", "pods of deploy/ns/web have been displaced 6 times", 1, WEB, 6)
HERE, THERE = pod("p", "a", 0), pod("p", "b", 3)
HISTORY = BudgetHistory(
    pdb="ns/web", rule="minAvailable 1", allowed=0, allowed_at_end=None, needed=1,
    lowest_healthy=0, displaced=("ns/p",), refused=(),
)  # fmt: skip
NOT_BACK = DrainProgress(node="a", begun_at=0, empty_at=None, back_at=None)
BACK = DrainProgress(node="b", begun_at=0, empty_at=seconds(10), back_at=seconds(40))
BARE = ("cannot delete Pods that declare no controller (use --force to override)", ("ns/p",))
REFUSED = KubectlDrain(("a",), (DrainFlag("--force", ("ns/p",)),), (RefusedDrain("a", (BARE,)),))


def ran_incomplete(*at_the_end, **lasted):
    """Return an outcome with the seconds for which too few members of each gang ran."""
    times = {group: seconds(time) for group, time in lasted.items()}
    now = tuple(IncompleteGang(group, group, 1, 2) for group in at_the_end)
    return JobsOutcome(gangs=GangTally(incomplete_now=now, incomplete_for=times))


ROWS = {
    OutcomeKind.LOOP: (
        outcome(HERE, recurrences=(Recurrence("cycle", "a and b preempt each other", 1),)),
        "Workloads displace one another in a cycle: a and b preempt each other.",
    ),
    OutcomeKind.REFUSED: (
        outcome(HERE),
        "kubectl drain refuses a: it needs --force.",
    ),
    OutcomeKind.UNDRAINED: (
        outcome(HERE, undrained=(Undrained(pod=HERE, cause=UndrainedCause.REFUSED, why="no"),)),
        "The drain does not complete: 1 pod on 1 node cannot be evicted.",
    ),
    OutcomeKind.DATA_DELETED: (
        outcome(HERE, deleted_claims=(DeletedClaim("ns/data", "v", "Delete", 1),)),
        "1 PersistentVolumeClaim is deleted, and so is its volume with all data: ns/data.",
    ),
    OutcomeKind.CLAIMS_DELETED: (
        outcome(HERE, deleted_claims=(DeletedClaim("ns/data", "v", "Retain", 1),)),
        "1 PersistentVolumeClaim is deleted, and no volume: ns/data.",
    ),
    OutcomeKind.NEGATIVE_PRIORITY_DISPLACED: (
        outcome(
            HERE,
            pod("p", "b", 7, priority=-1),
            evicted=(evicted(pod("p", "a", 0, priority=-1)),),
        ),
        "1 pod of deploy/ns/web (negative priority) is displaced and runs again after 7s.",
    ),
    OutcomeKind.NEGATIVE_PRIORITY_PENDING: (
        outcome(pod("p", priority=-1, reason="0/2 nodes are available: 2 Insufficient cpu.")),
        "1 pod of deploy/ns/web (negative priority) stays pending: Insufficient cpu.",
    ),
    OutcomeKind.PENDING: (
        outcome(pod("p", reason="0/2 nodes are available: 2 Insufficient cpu.")),
        "1 pod of deploy/ns/web stays pending: Insufficient cpu.",
    ),
    OutcomeKind.ERROR: (
        outcome(HERE, errors=(ObjectError("ReplicaSet ns/web", "exceeded quota"),)),
        "1 error: ReplicaSet ns/web: exceeded quota",
    ),
    OutcomeKind.GONE: (
        outcome(evicted=(evicted(HERE),)),
        "1 pod is gone for good: nothing replaces ns/p.",
    ),
    OutcomeKind.NOT_CREATED: (
        outcome(evicted=(evicted(HERE),), workloads={WEB: ready(1, 0, 0)}),
        "1 pod of deploy/ns/web is not created again.",
    ),
    OutcomeKind.DOWN: (
        outcome(
            HERE,
            outage=outage(lost=(lost(LossCause.TOLERATES),)),
            workloads={WEB: ready(2, 1, 1)},
        ),
        "1 pod of failed nodes is not back: tolerates indefinitely.",
    ),
    OutcomeKind.UNFINISHED: (
        outcome(HERE, drains=(NOT_BACK,)),
        (
            "The rolling drain is not finished after 1m00s, when the simulation ends (--horizon): "
            "0 of 1 node is back."
        ),
    ),
    OutcomeKind.BREACHED: (
        outcome(
            THERE,
            evicted=(evicted(HERE),),
            budgets=(HISTORY,),
            pdb_breaches=(PdbBreach(pdb="ns/web", pod="ns/p", by="x", at=1),),
        ),
        "Budget ns/web is breached: 1 pod is displaced when it allows no more disruptions.",
    ),
    OutcomeKind.REPLACEMENTS_REFUSED: (
        outcome(
            HERE, refused_workloads=(RefusedWorkload(WEB, "no room", replacements_refused=True),)
        ),
        ("From now on, new pods of deploy/ns/web are refused, including replacements: no room."),
    ),
    OutcomeKind.UNAVAILABLE: (
        outcome(THERE, evicted=(evicted(HERE),), workloads={WEB: ready(1, 0, 1, 60)}),
        "deploy/ns/web has no ready pod for 1m00s.",
    ),
    OutcomeKind.BRIEFLY_UNAVAILABLE: (
        outcome(THERE, evicted=(evicted(HERE),), workloads={WEB: ready(1, 0, 1)}),
        "deploy/ns/web has no ready pod for 5s.",
    ),
    OutcomeKind.INCOMPLETE_GANG: (
        outcome(HERE, jobs=ran_incomplete(g=60)),
        "Gang g runs with fewer members than its minimum for 1m00s.",
    ),
    OutcomeKind.REPEATED: (
        outcome(HERE, recurrences=(STARVING,), workloads={WEB: ready(1, 1, 1)}),
        "Pods of deploy/ns/web have been displaced 6 times, and all run at the end.",
    ),
    OutcomeKind.RESCALED: (
        outcome(HERE, pod_autoscalers=(autoscaler(ReplicaChange(1, 20, 12, "max")),)),
        (
            "HorizontalPodAutoscaler ns/web scales deploy/ns/web from 20 to 12 replicas (limits 6 "
            "and 12)."
        ),
    ),
    OutcomeKind.LIMITED: (
        outcome(
            HERE,
            pod_autoscalers=(
                replace(
                    autoscaler(),
                    shortage=ReplicaShortage(lasted=seconds(90), proposed=18, is_over=True),
                ),
            ),
        ),
        (
            "HorizontalPodAutoscaler ns/web needs up to 18 replicas for 1m30s, but its maxReplicas "
            "is 12."
        ),
    ),
    OutcomeKind.REPACKED: (
        outcome(THERE),
        (
            "Scheduled again with the change, the pods use 1 node instead of 2, with room for 7 "
            "of the largest pods (as without it), at 0.5 per hour instead of 1.0; 1 pod is on "
            "another node."
        ),
    ),
    OutcomeKind.DISPLACED: (
        outcome(THERE, evicted=(evicted(HERE),), workloads={WEB: ready(3, 2, 3)}),
        "1 pod of deploy/ns/web is displaced and runs again after 3s.",
    ),
    OutcomeKind.UPDATED: (
        outcome(pod("p", "a", 2, requests={"cpu": 2})),
        "1 pod of deploy/ns/web is resized in place.",
    ),
    OutcomeKind.STARTED: (
        outcome(HERE, pod("q", "b", 4)),
        "1 more pod of deploy/ns/web runs after 4s, and none is displaced.",
    ),
    OutcomeKind.COMPLETED: (
        outcome(HERE, pod("q", "b", 4, phase="Succeeded", ended_at=seconds(30))),
        "1 pod of deploy/ns/web runs and completes after 30s.",
    ),
    OutcomeKind.REMOVED: (outcome(), "1 pod of deploy/ns/web is removed."),
    OutcomeKind.MOVED: (
        outcome(THERE),
        "1 pod of deploy/ns/web is placed elsewhere and runs after 3s.",
    ),
    OutcomeKind.SCALED: (
        outcome(
            HERE,
            pod_autoscalers=(
                autoscaler(ReplicaChange(1, 6, 9, "load"), ReplicaChange(2, 9, 6, "load")),
            ),
        ),
        (
            "deploy/ns/web has 6 to 9 replicas over time instead of 6 (HorizontalPodAutoscaler "
            "ns/web)."
        ),
    ),
    OutcomeKind.BUDGET_CHANGED: (
        outcome(HERE, budgets=(replace(HISTORY, displaced=(), allowed_at_end=0),)),
        "Budget ns/web is new and allows 0 disruptions, and nothing changes for any pod.",
    ),
    OutcomeKind.INTERRUPTED: (
        outcome(
            HERE,
            outage=outage(
                back_with_node=1,
                last_return_at=seconds(75),
                nodes=(failed("a", 10), failed("b", 70)),
            ),
        ),
        "1 pod is down with its node and comes back after 1m15s.",
    ),
    OutcomeKind.RESIZED: (
        outcome(HERE, allocations=requested(9)),
        "The pods request other amounts of cpu.",
    ),
    OutcomeKind.UNCHANGED: (outcome(HERE), "Nothing changes for any pod."),
}


@pytest.mark.parametrize(
    ("nodes", "times", "last"),
    [
        ((failed("a", 10, returns=3),), "node 3", "10s"),
        ((failed("a", 10, returns=3), failed("b", 70)), "node up to 3", "1m10s"),
    ],
)
def test_nodes_that_fail_again_and_again(nodes, times, last):
    returned = max(one.back_at for one in nodes)
    changed = outcome(HERE, outage=outage(back_with_node=1, last_return_at=returned, nodes=nodes))
    assert verdict_of(effect_of(outcome(HERE), changed, NO_DRAIN)).first.sentence == (
        f"1 pod is down with its {times} times, and comes back each time, the last time after "
        f"{last}."
    )


def test_with_an_autoscaler_the_time_since_the_change_does_not_read_as_a_time_down():
    """It may evict a pod hours after the change; the pod runs again seconds later."""
    late = Evicted(pod=HERE, node="a", at=seconds(83_000), why="node scale down")
    changed = outcome(
        pod("p", "b", 83_002),
        evicted=(late,),
        workloads={WEB: ready(3, 2, 3)},
        autoscaling=AutoscalingOutcome("cluster-autoscaler", (), (), {}, {}),
    )
    assert verdict_of(effect_of(outcome(HERE), changed, NO_DRAIN)).first.sentence == (
        "1 pod of deploy/ns/web is displaced and runs again, 23h03m after the change."
    )


def test_pods_that_stay_with_their_nodes_are_not_among_the_displaced_pods():
    returned = {"last_back_at": seconds(30), "last_return_at": seconds(12)}
    stopped = outage(evicted=1, back_with_node=2, nodes=(failed("a", 10),), **returned)
    changed = outcome(THERE, evicted=(evicted(HERE),), outage=stopped)
    verdict = verdict_of(effect_of(outcome(HERE), changed, NO_DRAIN))
    sentences = [one.sentence for one in verdict.findings]
    assert "2 more pods are down with their node and come back after 12s." in sentences


def test_each_reason_for_which_jobs_fail_is_named():
    limit = "Job has reached the specified backoff limit (BackoffLimitExceeded)"
    policy = "Container c for pod ns/x-1 failed with exit code 255 (PodFailurePolicy)"
    errors = [
        ObjectError(f"Job ns/{name}", message, is_failed_job=True)
        for name, message in (("a", limit), ("x", policy), ("b", limit))
    ]
    changed = outcome(HERE, errors=tuple(errors))
    assert verdict_of(effect_of(outcome(HERE), changed, NO_DRAIN)).first.sentence == (
        f"Job ns/a and 1 other Job fail: {limit}. Job ns/x fails: {policy}."
    )


def test_failed_jobs_do_not_hide_other_errors():
    limit = "Job has reached the specified backoff limit (BackoffLimitExceeded)"
    errors = (
        ObjectError("DaemonSet ns/agent", "exceeded quota: d"),
        ObjectError("Job ns/a", limit, is_failed_job=True),
        ObjectError("Job ns/b", "too many failed indexes", is_failing_job=True),
        ObjectError("Job ns/c", "too many failed indexes", is_failing_job=True),
    )
    effect = effect_of(outcome(HERE), outcome(HERE, errors=errors), NO_DRAIN)
    assert verdict_of(effect).first.sentence == (
        f"Job ns/a fails: {limit}. Job ns/b and 1 other Job can only fail: too many failed indexes."
        " 1 error: DaemonSet ns/agent: exceeded quota: d"
    )


def test_a_lost_pod_that_is_gone_is_not_said_to_need_no_replacement():
    """The pod of a failed Job needs no replacement, but the Job has not got its result."""
    without = pod("p", "a", 0)
    changed = outcome(
        evicted=(Evicted(pod=without, node="a", at=1, why="taint x"),),
        outage=outage(lost=(lost(LossCause.NOT_NEEDED),), nodes=(failed("a", 10),)),
    )
    found = verdict_of(effect_of(outcome(without), changed, NO_DRAIN))
    assert [one.kind for one in found.findings] == [OutcomeKind.GONE]


@pytest.mark.parametrize(
    ("revisions", "sentence"),
    [
        (("1", "2"), "2 pods of deploy/ns/web are replaced within 2s."),
        (("1", "1"), "2 pods of deploy/ns/web are replaced or resized within 2s."),
    ],
)
def test_updated_pods_are_replaced_or_resized(revisions, sentence):
    old, new = revisions
    without = outcome(pod("p", "a", 0, revision=old), pod("q", "a", 0, revision="1"))
    resized = pod("p", "a", 2, revision=new, requests={"cpu": 2})
    changed = outcome(resized, pod("q", "a", 2, revision="2"))
    assert verdict_of(effect_of(without, changed, NO_DRAIN)).first.sentence == sentence


def test_the_time_of_a_rollout_ends_when_the_last_new_pod_first_runs():
    """A new pod that is displaced after the rollout starts again later."""
    without = outcome(pod("p", "a", 0, revision="1"), pod("q", "a", 0, revision="1"))
    displaced_later = pod("p", "b", 600, revision="2", first_started_at=seconds(3))
    changed = outcome(displaced_later, pod("q", "a", 2, revision="2"))
    sentence = "2 pods of deploy/ns/web are replaced within 3s."
    assert verdict_of(effect_of(without, changed, NO_DRAIN)).first.sentence == sentence


@pytest.mark.parametrize(
    ("others", "also"),
    [
        (0, ""),
        (1, ". 1 other pod keeps its former resources too."),
        (2, ". 2 other pods keep their former resources too."),
    ],
)
def test_deferred_resizes_are_named_with_their_reason(others, also):
    why = f"{RESIZE_DEFERRED}: no room"
    errors = tuple(ObjectError(f"Pod ns/p{'' if n == 0 else n}", why) for n in range(others + 1))
    found = verdict_of(effect_of(outcome(HERE), outcome(HERE, errors=errors), NO_DRAIN))
    sentence = f"Pod ns/p keeps its former resources, because {why}{also}"
    assert found.first.sentence == sentence


@pytest.mark.parametrize("kind", ROWS)
def test_each_row_of_the_table_gives_its_verdict(kind):
    changed, sentence = ROWS[kind]
    drain = REFUSED if kind is OutcomeKind.REFUSED else NO_DRAIN
    before = outcome(HERE, pod_autoscalers=(autoscaler(),))
    effect = effect_of(before, changed, drain)
    if kind is OutcomeKind.REPACKED:
        effect = replace(effect, packing=PACKING)
    first = verdict_of(effect).first
    assert (first.kind, first.sentence) == (kind, sentence)


@pytest.mark.parametrize(
    ("since_s", "acted_s", "settled", "stays"),
    [
        pytest.param(3550, 3540, False, False, id="it has just become pending"),
        pytest.param(1000, 3540, False, True, id="it has been pending for long"),
        pytest.param(3550, 1000, False, True, id="no node was added lately"),
        pytest.param(3550, 3540, True, True, id="the cluster settled"),
    ],
)
def test_a_pod_that_the_autoscaler_moves_without_end_does_not_stay_pending(
    since_s, acted_s, settled, stays
):
    transition = NodeTransition(seconds(acted_s), "n", "g", came=True)
    autoscaling = AutoscalingOutcome("karpenter", (), (transition,), {}, {})
    waiting = pod(
        "p", since=seconds(since_s), reason="0/1 nodes are available: 1 Insufficient cpu."
    )
    changed = outcome(waiting, autoscaling=autoscaling, ended_at=seconds(3600), settled=settled)
    [sentence] = [
        one.sentence
        for one in verdict_of(effect_of(outcome(HERE), changed, NO_DRAIN)).findings
        if one.kind is OutcomeKind.PENDING
    ]
    what = "1 pod of deploy/ns/web"
    assert sentence == (
        f"{what} stays pending: Insufficient cpu."
        if stays
        else f"{what} is pending when the simulation ends, while karpenter adds and removes nodes: "
        "Insufficient cpu."
    )


AGENT = WorkloadRef("DaemonSet", "ns", "agent")


def agent(node, *, owner=AGENT, is_initial=False):
    return PodEnd(
        is_initial=is_initial,
        namespace="ns", name=f"agent-{node}", node=node, owner=owner, belongs_to_node=True,
        started_at=seconds(9), first_started_at=seconds(9),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        pytest.param("a", "ab", "1 DaemonSet pod runs on 1 new node after 9s", id="a new node"),
        pytest.param(
            "a", "abc", "2 DaemonSet pods run on 2 new nodes after 9s", id="two new nodes"
        ),
        pytest.param("ab", "a", "1 DaemonSet pod is removed with its node.", id="a removed node"),
        pytest.param("abc", "a", "2 DaemonSet pods are removed with their nodes.", id="two nodes"),
    ],
)
def test_daemon_set_pods_of_other_nodes_are_no_gain_and_no_loss(before, after, sentence):
    runs = [
        outcome(*(agent(one, is_initial=one in before) for one in nodes), nodes=nodes)
        for nodes in (before, after)
    ]
    assert verdict_of(effect_of(*runs, NO_DRAIN)).first.sentence.startswith(sentence)


def test_daemon_set_pods_of_nodes_that_an_autoscaler_does_not_add_are_fewer():
    runs = [outcome(*map(agent, nodes), nodes=nodes) for nodes in ("abc", "a")]
    sentence = "At the end, there are 2 fewer DaemonSet pods than without the change."
    assert verdict_of(effect_of(*runs, NO_DRAIN)).first.sentence == sentence


def test_daemon_set_pods_of_other_nodes_are_not_fewer_if_other_nodes_stay():
    """Without the change, an autoscaler replaces the nodes b and c by the node d."""
    kept = [agent(one, is_initial=True) for one in "abc"]
    kept = [replace(one, started_at=0, first_started_at=0) for one in kept]
    runs = outcome(kept[0], agent("d"), nodes="ad"), outcome(*kept, nodes="abc")
    sentences = [one.sentence for one in verdict_of(effect_of(*runs, NO_DRAIN)).findings]
    assert "1 DaemonSet pod exists only without the change." in sentences


def test_static_pods_are_removed_with_their_node():
    pods = agent("b", is_initial=True), replace(agent("b", owner=None, is_initial=True), name="s")
    effect = effect_of(outcome(*pods), outcome(nodes="a"), NO_DRAIN)
    sentence = "2 DaemonSet or static pods are removed with their node."
    assert verdict_of(effect).first.sentence == sentence


def test_daemon_set_pods_of_nodes_that_stay_are_counted_by_workload():
    """The change deletes the DaemonSet, or its nodeSelector no longer selects the node."""
    effect = effect_of(outcome(agent("a", is_initial=True)), outcome(), NO_DRAIN)
    assert verdict_of(effect).first.sentence == "1 pod of ds/ns/agent is removed."


def test_pods_that_the_workload_never_had_are_not_removed():
    """Without the change, the workload got a second pod 9 s later; with it, neither remains."""
    effect = effect_of(outcome(HERE, pod("q", "b", 9)), outcome(HERE), NO_DRAIN)
    fewer = "At the end, there is 1 fewer pod of deploy/ns/web than without the change."
    assert verdict_of(effect).first.sentence == fewer
    (row,) = effect.workloads
    assert (row.words, row.short_words) == ("1 fewer than without the change", "1 fewer")
    effect = effect_of(outcome(HERE, pod("q", "b", 9)), outcome(), NO_DRAIN)
    assert verdict_of(effect).first.sentence == f"1 pod of deploy/ns/web is removed. {fewer}"
    assert effect.workloads[0].short_words == "1 removed, 1 fewer"


def test_other_pods_of_a_daemon_set_are_not_fewer_pods():
    """An autoscaler can keep other nodes than without the change."""
    agent = WorkloadRef("DaemonSet", "ns", "agent")
    one, other = (
        replace(pod(name, node, 9), owner=agent, belongs_to_node=True)
        for name, node in (("p", "a"), ("q", "b"))
    )
    effect = effect_of(outcome(one), outcome(other), NO_DRAIN)
    sentences = [found.sentence for found in verdict_of(effect).findings]
    assert sentences == [
        "1 new pod of ds/ns/agent runs after 9s, and none is displaced.",
        "1 pod of ds/ns/agent exists only without the change.",
    ]
    assert effect.workloads[0].short_words == "1 new, 1 only without the change"


@pytest.mark.parametrize(("missing", "is_none"), [(0, True), (1, False)])
def test_an_error_is_reported_only_if_pods_lack_at_the_end(missing, is_none):
    error = ObjectError("ReplicaSet ns/web", "exceeded quota", missing, WEB)
    effect = effect_of(outcome(HERE), outcome(HERE, errors=(error,)))
    assert effect.is_none is is_none
    expected = OutcomeKind.UNCHANGED if is_none else OutcomeKind.ERROR
    assert verdict_of(effect).first.kind is expected


@pytest.mark.parametrize(
    ("count", "sentence"), [(1, "1 pod stays pending."), (2, "2 pods stay pending.")]
)
def test_pods_that_are_pending_in_both_runs_are_counted_if_nothing_changes(count, sentence):
    waiting = [pod(f"w-{number}", "", reason="0/2 nodes are available") for number in range(count)]
    run = outcome(HERE, *waiting)
    assert (
        verdict_of(effect_of(run, run)).first.sentence == f"Nothing changes for any pod. {sentence}"
    )


@pytest.mark.parametrize(("waited_s", "is_none"), [(160, True), (161, False)])
def test_a_pod_that_waits_a_minute_longer_for_the_same_node_is_a_difference(waited_s, is_none):
    late = replace(HERE, reason="0/2 nodes are available")
    runs = [
        outcome(late, waits=(PodWait("ns/p", WEB, 0, seconds(until)),)) for until in (101, waited_s)
    ]
    effect = effect_of(*runs)
    assert effect.difference.is_empty
    assert effect.is_none is is_none
    expected = (
        (OutcomeKind.UNCHANGED, "Nothing changes for any pod.")
        if is_none
        else (OutcomeKind.INTERRUPTED, "1 pending pod of deploy/ns/web waits 2m41s for a node.")
    )
    first = verdict_of(effect).first
    assert (first.kind, first.sentence) == expected
    rows = [(one.workload, one.waited, one.short_words) for one in effect.workloads]
    assert rows == ([] if is_none else [(WEB, 1, "1 waited 2m41s")])


def test_a_new_pod_runs_from_its_first_start():
    """An autoscaler moved it later, when it removed the first node."""
    moved = replace(pod("q", "b", 2700), first_started_at=seconds(12))
    [found] = verdict_of(effect_of(outcome(HERE), outcome(HERE, moved))).findings
    assert found.sentence == "1 more pod of deploy/ns/web runs after 12s, and none is displaced."


def test_pods_on_failed_nodes_are_not_said_to_fail_to_start_as_in_the_dump():
    """A pod of a DaemonSet got a node that failed before the pod started."""
    running, new = pod("o", "b", 0), pod("p", "a", phase="Pending")
    down = outage(lost=(lost(LossCause.DAEMON),), nodes=(failed("a", 10),))
    changed = outcome(running, new, outage=down)
    sentences = ["1 pod of failed nodes is not back: DaemonSet or static pod."]
    placed = verdict_of(effect_of(outcome(running), changed))
    assert [one.sentence for one in placed.findings] == sentences
    changed = replace(changed, evicted=(evicted(new),))
    displaced = verdict_of(effect_of(outcome(running, new), changed))
    assert [one.sentence for one in displaced.findings] == sentences


@pytest.mark.parametrize(
    ("old", "clause"),
    [(2, "3 pods of deploy/ns/web, 1 of them new,"), (0, "1 pod of deploy/ns/web, which is new,")],
)
def test_a_new_pod_that_was_displaced_is_counted_once(old, clause):
    """For example, a later step of a rolling drain evicted the pod."""
    names = [f"old-{number}" for number in range(old)]
    before = [pod(name, "a", 0, is_initial=True) for name in names]
    after = [pod(name, "b", 3, is_initial=True) for name in names]
    new = pod("new", "b", 4)
    moved = [evicted(one) for one in [*before, pod("new", "a", 1)]]
    changed = outcome(*after, new, evicted=tuple(moved))
    found = verdict_of(effect_of(outcome(*before), changed))
    assert found.first.sentence.startswith(clause)
    assert OutcomeKind.STARTED not in {one.kind for one in found.findings}


def test_a_displaced_pod_that_was_pending_in_the_dump_is_not_new():
    """It has a node only with the change, and a later step of the change evicted it."""
    waiting = pod("waits", phase="Pending", is_initial=True)
    changed = outcome(pod("waits", "b", 4), evicted=(evicted(pod("waits", "a", 1)),))
    effect = effect_of(outcome(waiting), changed)
    assert [one.key for one in effect.difference.placed] == ["ns/waits"]
    assert verdict_of(effect).first.sentence.startswith("1 pod of deploy/ns/web is displaced")


def test_new_pods_that_have_not_started_are_not_said_to_run():
    """The simulation ends before three of them are ready; one of these is on a failed node."""
    starting = (pod(name, "b", phase="Pending") for name in ("q", "r"))
    on_failed = pod("p", "a", phase="Pending")
    down = outage(lost=(lost(LossCause.STARTING),), nodes=(failed("a", 10),))
    changed = outcome(pod("o", "b", 5), on_failed, *starting, settled=False, outage=down)
    unfinished, started = verdict_of(effect_of(outcome(), changed)).findings
    assert unfinished.sentence == (
        "3 pods are still not running after 1m00s, when the simulation ends."
    )
    assert started.sentence == (
        "2 more pods of deploy/ns/web get nodes but do not run yet. "
        "1 more pod of deploy/ns/web runs after 5s, and none is displaced."
    )


@pytest.mark.parametrize(
    ("owners", "whose"),
    [
        ((None, None), "2 more pods without a controller run"),
        ((None, None, WEB), "3 more pods of deploy/ns/web or without a controller run"),
        ((None,), "pod/ns/p0 runs"),
    ],
)
def test_bare_pods_are_no_workloads(owners, whose):
    """The members of a gang are often bare pods."""
    pods = [replace(pod(f"p{i}", "a", 5), owner=owner) for i, owner in enumerate(owners)]
    [found] = verdict_of(effect_of(outcome(), outcome(*pods))).findings
    assert found.sentence == f"{whose} after 5s, and none is displaced."


def test_pods_that_replace_removed_pods_are_new():
    """A workload is scaled down and up again."""
    before = outcome(replace(HERE, is_initial=True))
    sentences = [
        one.sentence for one in verdict_of(effect_of(before, outcome(pod("q", "b", 9)))).findings
    ]
    assert sentences == [
        "1 new pod of deploy/ns/web runs after 9s, and none is displaced.",
        "1 pod of deploy/ns/web is removed.",
    ]


def test_the_table_is_complete_and_in_order():
    kinds = [kind for kind, _ in _TABLE]
    of_runs = (OutcomeKind.NONE_PENDING, OutcomeKind.GANGS)
    compared = [kind for kind in OutcomeKind if kind not in of_runs]
    assert compared == [*kinds, OutcomeKind.UNCHANGED]
    assert set(ROWS) == set(compared)


@pytest.mark.parametrize(
    ("without", "with_change", "expected"),
    [
        (ran_incomplete(), ran_incomplete(g=59), []),
        (ran_incomplete(g=30), ran_incomplete(g=89), []),
        (
            ran_incomplete(h=40),
            ran_incomplete(g=90, h=100, k=1),
            ["Gangs h, g run with fewer members than their minimum, for up to 1m40s."],
        ),
        (ran_incomplete("g", g=5), ran_incomplete("g", g=500), []),
        (
            ran_incomplete(),
            ran_incomplete("g", g=500),
            ["Gang g runs with fewer members than its minimum for 8m20s."],
        ),
    ],
)
def test_gangs_with_too_few_members_for_a_minute_because_of_the_change_are_named(
    without, with_change, expected
):
    """Gangs that lack members at the end of both runs do not lack them because of the change."""
    found = verdict_of(effect_of(outcome(HERE, jobs=without), outcome(HERE, jobs=with_change)))
    gangs = [one for one in found.findings if one.kind is OutcomeKind.INCOMPLETE_GANG]
    assert [one.sentence for one in gangs] == expected


def test_a_gang_that_pending_pods_leave_incomplete_is_named_once():
    waits = replace(HERE, node="", reason="no")
    changed = outcome(waits, jobs=ran_incomplete("g", g=500))
    [found, *_] = verdict_of(effect_of(outcome(HERE), changed)).findings
    assert found.kind is OutcomeKind.PENDING
    assert "Gang g (1 of 2 members) has fewer running members" in found.sentence
    kinds = [one.kind for one in verdict_of(effect_of(outcome(HERE), changed)).findings]
    assert OutcomeKind.INCOMPLETE_GANG not in kinds


@pytest.mark.parametrize(
    ("lasted", "kinds"),
    [
        (None, ["unavailable", "pending", "breached", "displaced"]),
        (60, ["unavailable", "pending", "breached", "displaced"]),
        (59, ["pending", "breached", "briefly_unavailable", "displaced"]),
    ],
    ids=["to the end", "for a minute", "for less than a minute"],
)
def test_a_workload_without_ready_pods_is_worse_than_pending_pods_and_budgets(lasted, kinds):
    """One pod of `web` is displaced against its budget; one of another workload stays pending."""
    other = WorkloadRef("Deployment", "ns", "other")
    waits = PodEnd(namespace="ns", name="q", owner=other, reason="no")
    changed = outcome(
        THERE,
        waits,
        evicted=(evicted(HERE),),
        budgets=(HISTORY,),
        pdb_breaches=(PdbBreach(pdb="ns/web", pod="ns/p", by="x", at=1),),
        workloads={WEB: ready(1, 0, 0 if lasted is None else 1, lasted)},
    )
    effect = effect_of(outcome(HERE), changed)
    assert [one.kind.value for one in verdict_of(effect).findings] == kinds
    first = effect.workloads[0].workload
    assert first == (other if kinds[0] == "pending" else WEB)


def test_a_job_without_ready_pods_is_no_outage():
    job = WorkloadRef("Job", "ns", "job")
    here = PodEnd(namespace="ns", name="p", node="a", started_at=0, owner=job)
    there = PodEnd(namespace="ns", name="p", node="b", started_at=seconds(90), owner=job)
    lasted = ready(1, 0, 1, 90)
    changed = outcome(there, evicted=(evicted(here),), workloads={job: lasted})
    first = verdict_of(effect_of(outcome(here), changed)).first
    assert first.kind is OutcomeKind.BRIEFLY_UNAVAILABLE


def test_only_lasting_outages_are_reported_as_lasting_to_the_end():
    """`b` has no ready pod to the end; `a` and `c` recover after one and ten minutes."""
    names = [WorkloadRef("Deployment", "ns", name) for name in "abc"]
    times = dict(zip(names, (60, None, 600), strict=True))
    changed = outcome(
        HERE, workloads={ref: ready(1, 0, 0, lasted) for ref, lasted in times.items()}
    )
    sentence = "deploy/ns/b has no ready pod to the end, and 2 more workloads for up to 10m00s."
    assert verdict_of(effect_of(outcome(HERE), changed)).first.sentence == sentence


@pytest.mark.parametrize(
    ("lasted", "sentence"),
    [
        (None, "deploy/ns/web has no ready pod to the end: Insufficient cpu."),
        (90, "deploy/ns/web has no ready pod for 1m30s."),
    ],
    ids=["to the end", "for a time"],
)
def test_pods_that_wait_at_the_end_are_no_cause_of_an_earlier_outage(lasted, sentence):
    waits = pod("q", reason="0/2 nodes are available: 2 Insufficient cpu.")
    changed = outcome(
        THERE,
        waits,
        evicted=(evicted(HERE),),
        workloads={WEB: ready(2, 0, 0 if lasted is None else 1, lasted)},
    )
    assert verdict_of(effect_of(outcome(HERE), changed)).first.sentence == sentence


SPARE = WorkloadRef("Deployment", "ns", "spare")


def test_displaced_pods_with_a_negative_priority_come_after_other_pods():
    """A new pod preempts them, and they run again elsewhere."""
    spare = pod("s", "a", 1, owner=SPARE, priority=-10, is_initial=True)
    again = replace(spare, node="b", started_at=seconds(9))
    victim = Preempted(pod=spare, node="a", at=1, by="ns/q", by_priority=0, rule="r", candidates=1)
    changed = outcome(HERE, again, pod("q", "a", 3), preempted=(victim,))
    first, second = verdict_of(effect_of(outcome(HERE, spare), changed)).findings
    assert first.sentence == "1 more pod of deploy/ns/web runs after 3s."
    assert second.sentence == (
        "1 pod of deploy/ns/spare (negative priority) is displaced, 1 by preemption, and runs "
        "again after 9s."
    )


def test_the_priority_of_a_displaced_pod_decides_not_that_of_its_replacement():
    """The change can set another default priority, which only new pods get."""
    replacement = pod("p", "b", 9, priority=-5)
    drained = outcome(replacement, evicted=(evicted(HERE),))
    deleted = outcome(replacement, nodes=("b",))
    for changed in (drained, deleted):
        first = verdict_of(effect_of(outcome(HERE), changed)).findings[0]
        assert first.kind is OutcomeKind.DISPLACED
        assert first.sentence == "1 pod of deploy/ns/web is displaced and runs again after 9s."


@pytest.mark.parametrize("highest", [-1, 0])
def test_a_workload_with_a_negative_priority_does_not_starve(highest):
    """The priorities of all pods of the workload decide, not only that of the last victim."""
    pods = [pod("p", "a", 1, priority=-1), pod("q", "a", 1, priority=highest)]
    changed = outcome(*pods, recurrences=(STARVING,), workloads={WEB: ready(1, 1, 1)})
    effect = effect_of(outcome(*pods), changed)
    kinds = {one.kind for one in (*verdict_of(effect).findings, *run_verdict(changed).findings)}
    assert (OutcomeKind.REPEATED in kinds) is (highest == 0)
    assert effect.loops == ((STARVING,) if highest == 0 else ())
    assert changed.recurrences == (STARVING,)


@pytest.mark.parametrize(("before", "after"), [(-10, -10), (-10, 0), (0, -10)])
def test_a_workload_with_another_priority_can_be_harmed(before, after):
    """One pod has no room; its other pod, which stays, may have another priority in either run."""
    spare = PodEnd(namespace="ns", name="s", node="a", owner=SPARE, priority=-10, is_initial=True)
    stays = replace(spare, name="t", priority=before)
    changed = outcome(
        replace(spare, node="", reason="0/2 nodes are available: 2 Insufficient cpu."),
        replace(stays, priority=after),
        recurrences=(replace(STARVING, workload=SPARE),),
        workloads={SPARE: ready(2, 1, 1, None)},
    )
    effect = effect_of(outcome(spare, stays), changed)
    is_negative = before == after
    [found] = effect.workloads
    assert (found.is_harmed, len(effect.loops)) == (not is_negative, 0 if is_negative else 1)


def test_pods_with_a_negative_priority_are_neither_unavailable_nor_the_verdict():
    """A new pod preempts the only such pod, which stays pending: the new pod is the verdict."""
    spare = PodEnd(namespace="ns", name="s", node="a", owner=SPARE, priority=-10, is_initial=True)
    why = "0/2 nodes are available: 2 Insufficient cpu."
    changed = outcome(
        HERE,
        pod("q", "a", 3),
        replace(spare, node="", reason=why),
        workloads={WEB: ready(2, 1, 2), SPARE: ready(1, 0, 0, None)},
    )
    effect = effect_of(outcome(HERE, spare), changed)
    findings = verdict_of(effect).findings
    assert [one.kind for one in findings] == [
        OutcomeKind.STARTED,
        OutcomeKind.NEGATIVE_PRIORITY_PENDING,
    ]
    assert [one.severity for one in findings] == [Severity.GOOD, Severity.WARNING]
    assert [one.workload for one in effect.workloads] == [WEB, SPARE]
    assert not any(one.is_harmed for one in effect.workloads)
    assert not check(parse_fail_on("workload-below=50%"), effect).holds


def test_worse_findings_are_listed_first():
    """A pod stays pending, and others are displaced: both are findings, in this order."""
    changed = outcome(
        pod("p", reason="0/2 nodes are available: 2 Insufficient cpu."),
        pod("q", "b", 3),
        evicted=(evicted(pod("q", "a", 0)),),
        workloads={WEB: ready(3, 2, 3)},
    )
    findings = verdict_of(effect_of(outcome(HERE, pod("q", "a", 0)), changed)).findings
    assert [one.kind for one in findings] == [OutcomeKind.PENDING, OutcomeKind.DISPLACED]
    assert [one.severity for one in findings] == [Severity.BAD, Severity.GOOD]


def test_a_budget_that_is_breached_and_blocks_evictions_is_the_cause_of_the_refusals():
    """Preemption breaches the budget of the pods, and the drain cannot evict one of them."""
    blocked = outcome(
        HERE,
        undrained=(Undrained(pod=HERE, cause=UndrainedCause.REFUSED, why="no"),),
        budgets=(replace(HISTORY, displaced=("ns/q",), refused=("ns/p",)),),
        pdb_breaches=(PdbBreach(pdb="ns/web", pod="ns/q", by="x", at=1),),
    )
    effect = effect_of(outcome(HERE), blocked)
    assert verdict_of(effect).first.sentence == (
        "The drain does not complete: 1 pod on 1 node cannot be evicted because of budget ns/web."
    )
    [budget] = effect.budgets
    assert budget.words == "breached, 1 pod displaced, blocks 1 pod"


def test_the_verdict_quotes_the_last_report_of_a_loop():
    """A loop is reported again when it goes on; the last report has the highest number."""
    reports = [
        Recurrence("cycle", f"a displaces b, b displaces a: {times} times", times, cycle=("a", "b"))
        for times in (2, 4)
    ]
    changed = outcome(HERE, recurrences=tuple(reports))
    assert verdict_of(effect_of(outcome(HERE), changed)).first.sentence == (
        "Workloads displace one another in a cycle: a displaces b, b displaces a: 4 times."
    )


def test_a_workload_that_is_displaced_often_but_runs_is_no_loop():
    """A lost pod is worse; without all pods at the end, or without an end, it is a loop."""
    bare = PodEnd(namespace="ns", name="q", node="a", started_at=0)
    loops = {"recurrences": (STARVING,), "evicted": (evicted(bare),)}
    before = outcome(HERE, bare)
    changed = outcome(HERE, **loops, workloads={WEB: ready(1, 0, 1)})
    kinds = [one.kind.value for one in verdict_of(effect_of(before, changed)).findings]
    assert kinds == ["gone", "briefly_unavailable", "repeated"]
    for worse in (
        outcome(HERE, **loops, workloads={WEB: ready(1, 0, 0)}),
        outcome(HERE, **loops, workloads={WEB: ready(1, 0, 1)}, settled=False),
    ):
        first = verdict_of(effect_of(before, worse)).first
        assert first.kind is OutcomeKind.LOOP


def test_a_workload_that_was_displaced_often_and_needs_no_pods_at_the_end_is_no_loop():
    """A Job fails, for example, when more of its pods were evicted than its backoffLimit allows."""
    failed = outcome(HERE, recurrences=(STARVING,), workloads={WEB: ready(0, 0, 0)})
    [finding] = verdict_of(effect_of(outcome(HERE), failed)).findings
    assert finding.kind is OutcomeKind.REPEATED
    assert finding.sentence.endswith(" times; deploy/ns/web needs no pods at the end.")


def test_a_pod_that_did_not_use_its_nominations_but_runs_is_no_loop():
    """Other pods took the room that preemption freed, and the pod found room elsewhere."""
    message = "preemption made room for pod ns/p 3 times in a row"
    found = {"recurrences": (Recurrence("wasted", message, 1, WEB),)}
    runs = outcome(HERE, **found, workloads={WEB: ready(2, 2, 2)})
    assert verdict_of(effect_of(outcome(HERE), runs)).first.kind is OutcomeKind.UNCHANGED
    waits = pod("p", reason="0/2 nodes are available: 2 Insufficient cpu.")
    lacks = outcome(HERE, waits, **found, workloads={WEB: ready(2, 1, 1)})
    pending, repeated = verdict_of(effect_of(outcome(HERE), lacks)).findings
    assert pending.kind is OutcomeKind.PENDING
    assert (repeated.kind, repeated.sentence) == (OutcomeKind.REPEATED, f"P{message[1:]}.")
    endless = replace(lacks, settled=False)
    assert verdict_of(effect_of(outcome(HERE), endless)).first.kind is OutcomeKind.LOOP


def test_an_autoscaler_that_acts_without_the_change_as_well_overrides_nothing():
    scaled = autoscaler(ReplicaChange(1, 6, 8, "load"))
    runs = outcome(HERE, pod_autoscalers=(scaled,)), outcome(HERE, pod_autoscalers=(scaled,))
    assert verdict_of(effect_of(*runs)).first.kind is OutcomeKind.UNCHANGED


def test_a_workload_that_is_displaced_often_is_not_said_to_displace_others():
    starving = Recurrence("starving", "pods of a have been displaced 21 times", 1)
    verdict = verdict_of(effect_of(outcome(HERE), outcome(HERE, recurrences=(starving,))))
    assert verdict.findings[0].sentence == "Pods of a have been displaced 21 times."


@pytest.mark.parametrize(
    ("reasons", "why"),
    [
        (["A", "A"], ": A"),
        (["B", "A", "B"], ". 2 pods: B. 1 pod: A"),
        (
            ["A", "B", "C", "D", "E"],
            ". 1 pod: A. 1 pod: B. 1 pod: C. 2 pods: other reasons",
        ),
    ],
    ids=["one reason", "most frequent first", "at most three"],
)
def test_the_sentence_about_pending_pods_lists_their_different_reasons(reasons, why):
    pods = [pod(f"w{n}", reason=f"0/2 nodes are available: 2 {r}.") for n, r in enumerate(reasons)]
    effect = effect_of(outcome(), outcome(*pods))
    assert (
        verdict_of(effect).first.sentence == f"{len(pods)} pods of deploy/ns/web stay pending{why}."
    )


def test_a_reason_that_is_a_sentence_has_one_period():
    """The reason of a pod that an admission webhook refused, for example."""
    pods = [pod("w0", reason="It was denied. Ask Bob."), pod("w1", reason="Its gate is closed.")]
    sentence = verdict_of(effect_of(outcome(), outcome(*pods))).first.sentence
    assert sentence.endswith(". 1 pod: It was denied. Ask Bob. 1 pod: Its gate is closed.")


def test_an_unfinished_drain_says_how_long_it_takes():
    """Two nodes at a time, each for 40 s: three turns for five nodes."""
    waiting = [replace(NOT_BACK, node=name, begun_at=None) for name in "cde"]
    with_drains = outcome(HERE, drains=(NOT_BACK, BACK, *waiting))
    found = verdict_of(effect_of(outcome(HERE), with_drains, NO_DRAIN)).first
    assert found.sentence.endswith("1 of 5 nodes is back; at this pace, it takes 2m00s.")


def test_an_unfinished_drain_takes_longer_than_the_time_that_has_passed():
    """Nodes that begin at 100 s and take 40 s are not back before 140 s."""
    late = [replace(NOT_BACK, node=name, begun_at=seconds(100)) for name in "cd"]
    with_drains = outcome(HERE, drains=(BACK, replace(BACK, node="a"), *late))
    found = verdict_of(effect_of(outcome(HERE), with_drains, NO_DRAIN)).first
    assert found.sentence.endswith("2 of 4 nodes are back; at this pace, it takes 2m20s.")


@pytest.mark.parametrize(("pending", "end"), [(1, "pod is"), (2, "pods are")])
def test_the_sentence_about_later_pods_counts_the_pending_pods(pending, end):
    """A StatefulSet can have several pending pods, for example if their nodes fail."""
    pods = [replace(pod(f"db-{at}", reason="Insufficient cpu"), owner=DB) for at in range(pending)]
    without = outcome(workloads={DB: ready(0, 0, 0)})
    found = effect_of(without, outcome(*pods, workloads={DB: ready(5, 0, 0)}))
    assert verdict_of(found).first.sentence.endswith(
        f" sts/ns/db creates {5 - pending} more pods only after its pending {end} ready "
        "(OrderedReady)."
    )


@pytest.mark.parametrize(
    ("fields", "count", "is_named"),
    [
        ({}, 1, True),
        ({"settled": False}, 1, False),
        ({"errors": (ObjectError("StatefulSet ns/db", "exceeded quota", 2, DB),)}, 1, False),
        ({}, 2, False),
    ],
    ids=["it waits", "the run has not settled", "the API server refuses them", "a pod is pending"],
)
def test_new_pods_are_said_to_wait_for_a_pod_only_if_nothing_else_explains_it(
    fields, count, is_named
):
    """A StatefulSet of 3 pods lacks pods; its second pod, if any, is newly pending."""
    first, second = (replace(pod(f"db-{at}", node), owner=DB) for at, node in enumerate(("a", "")))
    pods = [first, replace(second, reason="Insufficient cpu")][:count]
    changed = outcome(*pods, workloads={DB: ready(3, 1, 1)}, **fields)
    effect = effect_of(outcome(first, workloads={DB: ready(1, 1, 1)}), changed)
    kinds = {one.kind for one in verdict_of(effect).findings}
    assert (OutcomeKind.NOT_CREATED in kinds) == is_named


def test_pods_that_a_stateful_set_wants_to_delete_are_not_added_to_the_missing_pods():
    """Without the change, db has one pod too many and waits before it deletes this pod."""
    pods = [replace(pod(f"db-{at}", "a"), owner=DB) for at in range(2)]
    without = outcome(*pods, workloads={DB: ready(1, 1, 1)})
    found = effect_of(without, outcome(*pods, workloads={DB: ready(4, 1, 1)}))
    assert verdict_of(found).first.sentence.startswith("2 pods of sts/ns/db are not created: ")


def test_a_budget_that_is_deleted_from_the_start_blocks_no_drains():
    """The run with the change has no history of this budget."""
    gone = replace(HISTORY, allowed_at_end=0, refused=HISTORY.displaced, never_allows=True)
    effect = effect_of(outcome(HERE, budgets=(gone,)), outcome(HERE), NO_DRAIN)
    [budget] = effect.budgets
    assert (budget.blocks_drains, budget.displaced, budget.delayed) == (False, 0, 0)
    sentence = verdict_of(effect).first.sentence
    assert " is deleted (it allowed " in sentence
    assert "needs all its pods" not in sentence


def test_new_budgets_that_need_all_their_pods_block_drains():
    new = replace(HISTORY, displaced=(), allowed_at_end=0)
    a, b, c = (replace(new, pdb=f"ns/{name}", never_allows=name != "c") for name in "abc")
    blocks = "so the eviction of a ready pod is never allowed, and a drain of its node blocks."
    for budgets, said in (
        ((a,), f" It needs all its pods, {blocks}"),
        ((a, c), f" ns/a needs all its pods, {blocks}"),
        ((a, b, c), f" ns/a, ns/b need all their pods, {blocks}"),
        ((c,), ", and nothing changes for any pod."),
    ):
        effect = effect_of(outcome(HERE), outcome(HERE, budgets=budgets), NO_DRAIN)
        assert verdict_of(effect).first.sentence.endswith(said)
