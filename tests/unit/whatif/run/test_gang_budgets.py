"""Preemption for a gang breaches the budgets of its victims, with both schedulers."""

from __future__ import annotations

import json

import pytest

from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

GATES = dict.fromkeys(("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption"), True)
LOW, HIGH = 0, 1000


def of_scheduler(name, minimum, priority):
    """A PodGroup of kube-scheduler, and the fields of its pods."""
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    spec |= {"disruptionMode": "PodGroup", "priorityClassName": f"p{priority}"}
    return "scheduling.k8s.io/v1alpha2", spec, {}, {"schedulingGroup": {"podGroupName": name}}


def of_volcano(name, minimum, priority):
    """A PodGroup of Volcano, and the fields of its pods."""
    spec = {"minMember": minimum, "priorityClassName": f"p{priority}"}
    marks = {"scheduling.k8s.io/group-name": name}
    return "scheduling.volcano.sh/v1beta1", spec, marks, {"schedulerName": "volcano"}


def gang(kind, name, members, priority):
    api, spec, marks, own = kind(name, members, priority)
    meta = {"name": name, "namespace": "default"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"labels": {"gang": name}, "annotations": marks},
        "spec": {
            "restartPolicy": "Never",
            "containers": [container],
            "priorityClassName": f"p{priority}",
            **own,
        },
    }
    job = {"parallelism": members, "completions": members, "template": template}
    return [
        {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": spec},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": job},
    ]


def priority_class(value):
    meta = {"name": f"p{value}"}
    api = "scheduling.k8s.io/v1"
    return {"apiVersion": api, "kind": "PriorityClass", "metadata": meta, "value": value}


@pytest.mark.parametrize("kind", [of_scheduler, of_volcano])
def test_a_preempted_gang_breaches_its_budget(tmp_path, kind):
    """The budget allows one of three pods to be disrupted, and all three are victims."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"gang": "low"}}},
    }
    scenario = {
        "cluster": {"generated": {"nodes": 3, "allocatable": {"cpu": "1"}}},
        "settings": {"feature-gates": GATES},
        "objects": [priority_class(LOW), priority_class(HIGH), budget, *gang(kind, "low", 3, LOW)],
        "events": [{"at": "1m", "create": one} for one in gang(kind, "high", 2, HIGH)],
        "duration": "2m",
    }
    path = tmp_path / "scenario.yaml"
    path.write_text(json.dumps(scenario))
    found = run_experiment(experiment_of(str(path), read_scenario(str(path)))).outcome
    assert len(found.preempted) == 3
    assert len(found.pdb_breaches) == 2
    assert {one.by for one in found.pdb_breaches} <= {one.by for one in found.preempted}
