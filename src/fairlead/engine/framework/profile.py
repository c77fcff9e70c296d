"""Profile: the plugins for the pods of one schedulerName, with their order and weights.

A plugin that is enabled everywhere (multiPoint) runs at each extension point that it implements. At
a single point, a profile may disable plugins, reorder them, or enable further plugins. The
resulting order at that point is:

    1  plugins that are enabled everywhere and again at the point, in the order of the point
    2  other plugins enabled everywhere, in the order of multiPoint, unless disabled at the point
    3  plugins enabled only at the point, in the order of the point

upstream: framework/runtime/framework.go: updatePluginList, expandMultiPointPlugins
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

DEFAULT_SCHEDULER: Final = "default-scheduler"

# The plugins of the default profile, with the weights of their scores. The Filter plugins run in
# this order, and only the first rejection per node is reported (apis/config/v1/default_plugins.go:
# getDefaultPlugins). The simulations of Cluster Autoscaler use this list too
# (engine/autoscaling/cluster_autoscaler/snapshot/filter_plugins.py).
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
ALL: Final = "*"


class Profile(Struct, frozen=True):
    """The plugins and settings for the pods of one schedulerName.

    `plugins` are (name, score weight) pairs in order. `args` maps the names of plugins to their
    arguments (`pluginConfig`). A plugin with weight 0 is not called to score nodes. `points`
    overrides single extension points (`Filter`, `Score`, …). `node_percentage` is
    percentageOfNodesToScore: the search ends when this percentage of all nodes has been found to be
    feasible. 0 means upstream's adaptive percentage, and None means no limit.
    """

    scheduler_name: str = DEFAULT_SCHEDULER
    plugins: tuple[tuple[str, int], ...] = DEFAULT_PLUGINS
    args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    points: Mapping[str, PointPlugins] = field(default_factory=dict)
    node_percentage: int | None = None

    @property
    def all_plugins(self) -> tuple[tuple[str, int], ...]:
        """All plugins of the profile, as (name, score weight) pairs.

        The entries of `plugins` come first. Plugins that are enabled in `points` but are not in
        `plugins` come last, with weight 0.
        """
        known = dict(self.plugins)
        at_points = (name for point in self.points.values() for name, _ in point.enabled)
        return *self.plugins, *((name, 0) for name in dict.fromkeys(at_points) if name not in known)


class PointError(ValueError):
    """A profile's plugins at an extension point are invalid, for example enabled twice."""


class PointPlugins(Struct, frozen=True):
    """The plugins that a profile enables and disables at one extension point.

    `enabled` are (name, score weight) pairs in order; `disabled` are names. If `disabled` contains
    `ALL` (`"*"`), only the plugins in `enabled` run at this point.
    """

    enabled: tuple[tuple[str, int], ...] = ()
    disabled: tuple[str, ...] = ()

    def plugin_names(
        self, point: str, everywhere: Sequence[str], extends: Callable[[str], bool]
    ) -> list[str]:
        """Return the names of the plugins to call at `point`, in order.

        `everywhere` are the plugins enabled at all points. `extends` returns whether a plugin
        implements `point`. Raises PointError if `self.enabled` contains a plugin twice, or a plugin
        that does not implement `point`.
        """
        named = [name for name, _ in self.enabled]
        for place, name in enumerate(named):
            if name in named[:place]:
                raise PointError(f'plugin "{name}" already registered as "{point}Plugin"')
            if not extends(name):
                raise PointError(f'plugin "{name}" does not extend {point}Plugin plugin')
        if ALL in self.disabled:
            return named
        general = [n for n in everywhere if extends(n) and n not in self.disabled]
        return [
            *(name for name in named if name in general),
            *(name for name in general if name not in named),
            *(name for name in named if name not in general),
        ]
