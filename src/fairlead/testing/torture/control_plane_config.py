"""Builds the engine's configuration for a scenario's options."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.api.well_known_label import ZONE
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
)
from fairlead.engine.autoscaling.cluster_autoscaler.options import parse_options
from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
from fairlead.engine.batch.configuration_file import shipped_configuration
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import Instant
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.testing.torture.fault.in_process_extender import CONFIGURATION
from fairlead.testing.torture.fault.unreliable_plugin import NAME, UnreliablePlugin
from fairlead.testing.torture.karpenter_scenario import KARPENTER, karpenter_config
from fairlead.testing.torture.scenario import ControlPlaneOptions
from fairlead.worlds.local.control_plane import OBSERVED

CLUSTER_AUTOSCALER: Final = "cluster-autoscaler"
ZONES: Final = ("a", "b", "c")
GROUP_SIZE_MAX: Final = 10


def engine_config(
    options: ControlPlaneOptions,
    seed: int,
    now: Instant,
    tally: Counter[str],
    is_calm: Callable[[], bool],
) -> EngineConfig:
    """Return the configuration of an engine that starts at `now`.

    If `options.plugin` is set, an unreliable plugin is added. The plugin misbehaves until `is_calm`
    returns True; `tally` counts how often the plugin misbehaves.
    """
    kubelet = replace(
        OBSERVED.kubelet,
        start_delay=options.start_delay_ms * NANOSECONDS_PER_MILLISECOND,
        ready_delay=options.ready_delay_ms * NANOSECONDS_PER_MILLISECOND,
    )
    return replace(
        OBSERVED,
        seed=seed,
        start=now,
        kubelet=kubelet,
        batch=shipped_configuration(options.batch) if options.batch else None,
        scheduler=_scheduler(options, tally, is_calm),
        autoscaler=_autoscaler() if options.autoscaler == CLUSTER_AUTOSCALER else None,
        karpenter=karpenter_config(ZONES) if options.autoscaler == KARPENTER else None,
    )


def _scheduler(
    options: ControlPlaneOptions, tally: Counter[str], is_calm: Callable[[], bool]
) -> SchedulerConfig:
    """Return the configuration of a scheduler with the default profile.

    The unreliable plugin and the unreliable extender are added if `options` has them.
    """
    extenders = (CONFIGURATION,) if options.extender else ()
    if not options.plugin:
        return dataclasses.replace(OBSERVED.scheduler, extenders=extenders)
    profile = Profile()
    profile = replace(profile, plugins=((NAME, 0), *profile.plugins))
    plugin = partial(UnreliablePlugin, options.plugin, tally, is_calm)
    factories = {NAME: lambda _handle, _args: plugin()}
    return SchedulerConfig((profile,), out_of_tree=factories, extenders=extenders)


def _autoscaler() -> ClusterAutoscalerConfig:
    """Return the configuration of Cluster Autoscaler, with delays that fit into a short run.

    Each zone has a node group. The scenario's own nodes belong to no group, because they differ
    from each other. If these nodes belonged to a group, the autoscaler would use one of them as the
    template for new nodes. These new nodes might be unsuitable for the pending pods.
    """
    options = parse_options({"scale-down-delay-after-add": "1m", "scale-down-unneeded-time": "2m"})
    groups = tuple(
        NodeGroupSpec(
            id=zone,
            minimum=1,
            maximum=GROUP_SIZE_MAX,
            labels={ZONE: zone, "pool": "autoscaled"},
            template=_template(zone),
        )
        for zone in ZONES
    )
    return ClusterAutoscalerConfig(groups, options)


def _template(zone: str) -> Json:
    size = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"template-{zone}", "labels": {ZONE: zone}},
        "status": {"capacity": size, "allocatable": size, "conditions": [ready]},
    }
