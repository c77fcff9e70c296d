"""Explanations of workloads, nodes and budgets, and of pods that do not exist yet."""

from __future__ import annotations

import re

import pytest
from tests.unit.whatif.planner.conftest import job_of, overprovisioned

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.batch.options import BatchOptions
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.pod import explain_new_pod, explain_pod, explanation_json
from fairlead.whatif.explain.target import explain_object, group_to_explain, new_pod_to_explain
from fairlead.whatif.input.error import InputError

ZONE = "topology.kubernetes.io/zone"
READY = [{"type": "Ready", "status": "True"}]
FIT_NOWHERE = (
    "After a drain of a, 2 pods of 2 workloads fit on no node: default/web-1, default/web-2"
)


def replica(make, number, node, *, ready=True, cpu="1", **spec):
    pod = make.pod(f"web-{number}", node_name=node, owner="web", cpu=cpu, **spec)
    pod["metadata"]["labels"] = {"app": "web"}
    if ready and node:
        pod["status"]["conditions"] = READY
    return pod


def replica_set(make, replicas, **spec):
    web = make.workload("ReplicaSet", "web", replicas=replicas, **spec)
    web["metadata"]["uid"] = "web"
    return web


def budget(minimum, name="web"):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": {"app": "web"}}},
    }


@pytest.fixture
def explained(snapshot):
    def explain(target, *objects):
        return explain_object(snapshot(*objects), target, SchedulerConfig(), NO_CHOICE)

    return explain


def test_an_object_that_a_custom_resource_owns_may_have_any_spec(explained, make):
    api, meta = "example.com/v1", {"namespace": "default", "uid": "w"}
    owner = {"apiVersion": api, "kind": "Widget", "metadata": {**meta, "name": "w"}}
    reference = {"apiVersion": api, "kind": "Widget", "name": "w", "uid": "w", "controller": True}
    owned = {"name": "part", "namespace": "default", "ownerReferences": [reference]}
    part = {"apiVersion": api, "kind": "Part", "metadata": owned, "spec": "one"}
    pod = make.pod("part-0", node_name="n")
    pod["metadata"]["ownerReferences"] = [{**reference, "kind": "Part", "name": "part"}]
    with pytest.raises(InputError, match="; Part default/part controls its pods: name that"):
        explained("widget/w", make.node("n"), owner, part, pod)


def rows(answer, name):
    return [dict(row) for table in answer.tables if table.name == name for row in table.rows]


CRASH = {
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off of pod web-2"}},
    "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
}
NO_SECRET = {
    "state": {
        "waiting": {"reason": "CreateContainerConfigError", "message": 'secret "s" not found'}
    }
}


@pytest.mark.parametrize(
    ("status", "ready", "why"),
    [
        ({"containerStatuses": [{"name": "c", **CRASH}]}, True,
         "CrashLoopBackOff (container c): the last exit code is 137 (OOMKilled)"),
        ({"containerStatuses": [{"name": "c", **NO_SECRET}]}, True,
         'CreateContainerConfigError (container c): secret "s" not found'),
        ({"initContainerStatuses": [{"name": "i", **CRASH}]}, True,
         "Init:CrashLoopBackOff (container i): the last exit code is 137 (OOMKilled)"),
        ({"containerStatuses": [{"name": "c", "ready": False, "state": {"running": {}}}]}, True,
         "container c is not ready"),
        ({"containerStatuses": [{"name": "c", "ready": True, "state": {"running": {}}}]}, True,
         "readiness gate lb is not True"),
        ({"containerStatuses": [{"name": "c", "ready": True, "state": {"running": {}}}]}, False,
         "its node is not Ready"),
    ],
)  # fmt: skip
def test_a_workload_names_its_pods_that_are_not_ready(explained, make, status, ready, why):
    """The verdict says that both wanted pods are ready; the third pod is of a stuck rollout."""
    pods = [replica(make, number, "a", ready=number < 2) for number in range(3)]
    pods[2]["spec"] |= {"nodeName": "b", "readinessGates": [{"conditionType": "lb"}]}
    pods[2]["status"] |= {"phase": "Running", **status}
    condition = {"type": "Ready", "status": "True" if ready else "Unknown"}
    nodes = make.node("a"), make.node("b")
    nodes[1]["status"]["conditions"] = [condition]
    answer = explained("rs/web", *nodes, replica_set(make, 2), *pods)
    assert answer.verdict == "All 2 wanted pods of rs/default/web are ready."
    assert rows(answer, "unready") == [{"pods": 1, "pod": "default/web-2", "why": why}]
    budget_answer = explained("pdb/web", *nodes, replica_set(make, 2), *pods, budget(1))
    assert rows(budget_answer, "unready") == [{"pod": "default/web-2", "node": "b", "why": why}]


@pytest.mark.parametrize("ready", [False, True])
def test_pods_on_a_missing_node_are_named(explained, make, ready):
    """As after the deletion of a Node, before pod garbage collection deletes its pods."""
    pods = [replica(make, 0, "a"), replica(make, 1, "gone", ready=ready)]
    objects = make.node("a"), replica_set(make, 2), *pods, budget(1)
    answer = explained("rs/web", *objects)
    why = "its node does not exist"
    assert answer.verdict == "1 of 2 wanted pods of rs/default/web is ready: 1 not ready."
    assert rows(answer, "unready") == [{"pods": 1, "pod": "default/web-1", "why": why}]
    assert [(one["zone"], one["pods"], one["ready"]) for one in rows(answer, "zones")] == [
        ("no zone", 1, 1),
        ("node is missing", 1, 0),
    ]
    answer = explained("pdb/web", *objects)
    unready = [] if ready else [{"pod": "default/web-1", "node": "gone", "why": why}]
    assert rows(answer, "unready") == unready  # the disruption controller reads only the condition
    assert [one["node"] for one in rows(answer, "nodes")] == ["a"]


def test_a_daemon_set_names_the_nodes_on_which_it_has_no_pod(explained, make):
    """The pod on b has failed; c has a taint, and gets no pod."""
    nodes = [make.node(name) for name in "abc"]
    nodes[2]["spec"] = {"taints": [{"key": "x", "effect": "NoSchedule"}]}
    daemons = make.workload("DaemonSet", "web")
    daemons["metadata"]["uid"] = "web"
    pods = [replica(make, 0, "a"), replica(make, 1, "b", ready=False)]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    pods[1]["status"] = {"phase": "Failed", "reason": "Evicted"}
    answer = explained("ds/web", *nodes, daemons, *pods)
    assert answer.verdict == "1 of 2 wanted pods of ds/default/web is ready: 1 not created."
    assert answer.findings[0] == "It has no pod on b."
    answer = explained("ds/web", nodes[0], nodes[2], daemons, pods[0])
    assert answer.verdict == "The wanted pod of ds/default/web is ready."
    pods[1] = replica(make, 1, "b")
    pods[1]["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    pods[1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    answer = explained("ds/web", *nodes, daemons, *pods)
    assert answer.verdict == "1 of 2 wanted pods of ds/default/web is ready: 1 not created."
    assert answer.findings[0] == "1 more pod of the workload is terminating."
    daemons["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    daemons["metadata"]["finalizers"] = ["foregroundDeletion"]
    answer = explained("ds/web", *nodes, daemons, pods[0])
    assert answer.verdict == "The wanted pod of ds/default/web is ready."
    assert answer.findings[0] == "It is being deleted, so its controller creates no pods."


CLAIM = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "x"}}


@pytest.mark.parametrize(("cpu", "waits"), [("9", True), ("1", False)])
def test_the_explanation_of_a_pod_without_room_names_a_node_to_come(snapshot, make, cpu, waits):
    taken = snapshot(make.node("a"), make.pod("p", cpu=cpu), CLAIM)
    notes = explain_pod(taken, "pod/default/p", SchedulerConfig()).notes
    assert any(one.startswith("NodeClaim x has no Node yet") for one in notes) == waits


def test_the_explanation_of_a_pod_without_room_names_the_autoscalers(snapshot, make):
    deployment = make.workload(name="ca", namespace="kube-system", replicas=0)
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "cluster-autoscaler"
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "x"}}
    names = {deployment["kind"]: "a Cluster Autoscaler", "NodePool": "NodePools of Karpenter"}
    for installed in ([deployment], [pool], [pool, deployment]):
        taken = snapshot(make.node("a"), make.pod("p", cpu="9"), *installed)
        found = explain_pod(taken, "pod/default/p", SchedulerConfig()).notes
        notes = [one for one in found if "not simulated" in one]
        for note, one in zip(notes, installed, strict=True):
            assert note.startswith(f"The dump has {names[one['kind']]}, which is not simulated")


@pytest.mark.parametrize(("room", "is_named"), [("8", False), ("1", True)])
def test_a_node_whose_pods_fit_nowhere_names_the_autoscaler(explained, make, room, is_named):
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}}
    nodes = [make.node("a"), make.node("b", cpu=room)]
    notes = explained("node/a", *nodes, replica(make, 0, "a", cpu="2"), pool).notes
    assert any(one.startswith("The dump has NodePools of Karpenter") for one in notes) == is_named


@pytest.mark.parametrize(("node", "waits"), [("", True), ("a", False)])
def test_the_explanation_of_pending_pods_names_a_node_to_come(explained, make, node, waits):
    pod = replica(make, 0, node, cpu="9")
    notes = explained("rs/web", make.node("a"), replica_set(make, 1), pod, CLAIM).notes
    assert any(one.startswith("NodeClaim x has no Node yet") for one in notes) == waits


def test_a_node_lists_its_evictable_pods_and_says_that_its_drain_succeeds(explained, make):
    bare = make.pod("bare", node_name="a")
    huge = make.pod("huge", node_name="a", owner="rs", cpu="3")
    nodes = [make.node("a", cpu="8"), make.node("b")]
    answer = explained("node/a", *nodes, replica(make, 1, "a"), bare)
    assert answer.verdict == (
        "a can be drained: 1 pod moves to another node, but 1 pod without a controller is gone "
        "for good."
    )
    [note] = answer.notes
    assert re.search(r"fairlead drain-plan \S*/snapshot.json --nodes a also simulates", note)
    assert answer.facts["can_be_drained"]
    leaves = {row["pod"]: row["leaves"] for row in rows(answer, "pods")}
    assert leaves == {
        "default/bare": "yes, but it is gone for good: no controller creates it again",
        "default/web-1": "yes, to b",
    }
    answer = explained("node/a", *nodes, *(replica(make, n, "a") for n in range(3)), huge)
    assert answer.verdict.startswith("A drain of a would leave 2 pods of rs/default/web pending: ")
    assert not answer.facts["can_be_drained"]
    assert {row["leaves"] for row in rows(answer, "pods")} == {"yes, to b"}  # each pod alone


def test_a_pod_that_comes_back_to_the_cordoned_node_does_not_move(explained, make):
    """The drained node is the emptiest, and the pod tolerates its taint."""
    pod = replica(make, 0, "a", tolerations=[{"operator": "Exists"}])
    full = make.pod("full", node_name="b", owner="rs", cpu="3")
    answer = explained("node/a", make.node("a"), make.node("b"), pod, full)
    assert answer.verdict == "a can be drained: its 1 pod comes back to the cordoned node."
    assert [row["leaves"] for row in rows(answer, "pods")] == [
        "no: comes back, may run on cordoned nodes"
    ]


def test_a_node_names_its_pods_that_are_pending_in_the_dump(explained, make):
    """Plans place pending pods first, so the pods of the node differ from those in the dump."""
    pods = [replica(make, 0, "a"), replica(make, 1, "")]
    named = "1 of these pods has no node in the dump; the scheduler would place it on a"
    answer = explained("node/a", make.node("a"), *pods)
    assert f"{named}: default/web-1." in answer.findings
    assert not any(
        "in the dump" in one for one in explained("no/a", make.node("a"), pods[0]).findings
    )


def test_a_node_names_its_pods_that_pending_pods_would_preempt(explained, make):
    """Their replacement is pending, so the table of the node does not list them."""
    running = make.pod("running", node_name="a", owner="rs", cpu="3")
    pending = make.pod("important", owner="rs", cpu="3", priority=9)
    answer = explained("node/a", make.node("a"), running, pending)
    assert [row["pod"] for row in rows(answer, "pods")] == ["default/important"]
    assert (
        "1 pod of the node is not listed, because pods without a node in the dump would preempt "
        "it: default/running." in answer.findings
    )


def test_a_node_names_its_pods_that_created_pods_would_preempt(explained, make):
    """The ReplicaSet lacks its pod, so the controllers act before the node is explained."""
    running = make.pod("running", node_name="a", owner="rs", cpu="3")
    web = replica_set(make, 1, cpu="3", priorityClassName="high")
    answer = explained("node/a", make.node("a"), running, make.priority_class("high", 9), web)
    [row] = rows(answer, "pods")
    assert row["workload"] == "rs/default/web"
    assert (
        "1 pod of the node is not listed, because pods without a node in the dump would preempt "
        "it: default/running." in answer.findings
    )


def test_a_node_says_where_its_pods_go_alone_and_together(explained, make):
    """Each pod alone would go to `b`, which does not have room for both."""
    nodes = [make.node("a"), make.node("b"), make.node("c", cpu="2")]
    pods = [replica(make, number, "a", cpu="2") for number in range(2)]
    answer = explained("node/a", *nodes, *pods, make.pod("used", node_name="b", cpu="1"))
    assert answer.verdict == "a can be drained: its 2 pods move to 2 other nodes."
    assert [row["leaves"] for row in rows(answer, "pods")] == ["yes, to b", "yes, to b"]
    assert sorted(row["drained_to"] for row in rows(answer, "pods")) == ["b", "c"]


def test_a_node_says_that_a_drain_needs_preemption(explained, make):
    """A drained pod preempts in a what-if; plans do not rely on that."""
    important = make.pod("important", node_name="a", owner="rs", cpu="3", priority=9)
    other = make.pod("other", node_name="b", owner="rs", cpu="3")
    answer = explained("node/a", make.node("a"), make.node("b"), important, other)
    assert answer.verdict.startswith("After a drain of a, default/important fits on no node: Insuf")
    assert answer.verdict.endswith("; it would preempt pods of lower priority.")
    assert not answer.facts["can_be_drained"]
    [row] = rows(answer, "pods")
    assert row["leaves"] == "only by preemption: to b, where it would preempt default/other"


@pytest.mark.parametrize(
    ("high", "says"),
    [
        (0, "A drain of a leaves 2 pods of 2 workloads pending: default/web-1, default/web-2."),
        (1, f"{FIT_NOWHERE}. Those of 1 workload would preempt pods of lower priority."),
        (2, f"{FIT_NOWHERE}. They would preempt pods of lower priority."),
    ],
)
def test_the_pods_of_several_workloads_may_preempt_after_a_drain(explained, make, high, says):
    objects = [make.node("a"), make.node("b")]
    for number in (1, 2):
        priority = 9 * (number <= high)
        objects.append(
            make.pod(
                f"web-{number}", node_name="a", owner=f"rs-{number}", cpu="1500m", priority=priority
            )
        )
    objects.append(make.pod("other", node_name="b", owner="other", cpu="3500m"))
    assert explained("node/a", *objects).verdict == says


def test_a_node_counts_all_pods_that_a_drain_leaves_pending(explained, make):
    """`b` has room for one replica; `huge`, which comes first, fits nowhere."""
    nodes = [make.node("a", cpu="16"), make.node("b")]
    huge = make.pod("huge", node_name="a", owner="rs", cpu="9", priority=9)
    pods = [replica(make, number, "a", cpu="2500m") for number in range(3)]
    answer = explained("node/a", *nodes, huge, replica_set(make, 3), *pods)
    assert answer.verdict == (
        "A drain of a leaves 3 pods of 2 workloads pending: default/huge, 2 pods of rs/default/web."
    )
    assert {row["pod"]: row["pending"] for row in rows(answer, "blockers")} == {
        "default/huge": 1,
        "default/web-1": 2,
    }
    answer = explained("node/a", *nodes, replica_set(make, 3), *pods)
    assert answer.verdict.startswith("A drain of a would leave 2 pods of rs/default/web pending: ")


def test_a_node_says_which_budget_blocks_its_drain(explained, make):
    pods = [replica(make, number, "a") for number in range(2)]
    objects = [make.node("a"), make.node("b"), replica_set(make, 2), *pods, budget(2)]
    answer = explained("no/a", *objects)
    assert answer.verdict == (
        "a cannot be drained now: pdb/default/web refuses the eviction of 2 pods."
    )
    [first, _] = rows(answer, "blockers")
    assert first["owner"] == "pdb/default/web"
    assert rows(answer, "edits")


def test_a_node_says_how_many_budgets_block_its_drain(explained, make):
    other = budget(1, name="db")
    other["spec"]["selector"]["matchLabels"] = {"app": "db"}
    db = make.pod("db", node_name="a")
    db["metadata"]["labels"] = {"app": "db"}
    pods = [replica(make, number, "a") for number in range(2)]
    objects = [make.node("a"), make.node("b"), replica_set(make, 2), *pods, budget(2), db, other]
    assert explained("node/a", *objects).verdict == (
        "a cannot be drained now: pdb/default/db and 1 more refuse the eviction of 3 pods."
    )


def test_a_drain_that_makes_a_job_fail_is_named(explained, make):
    job = job_of(make, "a", backoffLimit=0)
    answer = explained("node/a", make.node("a"), make.node("b"), replica(make, 1, "a"), *job)
    assert answer.verdict == (
        "a can be drained: 1 pod moves to another node, but Job default/j fails, because evicted "
        "pods count as failures."
    )
    leaves = {row["pod"]: row["leaves"] for row in rows(answer, "pods")}
    assert leaves["default/j-0"].startswith("yes, but its Job fails")
    alone = explained("node/a", make.node("a"), make.node("b"), *job)
    assert alone.verdict.startswith("a can be drained, but Job default/j fails")


def test_a_drain_that_loses_all_pods_is_not_said_to_move_none(explained, make):
    bare = [make.pod(f"bare-{index}", node_name="a") for index in range(2)]
    answer = explained("node/a", make.node("a"), make.node("b"), *bare)
    assert answer.verdict == (
        "a can be drained, but 2 pods without a controller are gone for good."
    )
    job = job_of(make, "a", backoffLimit=0)
    answer = explained("node/a", make.node("a"), make.node("b"), bare[0], *job)
    assert answer.verdict == (
        "a can be drained, but 1 pod without a controller is gone for good and Job default/j "
        "fails, because evicted pods count as failures."
    )


def test_a_node_whose_kubelet_does_not_answer_cannot_be_drained(explained, make):
    silent = make.node("a")
    silent["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    answer = explained("node/a", silent, make.node("b"), replica(make, 1, "a"))
    why = "its kubelet does not answer, so evicted pods never stop"
    assert answer.verdict == "a is not Ready (Unknown)."
    assert answer.findings[0] == f"a cannot be drained now: {why}."
    [blocker] = rows(answer, "blockers")
    assert (blocker["owner"], blocker["why"]) == ("node/a", why)
    pattern = r"fairlead whatif \S*/snapshot.json --fail-node a compares two cases: "
    assert any(re.match(pattern, note) for note in answer.notes)
    ready = explained("node/b", silent, make.node("b"), replica(make, 1, "b"))
    assert not any("--fail-node" in note for note in ready.notes)


def test_a_node_whose_kubelet_does_not_answer_says_how_many_pods_are_terminating(explained, make):
    silent = make.node("a")
    silent["status"]["conditions"] = [
        {"type": "Ready", "status": "Unknown", "reason": "Lost", "message": "No status."}
    ]
    leaving = replica(make, 1, "a")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    answer = explained("node/a", silent, make.node("b"), leaving, replica(make, 2, "a"))
    assert answer.verdict == "a is not Ready (Lost): No status."
    assert (
        "1 of its 2 pods is terminating, and stays so until the kubelet answers, or the node is "
        "deleted or tainted node.kubernetes.io/out-of-service."
    ) in answer.findings


def test_a_node_says_which_taints_pods_must_tolerate(explained, make):
    agent = "node.cilium.io/agent-not-ready"
    keys = ("dedicated", agent, "node.kubernetes.io/not-ready")
    node = make.node("a")
    node["spec"] = {"taints": [{"key": key, "effect": "NoSchedule"} for key in keys]}
    findings = explained("node/a", node).findings
    assert [one for one in findings if "toleration" in one] == [
        "Pods need tolerations for dedicated:NoSchedule.",
        f"Until its agent is ready, pods need a toleration for {agent}:NoSchedule.",
    ]


def test_the_taint_out_of_service_lets_a_silent_node_be_drained(explained, make):
    """The pod garbage collector deletes the terminating pods of such a node."""
    silent = make.node("a")
    silent["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    silent["spec"] = {"taints": [taint]}
    answer = explained("node/a", silent, make.node("b"), replica(make, 1, "a"))
    assert answer.findings[0] == "a can be drained: its 1 pod moves to another node."


@pytest.mark.parametrize(
    ("minimum", "ready", "verdict"),
    [
        (1, 3, "allows 2 disruptions now: 3 ready, 1 needed."),
        (3, 3, "never allows a disruption: it needs 3 ready of 3 wanted pods."),
        (2, 2, "allows no disruption now: 2 ready, 2 needed; with all ready it allows 1 disr"),
    ],
)
def test_a_budget_says_what_it_allows(explained, make, minimum, ready, verdict):
    pods = [replica(make, number, "a", ready=number < ready) for number in range(3)]
    objects = [make.node("a"), replica_set(make, 3), *pods, budget(minimum)]
    answer = explained("pdb/web", *objects)
    assert answer.verdict.startswith(f"pdb/default/web (minAvailable {minimum}) {verdict}")
    assert len(rows(answer, "unready")) == 3 - ready
    assert rows(answer, "workloads") == [
        {"workload": "rs/default/web", "pods": 3, "ready": ready, "nodes": 1}
    ]


@pytest.mark.parametrize(
    ("minimum", "pool", "drain"),
    [
        (1, "", "is allowed"),
        (2, "", "evicts the pods one after another, when replacements are ready"),
        (2, "db", "stops after 1 pod: a replacement fits no node (WHY)"),
        (1, "db", "is allowed, but 2 replacements fit no node (WHY)"),
    ],
)
def test_a_budget_says_if_a_replacement_fits_no_node(explained, make, minimum, pool, drain):
    """Two of three pods are on node a, the only node of pool db."""
    where = {"nodeSelector": {"pool": pool}} if pool else {}
    pods = [replica(make, number, "b" if number else "a", **where) for number in (0, 1)]
    pods.append(replica(make, 2, "a", **where))
    nodes = [make.node("a", pool="db"), make.node("b")]
    answer = explained("pdb/web", *nodes, replica_set(make, 3, **where), *pods, budget(minimum))
    why = "node(s) didn't match Pod's node affinity/selector, node(s) were unschedulable"
    [first, second] = rows(answer, "nodes")
    assert (first["node"], first["drain"]) == ("a", drain.replace("WHY", why))
    assert (first["unplaced"], second["unplaced"]) == (2 if pool else 0, 0)
    assert second["drain"] == "is allowed"


def drains(answer):
    return {row["node"]: row["drain"] for row in rows(answer, "nodes")}


@pytest.mark.parametrize(
    ("minimum", "drain"),
    [
        (0, "is allowed"),
        (1, "stops after 1 pod: nothing replaces its pods without a controller"),
    ],
)
def test_a_budget_loses_no_more_pods_without_a_controller_than_it_can_spare(
    explained, make, minimum, drain
):
    """After the eviction of one of the two pods, the budget never allows to evict the other."""
    pods = [make.pod(f"bare-{number}", node_name="a") for number in range(2)]
    for one in pods:
        one["metadata"]["labels"], one["status"]["conditions"] = {"app": "web"}, READY
    answer = explained("pdb/web", make.node("a"), make.node("b"), *pods, budget(minimum))
    assert drains(answer) == {"a": drain}


def test_a_drain_of_a_silent_node_never_ends(explained, make):
    """The API server evicts the terminating pod at once, but the pod stays."""
    silent = make.node("a")
    silent["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    leaving = replica(make, 0, "a", ready=False)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    pods = [leaving, replica(make, 1, "b"), replica(make, 2, "b")]
    answer = explained("pdb/web", silent, make.node("b"), replica_set(make, 2), *pods, budget(1))
    assert drains(answer)["a"] == "never ends: the kubelet does not answer"


def test_no_node_with_pods_of_two_budgets_can_be_drained(explained, make):
    pods = [replica(make, number, "a") for number in range(2)]
    objects = [make.node("a"), make.node("b"), replica_set(make, 2), *pods]
    answer = explained("pdb/web", *objects, budget(1), budget(1, "other"))
    assert drains(answer) == {"a": "is refused: several budgets select a pod"}
    assert [row["edit"] for row in rows(answer, "edits")] == ["kubectl -n default delete pdb web"]


def test_a_budget_with_always_allow_does_not_keep_pods_that_are_not_ready(explained, make):
    pods = [replica(make, 0, "a", ready=False), replica(make, 1, "b")]
    nodes = [make.node("a"), make.node("b")]
    strict = budget(2)
    strict["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    answer = explained("pdb/web", *nodes, replica_set(make, 2), *pods, strict)
    assert drains(answer) == {"a": "is allowed", "b": "is refused"}


def test_a_drain_that_another_budget_refuses_is_not_called_allowed(explained, make):
    pods = [replica(make, number, "a") for number in range(2)]
    single = make.pod("db-0", node_name="a", owner="db")
    single["metadata"]["labels"] = {"app": "db"}
    single["status"]["conditions"] = READY
    other = budget(1, "db")
    other["spec"]["selector"] = {"matchLabels": {"app": "db"}}
    database = make.workload("ReplicaSet", "db", replicas=1)
    database["metadata"]["uid"] = "db"
    objects = [make.node("a"), make.node("b"), replica_set(make, 2), database, *pods, single]
    answer = explained("pdb/web", *objects, budget(1), other)
    assert drains(answer) == {"a": "is refused now by pdb/default/db"}


def test_a_budget_without_pods_or_with_another_one_says_so(explained, make):
    answer = explained("pdb/web", make.node("a"), budget(1))
    assert "selects no pod, so it protects nothing" in answer.verdict
    pods = [replica(make, 1, "a")]
    answer = explained("pdb/web", make.node("a"), *pods, budget(1), budget(1, "other"))
    [finding] = answer.findings
    assert finding == (
        "pdb/default/other selects 1 pod (default/web-1) too: the eviction API refuses pods with "
        "several budgets."
    )


def test_a_workload_says_why_its_pods_are_pending_and_where_one_more_would_run(explained, make):
    nodes = [make.node("a", **{ZONE: "x"}), make.node("b", **{ZONE: "y"})]
    pods = [
        replica(make, 1, "a"),
        replica(make, 2, "b", ready=False),
        replica(make, 3, "", cpu="9"),
    ]
    answer = explained("rs/web", *nodes, replica_set(make, 4), *pods, budget(1))
    assert answer.verdict == (
        "1 of 4 wanted pods of rs/default/web is ready: 1 pending, 1 not created, 1 not ready."
    )
    too_small = "no node is large enough; the largest has 4 cpu"
    assert rows(answer, "pending") == [{"pods": 1, "pod": "default/web-3", "why": too_small}]
    assert answer.findings[0].startswith("One more pod would go to ")
    assert [row["zone"] for row in rows(answer, "zones")] == ["x", "y"]
    assert [row["allowed"] for row in rows(answer, "budgets")] == [0]
    answer = explained("rs/web", *nodes, replica_set(make, 0, cpu="9"))
    assert answer.verdict == "rs/default/web wants no pods and has none."
    assert "One more pod would have no node: 0/2 nodes are available" in answer.findings[0]
    [refusal] = rows(answer, "refusals")
    assert (refusal["nodes"], refusal["reason"]) == (2, "Insufficient cpu")
    assert refusal["change"] == "no node is large enough; the largest has 4 cpu"


def test_a_pending_pod_of_a_group_may_wait_for_its_group(explained, make):
    """The pod names a PodGroup of the plugin Coscheduling."""
    waiting = replica(make, 1, "")
    waiting["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "g"
    answer = explained("rs/web", make.node("a"), replica_set(make, 1), waiting)
    [row] = rows(answer, "pending")
    assert row["why"].endswith("yet, but its group may wait: explain podgroup/default/g")


def test_a_terminating_pod_of_a_workload_is_not_one_of_its_ready_pods(explained, make):
    leaving = replica(make, 1, "a")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    answer = explained(
        "rs/web", make.node("a"), replica_set(make, 2), leaving, replica(make, 2, "a")
    )
    assert answer.verdict == "1 of 2 wanted pods of rs/default/web is ready: 1 not created."
    assert answer.findings[0] == "1 more pod of the workload is terminating."
    assert [(row["pods"], row["ready"]) for row in rows(answer, "zones")] == [(1, 1)]


def test_a_budget_does_not_count_its_terminating_pods(explained, make):
    """The status of a terminating pod may say that the pod is ready."""
    leaving = replica(make, 1, "a")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    objects = [make.node("a"), make.node("b"), replica_set(make, 1), leaving]
    answer = explained("pdb/web", *objects, replica(make, 2, "b"), budget(0))
    assert answer.verdict.endswith("allows 1 disruption now: 1 ready, 0 needed.")
    leaves = "1 selected pod is terminating and does not count as ready."
    assert answer.findings == (leaves,)
    [row] = rows(answer, "workloads")
    assert (row["pods"], row["ready"], row["nodes"]) == (1, 1, 1)
    assert drains(answer) == {"b": "is allowed"}
    answer = explained("pdb/web", make.node("a"), replica_set(make, 2), leaving, budget(0))
    assert answer.findings == ("1 wanted pod does not exist.", leaves)


def test_pods_of_a_stateful_set_wait_for_old_pods_on_a_silent_node(explained, make):
    web = make.workload("StatefulSet", "web", replicas=2)
    web["metadata"]["uid"] = "web"
    silent = make.node("a")
    silent["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    leaving = replica(make, 0, "a", ready=False)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    pods = [leaving, replica(make, 1, "b")]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    answer = explained("sts/web", silent, make.node("b"), web, *pods)
    assert answer.verdict == (
        "1 of 2 wanted pods of sts/default/web is ready: "
        "1 not created before the end of the old pod."
    )
    assert answer.findings[1] == (
        "It is on a node whose kubelet does not answer, and will stay until the kubelet answers, "
        "or the node is deleted or tainted node.kubernetes.io/out-of-service. "
        "A StatefulSet creates no pod of the same name before that."
    )


@pytest.mark.parametrize(
    ("replicas", "policy", "unready", "verdict", "finding"),
    [
        (1, "OrderedReady", (), "The wanted pod of sts/default/web is ready.",
         "1 pod that it does not want: default/web-2. Its controller deletes it."),
        (1, "OrderedReady", (0,), "0 of 1 wanted pod of sts/default/web is ready: 1 not ready.",
         "1 pod that it does not want: default/web-2. Its controller deletes it only when"),
        (1, "Parallel", (0,), "0 of 1 wanted pod of sts/default/web is ready: 1 not ready.",
         "1 pod that it does not want: default/web-2. Its controller deletes it."),
        (2, "Parallel", (), "1 of 2 wanted pods of sts/default/web is ready: 1 not created.",
         "1 pod that it does not want: default/web-2. Its controller deletes it."),
        (0, "OrderedReady", (0,), "sts/default/web wants no pods and has 2.",
         "2 pods that it does not want: default/web-0, default/web-2. Its controller deletes"),
    ],
)  # fmt: skip
def test_a_stateful_set_says_which_pods_it_does_not_want(  # noqa: PLR0917
    explained, make, replicas, policy, unready, verdict, finding
):
    """They do not count as wanted pods. Pod web-1 is missing, and is tried only if it is wanted."""
    web = make.workload("StatefulSet", "web", replicas=replicas)
    web["metadata"]["uid"] = "web"
    web["spec"]["podManagementPolicy"] = policy
    pods = [replica(make, number, "a", ready=number not in unready) for number in (0, 2)]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    answer = explained("sts/web", make.node("a"), web, *pods)
    assert answer.verdict == verdict
    assert " ".join(answer.findings).startswith(f"It has {finding}")
    goes = "Its next pod, default/web-1, would go to a."
    assert answer.findings[2:] == ((goes,) if "not created" in verdict else ())


@pytest.mark.parametrize("terminating", ["sts", "pod"])
def test_no_deletion_of_a_surplus_pod_is_announced_if_it_cannot_come(explained, make, terminating):
    """A StatefulSet that is being deleted deletes no pods. A terminating pod is deleted already.

    A terminating pod still has its name, so no further pod is tried.
    """
    web = make.workload("StatefulSet", "web", replicas=1)
    web["metadata"]["uid"] = "web"
    pods = [replica(make, number, "a") for number in range(2)]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    deleted = web if terminating == "sts" else pods[1]
    deleted["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.com/x"]}
    answer = explained("sts/web", make.node("a"), web, *pods)
    assert answer.verdict == "The wanted pod of sts/default/web is ready."
    if terminating == "sts":
        assert answer.findings[1:] == ("It has 1 pod that it does not want: default/web-1.",)
    else:
        assert answer.findings[0] == "1 more pod of the workload is terminating."
        assert not any("One more pod" in one for one in answer.findings)


def test_the_old_pod_of_another_name_blocks_no_pod_of_a_stateful_set(explained, make):
    """Pod web-2 is not wanted any more; pod web-1 can be created before web-2 is gone."""
    web = make.workload("StatefulSet", "web", replicas=2)
    web["metadata"]["uid"] = "web"
    pods = [replica(make, number, "a") for number in (0, 2)]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    pods[1]["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    answer = explained("sts/web", make.node("a"), web, *pods)
    expected = "1 of 2 wanted pods of sts/default/web is ready: 1 not created."
    assert answer.verdict == expected


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_pods_of_a_stateful_set_wait_for_old_pods_that_a_finalizer_keeps(explained, make, phase):
    """The grace period is over. Kubelets before 1.27 do not report the end of the pod."""
    web = make.workload("StatefulSet", "web", replicas=2)
    web["metadata"]["uid"] = "web"
    kept, other = replica(make, 0, "a"), replica(make, 1, "a")
    kept["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.com/x"]}
    kept["status"]["phase"] = phase
    for pod in (kept, other):
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    answer = explained("sts/web", make.node("a"), web, kept, other)
    assert answer.verdict == (
        "1 of 2 wanted pods of sts/default/web is ready: "
        "1 not created before the end of the old pod."
    )
    assert answer.findings[0] == "1 more pod of the workload is terminating."
    assert answer.findings[1] == (
        "Finalizers keep it until another program removes them: a.com/x. "
        "A StatefulSet creates no pod of the same name before that."
    )


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize(("policy", "is_stated"), [("OrderedReady", True), ("Parallel", False)])
def test_the_pod_that_a_stateful_set_waits_for_is_named(
    explained, make, policy, is_stated, replicas
):
    """With two replicas, it has all its pods, but a third replica would have to wait, too."""
    web = make.workload("StatefulSet", "web", replicas=replicas)
    web["metadata"]["uid"] = "web"
    web["spec"]["podManagementPolicy"] = policy
    pods = [replica(make, 0, "a"), replica(make, 1, "a")]
    for pod, status in zip(pods, ("True", "False"), strict=True):
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        pod["status"]["conditions"] = [{"type": "Ready", "status": status}]
    answer = explained("sts/web", make.node("a"), web, *pods)
    sentence = "It creates no further pod until default/web-1 is ready (podManagementPolicy)."
    assert (sentence in answer.findings) is is_stated


def volume_of_web_0(zone):
    """The claim of web-0, and its volume, which can be used only in `zone`."""
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    claim = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data-web-0"}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "claimRef": claim,
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
            "status": {"phase": "Bound"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data-web-0", "namespace": "default"},
            "spec": {**CLAIM_SPEC, "volumeName": "pv"},
            "status": {"phase": "Bound"},
        },
    ]


@pytest.mark.parametrize("state", ["missing", "terminating", "failed", "complete"])
def test_the_next_pod_of_a_stateful_set_is_the_missing_one(explained, make, state):
    """Zone b has the volume of web-0, and room for web-0 once the old web-0 is deleted."""
    web = make.workload("StatefulSet", "web", replicas=2)
    web["metadata"]["uid"] = "web"
    web["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": CLAIM_SPEC}]
    nodes = [make.node(name, **{ZONE: name}) for name in "ab"]
    nodes[1]["status"]["allocatable"]["pods"] = "1"
    pods = [replica(make, 0, "b"), replica(make, 1, "a")]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    if state == "terminating":
        pods[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if state == "failed":
        pods[0]["status"]["phase"] = "Failed"
    present = pods[1:] if state == "missing" else pods
    answer = explained("sts/web", *nodes, web, *present, *volume_of_web_0("b"), CLASS)
    if state == "complete":
        assert answer.findings == ("One more pod would go to a.",)
        return
    assert answer.findings[-2:] == (
        "Its next pod, default/web-0, would go to b.",
        f"Volume pv of claim default/data-web-0 can be used only on b ({ZONE}=b).",
    )
    [table] = [one for one in answer.tables if one.name == "refusals"]
    assert table.title == "nodes on which default/web-0 does not fit"
    [row] = table.rows
    assert row["reason"] == "node(s) didn't match PersistentVolume's node affinity"


def partitioned(make, partition, *, replicas=2):
    """A StatefulSet whose old template requests 1 CPU, and whose new one requests 64."""
    web = make.workload("StatefulSet", "web", replicas=replicas, cpu="64")
    web["metadata"]["uid"] = "web"
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    web["spec"]["updateStrategy"] = strategy
    web["status"] = {"currentRevision": "web-old", "updateRevision": "web-new"}
    old = make.workload("StatefulSet", "web", cpu="1")["spec"]["template"]
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "web"}
    meta = {"name": "web-old", "namespace": "default"}
    revision = {
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
        "metadata": {**meta, "ownerReferences": [{**owner, "controller": True}]},
        "data": {"spec": {"template": {**old, "$patch": "replace"}}},
    }  # fmt: skip
    return web, revision


def pods_of_stateful_set(make, *numbers):
    pods = [replica(make, number, "a") for number in numbers]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    return pods


KEPT = "gets the template of its revision web-old"


@pytest.mark.parametrize(
    ("partition", "beginnings"),
    [
        (0, ["Its next pod, default/web-0, would have no node: 0/1 nodes are available: 1 Insuff"]),
        (1, ["Its next pod, default/web-0, would go to a.",
             f"default/web-0 {KEPT}, because its number is below the partition"]),
    ],
)  # fmt: skip
def test_the_next_pod_below_the_partition_has_the_old_template(
    explained, make, partition, beginnings
):
    web, revision = partitioned(make, partition)
    pods = pods_of_stateful_set(make, 1)
    answer = explained("sts/web", make.node("a"), web, revision, *pods)
    found = [one for one in answer.findings if "web-0" in one]
    assert len(found) == len(beginnings)
    assert all(map(str.startswith, found, beginnings))


def test_a_partition_above_the_replicas_keeps_the_old_template_of_further_pods(explained, make):
    web, revision = partitioned(make, 3)
    pods = pods_of_stateful_set(make, 0, 1)
    answer = explained("sts/web", make.node("a"), web, revision, *pods)
    assert answer.findings[-2] == "One more pod would go to a."
    assert answer.findings[-1].startswith(f"default/web-2 {KEPT}, because its number is below")


def test_an_old_template_that_the_dump_lacks_is_stated(explained, make):
    web, _ = partitioned(make, 1)
    answer = explained("sts/web", make.node("a"), web, *pods_of_stateful_set(make, 1))
    assert answer.findings[-1] == (
        f"default/web-0 {KEPT} (partition of the updateStrategy). The dump lacks this "
        "ControllerRevision, so the answer about this pod assumes the newest template."
    )
    web["status"]["updateRevision"] = "web-old"  # the newest template is the old one
    answer = explained("sts/web", make.node("a"), web, *pods_of_stateful_set(make, 1))
    assert not any(KEPT in one for one in answer.findings)


@pytest.mark.parametrize("is_paused", [True, False])
def test_a_paused_deployment_is_stated(explained, make, is_paused):
    web = make.workload(replicas=1)
    web["spec"]["paused"] = is_paused
    sentence = "It is paused (spec.paused), so a new template replaces no pods."
    findings = explained("deploy/web", make.node("a"), web).findings
    assert (sentence in findings) is is_paused


@pytest.mark.parametrize(
    ("strategy", "sentence"),
    [
        (
            {"type": "OnDelete"},
            "Its update strategy is OnDelete, so it replaces only deleted pods.",
        ),
        (
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
            "Its update strategy has a partition, so its first pod keeps the old template.",
        ),
        ({"type": "RollingUpdate"}, None),
    ],
    ids=["OnDelete", "partition", "no partition"],
)
@pytest.mark.parametrize("revisions", [("web-1", "web-2"), ("web-1", "web-1")])
def test_why_pods_keep_an_old_revision_is_stated(explained, make, strategy, sentence, revisions):
    """If all pods have one revision, nothing is said."""
    web = make.workload("StatefulSet", "web", replicas=2)
    web["metadata"]["uid"] = "web"
    web["spec"]["updateStrategy"] = strategy
    pods = [replica(make, number, "a") for number in range(2)]
    for pod, revision in zip(pods, revisions, strict=True):
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        pod["metadata"]["labels"]["controller-revision-hash"] = revision
    found = explained("sts/web", make.node("a"), web, *pods).findings
    stated = [one for one in found if one.startswith("Its update strategy")]
    assert stated == ([sentence] if sentence and len(set(revisions)) > 1 else [])


@pytest.mark.parametrize("target", ["pods", "nodes", "quotas", "queues", "pc", "cq", "cq/x"])
def test_all_objects_are_not_explained_with_new_objects(snapshot, make, write, target):
    file = write("new.json", make.pod("new"))
    batch = BatchOptions()
    with pytest.raises(InputError, match=f"^{target}: cannot be combined with --apply.*whatif"):
        group_to_explain(snapshot(make.node("a")), [file], target, SchedulerConfig(), batch)


@pytest.mark.parametrize(
    ("condition", "finding"),
    [
        (
            {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
            "Its rollout makes no progress (ProgressDeadlineExceeded).",
        ),
        (
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
             "message": "exceeded quota: q"},
            ("Its pods could not be created when the dump was taken (FailedCreate): "
            "exceeded quota: q."),
        ),
    ],
)  # fmt: skip
def test_a_stuck_rollout_is_stated(explained, make, condition, finding):
    web = make.workload(replicas=1)
    web["status"] = {"conditions": [{"type": "Available", "status": "True"}, condition]}
    assert explained("deploy/web", make.node("a"), web).findings[0] == finding


@pytest.mark.parametrize(
    ("status", "rest"),
    [
        (
            {"failed": 2},
            " Its next pod is created after a delay, which doubles with each failure.",
        ),
        ({"failed": 2, "active": 1}, ""),
    ],
)
def test_the_failures_of_a_job_are_stated(explained, make, status, rest):
    job = make.workload("Job", "web", restartPolicy="Never")
    job |= {"apiVersion": "batch/v1", "status": status}
    job["spec"] = {"template": job["spec"]["template"], "backoffLimit": 6}
    assert explained("job/web", make.node("a"), job).findings[0] == (
        "2 of its pods have failed; the Job fails when more than 6 have failed (backoffLimit)."
        + rest
    )


@pytest.mark.parametrize(
    ("claim_class", "why"),
    [
        ("gone", "StorageClass gone does not exist"),
        ("now", "it waits for the provisioner example.com of StorageClass now"),
        ("none", "no PersistentVolume is bound to it, and StorageClass none has no provisioner"),
        ("later", None),
        ("", "it has no StorageClass, and no PersistentVolume is bound to it"),
    ],
)
def test_an_unbound_claim_of_a_pending_pod_is_named(explained, snapshot, make, claim_class, why):
    """The scheduler's message names neither the claim nor the reason."""
    classes = [
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
         "provisioner": by, "volumeBindingMode": mode}
        for name, mode, by in (
            ("now", "Immediate", "example.com"),
            ("none", "Immediate", "kubernetes.io/no-provisioner"),
            ("later", "WaitForFirstConsumer", "example.com"),
        )
    ]  # fmt: skip
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"storageClassName": claim_class, "accessModes": ["ReadWriteOnce"],
                 "resources": {"requests": {"storage": "1Gi"}}},
    }  # fmt: skip
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pod = replica(make, 1, "", volumes=volumes)
    cluster = (make.node("a"), *classes, claim, replica_set(make, 1, volumes=volumes), pod)
    sentence = f"PersistentVolumeClaim default/data is not bound: {why}."
    assert (sentence in explained("rs/web", *cluster).findings) is (why is not None)
    notes = explain_pod(snapshot(*cluster), "pod/web-1", SchedulerConfig()).notes
    assert (sentence in notes) is (why is not None)


def test_an_unbound_claim_is_named_if_the_dump_has_no_storage_classes(snapshot, make):
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"],
                 "resources": {"requests": {"storage": "1Gi"}}},
    }  # fmt: skip
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    cluster = (make.node("a"), claim, make.pod("web", volumes=volumes))
    notes = explain_pod(snapshot(*cluster), "pod/web", SchedulerConfig()).notes
    start = "PersistentVolumeClaim default/data is not bound: it needs StorageClass fast; the dump"
    assert any(note.startswith(start) for note in notes)


def test_a_node_that_is_being_deleted_is_explained_with_its_pods(explained, make):
    """The simulation that creates the lacking pod of web also removes the node."""
    node = make.node("a")
    node["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["karpenter.sh/termination"],
    }
    node["spec"] = {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}
    answer = explained("node/a", node, make.node("b"), replica_set(make, 2), replica(make, 1, "a"))
    assert [row["pod"] for row in rows(answer, "pods")] == ["default/web-1"]
    assert answer.findings[:2] == (
        "It is being deleted, and waits for finalizer karpenter.sh/termination.",
        "Karpenter is removing it: no new pods are placed on it (taint karpenter.sh/disrupted).",
    )


def test_a_fargate_node_ends_with_its_pod(explained, make):
    node = make.node("a", **{"eks.amazonaws.com/compute-type": "fargate"})
    answer = explained("node/a", node, make.node("b"), replica_set(make, 1), replica(make, 1, "a"))
    assert "A Fargate node ends with its pod." in answer.findings


def test_a_pod_waits_for_a_volume_that_a_pod_on_another_node_keeps(explained, make):
    """ContainerCreating alone would not name the cause."""
    meta = {"name": "data", "namespace": "default"}
    modes = {"accessModes": ["ReadWriteOnce"]}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
    claim |= {"spec": modes | {"volumeName": "pv"}, "status": {"phase": "Bound"}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}}
    volume["spec"] = modes | {"csi": {"driver": "d", "volumeHandle": "h"}, "claimRef": meta}
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    old = make.pod("old", node_name="a", volumes=volumes)
    new = replica(make, 1, "b", ready=False, volumes=volumes)
    new["status"] = {"phase": "Pending"}
    nodes = map(make.node, "ab")
    answer = explained("rs/web", *nodes, claim, volume, replica_set(make, 1), old, new)
    assert [row["why"] for row in rows(answer, "unready")] == [
        'Multi-Attach error for volume "pv" Volume is already used by pod(s) old on a'
    ]


def test_the_pressure_on_a_node_is_stated(explained, make):
    node = make.node("a")
    node["status"]["conditions"] = [
        *READY,
        {"type": "DiskPressure", "status": "True", "message": "kubelet has disk pressure"},
        {"type": "MemoryPressure", "status": "False"},
    ]
    [finding] = [one for one in explained("node/a", node).findings if "condition" in one]
    assert finding == (
        "Its condition DiskPressure is True (kubelet has disk pressure): its kubelet may evict "
        "pods, and new pods must tolerate the taint node.kubernetes.io/disk-pressure:NoSchedule."
    )


def test_one_more_pod_of_a_workload_is_scheduled_after_its_pending_pods(explained, make):
    """Two pods of 2 cores wait, of which the scheduler has tried one, and 4 cores are free."""
    tried = replica(make, 1, "", cpu="2")
    tried["status"] = {"conditions": [{"type": "PodScheduled", "status": "False"}]}
    untried = replica(make, 2, "", cpu="2")
    answer = explained("rs/web", make.node("a"), replica_set(make, 2, cpu="1"), tried, untried)
    assert "One more pod would have no node: 0/1 nodes are available" in answer.findings[0]
    assert sorted(row["why"] for row in rows(answer, "pending")) == [
        "the scheduler has not tried it yet; it would go to a",
        "there is room now; it would go to a",
    ]


def test_a_workload_says_which_pods_one_more_would_preempt(explained, make):
    """Node a is full of a pod of lower priority, and b of a pod of equal priority."""
    low = make.pod("low", node_name="a", cpu="4", priority=1)
    equal = make.pod("equal", node_name="b", cpu="4", priority=5)
    nodes = [make.node("a"), make.node("b")]
    for policy, finding, reason in (
        (
            "PreemptLowerPriority",
            (
                "One more pod would preempt 1 pod of lower priority and go to a: default/low. "
                "Without preemption, it would have no node: 0/2 nodes are available: 2 "
                "Insufficient cpu."
            ),
            "Insufficient cpu; would preempt pods of lower priority",
        ),
        (
            "Never",
            (
                "One more pod would have no node: 0/2 nodes are available: 2 Insufficient cpu. no "
                "new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
            ),
            "Insufficient cpu; preemptionPolicy is Never",
        ),
    ):
        spec = {"priority": 5, "preemptionPolicy": policy, "priorityClassName": "five"}
        five = {**make.priority_class("five", 5), "preemptionPolicy": policy}
        web = replica_set(make, 1, cpu="4", **spec)
        none = replica_set(make, 0, cpu="4", **spec)
        answer = explained("rs/web", *nodes, five, low, equal, none)
        assert answer.findings[0] == finding
        waiting = replica(make, 1, "", cpu="4", **spec)
        answer = explained("rs/web", *nodes, five, low, equal, web, waiting)
        assert rows(answer, "pending") == [{"pods": 1, "pod": "default/web-1", "why": reason}]


@pytest.mark.parametrize(("minimum", "against"), [(1, ", against pdb/default/low"), (0, "")])
def test_a_workload_says_which_budget_one_more_pod_would_breach(explained, make, minimum, against):
    low = make.pod("low", node_name="a", cpu="4", priority=-1)
    low["metadata"]["labels"] = {"app": "web"}
    low["status"]["conditions"] = READY
    web = replica_set(make, 0, cpu="4")
    answer = explained("rs/web", make.node("a"), low, web, budget(minimum, "low"))
    expected = (
        f"One more pod would preempt 1 pod of lower priority and go to a: default/low{against}."
    )
    assert answer.findings[0].startswith(expected)


def test_one_more_pod_has_the_priority_of_the_others_if_the_dump_has_no_classes(explained, make):
    low = make.pod("low", node_name="a", cpu="3", priority=1)
    own = replica(make, 1, "a", cpu="1", priority=5, priorityClassName="five")
    web = replica_set(make, 1, cpu="1", priorityClassName="five")
    answer = explained("rs/web", make.node("a"), low, own, web)
    assert answer.findings[0].startswith("One more pod would preempt 1 pod of lower priority")


def test_a_workload_says_that_its_pods_wait_for_pods_they_have_preempted(explained, make):
    victim = make.pod("low", node_name="a", cpu="4", priority=1)
    victim["metadata"]["deletionTimestamp"] = "2026-01-01T00:05:00Z"
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    victim["status"]["conditions"] = [target]
    waiting = replica(make, 1, "", cpu="4", priority=5)
    waiting["status"]["nominatedNodeName"] = "a"
    web = replica_set(make, 1, cpu="4")
    answer = explained("rs/web", make.node("a"), victim, web, waiting)
    why = "Insufficient cpu; waits for the end of pods that it has preempted"
    assert rows(answer, "pending") == [{"pods": 1, "pod": "default/web-1", "why": why}]


def test_one_more_pod_goes_to_one_of_equal_nodes(explained, make):
    """Nodes a and b are equally good; c is the only node of its pool."""
    nodes = [make.node("a"), make.node("b"), make.node("c", pool="db")]
    answer = explained("rs/web", *nodes[:2], replica_set(make, 0))
    target = answer.facts["one_more_goes_to"]
    among = ", a random choice among 2 equal nodes"
    assert answer.findings[0] == f"One more pod would go to {target}{among}."
    answer = explained("rs/web", *nodes, replica_set(make, 0, nodeSelector={"pool": "db"}))
    assert answer.findings[0] == "One more pod would go to c."


@pytest.mark.parametrize("excludes", [False, True])
def test_no_pod_of_the_workload_is_deleted_for_one_more(explained, make, excludes):
    """The pods exclude each other on a node, or each needs a whole node."""
    term = {
        "labelSelector": {"matchLabels": {"app": "web"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spec = {"affinity": {"podAntiAffinity": terms}, "cpu": "1"} if excludes else {"cpu": "4"}
    node = make.node("a", **{"kubernetes.io/hostname": "a"})
    answer = explained("rs/web", node, replica_set(make, 1, **spec), replica(make, 1, "a", **spec))
    [refusal] = rows(answer, "refusals")
    assert refusal["change"] == "add a node like a"


def test_kinds_without_an_explanation_are_refused(explained, make):
    meta = {"name": "q", "namespace": "default"}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    with pytest.raises(InputError, match="a ConfigMap cannot be explained; only Pod, Deploy"):
        explained("cm/q", make.node("a"), settings)
    assert explained("pod/p", make.node("a"), make.pod("p")) is None


def test_the_error_about_a_service_names_its_workloads(explained, make):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}},
    }
    web = replica_set(make, 1)
    web["spec"]["template"]["metadata"] = {"labels": {"app": "web", "tier": "front"}}
    alone = make.pod("alone")
    alone["metadata"]["labels"] = {"app": "web"}
    others = [make.node("a"), service, make.pod("other")]
    with pytest.raises(InputError, match="a Service cannot be explained; only Pod, "):
        explained("svc/web", *others)
    says = "a Service cannot be explained; its pods are those of pod/default/alone, rs/default/web"
    with pytest.raises(InputError, match=says):
        explained("svc/web", *others, web, alone)


@pytest.fixture
def explain_file(snapshot, write):
    def explain(objects, written, target=""):
        path = write("new.json", *written)
        cluster, new = new_pod_to_explain(snapshot(*objects), (path,), target)
        return explanation_json(explain_new_pod(cluster, new, SchedulerConfig()))

    return explain


def test_a_pod_of_a_file_is_admitted_and_explained(explain_file, make):
    low = make.pod("low", cpu="3", node_name="a", owner="rs", priority=1)
    new = make.pod("new", cpu="3", priorityClassName="high")
    found = explain_file([make.node("a"), low], [new, make.priority_class("high", 9)])
    assert (found["pod"], found["priority"], found["node"]) == ("default/new", 9, "")
    assert found["preemption"]["nominated"] == ["a"]


def test_a_quota_without_a_status_counts_the_pods_of_the_dump(explained, explain_file, make):
    """`fit` and `whatif --apply` count them, too. Manifests and old dumps lack the usage."""
    meta = {"name": "q", "namespace": "default"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta}
    quota |= {"spec": {"hard": {"requests.cpu": "1"}}}
    objects = make.node("a"), replica_set(make, 1, cpu="1"), replica(make, 0, "a"), quota
    why = "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=1"
    found = explained("rs/web", *objects)
    assert found.findings[0].startswith(f"One more pod would not be created: {why}")
    [step] = [one for one in found.steps if "quota" in one.code]
    assert step.code.endswith("quota/default/q")
    with pytest.raises(InputError, match=why):
        explain_file(objects, [make.pod("new", cpu="1")])


def test_a_workload_of_a_file_is_explained_by_its_first_pod(explain_file, make):
    written = [make.workload(name="web"), make.workload(name="db", cpu="9")]
    assert explain_file([make.node("a")], written, "deploy/web")["choices"] == ["a"]
    assert explain_file([make.node("a")], written, "deploy/db")["message"].startswith("0/1 nodes")
    with pytest.raises(InputError, match="contains 2 pods and workloads; say which: known: deploy"):
        explain_file([make.node("a")], written)
    with pytest.raises(InputError, match="contains no Pod and no workload"):
        explain_file([make.node("a")], [make.priority_class("high", 9)])
    with pytest.raises(InputError, match="no PriorityClass with name gold was found"):
        explain_file([make.node("a")], [make.pod("p", priorityClassName="gold")])
    with pytest.raises(InputError, match="exists already; explain pod/default/p without --apply"):
        explain_file([make.node("a"), make.pod("p")], [make.pod("p")])


def test_with_apply_the_object_is_one_of_the_file(explain_file, make):
    with pytest.raises(InputError, match=r"there is no Node a \(.*new.json has no Node\)"):
        explain_file([make.node("a")], [make.pod("p")], "node/a")
    with pytest.raises(InputError, match="is neither a Pod nor a workload"):
        explain_file([make.node("a")], [make.pod("p"), make.node("b")], "node/b")


def test_a_file_with_only_a_custom_resource_needs_the_template_as_a_pod(explain_file, make):
    job = {**make.workload("PyTorchJob", "p"), "apiVersion": "kubeflow.org/v1"}
    with pytest.raises(InputError, match="the pods of PyTorchJob default/p, write their template"):
        explain_file([make.node("a")], [job])


@pytest.mark.parametrize("labels", [{"pod-template-hash": "1"}, {}], ids=["hash", "by hand"])
def test_a_replica_set_of_a_deployment_has_its_own_pods(explained, make, labels):
    """Its pods count for the Deployment and for the ReplicaSet."""
    web = make.workload(name="web", replicas=1)
    owned = make.workload("ReplicaSet", "web-1", replicas=1)
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d",
         "controller": True}
    ]  # fmt: skip
    pod = make.pod("web-1-a", node_name="a", owner="web-1")
    pod["metadata"]["labels"] = {"app": "web", **labels}
    pod["status"]["conditions"] = READY
    for target in ("deploy/web", "rs/web-1"):
        answer = explained(target, make.node("a"), web, owned, pod)
        assert (answer.facts["pods"], answer.facts["ready"]) == (1, 1), target


def test_a_job_that_a_user_created_from_a_cron_job_has_pods_of_the_cron_job(explained, make):
    """`kubectl create job by-hand --from=cronjob/backup` sets the owner, but not the usual name."""
    job = make.workload("Job", "by-hand", completions=1)
    backup = make.workload("CronJob", "backup")
    job["apiVersion"] = backup["apiVersion"] = "batch/v1"
    backup["spec"] = {"schedule": "0 3 * * *", "jobTemplate": {"spec": job["spec"]}}
    job["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "CronJob", "name": "backup", "uid": "c",
         "controller": True}
    ]  # fmt: skip
    pod = make.pod("by-hand-a", node_name="a", owner="by-hand")
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    pod["status"]["conditions"] = READY
    answer = explained("cronjob/backup", make.node("a"), backup, job, pod)
    assert (answer.facts["pods"], answer.facts["wanted"], answer.facts["ready"]) == (1, 1, 1)


CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "csi.example.com",
    "volumeBindingMode": "Immediate",
}
CLAIM_SPEC = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "fast",
    "resources": {"requests": {"storage": "1Gi"}},
}
GPU = {"deviceClassName": "gpu"}
DEVICES = [
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "b"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "b",
            "pool": {"name": "b", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        },
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [{"name": "g", "exactly": GPU}]}}},
    },
]
CLAIMS = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}


def test_the_claims_of_a_new_pod_are_created_before_it_is_explained(explain_file, make):
    """Kubernetes' controllers create them, and bind claims of an immediate StorageClass."""
    nodes = [make.node("a"), make.node("b")]
    found = explain_file([*nodes, *DEVICES], [make.pod("new", **CLAIMS)])
    assert (found["gated"], found["choices"]) == (None, ["b"])
    ephemeral = {"volumeClaimTemplate": {"spec": CLAIM_SPEC}}
    new = make.pod("new", volumes=[{"name": "scratch", "ephemeral": ephemeral}])
    assert explain_file([make.node("a"), CLASS], [new])["choices"] == ["a"]
    db = make.workload("StatefulSet", "db", replicas=1)
    db["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": CLAIM_SPEC}]
    assert explain_file([make.node("a"), CLASS], [db])["choices"] == ["a"]


def test_the_claims_of_one_more_pod_of_a_workload_are_created(explained, make):
    train = make.workload("ReplicaSet", "train", replicas=0)
    train["spec"]["template"]["spec"] |= CLAIMS
    answer = explained("rs/train", make.node("a"), make.node("b"), *DEVICES, train)
    assert answer.facts["one_more_goes_to"] == "b"
    [refusal] = rows(answer, "refusals")
    assert refusal["reason"] == "cannot allocate all claims"


def test_one_more_pod_with_a_scheduling_gate_goes_nowhere(explained, make):
    web = make.workload("ReplicaSet", "web", replicas=0, schedulingGates=[{"name": "a.io/hold"}])
    answer = explained("rs/web", make.node("a"), web)
    assert answer.facts["one_more_goes_to"] == ""
    message = "waiting for scheduling gates: [a.io/hold]"
    assert answer.findings == (f"One more pod would have no node: {message}",)


def test_a_node_with_a_pod_that_a_finalizer_keeps_cannot_be_drained(explained, make):
    pod = replica(make, 1, "a")
    pod["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["example.com/hold"],
    }
    answer = explained("node/a", make.node("a"), make.node("b"), pod)
    why = "is being deleted, but finalizer example.com/hold keeps it"
    assert answer.verdict == f"a cannot be drained now: pod/default/web-1 {why}."
    assert [row["leaves"] for row in rows(answer, "pods")] == [why]


def test_a_node_that_is_being_deleted_says_so(explained, make):
    node = make.node("a")
    node["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/hold"]}
    answer = explained("node/a", node, make.node("b"))
    assert answer.findings[0] == "It is being deleted, and waits for finalizer x/hold."


@pytest.mark.parametrize(
    ("spec", "status", "finding"),
    [
        ({"suspend": True}, {}, "It is suspended (spec.suspend), so it gets no pods."),
        (
            {},
            {"conditions": [{"type": "Failed", "status": "True", "message": "Too many failures"}]},
            "It has failed, so it gets no more pods: Too many failures",
        ),
        (
            {"suspend": True},
            {"conditions": [{"type": "Complete", "status": "True"}]},
            "It has completed, so it gets no more pods.",
        ),
    ],
    ids=["suspended", "failed", "complete"],
)
def test_a_job_without_pods_says_why_it_gets_none(explained, make, spec, status, finding):
    job = make.workload("Job", "j", restartPolicy="Never")
    template = job["spec"]["template"]
    job |= {"apiVersion": "batch/v1", "spec": {"template": template, **spec}, "status": status}
    answer = explained("job/j", make.node("a"), job)
    assert answer.verdict == "job/default/j wants no pods and has none."
    one_more = [] if "gets no more pods" in finding else ["One more pod would go to a."]
    assert list(answer.findings) == [finding, *one_more]
    starts = ["job/default/j:spec.suspend=false"] if finding.startswith("It is suspended") else []
    assert [one.command.partition("--set ")[2] for one in answer.steps] == starts


def custom(api_version, kind, name, **spec):
    metadata = {"name": name, "namespace": "default", "uid": f"{kind}-{name}"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def owned(obj, owner):
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    names = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    obj["metadata"]["ownerReferences"] = [reference | names]
    return obj


def test_jobs_of_two_groups_have_their_own_pods(explained, make):
    """A Job and a Job of Volcano with the same name; only the latter has a pending pod."""
    volcano = custom("batch.volcano.sh/v1alpha1", "Job", "train")
    job = make.workload("Job", "train", restartPolicy="Never") | {"apiVersion": "batch/v1"}
    job["metadata"]["uid"] = "job"
    job["spec"] = {"template": job["spec"]["template"]}
    running = owned(make.pod("train-x", node_name="a"), job)
    running["status"]["conditions"] = READY
    waiting = owned(make.pod("train-worker-0", cpu="9"), volcano)
    objects = (make.node("a"), job, volcano, running, waiting)
    answer = explained("job/train", *objects)
    assert answer.verdict == "The wanted pod of job/default/train is ready."
    answer = explained("jobs.batch.volcano.sh/train", *objects)
    assert answer.verdict == (
        "0 of 1 wanted pod of job.batch.volcano.sh/default/train is ready: 1 pending."
    )


@pytest.mark.parametrize(
    ("scheduler", "is_said"), [("volcano", True), ("default-scheduler", False)]
)
def test_a_workload_of_a_batch_scheduler_says_which_scheduler_decides(
    explained, make, scheduler, is_said
):
    volcano = custom("batch.volcano.sh/v1alpha1", "Job", "train")
    pod = owned(make.pod("train-w-0", schedulerName=scheduler), volcano)
    answer = explained("jobs.batch.volcano.sh/train", make.node("a"), volcano, pod)
    said = (
        "volcano schedules its pods, with their groups; here, one more pod follows "
        "kube-scheduler's rules. Explain pod/default/train-w-0 for the batch scheduler's rules."
    )
    assert (said in answer.findings) is is_said


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        (
            "rayjob/r",
            "a RayJob cannot be explained; RayCluster default/r-x controls its pods: name that",
        ),
        ("pytorchjob/p", r"PyTorchJob default/p has no pods: it is .*\(spec.runPolicy.suspend\)"),
        ("pytorchjob/q", "PyTorchJob default/q has no pods to explain"),
        ("widget/w", "Widget default/w has no pods to explain"),
    ],
)
def test_a_custom_resource_without_pods_of_its_own_says_why(explained, make, target, problem):
    ray = custom("ray.io/v1", "RayJob", "r")
    cluster = owned(custom("ray.io/v1", "RayCluster", "r-x"), ray)
    held = custom("kubeflow.org/v1", "PyTorchJob", "p", runPolicy={"suspend": True})
    other = custom("kubeflow.org/v1", "PyTorchJob", "q")
    odd = custom("example.com/v1", "Widget", "w", runPolicy="Always")
    head = owned(make.pod("r-x-head", node_name="a"), cluster)
    with pytest.raises(InputError, match=problem):
        explained(target, make.node("a"), ray, cluster, head, held, other, odd)


def test_a_hint_names_only_an_object_that_can_be_explained(explained, make):
    """A Service of Knative controls a Route without pods, and a Deployment through a Revision."""
    service = custom("serving.knative.dev/v1", "Service", "w")
    route = owned(custom("serving.knative.dev/v1", "Route", "w"), service)
    configuration = owned(custom("serving.knative.dev/v1", "Configuration", "w"), service)
    revision = owned(custom("serving.knative.dev/v1", "Revision", "w-1"), configuration)
    deployment = owned(make.workload("Deployment", "w-1-deployment"), revision)
    objects = [make.node("a"), service, route, configuration, revision]
    target = "services.serving.knative.dev/w"
    with pytest.raises(InputError, match=r"dev default/w has no pods to explain"):
        explained(target, *objects)
    with pytest.raises(InputError, match="name its Deployment default/w-1-deployment"):
        explained(target, *objects, deployment)


def test_a_node_states_the_requests_of_its_extended_resources(explained, make):
    node = make.node("a")
    node["status"]["allocatable"] |= {"example.com/gpu": "4", "example.com/fpga": "0"}
    pod = make.pod("p", node_name="a")
    amounts = {"example.com/gpu": "3"}
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    answer = explained("node/a", node, pod)
    assert any("memory, 3 of 4 example.com/gpu, 1 of 110 pods." in one for one in answer.findings)


def kept_pod(make, name, owner=""):
    """A pod on node a with an emptyDir volume."""
    pod = make.pod(name, node_name="a", **({"owner": owner} if owner else {}))
    pod["spec"]["volumes"] = [{"name": "tmp", "emptyDir": {}}]
    return pod


def removal(answer):
    """Return (what, who respects it, what kubectl drain does with it) of each row."""
    return [(row["of"], row["why"], row["keeps"], row["drain"]) for row in rows(answer, "removal")]


def test_a_node_names_what_keeps_cluster_autoscaler_from_removing_it(explained, make):
    prefix = "cluster-autoscaler.kubernetes.io/"
    node = make.node("a")
    node["metadata"]["annotations"] = {f"{prefix}scale-down-disabled": "true"}
    pods = [kept_pod(make, "web", owner="rs"), kept_pod(make, "bare")]
    pods[1]["metadata"]["annotations"] = {f"{prefix}safe-to-evict": "false"}
    by = "Cluster Autoscaler"
    lost = "needs --force; the pod is gone for good"
    data = "needs --delete-emptydir-data; the data is lost"
    assert removal(explained("node/a", node, make.node("b"), *pods)) == [
        ("node/a", f"the node's annotation {prefix}scale-down-disabled", by, "ignores it"),
        ("default/bare", "no controller would replace the pod", by, lost),
        ("default/bare", f"annotation {prefix}safe-to-evict=false on its pods", by, "ignores it"),
        ("default/web", "local volumes: tmp", by, data),
    ]


@pytest.mark.parametrize(
    ("labels", "by"),
    [
        ({"karpenter.sh/nodepool": "web"}, "Karpenter"),
        ({}, "Karpenter, but only on its own nodes"),
    ],
)
def test_a_node_names_the_annotation_that_only_karpenter_respects(explained, make, labels, by):
    pod = make.pod("web", node_name="a", owner="rs")
    pod["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    answer = explained("node/a", make.node("a", **labels), make.node("b"), pod)
    why = "annotation karpenter.sh/do-not-disrupt on its pods"
    assert removal(answer) == [("default/web", why, by, "ignores it")]
    assert answer.facts["can_be_drained"]


def test_karpenter_removes_nodes_with_pods_that_cluster_autoscaler_keeps(explained, make):
    """Local volumes are not listed at all for its nodes."""
    nodes = [make.node("a", **{"karpenter.sh/nodepool": "web"}), make.node("b")]
    [bare] = removal(explained("node/a", *nodes, kept_pod(make, "bare")))
    assert bare[2] == "no autoscaler: Karpenter manages the node"
    assert removal(explained("node/a", *nodes, kept_pod(make, "web", owner="rs"))) == []


@pytest.mark.parametrize(("minimum", "is_kept"), [(1, False), (2, True)])
def test_a_group_of_minimum_size_keeps_its_nodes(explained, make, minimum, is_kept):
    label = {"kubernetes.azure.com/agentpool": "web"}
    health = f"{{minSize: {minimum}, maxSize: 9}}"
    status = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
        "data": {"status": f"nodeGroups:\n- name: aks-web-1-vmss\n  health: {health}\n"},
    }
    answer = explained("node/a", make.node("a", **label), make.node("b", **label), status)
    row = "node group web", "the minimum size of the group, 2 nodes", "Cluster Autoscaler"
    assert removal(answer) == ([(*row, "ignores it")] if is_kept else [])


@pytest.mark.parametrize(
    ("strategy", "revision", "found"),
    [
        ("OnDelete", "db-2", "1 pod has an old template until it is deleted"),
        ("OnDelete", "db-1", "1 pod has an old template until it is deleted"),
        ("OnDelete", "", ""),
        ("RollingUpdate", "db-2", ""),
    ],
)
def test_pods_that_a_drain_would_update_are_counted(explained, make, strategy, revision, found):
    """db-0 has the revision db-1, and db-1 has the revision db-2."""
    db = make.workload("StatefulSet", "db", replicas=2)
    db["metadata"]["uid"] = "db"
    db["spec"]["updateStrategy"] = {"type": strategy}
    db["status"] = {"updateRevision": revision}
    pods = [make.pod(f"db-{number}", node_name="a", owner="db") for number in range(2)]
    for number, pod in enumerate(pods, 1):
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        pod["metadata"]["labels"] = {"app": "db", "controller-revision-hash": f"db-{number}"}
    findings = explained("sts/db", make.node("a"), db, *pods).findings
    assert [one.partition(",")[0] for one in findings if "old template" in one] == (
        [found] if found else []
    )


def test_pods_with_a_negative_priority_do_not_keep_a_node_from_being_drained(explained, make):
    """The pod of web preempts a placeholder of another node."""
    assert explained("node/a", *overprovisioned(make, -10)).verdict == (
        "a can be drained: 1 pod moves to another node, but 1 pod with a negative priority fits on "
        "no other node and 1 such pod on another node is preempted and fits nowhere else."
    )
