"""Gangs that are made from a trace's pods, for each queue."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.error import InputError
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

NODES = "nodes,cpu_milli,memory_mib,gpu,model\n4,96000,393216,8,G2\n5,32000,65536,0,\n"
PODS = "pods,qos,cpu_milli,memory_mib,num_gpu,gpu_milli\n3,LS,8000,1024,8,1000\n9,BE,1000,1,1,500\n"


@pytest.fixture
def experiment(tmp_path):
    """Returns the experiment of a scenario with these jobs."""

    def made(seed=1, gpus=8, pods=PODS, **jobs):
        (tmp_path / "nodes.csv").write_text(NODES)
        (tmp_path / "pods.csv").write_text(pods)
        trace = {"nodes": "nodes.csv", "pods": "pods.csv", "gpus-at-least": gpus, "jobs": jobs}
        path = tmp_path / "s.yaml"
        whole = {"cluster": {"trace": {**trace, "arrivals": "1h"}}, "seed": seed, "duration": "3h"}
        path.write_text(json.dumps(whole))
        return experiment_of(str(path), read_scenario(str(path)))

    return made


def created(found):
    """The created objects, as (seconds, kind, name)."""
    return [
        (step.after / seconds(1), c.manifest["kind"], c.manifest["metadata"]["name"])
        for step in found.steps
        for c in step.commands
    ]


def test_gangs_arrive_at_even_intervals_after_their_pod_groups(experiment):
    found = experiment(members=[2], queues=[{"name": "q", "jobs": 2, "begins": "10m"}])
    assert created(found) == [
        (600, "PodGroup", "q-0000"), (600, "Pod", "q-0000-0"), (600, "Pod", "q-0000-1"),
        (2400, "PodGroup", "q-0001"), (2400, "Pod", "q-0001-0"), (2400, "Pod", "q-0001-1"),
    ]  # fmt: skip


def test_queues_and_pods_have_the_configured_fields(experiment):
    queue = {"name": "q", "weight": 3, "jobs": 1}
    found = experiment(members=[2], runtimes=["90s"], scheduler="volcano", queues=[queue])
    (weight,) = (one.value["spec"]["weight"] for one in found.initial if one.kind.kind == "Queue")
    group, pod, _ = [c.manifest for step in found.steps for c in step.commands]
    assert weight == 3
    assert group["spec"] == {"minMember": 2, "queue": "q"}
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["metadata"]["annotations"] == {
        "scheduling.k8s.io/group-name": "q-0000",
        "fairlead.dev/run-duration": "90s",
    }


def test_pods_keep_the_usage_that_the_table_has(experiment):
    header = "pods,qos,cpu_milli,memory_mib,num_gpu,gpu_milli,memory_used_mib"
    queue = {"name": "q", "jobs": 1}
    found = experiment(members=[1], queues=[queue], pods=f"{header}\n3,LS,8000,1024,8,1000,700\n")
    (pod,) = (c.manifest for s in found.steps for c in s.commands if c.manifest["kind"] == "Pod")
    assert pod["metadata"]["annotations"]["fairlead.dev/usage"] == "memory=700Mi"


def test_rows_with_fewer_gpus_are_left_out(experiment):
    found = experiment(gpus=8, queues=[{"name": "q", "jobs": 20}])
    pods = [c.manifest for s in found.steps for c in s.commands if c.manifest["kind"] == "Pod"]
    requested = {
        p["spec"]["containers"][0]["resources"]["requests"]["openb/gpu-milli"] for p in pods
    }
    assert requested == {"8000"}
    assert sum(one.kind.kind == "Node" for one in found.initial) == 4


def test_the_seed_determines_the_random_choices(experiment):
    queue = {"name": "q", "jobs": 30}
    assert created(experiment(queues=[queue])) == created(experiment(queues=[queue]))
    assert created(experiment(queues=[queue])) != created(experiment(seed=2, queues=[queue]))


def test_an_evicted_member_is_recreated_in_its_group(experiment):
    """Two queues share four nodes; the second requests its half when the first uses all nodes."""
    queues = [{"name": "a", "jobs": 2}, {"name": "b", "jobs": 2, "begins": "40m", "over": "1s"}]
    found = experiment(members=[2], runtimes=["1h"], queues=queues)
    outcome = run_experiment(found, "", NoProgress()).outcome
    assert len(outcome.preempted) == 2
    assert (outcome.jobs.gangs.gangs, outcome.jobs.gangs.broken) == (4, 0)
    assert outcome.jobs.gangs.finished == 4 - len(outcome.jobs.waiting)
    assert outcome.jobs.gangs.lost["openb/gpu-milli"] > 0


@pytest.mark.parametrize(
    ("jobs", "problem"),
    [
        ({"queues": [{"name": "q", "jobs": 0}]}, r"queues\[0\].jobs: expected a number from 1"),
        ({"queues": [{"name": "", "jobs": 1}]}, r"queues\[0\].name: '' is empty or used twice"),
        (
            {"queues": [{"name": "q", "jobs": 1}, {"name": "q", "jobs": 1}]},
            r"queues\[1\].name: 'q' is empty or used twice",
        ),
        ({"queues": [{"name": "q", "jobs": 1, "weight": 0}]}, r"queues\[0\].weight: expected"),
        ({"queues": [{"name": "q", "jobs": 1, "begins": "x"}]}, r"queues\[0\].begins: "),
        ({"queues": [{"name": "q", "jobs": 1}], "members": [0]}, "members: expected numbers"),
        ({"queues": [{"name": "q", "jobs": 1}], "runtimes": []}, "runtimes: expected at least"),
        ({"queues": [{"name": "q", "jobs": 1}], "runtimes": ["x"]}, "runtimes: "),
    ],
)
def test_invalid_settings_are_refused(experiment, jobs, problem):
    with pytest.raises(InputError, match=f"cluster.trace.jobs.{problem}"):
        experiment(**jobs)


def test_a_trace_without_a_matching_pod_is_refused(experiment):
    with pytest.raises(InputError, match="the trace has no pods"):
        experiment(gpus=9, queues=[{"name": "q", "jobs": 1}])


@pytest.mark.long
def test_shares_converge_to_the_weights_when_all_queues_have_pending_gangs(experiment):
    """Four nodes, weights 3 to 1; the heavier queue is idle for half an hour."""
    heavy = {"name": "a", "weight": 3, "jobs": 40, "begins": "30m", "over": "1m"}
    light = {"name": "b", "weight": 1, "jobs": 60, "over": "1m"}
    found = experiment(members=[1], runtimes=["20m"], queues=[heavy, light])
    outcome = run_experiment(replace(found, duration=seconds(3600)), "", NoProgress()).outcome
    held: dict[str, dict[int, int]] = {"a": {}, "b": {}}
    for sample in outcome.jobs.samples:
        minute = (sample.at - outcome.started_at) // seconds(60)
        held[sample.queue][minute] = sample.allocated["openb/gpu-milli"] // 8000
    assert max(held["b"][minute] for minute in held["b"] if minute < 30) == 4
    assert {held["a"][minute] for minute in held["a"] if minute > 35} <= {2, 3}
    assert (outcome.jobs.queue("a").share, outcome.jobs.queue("b").share) == (1.0, 1.0)
