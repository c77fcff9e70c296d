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
    """kube-controller-manager's --horizontal-pod-autoscaler-* flags, and the load of workloads."""

    sync_period: DurationNs = SYNC_PERIOD_DEFAULT
    downscale_stabilization: DurationNs = DOWNSCALE_STABILIZATION_DEFAULT
    cpu_initialization_period: DurationNs = CPU_INITIALIZATION_PERIOD_DEFAULT
    initial_readiness_delay: DurationNs = INITIAL_READINESS_DELAY_DEFAULT
    tolerance: float = TOLERANCE_DEFAULT
    # The load of each workload. A workload without an entry has metrics only if annotations of the
    # workload or its pods contain the usage.
    loads: WorkloadLoads = field(default_factory=dict)
    # Whether each autoscaler is synced in every period. Its status is then always current, as API
    # clients expect. Otherwise, syncs that would change nothing are skipped. The status is then
    # written only if a field that the function `compared_fields` returns has changed.
    refreshes_status: bool = False
    # Appended to the error text of a metric if the usage of no running pod is known. It tells the
    # user how to state the usage.
    usage_advice: str = ""
