"""`load` of a scenario, and --load of a what-if: HorizontalPodAutoscalers react to it."""

from __future__ import annotations

import json

import pytest
import yaml

from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.input.error import InputError
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import simulation_result
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

WEB = ("Deployment", "default", "web")


def autoscaler(name="web", **spec):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 10, **spec},
    }


@pytest.fixture
def read(tmp_path, make):
    """Returns the experiment of a scenario with two workloads and this load."""

    def read_load(load, duration="10m", files=None):
        for name, content in (files or {}).items():
            (tmp_path / name).write_text(content)
        workloads = [make.workload(name=name, replicas=2) for name in ("web", "api")]
        scenario = {
            "cluster": {"generated": {"nodes": 4, "allocatable": {"cpu": "8"}}},
            "objects": [*workloads, autoscaler()],
            "load": load,
            "duration": duration,
        }
        path = tmp_path / "s.yaml"
        path.write_text(yaml.safe_dump(scenario))
        return experiment_of(str(path), read_scenario(str(path)))

    return read_load


def amounts(experiment, *times_s, resource="cpu", workload=WEB):
    curve = experiment.loads[workload][resource]
    return [curve.at(experiment.start + seconds(at)) for at in times_s]


def test_amounts_are_cores_and_bytes(read):
    found = read([{"workload": "deploy/default/web", "cpu": 1.5, "memory": "2Gi"}])
    assert amounts(found, 0, 1e6) == [1500, 1500]
    assert amounts(found, 0, resource="memory") == [2 << 30]


@pytest.mark.parametrize(
    ("shape", "times_s", "expected"),
    [
        ({"steps": {"0s": 1, "1m": 3, "2m": 2}}, (0, 59, 60, 500), [1000, 1000, 3000, 2000]),
        ({"ramp": {0: 1, 60: 3}}, (0, 30, 60, 500), [1000, 2000, 3000, 3000]),
        ({"ramp": {0: 1, 60: 3}, "repeat": "2m"}, (30, 90, 150), [2000, 3000, 2000]),
        ({"ramp": {0: 1, 60: 3}, "repeat": "1m"}, (0, 30, 60, 90), [1000, 2000, 1000, 2000]),
        ({"daily": {"low": 1, "high": 3, "peak": "14h"}}, (7200, 50400, 136800),
         [1000, 3000, 3000]),
        ({"daily": {"low": 1, "high": 3}}, (0, 21600, 43200), [1000, 2000, 3000]),
    ],
)  # fmt: skip
def test_a_load_has_a_shape(read, shape, times_s, expected):
    found = read([{"workload": "deploy/default/web", "cpu": shape}])
    assert amounts(found, *times_s) == expected


@pytest.mark.parametrize("times", [("0s", "1m"), ("2026-05-01T10:00:00Z", "2026-05-01T10:01:00Z")])
def test_a_table_has_the_load_of_several_workloads(read, times):
    first, second = times
    table = (
        "time,workload,cpu,memory\n"
        f"{first},deploy/default/web,1,1Gi\n{first},deploy/default/api,500m,\n"
        f"{second},deploy/default/web,3,\n"
    )
    found = read([{"csv": "load.csv"}], files={"load.csv": table})
    assert amounts(found, 0, 59, 60) == [1000, 1000, 3000]
    assert amounts(found, 500, resource="memory") == [1 << 30]
    assert amounts(found, 0, workload=("Deployment", "default", "api")) == [500]


def test_a_workload_follows_its_load(read):
    """With one core per pod and 80 %, 6 cores need 8 pods. The note is about the other workload."""
    load = [
        {"workload": "deploy/default/web", "cpu": {"steps": {"0s": "1.6", "3m": 6}}},
        {"workload": "deploy/default/api", "cpu": 1},
    ]
    experiment = read(load)
    outcome = run_experiment(experiment).outcome
    (found,) = outcome.pod_autoscalers
    assert (found.replicas_before, found.replicas, found.lowest, found.highest) == (2, 8, 2, 8)
    assert [one.after for one in found.changes] == [4, 8]
    assert found.inactive_reason == ""
    written = simulation_result(experiment, outcome)["pod_autoscalers"]
    above = "cpu resource utilization (percentage of request) above target"
    assert written[0]["changes"][0] == {"at_s": 180.0, "from": 2, "to": 4, "reason": above}
    assert any("scales Deployment default/api, so the load has no" in one for one in outcome.notes)


def test_a_run_ends_when_the_load_no_longer_changes(read):
    """A load that still changes is not a cluster at rest."""
    steps = {"steps": {"0s": "1.6", "30m": 6}}
    found = read([{"workload": "deploy/default/web", "cpu": steps}], duration=None)
    outcome = run_experiment(found).outcome
    assert outcome.settled
    assert outcome.pod_autoscalers[0].replicas == 8


def test_an_autoscaler_without_load_is_named_in_a_note(read):
    outcome = run_experiment(read([])).outcome
    assert outcome.pod_autoscalers[0].inactive_reason == "FailedGetResourceMetric"
    assert any("default/web has no load here" in one for one in outcome.notes)


def test_a_what_if_names_a_missing_load_only_if_the_change_affects_the_workload(snapshot, make):
    cluster = snapshot(make.node("a", cpu="16"), make.workload(replicas=2), autoscaler())
    about_web = (
        "HorizontalPodAutoscaler default/web has no load here, so the number of replicas changes "
        "only if it is outside the limits; state a load with whatif --load FILE (in a scenario, "
        "load)."
    )
    affected = what_if(cluster, ClusterChange(scale=("deploy/default/web=3",)))
    assert about_web in affected.changed.notes
    untouched = what_if(cluster, ClusterChange(cordon=("a",)))
    assert not any("HorizontalPodAutoscaler" in one for one in untouched.changed.notes)


def test_a_what_if_can_have_a_load(snapshot, make, tmp_path):
    """With the load, a lower limit leaves the workload with fewer replicas."""
    path = tmp_path / "load.json"
    path.write_text(json.dumps([{"workload": "deploy/default/web", "cpu": 6}]))
    objects = [make.node("a", cpu="16"), make.workload(replicas=2), autoscaler()]
    change = ClusterChange(set=("hpa/default/web:spec.maxReplicas=5",))
    answer = what_if(snapshot(*objects), change, Conditions(load=str(path)))
    assert [run.pod_autoscalers[0].replicas for run in (answer.without, answer.changed)] == [8, 5]


def test_the_load_of_a_what_if_begins_with_the_change(snapshot, make, tmp_path):
    """The first amount asks for four pods, and the change is made when they run."""
    path = tmp_path / "load.json"
    steps = {"0s": 3.2, "10m": 6.4, "20m": 3.2}
    path.write_text(json.dumps([{"workload": "deploy/default/web", "cpu": {"steps": steps}}]))
    cluster = snapshot(make.node("a", cpu="16"), make.workload(replicas=2), autoscaler())
    change = ClusterChange(set=("hpa/default/web:spec.maxReplicas=5",))
    answer = what_if(cluster, change, Conditions(load=str(path)))
    assert answer.without.rest.after > 0
    (found,) = answer.without.pod_autoscalers
    begin = answer.without.started_at
    assert [(one.before, one.after) for one in found.changes] == [(4, 8), (8, 4)]
    assert [(one.at - begin) // seconds(60) for one in found.changes] == [10, 25]
    assert [one.sentence for one in answer.verdict.findings] == [
        (
            "HorizontalPodAutoscaler default/web needs up to 8 replicas for 10m00s, but its "
            "maxReplicas is 5."
        ),
        (
            "deploy/default/web has 4 to 5 replicas over time instead of 4 to 8 "
            "(HorizontalPodAutoscaler default/web)."
        ),
    ]


def test_pods_of_a_later_scale_up_are_not_displaced(snapshot, make, tmp_path):
    """In both runs, the load adds four pods after 30 minutes; the change drains a node."""
    path = tmp_path / "load.json"
    steps = {"0s": 1.6, "30m": 4.8}
    path.write_text(json.dumps([{"workload": "deploy/default/web", "cpu": {"steps": steps}}]))
    pods = [make.pod(f"other-{node}", node_name=node, owner="rs") for node in "ab"]
    nodes = [make.node("a", cpu="16"), make.node("b", cpu="16")]
    cluster = snapshot(*nodes, *pods, make.workload(replicas=2), autoscaler())
    answer = what_if(cluster, ClusterChange(drain=("a",)), Conditions(load=str(path)))
    found = answer.difference
    assert [run.pod_autoscalers[0].replicas for run in (answer.without, answer.changed)] == [6, 6]
    assert {pod.key for pod in found.displaced} == {one.pod.key for one in found.evicted}
    assert found.elsewhere
    assert len(found.moved) == len(found.evicted) + len(found.elsewhere)
    assert found.recovered_after < seconds(60)
    last = answer.verdict.findings[-1].sentence
    assert last.startswith(
        f"{len(found.elsewhere)} pods of deploy/default/web are placed elsewhere"
    )


def test_pods_of_a_scale_down_are_removed_although_the_autoscaler_scales_up(snapshot, make):
    cluster = snapshot(
        make.node("a", cpu="16"), make.workload(replicas=4), autoscaler(minReplicas=4)
    )
    answer = what_if(cluster, ClusterChange(scale=("deploy/default/web=1",)))
    found = answer.difference
    assert (len(found.removed), len(found.placed)) == (3, 3)
    assert not found.displaced
    assert not found.moved
    assert [one.sentence for one in answer.verdict.findings[1:]] == [
        "3 new pods of deploy/default/web run after 14s, and none is displaced.",
        "3 pods of deploy/default/web are removed.",
    ]


BAD_LOADS = [
    ([{"cpu": 1}], "load[0]: needs either workload or csv"),
    ([{"workload": "deploy/web"}], "load[0]: needs cpu or memory"),
    ([{"workload": "deploy/web", "gpu": 1}], "load[0].gpu: unknown field"),
    ([{"workload": "deploy/wbe", "cpu": 1}], "load[0].workload: there is no Deployment wbe"),
    ([{"workload": "hpa/web", "cpu": 1}], "a HorizontalPodAutoscaler cannot have a load; only"),
    ([{"workload": "deploy/web", "cpu": "much"}], "load[0].cpu: 'much'"),
    ([{"workload": "deploy/web", "cpu": -1}], "load[0].cpu: '-1' is negative"),
    ([{"workload": "deploy/web", "cpu": {}}], "load[0].cpu: has no shape; expected exactly"),
    ([{"workload": "deploy/web", "cpu": {"steps": {"1m": 2}}}], "cpu.steps: needs an amount at 0s"),
    ([{"workload": "deploy/web", "cpu": {"steps": {"soon": 2}}}], "cpu.steps.soon: 'soon'"),
    ([{"workload": "deploy/web", "cpu": {"ramp": {"0s": 1, "1m": 2, "60s": 3}}}],
     "cpu.ramp.60s: is the same time as another one"),
    ([{"workload": "deploy/web", "cpu": {"ramp": {"0s": 1, "1h": 2}, "repeat": "59m"}}],
     "cpu.repeat: must be at or after the last time of ramp"),
    ([{"workload": "deploy/web", "cpu": {"steps": {"0s": 1, "1h": 2}, "repeat": "1h"}}],
     "cpu.repeat: must be later than the last time of steps"),
    ([{"workload": "deploy/web", "cpu": {"ramp": {"0s": 1}, "repeat": "0s"}}],
     "cpu.repeat: must be more than 0s"),
    ([{"workload": "deploy/web", "cpu": {"daily": {"low": 3, "high": 1}}}],
     "cpu.daily.high: is less than low"),
    ([{"workload": "deploy/web", "cpu": 1}, {"workload": "deploy/web", "cpu": 1}],
     "load[1].workload: the cpu load of Deployment default/web is stated twice"),
    ([{"csv": "load.csv", "cpu": 1}], "load[0].csv: cannot be combined with cpu or memory"),
]  # fmt: skip


@pytest.mark.parametrize(("load", "message"), BAD_LOADS, ids=[one[1] for one in BAD_LOADS])
def test_a_bad_load_is_refused(read, load, message):
    with pytest.raises(InputError) as refused:
        read(load)
    assert message in str(refused.value)


BAD_TABLES = [
    ("time,workload,cores\n", "has an unknown column 'cores'; known: time, workload, cpu, memory"),
    ("time,cpu\n0s,1\n", "has no column 'workload'"),
    ("time,workload,cpu\n", "contains no load"),
    ("time,workload,cpu\n0s,deploy/web,x\n", "line 2: cpu: 'x'"),
    ("time,workload,cpu\nnow,deploy/web,1\n", "line 2: time: 'now'"),
    ("time,workload,cpu\n0s,,1\n", "line 2: workload: is empty"),
    ("time,workload,cpu\n0s,deploy/web,1,2\n", "line 2: has more cells than the header"),
    ("time,workload,cpu\n0s,deploy/wbe,1\n", "line 2: workload: there is no Deployment wbe"),
    ("time,workload,cpu\n9s,deploy/web,1\n9s,deploy/web,2\n",
     "line 3: time: '9s' is not later than the row before of this workload"),
    ("time,workload,cpu\n2026-01-02T00:00:00Z,deploy/web,1\n2026-01-01T00:00:00Z,deploy/web,2\n",
     "line 3: time: '2026-01-01T00:00:00Z' is before the first timestamp"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "message"), BAD_TABLES, ids=[one[1] for one in BAD_TABLES])
def test_a_bad_table_is_refused_by_its_line(read, table, message):
    with pytest.raises(InputError) as refused:
        read([{"csv": "load.csv"}], files={"load.csv": table})
    assert f"load.csv: {message}" in str(refused.value)


@pytest.mark.parametrize(
    ("load", "what"),
    [
        ({"workload": "deploy/default/api", "cpu": 1}, "Deployment default/api"),
        ({"workload": "deploy/default/web", "memory": "2Gi"}, "Deployment default/web by memory"),
        ({"workload": "deploy/default/web", "memory": "2Gi", "cpu": 1}, ""),
    ],
)
def test_a_note_says_if_no_autoscaler_reads_a_load(read, load, what):
    """Without metrics, an autoscaler scales by cpu."""
    note = f"No HorizontalPodAutoscaler scales {what}, so the load has no effect there."
    assert [one for one in read([load]).notes if "load" in one] == ([note] if what else [])
