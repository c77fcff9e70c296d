"""Metrics of the node controllers under kube-controller-manager's names.

All of them are fed by the engine's reports; durations are in seconds of the world's clock. The
durations of passes are left out, because passes take no time here.

upstream: pkg/controller/nodelifecycle/metrics.go, pkg/controller/tainteviction/metrics/metrics.go,
pkg/controller/podgc/metrics/metrics.go
"""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.engine.core.reporter import (
    EvictionCancelled,
    EvictionTimed,
    NodeTainted,
    PodCollected,
    PodEvicted,
    Record,
    ZoneAssessed,
)

_DELETION_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)
_PERCENT: Final = 100
_NUL: Final = "\0"  # separates region and zone in upstream's zone keys, but not in these labels


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
