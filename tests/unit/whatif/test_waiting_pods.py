"""Pods that wait in the dump: those that only one run places, and those that preempt in both."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.outcome.assessment.verdict import verdict_of
from fairlead.whatif.question import what_if


def test_pods_that_wait_from_the_start_to_the_end_are_wanted(make, snapshot):
    """Without the change, a waiting pod of the Job preempts the pod on node b, which fails."""
    victim = make.pod("victim", node_name="b", priority=-1)
    pods = [make.pod(name, owner="j", priority=5) for name in ("j-1", "j-2")]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    dump = snapshot(make.node("b", "1"), victim, *pods)
    rows = what_if(dump, ClusterChange(failures=Failures(fail_node=("b",)))).effect.workloads
    (row,) = (row for row in rows if row.workload.kind == "Job")
    assert row.short_words == "1 pending"
    ready = row.readiness
    assert (ready.wanted, ready.before, ready.lowest, ready.at_end) == (2, 0, 0, 0)


def test_pods_that_are_preempted_in_both_runs_are_noted(make, snapshot):
    """The waiting pod preempts two pods of the Job `low`, with or without the change."""
    low = [make.pod(f"low-{n}", node_name="a", owner="low", priority=-1) for n in range(2)]
    for pod in low:
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    waiting = make.pod("big", cpu="2", priority=5)
    dump = snapshot(make.node("a", "2"), make.node("b", "1"), *low, waiting)
    answer = what_if(dump, ClusterChange(cordon=("b",)))
    assert (
        "Without the change, too, 2 pods are preempted or evicted: 2 of job/default/low."
        in answer.changed.notes
    )
    calm = snapshot(make.node("a", "2"), make.node("b", "1"), *low)
    assert not any("Without" in one for one in what_if(calm, ClusterChange()).changed.notes)


@pytest.mark.parametrize(
    ("stateful", "others", "clause"),
    [
        (1, 0, "; its StatefulSet waits until the failed node returns."),
        (1, 1, "; 1 of them, of StatefulSets, waits until its failed node returns."),
        (2, 1, "; 2 of them, of StatefulSets, wait until their failed nodes return."),
        (0, 2, "."),
    ],
)
def test_the_verdict_counts_stateful_pods_that_wait_for_their_failed_nodes(
    make, snapshot, stateful, others, clause
):
    """A failed kubelet confirms deletions when it returns; the other node has room."""
    objects = [make.node("a"), make.node("b")]
    for kind, name, count in (("StatefulSet", "db", stateful), ("ReplicaSet", "web", others)):
        workload = make.workload(kind, name, replicas=count)
        workload["metadata"]["uid"] = name
        workload["spec"] |= {"podManagementPolicy": "Parallel"} if name == "db" else {}
        objects.append(workload)
        for number in range(count):
            pod = make.pod(f"{name}-{number}", node_name="a", owner=name)
            pod["metadata"]["ownerReferences"][0]["kind"] = kind
            pod["metadata"]["labels"] = {"app": name}
            objects.append(pod)
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts="30m")
    findings = verdict_of(what_if(snapshot(*objects), change).effect).findings
    [found] = [one for one in findings if " displaced" in one.sentence]
    assert found.sentence.endswith(clause)
