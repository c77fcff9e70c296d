"""The names of the scheduler's and the node controllers' metrics in each Kubernetes version."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class SchedulerMetricNames(Struct, frozen=True, kw_only=True):
    """The names of the scheduler's metrics in one Kubernetes version.

    `rejections` is True if the version has a metric of rejected pods. `sli_duration` is the name of
    the metric pod_scheduling_sli_duration_seconds, "" if the version does not have it.
    """

    attempt_duration: str
    sli_duration: str
    victims: str
    victim_buckets: tuple[int, ...]
    preemptions: str
    queues: tuple[str, ...]
    rejections: bool


class NodeMetricNames(Struct, frozen=True, kw_only=True):
    """The node controllers' metrics in one Kubernetes version.

    `evictions` is the name of the counter of evicted nodes. `taint_eviction` is True if the taint
    eviction controller has metrics in the version. `pod_gc` is True if the pod garbage collector
    has metrics in the version.
    """

    evictions: str
    taint_eviction: bool
    pod_gc: bool


SCHEDULER_NAMES: Final = {
    "1.36": SchedulerMetricNames(
        attempt_duration="scheduler_scheduling_attempt_duration_seconds",
        sli_duration="scheduler_pod_scheduling_sli_duration_seconds",
        victims="scheduler_preemption_victims",
        victim_buckets=(1, 2, 4, 8, 16, 32, 64),
        preemptions="scheduler_preemption_attempts_total",
        queues=("active", "backoff", "unschedulable", "gated"),
        rejections=True,
    ),
    # upstream: v1.19 pkg/scheduler/metrics/metrics.go
    "1.19": SchedulerMetricNames(
        attempt_duration="scheduler_e2e_scheduling_duration_seconds",
        sli_duration="",
        victims="scheduler_pod_preemption_victims",
        victim_buckets=tuple(range(5, 51, 5)),
        preemptions="scheduler_total_preemption_attempts",
        queues=("active", "backoff", "unschedulable"),
        rejections=False,
    ),
}
NODE_NAMES: Final = {
    "1.36": NodeMetricNames(
        evictions="node_collector_evictions_total", taint_eviction=True, pod_gc=True
    ),
    # upstream: v1.16 pkg/controller/nodelifecycle/metrics.go
    "1.16": NodeMetricNames(
        evictions="node_collector_evictions_number", taint_eviction=False, pod_gc=False
    ),
}
