"""Pods that wait in the dump: those that only one run places, and those that preempt in both."""

from __future__ import annotations

import shlex

import pytest
from msgspec.structs import replace

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
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
    ("stateful", "others", "end"),
    [
        (1, 0, "is displaced and runs again only when its failed node returns, after 30m01s."),
        (1, 1, "is displaced and runs again only when its failed node returns, after 30m01s."),
        (2, 1, "are displaced and run again only when their failed node returns, after 30m01s."),
        (0, 2, ""),
    ],
)
def test_the_verdict_names_stateful_sets_whose_pods_wait_for_their_failed_nodes(
    make, snapshot, stateful, others, end
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
    effect = what_if(snapshot(*objects), change).effect
    findings = verdict_of(effect).findings
    [found] = [one for one in findings if " displaced" in one.sentence]
    who = f"{stateful} pod{'s' if stateful > 1 else ''} of sts/default/db {end}"
    assert found.sentence.endswith(who if stateful else "all run again within 5m51s.")
    assert ("run again within" in found.sentence or "runs again after" in found.sentence) == bool(
        others
    )
    rows = [one for one in effect.workloads if one.workload.name == "db"]
    words = ("back when the node returned (taint unreachable)", "waited for the failed node")
    assert [one.is_harmed for one in rows] == [True][: stateful > 0]
    assert all(one.short_words.endswith(words) for one in rows)


def stateful_pod(make, name, node, **fields):
    """Return a StatefulSet with one pod on `node`, and this pod."""
    owner = make.workload("StatefulSet", name, replicas=1, **fields)
    owner["metadata"]["uid"] = name
    pod = make.pod(f"{name}-0", node_name=node, owner=name, **fields)
    pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    pod["metadata"]["labels"] = {"app": name}
    return owner, pod


FAIL_A = Failures(fail_node=("a",))
TAINT = "kubectl taint nodes a node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


@pytest.mark.parametrize(
    ("lasts", "step"),
    [
        pytest.param(
            "8h",
            "if the failed node is shut down, have the pods replaced elsewhere; when the kubelet "
            "runs again, remove the taint",
            id="a night",
        ),
        pytest.param("30m", "", id="less than an hour"),
    ],
)
def test_pods_of_a_stateful_set_can_be_replaced_during_a_long_failure(make, snapshot, lasts, step):
    dump = snapshot(make.node("a"), make.node("b"), *stateful_pod(make, "db", "a"))
    answer = what_if(dump, ClusterChange(failures=FAIL_A, lasts=lasts))
    steps = [one.words for one in answer.next_steps if one.command == TAINT]
    assert steps == ([step] if step else [])


def test_a_copy_of_the_failed_node_is_suggested_if_no_other_node_has_room(make, snapshot):
    dump = snapshot(
        make.node("a", "2"), make.node("b", "1"), *stateful_pod(make, "db", "a", cpu="2")
    )
    change = ClusterChange(failures=FAIL_A, lasts="8h")
    answer = what_if(dump, change)
    words = "ask again with the failed node marked as out of service, and with a new node like it"
    [step] = [one for one in answer.next_steps if one.words == words]
    assert step.options.startswith("--add-nodes 1 --like a --set 'node/a:spec.taints=")
    [edit] = shlex.split(step.options)[5:]
    followed = what_if(dump, replace(change, add_nodes=1, like="a", set=(edit,)))
    [row] = [one for one in followed.effect.workloads if one.workload.name == "db"]
    assert row.readiness.lowest_for < 600 * 10**9


def test_no_copy_of_a_failed_node_is_suggested_that_changes_which_nodes_fail(make, snapshot):
    """With one more node, the fraction selects another node."""
    nodes = make.node("a", "2"), make.node("b", "1")
    failures = Failures(fail_fraction=("20%",))
    dump = snapshot(*nodes, *stateful_pod(make, "db", "a", cpu="2"))
    answer = what_if(dump, ClusterChange(failures=failures, lasts="8h"), Conditions(seed=2))
    assert [one.node for one in answer.outage.nodes] == ["a"]
    assert not any("--like" in one.options for one in answer.next_steps)


def test_the_verdict_says_who_takes_the_room_of_a_node_that_returns(make, snapshot):
    """`old` has a higher priority than the replacement of the evicted pod, but preempts none."""
    web = make.workload("ReplicaSet", "web", replicas=1, cpu="2")
    web["metadata"]["uid"] = "web"
    running = make.pod("web-0", cpu="2", node_name="a", owner="web")
    running["metadata"]["labels"] = {"app": "web"}
    old = make.pod("old", cpu="2", priority=1000)
    old["spec"]["preemptionPolicy"] = "Never"
    dump = snapshot(make.node("a", "2"), make.node("b", "1"), web, running, old)
    change = ClusterChange(failures=FAIL_A, lasts="30m")
    sentences = [one.sentence for one in what_if(dump, change).verdict.findings]
    assert any(
        "When a returned, pod/default/old was placed there first." in one for one in sentences
    )
