"""EngineConfig: the configuration of an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from fairlead.engine.core.instant import Instant
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.workloads.config import VolumesConfig, WorkloadsConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig

if TYPE_CHECKING:
    from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
    from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
    from fairlead.engine.batch.configuration_file import BatchConfig


class EngineConfig(Struct, frozen=True, kw_only=True):
    """The configuration of an engine.

    A controller whose configuration is None does not run.
    """

    # Decides ties between equally good choices. Also determines how long the machines of
    # autoscalers take to start, and the names of Karpenter's machines.
    seed: int = 0
    start: Instant = 0  # the time in ns at which periodic work starts
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    # If set, the pod scheduler ignores pods whose schedulerName selects the batch scheduler.
    batch: BatchConfig | None = None
    kubelet: KubeletConfig = field(default_factory=KubeletConfig)
    node_lifecycle: NodeLifecycleConfig = field(default_factory=NodeLifecycleConfig)
    workloads: WorkloadsConfig = field(default_factory=WorkloadsConfig)
    volumes: VolumesConfig = field(default_factory=VolumesConfig)
    pod_autoscaler: HorizontalPodAutoscalerConfig = field(
        default_factory=HorizontalPodAutoscalerConfig
    )
    karpenter: KarpenterConfig | None = None
    autoscaler: ClusterAutoscalerConfig | None = None
    # Whether the engine removes the finalizers of deleted nodes, pods and custom resources. A
    # simulation sets this, because it does not run the programs that added the finalizers.
    removes_finalizers: bool = False
