"""Profile: which plugins serve the pods of one schedulerName, in which order, with what weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.engine.framework.point_plugins import PointPlugins

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
    """`plugins` are (name, score weight) in order; `args` holds pluginConfig by plugin name.

    Each is asked at every extension point at which it takes part, and scores if its weight is not
    0. `points` says what is different at single points (`Filter`, `Score`, …). `node_percentage`
    ends the search for nodes once enough have been found (0: upstream's adaptive share; None: look
    at all).
    """

    scheduler_name: str = DEFAULT_SCHEDULER
    plugins: tuple[tuple[str, int], ...] = DEFAULT_PLUGINS
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    points: Mapping[str, PointPlugins] = field(default_factory=dict)
    node_percentage: int | None = None

    @property
    def needed(self) -> tuple[tuple[str, int], ...]:
        """`plugins`, and those that are asked at single points only (without a weight)."""
        known = dict(self.plugins)
        at_points = (name for point in self.points.values() for name, _ in point.enabled)
        return *self.plugins, *((name, 0) for name in dict.fromkeys(at_points) if name not in known)
