"""Metrics with upstream's names, computed from the reports of the engine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlead.bench.bare_world import BareWorld
from fairlead.bench.templates import nodes, pods, requests
from fairlead.engine.configuration.default_config import default_config
from fairlead.engine.configuration.release import release_of
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import (
    PodBound,
    PodPlaced,
    PodUnschedulable,
    SilentReporter,
    WorkloadStarving,
)
from fairlead.engine.core.stimulus import ObjectChanged, ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.engine import Engine
from fairlead.engine.framework.user_plugin.meter import Meter, PluginTime
from fairlead.engine.scheduling.controller import Scheduler
from fairlead.engine.state.cluster import Cluster
from fairlead.worlds.metrics import SchedulerMetrics


def measured(version=""):
    """Return the metrics of a node with 4 CPUs and several pods.

    Four pods request 900m, one preempts three of them, and one never fits.
    """
    config = default_config(release_of(version), {})
    ticks = iter(range(10**9))
    meter = Meter(lambda: next(ticks) * 1000)
    cluster = Cluster()
    metrics = SchedulerMetrics(SilentReporter(), meter.times, config.version.version)
    scheduler = Scheduler(replace(config, meter=meter), cluster, metrics, TieBreak(0), 0)
    metrics.waiting = scheduler.queue
    world = BareWorld(Engine(cluster, [scheduler]))
    world.enqueue([ObjectsLoaded([*nodes(1)])])
    low = requests("900m", "500Mi", terminationGracePeriodSeconds=0)
    high = requests("3", "500Mi", priority=10)
    huge = requests("9", "500Mi", priority=20)
    gated = requests("1", "1Mi", schedulingGates=[{"name": "example.com/wait"}])
    for spec, prefix, count in ((low, "low", 4), (high, "high", 1), (huge, "huge", 1)):
        world.enqueue(ObjectChanged(pod) for pod in pods(prefix, count, spec=spec))
        world.run()
    world.enqueue(ObjectChanged(pod) for pod in pods("gated", 1, spec=gated))
    world.run()
    text = metrics.exposition().decode()
    written = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if line[0] != "#"}
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    return samples, written


def test_scheduling_attempts_are_counted_by_result():
    """Five pods were placed; the preemptor and the huge pod failed once each."""
    samples, _ = measured()
    profile = ("profile", "default-scheduler")
    attempts = "scheduler_schedule_attempts_total"
    assert samples[attempts, profile, ("result", "scheduled")] == 5
    assert samples[attempts, profile, ("result", "unschedulable")] == 2
    duration = "scheduler_scheduling_attempt_duration_seconds_count"
    assert samples[duration, profile, ("result", "scheduled")] == 5


def test_preemptions_and_victims_are_counted():
    """One preemption with three victims."""
    samples, _ = measured()
    assert samples[("scheduler_preemption_attempts_total",)] == 1
    assert samples[("scheduler_preemption_victims_sum",)] == 3


@pytest.mark.parametrize(("priority", "count"), [(0, 1), (-10, 0)])
def test_starving_workloads_do_not_count_if_their_priority_is_negative(priority, count):
    """Such pods exist to give way to other pods."""
    metrics = SchedulerMetrics(SilentReporter(), list)
    metrics.report(WorkloadStarving("Job/ns/low", 6, ObjectRef("Pod", "ns", "low"), priority, 0))
    assert f"fairlead_starving_workloads_total {count}.0" in metrics.exposition().decode()


def test_pending_pods_are_counted_by_queue():
    """The huge pod waits in the unschedulable pool, the gated one is gated."""
    samples, _ = measured()
    pending = {
        key[1][1]: value for key, value in samples.items() if key[0].endswith("pending_pods")
    }
    assert pending == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 1}


def test_unschedulable_pods_are_counted_by_plugin():
    """NodeResourcesFit and a scheduling gate reject one pod each; placed pods are not counted."""
    samples, _ = measured()
    rejected = {k[1][1]: v for k, v in samples.items() if k[0] == "scheduler_unschedulable_pods"}
    assert rejected == {"NodeResourcesFit": 1, "SchedulingGates": 1}


def test_calls_and_durations_of_plugins_are_measured():
    """Every plugin that was called has its calls and seconds by extension point."""
    samples, _ = measured()
    name = "scheduler_plugin_execution_duration_seconds_count"
    calls = {key[1:]: value for key, value in samples.items() if key[0] == name}
    assert calls[("extension_point", "Filter"), ("plugin", "NodeResourcesFit")] > 0
    assert PluginTime("p", "Filter").calls == 0


@pytest.mark.parametrize(
    ("version", "names", "others"),
    [
        (
            "1.36",
            {
                "scheduler_preemption_victims_sum",
                "scheduler_preemption_attempts_total",
                "scheduler_scheduling_attempt_duration_seconds_count",
                "scheduler_unschedulable_pods",
            },
            {"scheduler_pod_preemption_victims_sum", "scheduler_total_preemption_attempts"},
        ),
        (
            "1.19",
            {
                "scheduler_pod_preemption_victims_sum",
                "scheduler_total_preemption_attempts",
                "scheduler_e2e_scheduling_duration_seconds_count",
            },
            {"scheduler_preemption_victims_sum", "scheduler_unschedulable_pods"},
        ),
    ],
)
def test_metrics_have_only_the_names_of_the_selected_version(version, names, others):
    """Each metric has only the name of this version."""
    samples, found = measured(version)
    assert names <= found
    assert not others & found
    gated = ("queue", "gated")
    assert (("scheduler_pending_pods", gated) in samples) is (version == "1.36")


@pytest.mark.parametrize("version", ["1.19", "1.36"])
def test_runs_of_extension_points_are_measured(version):
    """PostFilter ran for the preemptor and for the huge pod."""
    samples, _ = measured(version)
    profile = ("profile", "default-scheduler")
    name = "scheduler_framework_extension_point_duration_seconds_count"
    post_filter = ("extension_point", "PostFilter")
    assert samples[name, post_filter, profile, ("status", "Success")] == 1
    assert samples[name, post_filter, profile, ("status", "Unschedulable")] >= 1
    assert samples[name, ("extension_point", "Reserve"), profile, ("status", "Success")] >= 5


P = ObjectRef("Pod", "ns", "p", "u")
PLACED = PodPlaced(P, "n", 0, "score", 1, 1, 0, 2, "default-scheduler")
FAILED = PodUnschedulable(P, 0, "no", (), None, True, True, 0, 2, "default-scheduler")


def samples_of(metrics):
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(metrics.exposition().decode())
        for sample in family.samples
    }


def test_a_pod_whose_binding_fails_is_not_counted_as_scheduled():
    metrics = SchedulerMetrics(SilentReporter(), list)
    for record in (PLACED, FAILED):
        metrics.report(record)
    found = samples_of(metrics)
    attempts = "scheduler_schedule_attempts_total"
    assert found[attempts, "default-scheduler", "error"] == 1
    assert (attempts, "default-scheduler", "scheduled") not in found
    metrics.report(PodBound(P, "n", seconds(9), seconds(8), 2, "default-scheduler", seconds(5)))
    found = samples_of(metrics)
    assert found[attempts, "default-scheduler", "scheduled"] == 1
    sums = {name: value for (name, *_), value in found.items() if name.endswith("_sum")}
    assert sums["scheduler_scheduling_attempt_duration_seconds_sum"] == 1
    assert found["scheduler_pod_scheduling_sli_duration_seconds_sum", "2"] == 4


def test_the_real_time_of_a_unit_is_measured():
    """In a running cluster, the engine's clock stands still while it decides about a pod."""

    class Slow:
        name = "Slow"

        def score(self, *_):
            now.append(now[-1] + seconds(2))
            return 0

    now = [0]
    meter = Meter(lambda: now[-1])
    slow = meter.measured(Slow())
    metrics = SchedulerMetrics(SilentReporter(), list, meter=meter)
    meter.begin_measurement()
    slow.score(None, None, None)
    metrics.report(PLACED)
    metrics.report(FAILED)
    found = samples_of(metrics)
    duration = "scheduler_scheduling_attempt_duration_seconds_sum"
    assert found[duration, "default-scheduler", "error"] == 2
    point = "scheduler_framework_extension_point_duration_seconds_sum"
    assert found[point, "Score", "Success", "default-scheduler"] == 2
    assert found[point, "Filter", "Success", "default-scheduler"] == 0


@pytest.mark.parametrize(("attempts", "label"), [(14, "14"), (15, "15+"), (90, "15+")])
def test_many_attempts_share_a_label(attempts, label):
    metrics = SchedulerMetrics(SilentReporter(), list)
    metrics.report(PodBound(P, "n", 0, 0, attempts, "default-scheduler", 0))
    assert samples_of(metrics)["scheduler_pod_scheduling_sli_duration_seconds_count", label] == 1
