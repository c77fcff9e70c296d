"""Applied objects whose pods no simulated controller creates are named."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result

POD_SPEC = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE = {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}


def custom(kind, api_version, **spec):
    meta = {"name": "x", "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def notes(snapshot, make, write, *applied):
    path = write("change.json", *applied)
    answer = what_if(snapshot(make.node("a")), ClusterChange(apply=(path,)))
    return [
        one
        for one in whatif_result(answer)["notes"]
        if one.startswith(("No pods are created ", "This kind ", "These kinds "))
    ]


@pytest.mark.parametrize(
    ("applied", "name"),
    [
        pytest.param(
            custom("CronJob", "batch/v1", schedule="* * * * *", jobTemplate={"spec": TEMPLATE}),
            "CronJob default/x (batch/v1)",
            id="a CronJob",
        ),
        pytest.param(
            custom("Rollout", "argoproj.io/v1alpha1", **TEMPLATE),
            "Rollout default/x (argoproj.io/v1alpha1)",
            id="a custom workload",
        ),
        pytest.param(
            custom("Job", "example.com/v1alpha1", tasks=[{"name": "t", **TEMPLATE}]),
            "Job default/x (example.com/v1alpha1)",
            id="a Job of another group, with a template for each task",
        ),
    ],
)
def test_a_workload_without_a_simulated_controller_is_named(snapshot, make, write, applied, name):
    [note] = notes(snapshot, make, write, applied)
    assert note == (
        f"No pods are created for {name}, because the controller is not simulated. "
        "To see where the pods would go, apply their template in a Deployment or Job."
    )


def test_simulated_workloads_and_objects_without_pods_are_not_named(snapshot, make, write):
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    applied = (make.workload(), make.workload("StatefulSet", "db"), make.pod("p"), config)
    assert notes(snapshot, make, write, *applied) == []


@pytest.mark.parametrize(
    ("applied", "named"),
    [
        pytest.param(
            custom("PodDisruptionBudget", "policy.k8s.io/v1", minAvailable=1),
            "PodDisruptionBudget default/x (policy.k8s.io/v1, not policy/v1)",
            id="a wrong group",
        ),
        pytest.param(
            custom("Widget", "example.com/v1"),
            "Widget default/x (example.com/v1)",
            id="a kind of its own",
        ),
    ],
)
def test_an_object_of_an_unknown_kind_is_named(snapshot, make, write, applied, named):
    [note] = notes(snapshot, make, write, applied)
    assert note == f"This kind is not simulated, so it has no effect: {named}."


def test_objects_of_two_unknown_kinds_share_a_note(snapshot, make, write):
    """Custom resources of a chart are usually of several kinds."""
    applied = custom("Widget", "example.com/v1"), custom("Gadget", "example.org/v1")
    [note] = notes(snapshot, make, write, *applied)
    assert note.startswith("These kinds are not simulated, so they have no effect: Widget")


def test_kinds_that_commands_read_are_not_named(snapshot, make, write):
    pool = custom("NodePool", "karpenter.sh/v1", template={"spec": {}})
    stage = custom("Stage", "kwok.x-k8s.io/v1alpha1")
    assert notes(snapshot, make, write, pool, stage) == []


@pytest.mark.parametrize(
    ("edits", "is_named"),
    [
        (("cronjob/x:spec.schedule=@daily", "cronjob/x:spec.timeZone=UTC"), True),
        (("cronjob/x:spec.suspend=true",), False),
        (("deploy/web:spec.paused=true", "deploy/web:spec.replicas=2"), False),
    ],
)
def test_an_edited_workload_without_a_simulated_controller_is_named(
    snapshot, make, edits, is_named
):
    cron = custom("CronJob", "batch/v1", schedule="* * * * *", jobTemplate={"spec": TEMPLATE})
    cron["metadata"]["namespace"] = "default"
    running = snapshot(make.node("a"), make.workload(), cron)
    found = what_if(running, ClusterChange(set=edits)).changed.notes
    assert len([one for one in found if "CronJob default/x (batch/v1)" in one]) == is_named


@pytest.mark.parametrize("option", ["set", "apply"])
def test_a_change_of_an_existing_workload_is_said_to_have_no_effect(snapshot, make, option):
    rollout = custom("Rollout", "argoproj.io/v1alpha1", replicas=1, **TEMPLATE)
    more = custom("Rollout", "argoproj.io/v1alpha1", replicas=2, **TEMPLATE)
    change = (
        ClusterChange(set=("rollout.argoproj.io/x:spec.replicas=2",))
        if option == "set"
        else ClusterChange(apply=(more,))
    )
    found = what_if(snapshot(make.node("a"), rollout), change).changed.notes
    [note] = [one for one in found if "Rollout" in one]
    assert note == (
        "The change of Rollout default/x (argoproj.io/v1alpha1) has no effect on pods, because the "
        "controller is not simulated."
    )


@pytest.mark.parametrize(
    ("existing", "edit", "name"),
    [
        pytest.param(
            custom("Rollout", "argoproj.io/v1alpha1", replicas=1, **TEMPLATE),
            "rollout.argoproj.io/x:spec.replicas=2",
            "Rollout default/x",
            id="a custom workload",
        ),
        pytest.param(
            custom("ScaledObject", "keda.sh/v1alpha1", minReplicaCount=1),
            "scaledobject/x:spec.minReplicaCount=5",
            "ScaledObject default/x",
            id="an object of an unknown kind",
        ),
        pytest.param(
            custom("ClusterQueue", "kueue.x-k8s.io/v1beta1", cohort="a"),
            "clusterqueue/x:spec.cohort=b",
            "ClusterQueue default/x",
            id="a setting of Kueue",
        ),
    ],
)
def test_the_verdict_names_a_change_that_is_not_simulated(snapshot, make, existing, edit, name):
    """The new image of a Rollout must not look as if it replaced no pod."""
    found = what_if(snapshot(make.node("a"), existing), ClusterChange(set=(edit,)))
    assert found.verdict.first.sentence == (
        f"Nothing changes for any pod, but the change of {name} is not simulated."
    )


def test_the_verdict_does_not_name_an_object_that_stays_the_same(snapshot, make):
    rollout = custom("Rollout", "argoproj.io/v1alpha1", replicas=1, **TEMPLATE)
    found = what_if(snapshot(make.node("a"), rollout), ClusterChange(apply=(rollout,)))
    assert found.verdict.first.sentence == "Nothing changes for any pod."
