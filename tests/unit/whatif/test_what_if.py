"""What-ifs on small clusters: displaced pods, their new nodes, and the answer."""

from __future__ import annotations

import os
import threading
from typing import ClassVar

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind, verdict_of
from fairlead.whatif.question import what_if
from fairlead.whatif.run.parallel import run_pair


@pytest.fixture
def ask(snapshot, write):
    """Returns the answer about `change` in a cluster of `objects`; `apply` are objects to apply."""

    def ask_what_if(objects, apply=(), **change):
        files = (write("change.json", *apply),) if apply else ()
        return what_if(snapshot(*objects), ClusterChange(apply=files, **change))

    return ask_what_if


def keys(pods):
    return [pod.key for pod in pods]


def moves(answer):
    return [(move.pod.key, move.origin, move.target) for move in answer.difference.moved]


def test_a_run_without_a_change_has_no_difference(ask, make):
    pods = [make.pod(f"p{n}", owner="rs") for n in range(6)]  # pending pods are placed equally
    answer = ask([make.node("a"), make.node("b"), *pods])
    assert answer.difference.is_empty
    assert answer.changed.choices_among_equals > 0
    assert answer.difference.recovered_after == 0


def test_a_pod_of_higher_priority_preempts_a_pod_of_lower_priority(ask, make):
    low = make.pod("low", cpu="3", node_name="a", owner="rs", priority=10)
    high = make.pod("high", cpu="3", priorityClassName="urgent")
    answer = ask([make.node("a"), low], [make.priority_class("urgent", 1000), high])
    found = answer.difference
    [one] = found.preempted
    assert (one.pod.key, one.node, one.by, one.by_priority) == (
        "default/low", "a", "default/high", 1000,
    )  # fmt: skip
    assert one.rule == "only candidate"
    assert keys(found.placed) == ["default/high"]
    assert keys(found.pending) == ["default/low"]
    assert found.pending[0].reason.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert found.recovered_after is None
    assert keys(found.displaced) == ["default/low"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("x", "1 new pod does not run, because the kubelet of its node refused it: default/x (a)."),
        (
            "xy",
            (
                "2 new pods do not run, because the kubelets of their nodes refused them: "
                "default/x (a), default/y (a)."
            ),
        ),
    ],
)
def test_new_pods_that_a_kubelet_refuses_are_named(ask, make, names, expected):
    """They have a node without a scheduler, but no room on it."""
    new = [make.pod(name, cpu="9", nodeName="a") for name in names]
    assert expected in ask([make.node("a")], new).changed.notes


@pytest.mark.parametrize(("kind", "hostname"), [("StatefulSet", ""), ("StrimziPodSet", "db-0")])
def test_a_missing_owner_wants_a_pod_that_cannot_stop(ask, make, kind, hostname):
    """It creates the pod again when the old one is gone, so the pod is down to the end."""
    pods = []
    for number, node in enumerate("ab"):
        pod = make.pod(f"db-{number}", node_name=node, owner="db")
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "x.io/v1", "kind": kind}
        pod["spec"]["hostname"] = f"db-{number}" if hostname else ""
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pods.append(pod)
    answer = ask([make.node("a"), make.node("b"), *pods], failures=Failures(fail_node=("a",)))
    [effect] = [one for one in answer.effect.workloads if one.workload.name == "db"]
    assert (effect.readiness.wanted, effect.readiness.lowest) == (2, 1)


def test_a_pod_without_an_image_is_assumed_to_become_ready_only_elsewhere(ask, make):
    """It stays Pending on its node, as in the dump, but its replacement may find the image."""
    pod = make.pod("web-1", node_name="a", owner="web")
    waiting = {"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    pod["status"] = {"phase": "Pending", "containerStatuses": [waiting]}
    nodes = [make.node("a"), make.node("b")]
    assert ask([*nodes, pod], cordon=("b",)).changed.pods["default/web-1"].started_at is None
    answer = ask([*nodes, pod], drain=("a",))
    assert answer.changed.pods["default/web-1"].started_at is not None
    words = "1 pod that is not ready in the dump is assumed to become ready when created again: "
    assert f"{words}default/web-1." in answer.changed.notes


@pytest.mark.parametrize("status", ["True", "False"])
def test_pods_that_are_not_ready_are_assumed_to_become_ready_elsewhere(ask, make, status):
    """A dump does not show whether a new pod of a crashing workload would become ready."""
    pod = make.pod("web-1", node_name="a", owner="web")
    pod["status"]["conditions"] = [{"type": "ContainersReady", "status": status}]
    notes = ask([make.node("a"), make.node("b"), pod], drain=("a",)).changed.notes
    words = "1 pod that is not ready in the dump is assumed to become ready when created again: "
    assert (f"{words}default/web-1." in notes) is (status == "False")


def test_a_pod_that_is_lost_without_the_change_as_well_is_named(ask, make):
    bare = make.pod("bare", cpu="3", node_name="a")
    waiting = make.pod("waiting", cpu="3", priority=9)
    answer = ask([make.node("a"), make.node("b", cpu="1"), bare, waiting], drain=("b",))
    assert answer.difference.is_empty
    [note] = [note for note in answer.changed.notes if "Without the change" in note]
    assert note == (
        "Without the change, too, 1 pod without a controller is evicted or preempted and gone for "
        "good: default/bare."
    )


def test_a_pod_that_is_being_deleted_in_the_dump_is_not_lost(ask, make):
    bare = make.pod("bare", node_name="a")
    bare["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    bare["metadata"] |= {"deletionGracePeriodSeconds": 30, "uid": "1"}
    answer = ask([make.node("a"), make.node("b"), bare], drain=("b",))
    assert "default/bare" not in answer.changed.pods
    assert not [note for note in answer.changed.notes if "Without the change" in note]


def test_a_preempted_pod_that_finds_room_has_moved_under_its_name(ask, make):
    low = make.pod("low", cpu="3", node_name="a", owner="rs", priority=10)
    high = make.pod("high", cpu="3", priorityClassName="urgent", nodeSelector={"disk": "ssd"})
    nodes = [make.node("a", disk="ssd"), make.node("b")]
    answer = ask([*nodes, low], [make.priority_class("urgent", 1000), high])
    assert moves(answer) == [("default/low", "a", "b")]
    assert answer.difference.recovered_after > 0


def test_pods_of_a_drained_node_move(ask, make):
    pods = [make.pod(f"p{n}", node_name="a", owner="rs") for n in range(2)]
    answer = ask([make.node("a", pool="old"), make.node("b"), *pods], drain=("pool=old",))
    assert [(one.pod.key, one.node, one.why) for one in answer.difference.evicted] == [
        ("default/p0", "a", "drain"),
        ("default/p1", "a", "drain"),
    ]
    assert moves(answer) == [("default/p0", "a", "b"), ("default/p1", "a", "b")]
    assert answer.difference.pending == ()


def database(make, grace_s):
    """Makes two nodes, and a StatefulSet with its pod on node a."""
    db = make.workload("StatefulSet", "db", terminationGracePeriodSeconds=grace_s)
    db["metadata"]["uid"] = "db-uid"
    pod = make.pod("db-0", node_name="a", terminationGracePeriodSeconds=grace_s)
    pod["metadata"]["labels"] = {"app": "db"}
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db-uid",
         "controller": True}
    ]  # fmt: skip
    return [make.node("a"), make.node("b"), db, pod]


@pytest.mark.parametrize("grace_s", [30, 900, 3_000])
def test_a_run_ends_only_after_pods_have_stopped(ask, make, grace_s):
    answer = ask(database(make, grace_s), drain=("a",))
    [move] = answer.difference.moved
    assert (move.origin, move.target) == ("a", "b")
    assert answer.changed.ended_at - answer.changed.started_at == seconds(grace_s + 1)


def test_a_displaced_pod_that_still_stops_at_the_end_does_not_run_again(ask, make):
    """Its grace period is longer than the horizon of one hour."""
    answer = ask(database(make, 7_200), drain=("a",))
    assert [one.sentence for one in answer.verdict.findings] == [
        "sts/default/db has no ready pod to the end.",
        (
            "The drain is not finished after 1h00m, when the simulation ends (--horizon): 1 pod on "
            "a has not stopped, and its grace period ends after 2h00m (default/db-0). 1 pod is "
            "still not running after 1h00m, when the simulation ends."
        ),
    ]
    assert answer.difference.recovered_after is None


def test_a_pod_without_an_owner_is_not_replaced(ask, make):
    answer = ask([make.node("a"), make.node("b"), make.pod("bare", node_name="a")], drain=("a",))
    assert keys(answer.difference.gone) == ["default/bare"]
    assert answer.difference.recovered_after is None


def test_pods_of_a_deleted_node_are_displaced(ask, make):
    pods = [make.pod("p", node_name="a", owner="rs")]
    found = ask([make.node("a"), make.node("b"), *pods], delete=("node/a",)).difference
    assert not found.is_empty
    assert keys(found.displaced) == ["default/p"]


def test_a_deleted_pod_is_created_again(ask, make):
    """A deleted pod is not listed as a new pod on another node."""
    answer = ask(database(make, 30), delete=("pod/db-0",), cordon=("a",))
    [finding] = [one for one in answer.verdict.findings if one.kind is OutcomeKind.MOVED]
    assert finding.sentence == (
        "1 pod of sts/default/db is created again on another node and runs after 31s."
    )
    assert not answer.difference.displaced
    assert [row.short_words for row in answer.effect.workloads] == ["1 created again elsewhere"]


def test_a_lost_pod_is_not_also_reported_as_down(ask, make):
    objects = [make.node("a"), make.node("b"), make.pod("bare", node_name="a")]
    answer = ask(objects, failures=Failures(fail_node=("a",)), lasts="20m")
    [row] = answer.effect.workloads
    assert (row.gone, row.down) == (1, 0)
    assert row.short_words == "1 gone for good"


def test_a_bare_pod_whose_node_does_not_return_is_wanted(ask, make):
    """The deletion is never confirmed, so the pod is down, and not gone."""
    objects = [make.node("a"), make.node("b"), make.pod("bare", node_name="a")]
    answer = ask(objects, failures=Failures(fail_node=("a",)))
    [row] = answer.effect.workloads
    assert (row.readiness.wanted, row.readiness.at_end, row.down) == (1, 0, 1)


def test_a_static_pod_of_a_failed_node_is_listed_last_and_not_in_the_verdict(ask, make):
    static = make.pod("proxy-a", node_name="a")
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    bare = make.pod("bare", node_name="a")
    for pod in (static, bare):
        pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    answer = ask(
        [make.node("a"), make.node("b"), static, bare], failures=Failures(fail_node=("a",))
    )
    assert [row.workload.name for row in answer.effect.workloads] == ["bare", "proxy-a"]
    sentences = [one.sentence for one in verdict_of(answer.effect).findings]
    assert not [one for one in sentences if "proxy-a" in one]


def test_a_pod_whose_deletion_a_failed_node_cannot_complete_is_not_new(ask, make):
    leaving = make.pod("leaving", node_name="a", labels={"app": "web"})
    leaving["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:30Z",
        "deletionGracePeriodSeconds": 30,
    }
    answer = ask([make.node("a"), make.node("b"), leaving], failures=Failures(fail_node=("a",)))
    assert "default/leaving" not in answer.without.pods
    assert answer.changed.pods["default/leaving"].is_terminating
    assert not answer.difference.placed
    assert not [one for one in verdict_of(answer.effect).findings if "runs" in one.sentence]


def test_a_terminating_pod_on_a_failed_node_does_not_prolong_the_simulation(ask, make):
    """Its toleration of the taint expires, but it is not evicted, because it is already deleted."""
    toleration = {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    leaving = make.pod("leaving", node_name="a", tolerations=[toleration])
    leaving["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:30Z",
        "deletionGracePeriodSeconds": 30,
    }
    answer = ask([make.node("a"), make.node("b"), leaving], failures=Failures(fail_node=("a",)))
    assert answer.changed.settled
    assert answer.changed.virtual_seconds < 600


def test_cordon_displaces_no_pod(ask, make):
    pods = [make.pod("p", node_name="a", owner="rs")]
    assert ask([make.node("a"), make.node("b"), *pods], cordon=("a",)).difference.is_empty


def test_an_applied_workload_creates_its_pods(ask, make):
    answer = ask([make.node("a", cpu="2")], [make.workload(name="web", replicas=3)])
    assert len(answer.difference.placed) == 2
    assert len(answer.difference.pending) == 1


def test_scaling_places_and_removes_pods(ask, make):
    cluster = [make.node("a"), make.workload(name="web", replicas=2)]
    up = ask(cluster, scale=("deploy/web=4",)).difference
    assert (len(up.placed), len(up.removed)) == (2, 0)
    down = ask(cluster, scale=("deploy/web=1",)).difference
    assert (len(down.placed), len(down.removed)) == (0, 1)
    assert down.displaced == ()  # the deletion was requested


def test_deleting_a_workload_removes_its_pods(ask, make):
    cluster = [make.node("a"), make.workload(name="web", replicas=2)]
    assert len(ask(cluster, delete=("deploy/web",)).difference.removed) == 2


def test_deleting_a_namespace_deletes_its_objects(ask, make):
    """The namespace is not created again."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    workload = make.workload(name="web", namespace="shop", replicas=2)
    pods = [make.pod("solo", "shop", node_name="a"), make.pod("other", node_name="a")]
    found = ask([make.node("a"), space, workload, *pods], delete=("ns/shop",))
    assert [pod.key for pod in found.changed.pods.values()] == ["default/other"]
    assert len(found.difference.removed) == 3


def test_existing_pods_keep_a_priority_whose_class_is_absent(ask, make):
    low = make.pod("low", cpu="3", node_name="a", owner="rs", priority=10)
    named = make.pod(
        "named", cpu="3", node_name="b", owner="rs", priority=5000, priorityClassName="absent"
    )
    answer = ask([make.node("a"), make.node("b"), low, named], drain=("b",))
    [one] = answer.difference.preempted
    assert (one.pod.key, one.by, one.by_priority) == ("default/low", "default/named", 5000)


def test_a_replacement_keeps_a_priority_without_a_class(ask, make):
    high = make.pod("high", cpu="3", node_name="a", owner="rs", priority=5000)
    low = make.pod("low", cpu="3", node_name="b", owner="rs", priority=-5)
    answer = ask([make.node("a"), make.node("b"), high, low], drain=("a",))
    [one] = answer.difference.preempted
    assert (one.pod.key, one.pod.priority, one.by_priority) == ("default/low", -5, 5000)
    assert moves(answer) == [("default/high", "a", "b")]


@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
def test_a_new_pod_naming_an_absent_class_is_refused(ask, make, kind):
    stored = make.pod("old", node_name="a", priority=7, priorityClassName="urgent")
    new = (
        make.pod("new", priorityClassName="urgent")
        if kind == "Pod"
        else make.workload(name="new", priorityClassName="urgent")
    )
    with pytest.raises(InputError) as refused:
        ask([make.node("a"), stored], [new])
    assert f"change.json: {kind} default/new: spec." in str(refused.value)
    assert "priorityClassName: no PriorityClass with name urgent was found" in str(refused.value)


def test_a_second_default_class_is_refused(ask, make):
    first = make.priority_class("first", 1, globalDefault=True)
    second = make.priority_class("second", 2, globalDefault=True)
    with pytest.raises(InputError, match=r"change.json: PriorityClass second: .*first is already"):
        ask([make.node("a"), first], [second])


def test_preemption_breaches_a_budget_if_no_other_victims_exist(ask, make):
    guarded = make.pod("guarded", cpu="3", node_name="a", owner="rs", priority=10)
    guarded["metadata"]["labels"] = {"app": "web"}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0, "expectedPods": 1, "currentHealthy": 1,
                   "desiredHealthy": 1},
    }  # fmt: skip
    high = make.pod("high", cpu="3", priorityClassName="urgent")
    answer = ask([make.node("a"), guarded, budget], [make.priority_class("urgent", 1000), high])
    [breach] = answer.difference.pdb_breaches
    assert (breach.pdb, breach.pod, breach.by) == ("default/web", "default/guarded", "default/high")


def test_a_drain_blocked_by_a_budget_is_reported(ask, make):
    guarded = make.pod("guarded", node_name="a", owner="rs")
    guarded["metadata"]["labels"] = {"app": "web"}
    guarded["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"expectedPods": 1, "currentHealthy": 1, "desiredHealthy": 1},
    }
    answer = ask([make.node("a"), make.node("b"), guarded, budget], drain=("a",))
    assert answer.difference.is_empty
    [undrained] = answer.changed.undrained
    assert (undrained.pod.key, undrained.pod.node) == ("default/guarded", "a")
    assert "violate the pod's disruption budget" in undrained.why


def test_another_scheduler_configuration_places_new_pods_elsewhere(ask, make, write):
    config = write(
        "scheduler.yaml",
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: "
        "{type: MostAllocated, resources: [{name: cpu, weight: 1}]}}\n",
    )
    cluster = [make.node("a"), make.node("b"), make.pod("old", cpu="2", node_name="a")]
    new = [make.pod("new")]
    assert ask(cluster, new).difference.placed[0].node == "b"
    assert ask(cluster, new, new_config=config).difference.placed[0].node == "a"


def test_a_note_says_that_only_one_configuration_places_new_pods(ask, make, write):
    config = write("scheduler.yaml", "apiVersion: kubescheduler.config.k8s.io/v1\n"
                   "kind: KubeSchedulerConfiguration\n")  # fmt: skip
    cluster = [make.node("a"), make.workload(replicas=1)]
    said = "The rest of the change happens only in the run with --new-config."
    for change, count in (({"scale": ("deploy/web=2",)}, 1), ({}, 0)):
        notes = ask(cluster, new_config=config, **change).changed.notes
        assert sum(one.startswith(said) for one in notes) == count


def test_equal_seeds_give_equal_answers(ask, make):
    cluster = [make.node(f"n{n}") for n in range(5)]
    new = [make.pod(f"p{n}") for n in range(8)]
    first, second = (ask(cluster, new).difference for _ in range(2))
    assert first == second


def test_the_present_scheduler_configuration_applies_to_both_runs(make, snapshot, write):
    """The present configuration, which packs nodes, also decides without the change."""
    text = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
  plugins:
    score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit}]}
"""
    path = write("scheduler.yaml", text)
    objects = [make.node("a"), make.node("b"), make.pod("old", node_name="a"), make.pod("new")]
    conditions = Conditions(config=path)
    answer = what_if(snapshot(*objects), ClusterChange(cordon=("b",)), conditions)
    assert answer.scheduler_config == path
    assert answer.without.pods["default/new"].node == "a"
    assert answer.changed.pods["default/new"].node == "a"


class Counting:
    """A Filter plugin that counts its calls in this process."""

    name = "Counting"
    calls: ClassVar[list[str]] = []

    def filter(self, state, pod, node):
        self.calls.append(node.name)


@pytest.fixture
def from_kept_start(monkeypatch):
    """Keep the start of small clusters, too. Return the outcomes that are computed from it.

    With one core, next steps are tried one after another, so all outcomes are in the list.
    """
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # perhaps left by an earlier test
    monkeypatch.setattr(run_pair, "_KEPT_OBJECTS_MIN", 0)
    outcomes, outcome = [], run_pair.StartedRun.outcome

    def recorded(*arguments):
        outcomes.append(outcome(*arguments))
        return outcomes[-1]

    monkeypatch.setattr(run_pair.StartedRun, "outcome", recorded)
    return outcomes


LOAD = "time,workload,cpu\n0s,deploy/default/web,7200m\n"


@pytest.mark.parametrize(
    ("change", "load"),
    [
        ({"scale": ("deploy/default/web=9",)}, None),
        ({"scale": ("deploy/default/web=9",), "add_nodes": 1, "like": "a"}, None),
        ({"drain": ("a",)}, None),
        ({"drain": ("a",)}, LOAD),
    ],
)
def test_an_answer_does_not_depend_on_whether_the_loaded_cluster_is_kept(
    snapshot, make, write, change, load, request
):
    nodes = [make.node(name, cpu="2") for name in "ab"]
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 20,
        },
    }
    objects = [*nodes, make.workload(replicas=4, cpu="1"), *([autoscaler] if load else [])]
    conditions = Conditions(load=write("load.csv", load) if load else None)

    def asked():
        return what_if(snapshot(*objects), ClusterChange(**change), conditions)

    plain = asked()
    outcomes = request.getfixturevalue("from_kept_start")
    assert asked() == plain
    assert plain.next_steps
    assert len(outcomes) > 1
    assert None not in outcomes


def test_the_start_is_not_kept_for_failed_nodes(ask, make, from_kept_start):
    nodes = [make.node(name, cpu="2") for name in "ab"]
    failures = Failures(fail_node=("a",))
    ask([*nodes, make.workload(replicas=4, cpu="1")], failures=failures, lasts="20m")
    assert from_kept_start == []


def test_an_invalid_step_is_simulated_once(snapshot, make, from_kept_start):
    """The forked process sends the error."""
    change = ClusterChange(set=("deploy/default/web:spec.selector.matchLabels.app=other",))
    with pytest.raises(InputError):
        what_if(snapshot(make.node("a"), make.workload(replicas=1, cpu="1")), change)
    assert from_kept_start == []


def test_users_plugins_are_called_in_this_process(snapshot, write, make, from_kept_start):
    """Otherwise their output and their state would be lost."""
    Counting.calls.clear()
    change = ClusterChange(apply=(write("change.json", make.pod("p")),))
    what_if(snapshot(make.node("a")), change, Conditions(plugin=(Counting,)))
    assert Counting.calls
