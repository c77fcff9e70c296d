"""Metrics of the schedulers and the node controllers, under upstream's names.

The engine's reports update counters and histograms; gauges and plugin times are read on each
scrape. The durations of plugins are in real seconds, and all other durations are in seconds of the
world's clock. The world's clock does not advance while the scheduler works on a scheduling cycle.
In a running cluster, the real time of the cycle is therefore added to the duration of a scheduling
attempt. Upstream's metrics for the duration of a controller's pass are left out.

upstream: pkg/scheduler/metrics/metrics.go, pkg/controller/nodelifecycle/metrics.go,
pkg/controller/tainteviction/metrics/metrics.go, pkg/controller/podgc/metrics/metrics.go
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import DurationNs, Instant, to_seconds
from fairlead.engine.core.reporter import (
    DisplacementCycle,
    EvictionCancelled,
    EvictionTimed,
    NodeEmptied,
    NodeTainted,
    PodBound,
    PodCollected,
    PodEvicted,
    PodPlaced,
    PodPreempting,
    PodUnschedulable,
    QueueAllocation,
    Record,
    Reporter,
    WorkloadStarving,
    ZoneAssessed,
)
from fairlead.engine.framework.user_plugin.meter import Meter, PluginTime
from fairlead.worlds.batch_metrics import BatchMetrics
from fairlead.worlds.metric_names import (
    NODE_NAMES,
    SCHEDULER_NAMES,
    NodeMetricNames,
    SchedulerMetricNames,
)

_TOTAL: Final = "_total"
_DURATION_BUCKETS: Final = tuple(0.001 * 2**i for i in range(15))
_ATTEMPT_BUCKETS: Final = (1, 2, 4, 8, 16)
# upstream: metrics.go: PodSchedulingSLIDuration; schedule_one.go: getAttemptsLabel
_SLI_BUCKETS: Final = tuple(0.01 * 2**i for i in range(20))
_MANY_ATTEMPTS: Final = 15
_CREATED: Final = re.compile(rb"^(?:# (?:HELP|TYPE) )?\w+_created[ {].*\n", re.MULTILINE)
PluginTimes = Callable[[], Iterable[PluginTime]]
_DELETION_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)
_PERCENT: Final = 100
# upstream: metrics.go: FrameworkExtensionPointDuration
_POINT_BUCKETS: Final = tuple(0.0001 * 2**i for i in range(12))
_PLACEMENT_POINTS_ONE_NODE: Final = ("PreFilter", "Filter", "Reserve", "Permit")
_PLACEMENT_POINTS: Final = ("PreFilter", "Filter", "PreScore", "Score", "Reserve", "Permit")
_OTHERS: Final = (
    *(names.evictions for names in NODE_NAMES.values()),
    "kube_batch_total_preemption_attempts",
)
_NUL: Final = "\0"  # separates region and zone in upstream's zone keys, but not in these labels


class QueueSizes(Protocol):
    """The numbers of pending and rejected pods; implemented by `SchedulingQueue`."""

    def counts(self) -> Mapping[str, int]:
        """Return the number of pending pods in each queue, keyed by the queue's name."""
        ...

    def rejections(self) -> Mapping[tuple[str, str], int]:
        """Return the number of pods that each plugin rejects, keyed by (plugin, profile)."""
        ...


class SchedulerMetrics:
    """A Reporter that updates metrics and forwards every record to `reporter`.

    The attribute `waiting` provides the sizes of the scheduling queue. The caller sets `waiting`
    when the queue exists; until then it is None.
    """

    def __init__(
        self,
        reporter: Reporter,
        plugin_times: PluginTimes,
        scheduler_version: str = "1.36",
        node_version: str = "1.36",
        job_profiles: Collection[str] = (),
        meter: Meter | None = None,
    ) -> None:
        """Records are forwarded to `reporter`; `plugin_times` returns the measured plugin times.

        `scheduler_version` determines the names of the scheduler's metrics, and `node_version`
        determines the names of the node controllers' metrics. `job_profiles` are the scheduler
        profiles whose pods the batch scheduler schedules. `meter` measures the real time of the
        current unit of work.
        """
        names = SCHEDULER_NAMES[scheduler_version]
        self._reporter = reporter
        self._meter = meter
        self.waiting: QueueSizes | None = None
        self.registry = CollectorRegistry()
        self.registry.register(_OnScrapeCollector(self, plugin_times, names))
        self._nodes = NodeMetrics(self.registry, NODE_NAMES[node_version])
        self._batch = BatchMetrics(self.registry, frozenset(job_profiles))
        # Looking up a series by its labels takes longer than incrementing it.
        self._attempt_series: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        self._point_series: dict[tuple[tuple[str, ...], str, str], tuple[Histogram, ...]] = {}
        self._attempts = Counter(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result.",
            ("result", "profile"),
            registry=self.registry,
        )
        self._duration = Histogram(
            names.attempt_duration,
            "Scheduling attempt latency in seconds.",
            ("result", "profile"),
            buckets=_DURATION_BUCKETS,
            registry=self.registry,
        )
        self._sli_duration = Histogram(
            names.sli_duration or "unused",
            "E2e latency for a pod being scheduled, from the time the pod enters the scheduling "
            "queue.",
            ("attempts",),
            buckets=_SLI_BUCKETS,
            registry=self.registry if names.sli_duration else None,
        )
        self._pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=_ATTEMPT_BUCKETS,
            registry=self.registry,
        )
        self._points = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            ("extension_point", "status", "profile"),
            buckets=_POINT_BUCKETS,
            registry=self.registry,
        )
        self._preemptions = Counter(
            names.preemptions,
            "Total preemption attempts in the cluster till now.",
            registry=self.registry,
        )
        self._victims = Histogram(
            names.victims,
            "Number of selected preemption victims.",
            buckets=names.victim_buckets,
            registry=self.registry,
        )
        self._cycles = Counter(
            "fairlead_displacement_cycles",
            "Times that workloads displaced each other in a cycle.",
            registry=self.registry,
        )
        self._starving = Counter(
            "fairlead_starving_workloads",
            "Times that a workload was found displaced too often.",
            registry=self.registry,
        )

    def report(self, record: Record) -> None:
        """Update the metrics with `record`, and forward the record to the next reporter."""
        self._reporter.report(record)
        self._nodes.report(record)
        if not self._batch.update_if_batch(record):
            self._update(record)

    def _update(self, record: Record) -> None:
        match record:
            case PodBound():
                self._bound(record)
            case PodPlaced():
                points = _PLACEMENT_POINTS if record.via == "score" else _PLACEMENT_POINTS_ONE_NODE
                self._observe_points(points, "Success", record.profile)
            case PodUnschedulable():
                self._attempted("error" if record.is_error else "unschedulable", record)
                if record.plugins and not record.is_binding:
                    self._observe_points(("Filter",), "Unschedulable", record.profile)
                    found = "Success" if record.nominated_node else "Unschedulable"
                    self._observe_points(("PostFilter",), found, record.profile)
            case PodPreempting():
                self._preemptions.inc()
                self._victims.observe(len(record.victims))
            case QueueAllocation():
                self._batch.observe_queue(record)
            case DisplacementCycle():
                self._cycles.inc()
            case WorkloadStarving(priority=priority) if priority >= 0:
                self._starving.inc()
            case _:
                pass

    def _bound(self, record: PodBound) -> None:
        self._attempted("scheduled", record)
        self._pod_attempts.observe(record.attempt)
        if record.first_tried is not None:
            series = self._sli_duration.labels(_attempts_label(record.attempt))
            series.observe(to_seconds(record.at - record.first_tried))

    def _attempted(self, result: str, record: PodBound | PodUnschedulable) -> None:
        key = result, record.profile
        series = self._attempt_series.get(key)
        if series is None:
            series = self._attempts.labels(*key), self._duration.labels(*key)
            self._attempt_series[key] = series
        attempts, duration = series
        attempts.inc()
        taken: DurationNs = 0 if self._meter is None else self._meter.elapsed()
        duration.observe(to_seconds(record.at - record.started + taken))

    def _observe_points(self, points: tuple[str, ...], status: str, profile: str) -> None:
        """For each of `points`, observe how long its plugins took in the current unit of work."""
        key = points, status, profile
        series = self._point_series.get(key)
        if series is None:
            series = tuple(self._points.labels(point, status, profile) for point in points)
            self._point_series[key] = series
        taken = dict.fromkeys(points, 0)
        for time in () if self._meter is None else self._meter.plugin_times():
            if time.point in taken:
                taken[time.point] += time.taken
        for one, point in zip(series, points, strict=True):
            one.observe(to_seconds(taken[point]))

    def exposition(self) -> bytes:
        """Return all metrics in the Prometheus text format.

        The Prometheus library adds a creation time to each metric, and the suffix `_total` to the
        name of each counter. All creation times are removed. The suffix is removed from counters
        whose upstream name does not end in `_total`.
        """
        text = _CREATED.sub(b"", generate_latest(self.registry))
        for name in (*(names.preemptions for names in SCHEDULER_NAMES.values()), *_OTHERS):
            if not name.endswith(_TOTAL):
                text = text.replace(f"{name}{_TOTAL}".encode(), name.encode())
        return text


def _attempts_label(attempts: int) -> str:
    return str(attempts) if attempts < _MANY_ATTEMPTS else f"{_MANY_ATTEMPTS}+"


class _OnScrapeCollector(Collector):
    """Metrics that are read on each scrape: gauges and plugin times."""

    def __init__(
        self, metrics: SchedulerMetrics, plugin_times: PluginTimes, names: SchedulerMetricNames
    ) -> None:
        self._metrics = metrics
        self._plugin_times = plugin_times
        self._names = names

    def collect(self) -> Iterable[Metric]:
        """Yield the metric families with the values at the time of the scrape."""
        yield self._pending()
        if self._names.rejections:
            yield self._unschedulable()
        yield self._durations()

    def _pending(self) -> Metric:
        family = GaugeMetricFamily(
            "scheduler_pending_pods", "Number of pending pods, by the queue type.", labels=["queue"]
        )
        waiting = self._metrics.waiting
        counts = waiting.counts() if waiting is not None else {}
        for queue in self._names.queues:
            if queue in counts:
                family.add_metric([queue], counts[queue])
        return family

    def _unschedulable(self) -> Metric:
        family = GaugeMetricFamily(
            "scheduler_unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name.",
            labels=["plugin", "profile"],
        )
        waiting = self._metrics.waiting
        for labels, count in sorted(waiting.rejections().items()) if waiting is not None else ():
            family.add_metric(labels, count)
        return family

    def _durations(self) -> Metric:
        family = HistogramMetricFamily(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point.",
            labels=["plugin", "extension_point"],
        )
        for time in self._plugin_times():
            count = [("+Inf", float(time.calls))]
            family.add_metric([time.plugin, time.point], count, to_seconds(time.taken))
        return family


class NodeMetrics:
    """Metrics of zone health, node evictions, taint evictions and pod garbage collection."""

    def __init__(self, registry: CollectorRegistry, names: NodeMetricNames) -> None:
        """Register the metrics of the Kubernetes version that `names` describes."""
        in_version = {True: registry, False: None}
        self._timed: dict[ObjectRef, Instant] = {}
        self._zone_health = Gauge(
            "node_collector_zone_health",
            "Gauge measuring percentage of healthy nodes per zone.",
            ("zone",),
            registry=registry,
        )
        self._zone_size = Gauge(
            "node_collector_zone_size",
            "Gauge measuring number of registered Nodes per zones.",
            ("zone",),
            registry=registry,
        )
        self._unhealthy = Gauge(
            "node_collector_unhealthy_nodes_in_zone",
            "Gauge measuring number of not Ready Nodes per zones.",
            ("zone",),
            registry=registry,
        )
        self._evictions = Counter(
            names.evictions,
            "Number of Node evictions that happened since current instance of NodeController "
            "started.",
            ("zone",),
            registry=registry,
        )
        self._deletions = Counter(
            "taint_eviction_controller_pod_deletions",
            "Total number of Pods deleted by TaintEvictionController since its start.",
            registry=in_version[names.taint_eviction],
        )
        self._deletion_time = Histogram(
            "taint_eviction_controller_pod_deletion_duration_seconds",
            "Latency, in seconds, between the time when a taint effect has been activated for the "
            "Pod and its deletion via TaintEvictionController.",
            buckets=_DELETION_BUCKETS,
            registry=in_version[names.taint_eviction],
        )
        self._collected = Counter(
            "pod_gc_collector_force_delete_pods",
            "Number of pods that are being forcefully deleted since the Pod GC Controller started.",
            ("namespace", "reason"),
            registry=in_version[names.pod_gc],
        )

    def report(self, record: Record) -> None:
        """Update the metrics with `record`."""
        match record:
            case ZoneAssessed():
                self._assess(record)
            case NodeTainted(zone=zone, is_rate_limited=True) | NodeEmptied(zone=zone):
                self._evictions.labels(_shown(zone)).inc()
            case EvictionTimed(pod=pod, due=due):
                self._timed[pod] = due
            case EvictionCancelled(pod=pod):
                self._timed.pop(pod, None)
            case PodEvicted(pod=pod, why=why, at=at) if why.startswith("taint"):
                self._deletions.inc()
                self._deletion_time.observe(to_seconds(at - self._timed.pop(pod, at)))
            case PodCollected(pod=pod, why=why):
                self._collected.labels(pod.namespace, why).inc()
            case _:
                pass

    def _assess(self, record: ZoneAssessed) -> None:
        """Set the gauges of the zone in `record`; a zone without nodes counts as fully healthy."""
        zone, size, unready = _shown(record.zone), record.size, record.unready
        self._zone_size.labels(zone).set(size)
        self._unhealthy.labels(zone).set(unready)
        health = _PERCENT * (size - unready) / size if size else _PERCENT
        self._zone_health.labels(zone).set(health)


def _shown(zone: str) -> str:
    return zone.replace(_NUL, "")
