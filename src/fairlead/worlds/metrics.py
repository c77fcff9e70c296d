"""Metrics of the scheduler and the node controllers, under upstream's names.

Existing dashboards work with them. Counters and histograms are fed by the engine's reports; gauges
and plugin times are read on each scrape. Durations are in seconds of the world's clock, those of
plugins in real seconds. The durations of controller passes are left out, because passes take no
time here.

upstream: pkg/scheduler/metrics/metrics.go, pkg/controller/nodelifecycle/metrics.go,
pkg/controller/tainteviction/metrics/metrics.go, pkg/controller/podgc/metrics/metrics.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.engine.core.reporter import (
    DisplacementCycle,
    EvictionCancelled,
    EvictionTimed,
    NodeTainted,
    PodCollected,
    PodEvicted,
    PodPlaced,
    PodPreempting,
    PodUnschedulable,
    Record,
    Reporter,
    WorkloadStarving,
    ZoneAssessed,
)
from fairlead.engine.framework.user_plugin.meter import PluginTime

_DURATION_BUCKETS: Final = tuple(0.001 * 2**i for i in range(15))
_ATTEMPT_BUCKETS: Final = (1, 2, 4, 8, 16)
_VICTIM_BUCKETS: Final = (1, 2, 4, 8, 16, 32, 64)
PluginTimes = Callable[[], Iterable[PluginTime]]
_DELETION_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)
_PERCENT: Final = 100
_NUL: Final = "\0"  # separates region and zone in upstream's zone keys, but not in these labels


class QueueSizes(Protocol):
    """Numbers of pending pods; a `SchedulingQueue` is one."""

    def counts(self) -> Mapping[str, int]:
        """The number of pods by queue."""
        ...

    def rejections(self) -> Mapping[tuple[str, str], int]:
        """The number of pods rejected by each (plugin, profile)."""
        ...


class SchedulerMetrics:
    """A Reporter that updates metrics and forwards every record to `reporter`.

    `waiting` is set once there is a queue.
    """

    def __init__(self, reporter: Reporter, plugin_times: PluginTimes) -> None:
        """`plugin_times` measures how long plugins take."""
        self._reporter = reporter
        self.waiting: QueueSizes | None = None
        self.registry = CollectorRegistry()
        self.registry.register(_OnScrapeCollector(self, plugin_times))
        self._nodes = NodeMetrics(self.registry)
        self._attempts = Counter(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result.",
            ("result", "profile"),
            registry=self.registry,
        )
        self._duration = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds.",
            ("result", "profile"),
            buckets=_DURATION_BUCKETS,
            registry=self.registry,
        )
        self._pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=_ATTEMPT_BUCKETS,
            registry=self.registry,
        )
        self._preemptions = Counter(
            "scheduler_preemption_attempts",
            "Total preemption attempts in the cluster till now.",
            registry=self.registry,
        )
        self._victims = Histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims.",
            buckets=_VICTIM_BUCKETS,
            registry=self.registry,
        )
        self._cycles = Counter(
            "fairlead_displacement_cycles",
            "Times that workloads were seen to push each other out in a circle.",
            registry=self.registry,
        )
        self._starving = Counter(
            "fairlead_starving_workloads",
            "Times that a workload was found displaced too often.",
            registry=self.registry,
        )

    def report(self, record: Record) -> None:
        """Count `record` and forward it."""
        self._reporter.report(record)
        self._nodes.report(record)
        match record:
            case PodPlaced():
                self._attempted("scheduled", record)
                self._pod_attempts.observe(record.attempt)
            case PodUnschedulable():
                self._attempted("error" if record.is_error else "unschedulable", record)
            case PodPreempting():
                self._preemptions.inc()
                self._victims.observe(len(record.victims))
            case DisplacementCycle():
                self._cycles.inc()
            case WorkloadStarving():
                self._starving.inc()
            case _:
                pass

    def _attempted(self, result: str, record: PodPlaced | PodUnschedulable) -> None:
        self._attempts.labels(result, record.profile).inc()
        took = to_seconds(record.at - record.started)
        self._duration.labels(result, record.profile).observe(took)

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class _OnScrapeCollector(Collector):
    """Metrics that are read on each scrape: gauges and plugin times."""

    def __init__(self, metrics: SchedulerMetrics, plugin_times: PluginTimes) -> None:
        self._metrics = metrics
        self._plugin_times = plugin_times

    def collect(self) -> Iterable[Metric]:
        """Yield each metric family."""
        yield self._pending()
        yield self._unschedulable()
        yield self._durations()

    def _pending(self) -> Metric:
        family = GaugeMetricFamily(
            "scheduler_pending_pods", "Number of pending pods, by the queue type.", labels=["queue"]
        )
        waiting = self._metrics.waiting
        for queue, count in waiting.counts().items() if waiting is not None else ():
            family.add_metric([queue], count)
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

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything in `registry`."""
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
            "node_collector_evictions",
            "Number of Node evictions that happened since current instance of NodeController "
            "started.",
            ("zone",),
            registry=registry,
        )
        self._deletions = Counter(
            "taint_eviction_controller_pod_deletions",
            "Total number of Pods deleted by TaintEvictionController since its start.",
            registry=registry,
        )
        self._deletion_time = Histogram(
            "taint_eviction_controller_pod_deletion_duration_seconds",
            "Latency, in seconds, between the time when a taint effect has been activated for the "
            "Pod and its deletion via TaintEvictionController.",
            buckets=_DELETION_BUCKETS,
            registry=registry,
        )
        self._collected = Counter(
            "pod_gc_collector_force_delete_pods",
            "Number of pods that are being forcefully deleted since the Pod GC Controller started.",
            ("namespace", "reason"),
            registry=registry,
        )

    def report(self, record: Record) -> None:
        """Count `record`."""
        match record:
            case ZoneAssessed():
                self._assess(record)
            case NodeTainted(zone=zone, is_turn=True):
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
        """Set a zone's gauges; a zone without nodes is fully healthy."""
        zone, size, unready = _shown(record.zone), record.size, record.unready
        self._zone_size.labels(zone).set(size)
        self._unhealthy.labels(zone).set(unready)
        health = _PERCENT * (size - unready) / size if size else _PERCENT
        self._zone_health.labels(zone).set(health)


def _shown(zone: str) -> str:
    return zone.replace(_NUL, "")
