"""NodeLifecycleConfig: options of kube-controller-manager for node health and evictions."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.nodelifecycle.profile import V1_36, VersionProfile

MONITOR_PERIOD_DEFAULT: Final = seconds(5)
STARTUP_GRACE_DEFAULT: Final = seconds(60)
POD_EVICTION_TIMEOUT_DEFAULT: Final = seconds(300)
# upstream: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go:NodeEvictionPeriod
EVICTION_PERIOD: Final = seconds(0.1)
EVICTION_OFFSET_DEFAULT: Final = seconds(0.05)
# upstream: pkg/controller/podgc/gc_controller.go:gcCheckPeriod
GC_PERIOD: Final = seconds(20)
GC_OFFSET_DEFAULT: Final = seconds(0.025)


class DefectPolicy(StrEnum):
    """Whether known defects of upstream are fixed or reproduced."""

    FIXED = "fixed"
    UPSTREAM = "upstream"


class NodeLifecycleConfig(Struct, frozen=True, kw_only=True):
    """Options named after kube-controller-manager's flags, with upstream's defaults.

    If both `taint_based_evictions` and `enable_taint_manager` are True, the pods of a not-ready
    node stay as long as their tolerations allow (`TaintEviction`). If one of the two is False, the
    pods of a not-ready node are deleted at the zone's rate after `pod_eviction_timeout`
    (`PodEvictionMode`).

    The rate of a partially disrupted zone (`zone_state.eviction_rate`) is
    `secondary_node_eviction_rate` if the zone has more than `large_cluster_size_threshold` nodes.
    In smaller zones, the rate is 0, so evictions stop.
    """

    profile: VersionProfile = V1_36
    node_monitor_period: DurationNs = MONITOR_PERIOD_DEFAULT
    node_startup_grace_period: DurationNs = STARTUP_GRACE_DEFAULT
    node_monitor_grace_period: DurationNs | None = None  # None: the default of `profile`
    # Has no effect if taints evict the pods.
    pod_eviction_timeout: DurationNs = POD_EVICTION_TIMEOUT_DEFAULT
    # Nodes per second, for each zone that is not partially disrupted.
    node_eviction_rate: float = 0.1
    secondary_node_eviction_rate: float = 0.01  # nodes per second
    large_cluster_size_threshold: int = 50
    unhealthy_zone_threshold: float = 0.55
    enable_taint_manager: bool = True  # if False, NoExecute taints evict no pods
    taint_based_evictions: bool = True
    terminated_pod_gc_threshold: int = 12_500

    # Options without an upstream flag:

    # The duration of a monitor pass. The next pass starts one period after the end of the previous
    # pass. Let P be the pass that noticed the last heartbeat of a node. The node becomes Unknown in
    # the first pass that starts more than the grace period after P. Example: a grace period of 50 s
    # and a period of 5 s. If `pass_cost` is small but positive, the tenth pass after P starts
    # slightly more than 50 s after P. So the tenth pass sets the node to Unknown. If `pass_cost` is
    # 0, the tenth pass starts exactly 50 s after P. So only the eleventh pass sets the node to
    # Unknown.
    pass_cost: DurationNs = 1_000
    # The delay from the start of the controller to the first processing of the eviction queues. The
    # processing repeats every 100 ms.
    eviction_offset: DurationNs = EVICTION_OFFSET_DEFAULT
    # The delay from the start of the controller to the first pod garbage collection. The collection
    # repeats every 20 s.
    gc_offset: DurationNs = GC_OFFSET_DEFAULT
    # Whether the controller treats the first list of nodes as if it had already processed these
    # nodes. Otherwise it behaves as after a restart: every node gets a new grace period, and
    # NoExecute taints are removed and added again at the zone's rate.
    is_taking_over: bool = False
    defects: DefectPolicy = DefectPolicy.FIXED

    @property
    def evicts_by_taint(self) -> bool:
        """Whether nodes that are not ready get NoExecute taints, which evict their pods."""
        # upstream (1.16): node_lifecycle_controller.go:NewNodeLifecycleController
        return self.taint_based_evictions and self.enable_taint_manager

    @property
    def monitor_grace(self) -> DurationNs:
        """The grace period, in ns, of a node that has posted its status at least once."""
        if self.node_monitor_grace_period is None:
            return self.profile.node_monitor_grace_period
        return self.node_monitor_grace_period
