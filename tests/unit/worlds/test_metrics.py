"""Metrics: upstream's names, fed by what the engine reports."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from fairlead.bench.bare_world import BareWorld
from fairlead.bench.templates import nodes, pods, requests
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.stimulus import ObjectChanged, ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.engine import Engine
from fairlead.engine.framework.user_plugin.meter import Meter, PluginTime
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.controller import Scheduler
from fairlead.engine.state.cluster import Cluster
from fairlead.worlds.metrics import SchedulerMetrics


def measured():
    """A node of 4 CPU; four pods of 900m, one that preempts three of them, one that never fits."""
    ticks = iter(range(10**9))
    meter = Meter(lambda: next(ticks) * 1000)
    cluster = Cluster()
    metrics = SchedulerMetrics(SilentReporter(), meter.times)
    scheduler = Scheduler(SchedulerConfig(meter=meter), cluster, metrics, TieBreak(0), 0)
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
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_attempts_by_result():
    """Five pods were placed; the preemptor and the huge pod failed once each."""
    samples = measured()
    profile = ("profile", "default-scheduler")
    attempts = "scheduler_schedule_attempts_total"
    assert samples[attempts, profile, ("result", "scheduled")] == 5
    assert samples[attempts, profile, ("result", "unschedulable")] == 2
    duration = "scheduler_scheduling_attempt_duration_seconds_count"
    assert samples[duration, profile, ("result", "scheduled")] == 5


def test_preemptions_and_their_victims():
    """One preemption with three victims."""
    samples = measured()
    assert samples[("scheduler_preemption_attempts_total",)] == 1
    assert samples[("scheduler_preemption_victims_sum",)] == 3


def test_pods_by_queue():
    """The huge pod waits in the unschedulable pool, the gated one is gated."""
    samples = measured()
    pending = {
        key[1][1]: value for key, value in samples.items() if key[0].endswith("pending_pods")
    }
    assert pending == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 1}


def test_reasons_by_plugin():
    """NodeResourcesFit keeps one pod out; placed pods are counted no more."""
    samples = measured()
    rejected = {k[1][1]: v for k, v in samples.items() if k[0] == "scheduler_unschedulable_pods"}
    assert rejected == {"NodeResourcesFit": 1}


def test_plugin_times():
    """Every plugin that was asked has its calls and seconds by extension point."""
    samples = measured()
    name = "scheduler_plugin_execution_duration_seconds_count"
    calls = {key[1:]: value for key, value in samples.items() if key[0] == name}
    assert calls[("extension_point", "Filter"), ("plugin", "NodeResourcesFit")] > 0
    assert PluginTime("p", "Filter").calls == 0
