"""Pods of schedulers that no configuration describes."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import DEFAULT_CONDITIONS, Conditions
from fairlead.whatif.configuration.other_scheduler import other_schedulers, rules_note
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.pod import explain_pod
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.input.error import InputError
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.fit import fit
from fairlead.whatif.planner.new_pod import pod_source
from fairlead.whatif.planner.plan_note import plan_notes, rules_notes
from fairlead.whatif.question import what_if
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.inventory import Inventory

MINE = "example.com/mine"
NOTE = rules_note([MINE])
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
"""
UNKNOWN = (
    f"If the cluster has a scheduler with the name {MINE}, add a profile with this name to the "
    "file of --config."
)


@pytest.fixture
def ask(snapshot, make):
    """Ask what `change` does to two nodes and `objects`."""

    def ask_what_if(*objects, conditions=DEFAULT_CONDITIONS, **change):
        cluster = snapshot(make.node("a"), make.node("b"), *objects)
        return what_if(cluster, ClusterChange(**change), conditions)

    return ask_what_if


def owned(make, name, **spec):
    pod = make.pod(name, schedulerName=MINE, **spec)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-web"}
    pod["metadata"]["labels"] = {"app": "web"}
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return pod


def web(make, **spec):
    owner = make.workload("ReplicaSet", "web", **spec)
    owner["metadata"]["uid"] = "u-web"
    return owner


def test_a_displaced_pod_of_another_scheduler_follows_the_default_rules(ask, make):
    """The planners assume the same."""
    objects = web(make, schedulerName=MINE), owned(make, "web-1", node_name="a")
    answer = ask(*objects, drain=("a",))
    assert [(one.origin, one.target) for one in answer.difference.moved] == [("a", "b")]
    assert answer.changed.notes.count(NOTE) == 1


@pytest.mark.parametrize("has_batch", [False, True])
def test_a_name_that_no_bound_pod_has_may_be_a_mistake(ask, make, has_batch):
    gang = [make.workload("ReplicaSet", "gang", replicas=0, schedulerName="volcano")]
    answer = ask(web(make, schedulerName=MINE), *(gang if has_batch else ()))
    assert not answer.changed.placed
    [pod] = answer.changed.pods.values()
    assert pod.reason == f'no scheduler has the name "{MINE}"'
    assert NOTE not in answer.changed.notes
    assert answer.changed.notes.count(UNKNOWN) == 1


def test_a_profile_that_the_change_drops_has_no_substitute(ask, make, write):
    mine = f"- schedulerName: {MINE}\n"
    first = write("first.yaml", f"{CONFIG}- schedulerName: default-scheduler\n{mine}")
    second = write("second.yaml", f"{CONFIG}- schedulerName: default-scheduler\n")
    objects = web(make, schedulerName=MINE), owned(make, "web-1", node_name="a")
    conditions = Conditions(config=first)
    answer = ask(*objects, conditions=conditions, new_config=second, drain=("a",))
    assert [one.name for one in answer.difference.pending] == ["web-1"]
    assert NOTE not in answer.changed.notes


def test_the_reason_of_a_pod_without_a_scheduler_is_not_that_of_an_earlier_scheduler(
    ask, make, write
):
    """The dump has the message of the scheduler that the new configuration drops."""
    pod = make.pod("web-1", cpu="8")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    condition["message"] = "0/2 nodes are available: 2 Insufficient cpu."
    pod["status"] = {"phase": "Pending", "conditions": [condition]}
    second = write("second.yaml", f"{CONFIG}- schedulerName: {MINE}\n")
    answer = ask(pod, new_config=second)
    before, after = (one.pods["default/web-1"].reason for one in (answer.without, answer.changed))
    assert before.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert after == 'no scheduler has the name "default-scheduler"'


def test_an_explanation_of_a_pod_of_another_scheduler_has_the_note(snapshot, make):
    bound, waits = owned(make, "web-1", node_name="a"), owned(make, "web-2")
    objects = snapshot(make.node("a"), make.node("b"), bound, waits)
    found = explain_pod(objects, "pod/web-2", SchedulerConfig())
    assert found.evaluation.choices == ["b"]
    assert found.notes == (NOTE,)


@pytest.mark.parametrize(("is_bound", "count"), [(True, 7), (False, None)])
def test_fit_and_explain_know_the_same_schedulers_as_a_what_if(snapshot, make, is_bound, count):
    """Two nodes of 4 cores; one pod of one core is bound or waits."""
    pod = owned(make, "web-1", node_name="a" if is_bound else "")
    read = snapshot(make.node("a"), make.node("b"), web(make, schedulerName=MINE), pod)
    model, inventory = ClusterModel(read, SchedulerConfig()), Inventory(read.manifests)
    source = pod_source(None, "rs/web", "", inventory)
    missing = f'no scheduler has the name "{MINE}"'
    if count is not None:
        assert fit(model, source, NoProgress()).count == count
        assert rules_notes(model) == (NOTE,)
        return
    with pytest.raises(InputError, match=missing):
        fit(model, source, NoProgress())
    assert missing in explain_pod(read, "pod/web-1", SchedulerConfig()).evaluation.fit_error
    notes = plan_notes(read, model, NO_CHOICE)
    assert (NOTE in notes, notes.count(UNKNOWN)) == (False, 1)
    answer = explain_object(read, "rs/web", SchedulerConfig(), NO_CHOICE)
    assert [row["why"] for row in answer.tables[0].rows] == [missing]
    assert UNKNOWN in answer.notes
    assert answer.findings[0] == f"One more pod would have no node: {missing}"


def test_a_pod_that_the_change_does_not_concern_has_no_note(ask, make):
    owner = web(make, schedulerName=MINE, replicas=2)
    bound = [owned(make, f"web-{at}", node_name="a") for at in (1, 2)]
    change = {"scale": ("deploy/web=2",)}
    assert NOTE not in ask(owner, *bound, make.workload(), **change).changed.notes
    pending = owned(make, "web-2", cpu="9")
    assert NOTE in ask(owner, bound[0], pending, make.workload(), **change).changed.notes


def test_an_answer_about_other_pods_has_no_notes_about_schedulers(snapshot, make):
    """Neither about a running pod, nor about one that waits for a scheduler that does not exist."""
    store = make.workload("ReplicaSet", "store")
    running, waiting = owned(make, "web-1", node_name="a"), make.pod("p", schedulerName="other")
    read = snapshot(make.node("a"), store, web(make, schedulerName=MINE), running, waiting)
    model = ClusterModel(read, SchedulerConfig())
    fit(model, pod_source(None, "rs/store", "", Inventory(read.manifests)), NoProgress())
    assert rules_notes(model) == ()
    notes = explain_object(read, "rs/store", SchedulerConfig(), NO_CHOICE).notes
    assert not any("scheduler" in note for note in notes)


def test_static_pods_are_no_evidence_of_a_scheduler(snapshot, make):
    static = make.pod("etcd-a", schedulerName=MINE, node_name="a")
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert other_schedulers(SchedulerConfig(), snapshot(make.node("a"), static).manifests) == ()


def test_a_note_says_that_no_fargate_nodes_are_created():
    """Otherwise, the answer seems to claim that EKS places such pods on its other nodes."""
    assert "EKS creates a Fargate node for each new pod" in rules_note(["fargate-scheduler", MINE])
    assert "Fargate" not in rules_note([MINE])
