"""Metrics of the batch scheduler, separate from those of the pod scheduler."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.reporter import (
    PodBound,
    PodPlaced,
    PodPreempting,
    PodUnschedulable,
    QueueAllocation,
    SilentReporter,
)
from fairlead.worlds.metrics import SchedulerMetrics

P = ObjectRef("Pod", "ns", "p", "u")


def samples(*records):
    metrics = SchedulerMetrics(SilentReporter(), list, job_profiles=("volcano",))
    for record in records:
        metrics.report(record)
    text = metrics.exposition().decode()
    assert "\n# TYPE kube_batch_total_preemption_attempts counter\n" in text
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def placed(via, profile):
    return PodPlaced(P, "n", 0, via, 1, 1, 0, 1, profile)


def unschedulable(profile, plugins=()):
    return PodUnschedulable(P, 0, "no", plugins, None, False, False, 0, 1, profile)


def preempting(rule):
    return PodPreempting(P, "n", (P, P), 0, rule, 1, 1, 0, "", ("", ""), (0, 0))


def test_pods_of_the_batch_scheduler_are_counted_separately():
    found = samples(
        placed("batch", "volcano"),
        PodBound(P, "n", 0, 0, 1, "default-scheduler", None),
        unschedulable("volcano"),
        unschedulable("default-scheduler", ("NodeResourcesFit",)),
    )
    for result in ("scheduled", "unschedulable"):
        assert found["kube_batch_schedule_attempts_total", result] == 1
        assert found["scheduler_schedule_attempts_total", "default-scheduler", result] == 1


def test_preemption_and_reclaim_attempts_are_counted():
    found = samples(preempting("preempt"), preempting("reclaim"), preempting("only candidate"))
    assert found[("kube_batch_total_preemption_attempts_total",)] == 2  # the parser's suffix
    assert found[("kube_batch_pod_preemption_victims",)] == 2
    assert found[("scheduler_preemption_attempts_total",)] == 1


def test_queues_have_metrics():
    held, wanted = {"cpu": 1000, "memory": 5}, {"cpu": 3000}
    queue = QueueAllocation("research", 2, {"cpu": 1500.0}, held, wanted, 0.5, 0)
    found = samples(queue)
    assert found["volcano_queue_allocated_milli_cpu", "research"] == 1000
    assert found["volcano_queue_allocated_memory_bytes", "research"] == 5
    assert found["volcano_queue_request_milli_cpu", "research"] == 3000
    assert found["volcano_queue_deserved_milli_cpu", "research"] == 1500
    assert found["volcano_queue_share", "research"] == 0.5
    assert found["volcano_queue_weight", "research"] == 2
