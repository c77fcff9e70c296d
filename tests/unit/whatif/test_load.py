"""A what-if under load: both runs cover the same time."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.outcome.assessment.fail_on import check, parse_fail_on
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result

AUTOSCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 9,
        "metrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 50},
                },
            }
        ],
    },
}

# Scales the workload before the change, and at 59 minutes, near the time limit.
LOAD = """\
- workload: deploy/web
  cpu: {steps: {0s: 1, 59m: 2}, repeat: 2h}
"""


def test_the_run_without_the_change_covers_the_end_of_the_other_run(snapshot, make, write):
    """The load repeats, so the cluster never settles, and both runs end at the time limit.

    The time limits of both runs count from the change.
    """
    nodes = [make.node(name, cpu="64") for name in "ab"]
    found = what_if(
        snapshot(*nodes, make.workload(cpu="1"), AUTOSCALER),
        ClusterChange(cordon=("b",)),
        Conditions(load=write("load.yaml", LOAD)),
    )
    assert found.without.rest.after
    assert not found.without.settled
    assert found.without.ended_at == found.changed.ended_at
    assert len(found.changed.pods) == 4
    assert not found.difference.placed


@pytest.mark.parametrize(
    ("cordoned", "is_noted"), [((), True), (("b",), False)], ids=["no change", "a change"]
)
def test_a_load_without_a_change_is_noted(snapshot, make, write, cordoned, is_noted):
    """Both runs have the load, so nothing changes; the reader may expect an effect of the load."""
    found = what_if(
        snapshot(*(make.node(name) for name in "ab"), make.workload(cpu="1"), AUTOSCALER),
        ClusterChange(cordon=cordoned),
        Conditions(load=write("load.yaml", "- {workload: deploy/web, cpu: 1}\n")),
    )
    assert found.verdict.first.sentence.startswith("Nothing changes for any pod.")
    assert any("No change was requested" in one for one in found.changed.notes) is is_noted


def test_a_run_of_a_cluster_that_never_settles_covers_the_end_of_the_other_run(snapshot, make):
    """The Job starts pods all the time. The change is made when the pod of `web` is ready."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "batch", "namespace": "default"},
        "spec": {
            "parallelism": 1,
            "completions": 90,
            "template": {
                "metadata": {"annotations": {"fairlead.dev/run-duration": "2m"}},
                "spec": {"containers": [container], "restartPolicy": "Never"},
            },
        },
    }
    found = what_if(
        snapshot(*[make.node(name, cpu="64") for name in "ab"], make.workload(cpu="1"), job),
        ClusterChange(cordon=("b",)),
    )
    assert found.without.rest.after
    assert not found.without.settled
    assert found.without.ended_at == found.changed.ended_at


def test_pods_that_wait_until_the_load_falls_again_are_an_effect(snapshot, make, write):
    """Without the change, the pods of the peak run on the node."""
    peak = "- workload: deploy/web\n  cpu: {steps: {0s: 1, 2m: 2, 40m: 0.8}}\n"
    found = what_if(
        snapshot(make.node("b", cpu="64"), make.workload(cpu="1"), AUTOSCALER),
        ClusterChange(cordon=("b",)),
        Conditions(load=write("load.yaml", peak)),
    )
    assert found.difference.is_empty
    assert found.verdict.first.sentence == (
        "2 pending pods of deploy/default/web wait up to 43m00s for a node and are deleted before "
        "they get one."
    )
    assert [(one["pod"] != "", one["node"]) for one in whatif_result(found)["waited"]] == [
        (True, ""), (True, ""),
    ]  # fmt: skip
    assert whatif_result(found)["difference"]
    few = [
        check(parse_fail_on(text), found.effect)
        for text in ("workload-below=80%", "workload-below=4")
    ]
    assert [one.evidence for one in few] == [("deploy/default/web (2 of 4 ready)",)] * 2
    assert not check(parse_fail_on("workload-below=50%"), found.effect).holds


def test_a_rollout_that_is_complete_before_the_size_changes_has_no_deadline(snapshot, make, write):
    """The new pods are ready within a minute; the autoscaler changes their number after 30m."""
    load = "- workload: deploy/web\n  cpu: {steps: {0s: 1, 30m: 2}}\n"
    nodes = [make.node(name, cpu="64") for name in "ab"]
    cluster = snapshot(*nodes, make.workload(cpu="1", replicas=2), AUTOSCALER)
    change = ClusterChange(set=("deploy/web:spec.template.spec.containers[c].image=new",))
    answer = what_if(cluster, change, Conditions(load=str(write("load.yaml", load))))
    [web] = [one for one in answer.effect.workloads if one.workload.name == "web"]
    assert web.readiness.at_end > 2
    assert not [note for note in answer.changed.notes if "progressDeadlineSeconds" in note]


@pytest.mark.parametrize("has_workload", [True, False])
def test_a_change_may_create_the_autoscaler_and_the_workload_of_a_load(
    snapshot, make, write, has_workload
):
    web = make.workload(replicas=2, cpu="1")
    apply = [AUTOSCALER] if has_workload else [web, AUTOSCALER]
    found = what_if(
        snapshot(make.node("a", cpu="64"), *([web] if has_workload else [])),
        ClusterChange(apply=apply),
        Conditions(load=write("load.yaml", "- {workload: deploy/default/web, cpu: 2}")),
    )
    assert len(found.changed.pods) == 4
    assert not any("has no effect there" in note for note in found.changed.notes)


def test_a_load_of_a_workload_that_the_change_stops_scaling_has_an_effect(snapshot, make, write):
    """The autoscaler scales the workload until the change is made."""
    other = {**AUTOSCALER["spec"]["scaleTargetRef"], "name": "other"}
    spec = {**AUTOSCALER["spec"], "scaleTargetRef": other}
    found = what_if(
        snapshot(make.node("a", cpu="64"), make.workload(replicas=2), AUTOSCALER),
        ClusterChange(apply=[{**AUTOSCALER, "spec": spec}]),
        Conditions(load=write("load.yaml", "- {workload: deploy/default/web, cpu: 2}")),
    )
    assert not any("has no effect there" in note for note in found.changed.notes)


@pytest.mark.parametrize(
    ("cpu", "sentence", "options"),
    [
        (
            "6",
            (
                "Nothing changes for any pod. In both runs, HorizontalPodAutoscaler default/web "
                "needs up to 12 replicas until the end, but its maxReplicas is 9."
            ),
            ["--set hpa/default/web:spec.maxReplicas=12"],
        ),
        ("4", "Nothing changes for any pod.", []),
    ],
)
def test_a_load_beyond_max_replicas_is_named_first(snapshot, make, write, cpu, sentence, options):
    """Both runs lack the replicas, but the question is about the load."""
    found = what_if(
        snapshot(make.node("a", cpu="64"), make.workload(cpu="1"), AUTOSCALER),
        ClusterChange(),
        Conditions(load=write("load.yaml", f"- {{workload: deploy/web, cpu: {cpu}}}\n")),
    )
    assert found.verdict.first.sentence == sentence
    assert [one.options for one in found.next_steps] == options
