"""Pods of schedulers that no configuration describes."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import DEFAULT_CONDITIONS, Conditions
from fairlead.whatif.configuration.other_scheduler import other_schedulers, rules_note
from fairlead.whatif.explain.pod import explain_pod
from fairlead.whatif.question import what_if

MINE = "example.com/mine"
NOTE = rules_note([MINE])
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
"""


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
    assert not answer.changed.placed()
    [pod] = answer.changed.pods.values()
    assert pod.reason == f'no scheduler has the name "{MINE}"'
    assert NOTE not in answer.changed.notes


def test_a_profile_that_the_change_drops_has_no_substitute(ask, make, write):
    mine = f"- schedulerName: {MINE}\n"
    first = write("first.yaml", f"{CONFIG}- schedulerName: default-scheduler\n{mine}")
    second = write("second.yaml", f"{CONFIG}- schedulerName: default-scheduler\n")
    objects = web(make, schedulerName=MINE), owned(make, "web-1", node_name="a")
    conditions = Conditions(config=first)
    answer = ask(*objects, conditions=conditions, new_config=second, drain=("a",))
    assert [one.name for one in answer.difference.pending] == ["web-1"]
    assert NOTE not in answer.changed.notes


def test_an_explanation_of_a_pod_of_another_scheduler_has_the_note(snapshot, make):
    bound, waits = owned(make, "web-1", node_name="a"), owned(make, "web-2")
    objects = snapshot(make.node("a"), make.node("b"), bound, waits)
    found = explain_pod(objects, "pod/web-2", SchedulerConfig())
    assert found.evaluation.choices == ["b"]
    assert found.notes == (NOTE,)


def test_static_pods_are_no_evidence_of_a_scheduler(snapshot, make):
    static = make.pod("etcd-a", schedulerName=MINE, node_name="a")
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert other_schedulers(SchedulerConfig(), snapshot(make.node("a"), static).manifests) == ()
