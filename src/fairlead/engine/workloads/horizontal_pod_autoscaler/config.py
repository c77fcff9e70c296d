"""Settings of the HorizontalPodAutoscaler controller; the defaults are upstream's.

upstream: pkg/controller/podautoscaler/config/v1alpha1/defaults.go
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import WorkloadLoads

SYNC_PERIOD_DEFAULT: Final = seconds(15)
DOWNSCALE_STABILIZATION_DEFAULT: Final = seconds(5 * 60)
CPU_INITIALIZATION_PERIOD_DEFAULT: Final = seconds(5 * 60)
INITIAL_READINESS_DELAY_DEFAULT: Final = seconds(30)
TOLERANCE_DEFAULT: Final = 0.1


class HorizontalPodAutoscalerConfig(Struct, frozen=True, kw_only=True):
    """kube-controller-manager's --horizontal-pod-autoscaler-* flags, and the load of workloads.

    `loads` maps workloads to their load. A workload without an entry has metrics only if
    annotations of the workload or its pods contain the usage.

    If `refreshes_status` is set, each autoscaler is synced in every period. Its status is then
    always current, as API clients expect. Otherwise, syncs that would change nothing are skipped.
    The status is then written only if a field that the function `compared_fields` returns has
    changed.

    `usage_advice` is appended to the error text of a metric if the usage of no running pod is
    known. It tells the user how to state the usage.
    """

    sync_period: DurationNs = SYNC_PERIOD_DEFAULT
    downscale_stabilization: DurationNs = DOWNSCALE_STABILIZATION_DEFAULT
    cpu_initialization_period: DurationNs = CPU_INITIALIZATION_PERIOD_DEFAULT
    initial_readiness_delay: DurationNs = INITIAL_READINESS_DELAY_DEFAULT
    tolerance: float = TOLERANCE_DEFAULT
    loads: WorkloadLoads = field(default_factory=dict)
    refreshes_status: bool = False
    usage_advice: str = ""
