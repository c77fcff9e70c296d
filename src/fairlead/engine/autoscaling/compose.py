"""From configuration to autoscaler."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairlead.engine.autoscaling.cluster_autoscaler.controller import ClusterAutoscaler
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.simulated_provider import (
    NodeGroupSpec,
    SimulatedProvider,
)
from fairlead.engine.core.instant import Instant


@dataclass(frozen=True, slots=True)
class ClusterAutoscalerConfig:
    """The node groups of a simulated provider, and the autoscaler's options."""

    groups: tuple[NodeGroupSpec, ...]
    options: AutoscalingOptions = field(default_factory=AutoscalingOptions)


def cluster_autoscaler(
    config: ClusterAutoscalerConfig, *, seed: int, start: Instant
) -> ClusterAutoscaler:
    """The controller with a simulated provider."""
    provider = SimulatedProvider(config.groups, seed=seed, start=start)
    return ClusterAutoscaler(config.options, provider, seed=seed, start=start)
