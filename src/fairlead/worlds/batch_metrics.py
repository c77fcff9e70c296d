"""Metrics of the batch scheduler.

The metrics of queues have the names that Volcano uses. All other metrics have kube-batch's names.

upstream: kube-batch pkg/scheduler/metrics/metrics.go; volcano pkg/scheduler/metrics/queue.go
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from fairlead.engine.core.reporter import (
    PodPlaced,
    PodPreempting,
    PodUnschedulable,
    QueueAllocation,
    Record,
)

# The rules by which sessions displace pods; the pod scheduler's rules have other names.
_DISPLACEMENTS: Final = ("preempt", "reclaim")
_VIA: Final = "batch"


class BatchMetrics:
    """Metrics of the batch scheduler's sessions and queues."""

    def __init__(self, registry: CollectorRegistry, profiles: frozenset[str]) -> None:
        """Register the metrics in `registry`; the batch scheduler schedules pods of `profiles`."""
        self._profiles = profiles
        self._attempts = Counter(
            "kube_batch_schedule_attempts",
            "Number of attempts to schedule pods, by the result.",
            ("result",),
            registry=registry,
        )
        self._victims = Gauge(
            "kube_batch_pod_preemption_victims",
            "Number of selected preemption victims.",
            registry=registry,
        )
        self._preemptions = Counter(
            "kube_batch_total_preemption_attempts",
            "Total preemption attempts in the cluster till now.",
            registry=registry,
        )
        self._queues = {
            name: Gauge(f"volcano_queue_{name}", text, ("queue_name",), registry=registry)
            for name, text in (
                ("allocated_milli_cpu", "Allocated CPU count for one queue."),
                ("allocated_memory_bytes", "Allocated memory for one queue."),
                ("request_milli_cpu", "Request CPU count for one queue."),
                ("request_memory_bytes", "Request memory for one queue."),
                ("deserved_milli_cpu", "Deserved CPU count for one queue."),
                ("deserved_memory_bytes", "Deserved memory for one queue."),
                ("share", "Share for one queue."),
                ("weight", "Weight for one queue."),
            )
        }

    def update_if_batch(self, record: Record) -> bool:
        """Update the metrics if `record` comes from the batch scheduler; return whether it does."""
        match record:
            case PodPlaced(via=via) if via == _VIA:
                self._attempts.labels("scheduled").inc()
            case PodUnschedulable(profile=profile) if profile in self._profiles:
                self._attempts.labels("unschedulable").inc()
            case PodPreempting(rule=rule, victims=victims) if rule in _DISPLACEMENTS:
                self._preemptions.inc()
                self._victims.set(len(victims))
            case _:
                return False
        return True

    def observe_queue(self, record: QueueAllocation) -> None:
        """Set the gauges of the queue in `record`."""
        amounts = (
            ("allocated", record.allocated),
            ("request", record.request),
            ("deserved", record.deserved),
        )
        for kind, by_resource in amounts:
            self._set(record, f"{kind}_milli_cpu", by_resource.get("cpu", 0))
            self._set(record, f"{kind}_memory_bytes", by_resource.get("memory", 0))
        self._set(record, "share", record.share)
        self._set(record, "weight", record.weight)

    def _set(self, record: QueueAllocation, name: str, value: float) -> None:
        self._queues[name].labels(record.queue).set(value)
