"""Settings of the HorizontalPodAutoscaler controller; the defaults are upstream's.

upstream: pkg/controller/podautoscaler/config/v1alpha1/defaults.go
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import WorkloadLoads

SYNC_PERIOD_DEFAULT: Final = seconds(15)
DOWNSCALE_STABILIZATION_DEFAULT: Final = seconds(5 * 60)
CPU_INITIALIZATION_PERIOD_DEFAULT: Final = seconds(5 * 60)
INITIAL_READINESS_DELAY_DEFAULT: Final = seconds(30)
TOLERANCE_DEFAULT: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizontalPodAutoscalerConfig:
    """kube-controller-manager's --horizontal-pod-autoscaler-* flags, and the load of workloads.

    `loads` is the stated load of each workload. A workload without one has no metrics, unless its
    own annotation or annotations of its pods state the usage. With `refreshes_status` each
    autoscaler is synced in every period and its status is always current, as API clients expect.
    Otherwise syncs that would change nothing are skipped, and the status is written when the number
    of replicas or a condition changes.
    """

    sync_period: DurationNs = SYNC_PERIOD_DEFAULT
    downscale_stabilization: DurationNs = DOWNSCALE_STABILIZATION_DEFAULT
    cpu_initialization_period: DurationNs = CPU_INITIALIZATION_PERIOD_DEFAULT
    initial_readiness_delay: DurationNs = INITIAL_READINESS_DELAY_DEFAULT
    tolerance: float = TOLERANCE_DEFAULT
    loads: WorkloadLoads = field(default_factory=dict)
    refreshes_status: bool = False
