"""Profile: which plugins serve the pods of one schedulerName, in which order, with what weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

DEFAULT_SCHEDULER: Final = "default-scheduler"

# Order and weights of the default profile; the order is also that of Filter, where only the first
# rejection per node is reported (apis/config/v1/default_plugins.go: getDefaultPlugins).
DEFAULT_PLUGINS: Final[tuple[tuple[str, int], ...]] = (
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 1),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("NodeDeclaredFeatures", 0),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
)


@dataclass(frozen=True, slots=True)
class Profile:
    """`plugins` are (name, score weight) in order; `args` holds pluginConfig by plugin name."""

    scheduler_name: str = DEFAULT_SCHEDULER
    plugins: tuple[tuple[str, int], ...] = DEFAULT_PLUGINS
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
