"""Builds the Cluster Autoscaler controller from its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from fairlead.engine.autoscaling.capacity_outage import CapacityOutage
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
    SimulatedProvider,
)
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.timers import (
    NO_TIMERS,
    ScaleDownTimers,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import Reporter

if TYPE_CHECKING:
    from fairlead.engine.autoscaling.cluster_autoscaler.controller import ClusterAutoscaler


class ClusterAutoscalerConfig(Struct, frozen=True):
    """The configuration of a Cluster Autoscaler with a simulated provider.

    `groups` and `outages` configure the provider. `options` configures the autoscaler. `priorities`
    is the value of `data.priorities` in the ConfigMap of the priority expander. `priorities` is
    None if there is no ConfigMap. `timers` are those of an autoscaler that was running in the
    cluster before the simulated run.
    """

    groups: tuple[NodeGroupSpec, ...]
    options: AutoscalingOptions = field(default_factory=AutoscalingOptions)
    outages: tuple[CapacityOutage, ...] = ()
    priorities: str | None = None
    timers: ScaleDownTimers = NO_TIMERS


def cluster_autoscaler(
    config: ClusterAutoscalerConfig, reporter: Reporter, *, seed: int, start: Instant
) -> ClusterAutoscaler:
    """Return a Cluster Autoscaler controller with a simulated provider.

    `seed` determines provision times and the choice between equal options. `start` is the start of
    the run.
    """
    # Most runs have no autoscaler, and importing one takes as long as a small run.
    from fairlead.engine.autoscaling.cluster_autoscaler.controller import (  # noqa: PLC0415
        ClusterAutoscaler,
    )

    provider = SimulatedProvider(
        config.groups,
        config.outages,
        seed=seed,
        start=start,
        cloud_provider=config.options.cloud_provider,
    )
    autoscaler = ClusterAutoscaler(
        config.options, provider, reporter, seed=seed, start=start, priorities=config.priorities
    )
    autoscaler.resume(config.timers)
    return autoscaler
