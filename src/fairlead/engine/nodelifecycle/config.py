"""NodeLifecycleConfig: kube-controller-manager's options for all that happens to quiet nodes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.nodelifecycle.profile import V1_36, Profile

MONITOR_PERIOD_DEFAULT: Final = seconds(5)
STARTUP_GRACE_DEFAULT: Final = seconds(60)
POD_EVICTION_TIMEOUT_DEFAULT: Final = seconds(300)
# upstream: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go:NodeEvictionPeriod
EVICTION_PERIOD: Final = seconds(0.1)
EVICTION_OFFSET_DEFAULT: Final = seconds(0.05)
# upstream: pkg/controller/podgc/gc_controller.go:gcCheckPeriod
GC_PERIOD: Final = seconds(20)
GC_OFFSET_DEFAULT: Final = seconds(0.025)


class Defects(StrEnum):
    """Which of upstream's known defects are kept."""

    FIXED = "fixed"
    UPSTREAM = "upstream"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLifecycleConfig:
    """Options by the names of kube-controller-manager's flags, at their defaults.

    `node_monitor_grace_period` None means the profile's. `taint_based_evictions` False is the
    older mode, in which pods are deleted `pod_eviction_timeout` after their node went quiet;
    `enable_taint_manager` False leaves pods on tainted nodes in place.

    What upstream has no flags for: `pass_cost` is what a monitor pass takes, from whose end the
    next one is counted. The smallest amount makes the grace period end 50 s after the pass that
    heard of the node last; in a world where passes cost nothing it would be 55 s, because 50 s
    later is not yet *after* 50 s. `eviction_offset` is how long after a monitor pass the queues of
    unready nodes are looked at (every 100 ms), `gc_offset` the same for pod garbage collection
    (every 20 s). `is_taking_over`: the first list of nodes is not news, because a controller with
    the same memory has been at work; else it is a controller's start, which gives every node a
    new grace period and takes the NoExecute taints off, to set them anew at the zones' rates.
    """

    profile: Profile = V1_36
    node_monitor_period: DurationNs = MONITOR_PERIOD_DEFAULT
    node_startup_grace_period: DurationNs = STARTUP_GRACE_DEFAULT
    node_monitor_grace_period: DurationNs | None = None
    pod_eviction_timeout: DurationNs = POD_EVICTION_TIMEOUT_DEFAULT
    node_eviction_rate: float = 0.1
    secondary_node_eviction_rate: float = 0.01
    large_cluster_size_threshold: int = 50
    unhealthy_zone_threshold: float = 0.55
    enable_taint_manager: bool = True
    taint_based_evictions: bool = True
    terminated_pod_gc_threshold: int = 12_500
    pass_cost: DurationNs = 1_000
    eviction_offset: DurationNs = EVICTION_OFFSET_DEFAULT
    gc_offset: DurationNs = GC_OFFSET_DEFAULT
    is_taking_over: bool = False
    defects: Defects = Defects.FIXED

    @property
    def monitor_grace(self) -> DurationNs:
        """How long a node that has posted its status may be quiet."""
        if self.node_monitor_grace_period is None:
            return self.profile.node_monitor_grace_period
        return self.node_monitor_grace_period
