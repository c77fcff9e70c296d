"""PluginOrder: the plugins of a profile at each extension point, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from fairlead.engine.framework import interface
from fairlead.engine.framework.interface import Plugin
from fairlead.engine.framework.profile import PointError, Profile

# A plugin takes part at an extension point if it implements one of the point's Protocols.
_PROTOCOLS: Final[Mapping[str, tuple[type, ...]]] = {
    "PreEnqueue": (interface.PreEnqueuePlugin,),
    "QueueSort": (interface.QueueSortPlugin,),
    "PreFilter": (interface.PreFilterPlugin,),
    "Filter": (interface.FilterPlugin, interface.ColumnFilterPlugin),
    "PostFilter": (interface.PostFilterPlugin,),
    "PreScore": (interface.PreScorePlugin,),
    "Score": (interface.ScorePlugin, interface.ColumnScorePlugin),
    "Reserve": (interface.ReservePlugin,),
    "Permit": (interface.PermitPlugin,),
    "PreBind": (interface.PreBindPlugin,),
    "Bind": (interface.BindPlugin,),
    "PostBind": (interface.PostBindPlugin,),
}
POINTS: Final = tuple(_PROTOCOLS)
_FILTER_AND_SCORE: Final = ("PreFilter", "Filter", "PreScore", "Score")

# The extension points at which upstream's plugins take part. Each plugin of the default profile has
# a row. Fairlead's plugin of the same name may take part at fewer points: NodeResourcesFit has no
# PreFilter. A configuration may still enable the plugin at all of upstream's points.
# upstream: the interface assertions of framework/plugins/*
UPSTREAM_POINTS: Final[Mapping[str, tuple[str, ...]]] = {
    "SchedulingGates": ("PreEnqueue",),
    "PrioritySort": ("QueueSort",),
    "NodeUnschedulable": ("Filter",),
    "NodeName": ("Filter",),
    "TaintToleration": ("Filter", "PreScore", "Score"),
    "NodeAffinity": _FILTER_AND_SCORE,
    "NodePorts": ("PreFilter", "Filter"),
    "NodeResourcesFit": _FILTER_AND_SCORE,
    "VolumeRestrictions": ("PreFilter", "Filter"),
    "NodeVolumeLimits": ("PreFilter", "Filter"),
    "VolumeBinding": (*_FILTER_AND_SCORE, "Reserve", "PreBind"),
    "VolumeZone": ("PreFilter", "Filter"),
    "PodTopologySpread": _FILTER_AND_SCORE,
    "InterPodAffinity": _FILTER_AND_SCORE,
    "DynamicResources": (
        "PreEnqueue", "PreFilter", "Filter", "PostFilter", "Score", "Reserve", "PreBind"
    ),
    "NodeDeclaredFeatures": ("PreFilter", "Filter"),
    "DefaultPreemption": ("PreEnqueue", "PostFilter"),
    "NodeResourcesBalancedAllocation": ("PreScore", "Score"),
    "ImageLocality": ("Score",),
    "DefaultBinder": ("Bind",),
    "GangScheduling": ("PreEnqueue", "Permit"),
}  # fmt: skip


def takes_part(plugin: Plugin, point: str) -> bool:
    """Return whether `plugin` implements a Protocol of the extension point `point`.

    `isinstance` gives the same result, but takes 20 times as long for a Protocol in Python 3.11.
    """
    return any(
        all(getattr(plugin, name, None) is not None for name in members)
        for members in _members_at(point)
    )


@cache
def _members_at(point: str) -> tuple[frozenset[str], ...]:
    """Return the names of the members of each Protocol of the extension point `point`."""
    return tuple(
        frozenset(
            name
            for base in form.__mro__
            for name in (*vars(base), *vars(base).get("__annotations__", ()))
            if not name.startswith("_")
        )
        for form in _PROTOCOLS[point]
    )


class PluginOrder:
    """The plugins of `profile`, in the profile's order; `add` inserts a further plugin."""

    def __init__(self, profile: Profile, plugins: Sequence[tuple[Plugin, int]]) -> None:
        """Start with `plugins`, which are pairs (plugin, score weight) in calling order.

        At an extension point, the profile can set a different order.
        """
        self._profile = profile
        self._plugins = [plugin for plugin, _ in plugins]
        everywhere = {name for name, _ in profile.plugins}
        self._at_single_points = {name for name, _ in profile.all_plugins if name not in everywhere}
        score = profile.points.get("Score")
        at_score = {} if score is None else {name: weight or 1 for name, weight in score.enabled}
        self._weights = {plugin.name: weight for plugin, weight in plugins} | at_score

    def add(self, plugin: Plugin) -> None:
        """Insert `plugin` at its place in the profile."""
        order = [name for name, _ in self._profile.all_plugins]
        later = order[order.index(plugin.name) + 1 :]
        place = (at for at, other in enumerate(self._plugins) if other.name in later)
        self._plugins.insert(next(place, len(self._plugins)), plugin)

    def at(self, point: str) -> list[Plugin]:
        """Return the plugins to call at the extension point `point`, in order.

        Raises PointError if the profile enables a plugin twice at this point, or enables a plugin
        that does not implement the point. A plugin that implements the point only in upstream
        (`UPSTREAM_POINTS`) is left out without an error.
        """
        found = [plugin for plugin in self._plugins if takes_part(plugin, point)]
        settings = self._profile.points.get(point)
        if settings is None:
            return [plugin for plugin in found if plugin.name not in self._at_single_points]
        by_name = {plugin.name: plugin for plugin in found}
        everywhere = [name for name, _ in self._profile.plugins]
        names = settings.plugin_names(
            point,
            everywhere,
            lambda name: name in by_name or point in UPSTREAM_POINTS.get(name, ()),
        )
        return [by_name[name] for name in names if name in by_name]

    def scorers(self) -> list[tuple[Plugin, int]]:
        """Return the Score plugins with their weights; plugins with weight 0 are left out."""
        scorers = ((plugin, self._weights[plugin.name]) for plugin in self.at("Score"))
        return [(plugin, weight) for plugin, weight in scorers if weight]

    def queue_sort(self) -> Plugin:
        """Return the plugin that orders the queue.

        Raises PointError if the profile has no QueueSort plugin, or more than one.
        """
        found = self.at("QueueSort")
        if len(found) != 1:
            name = self._profile.scheduler_name
            raise PointError(
                "only one queue sort plugin required for profile with scheduler name "
                f'"{name}", but got {len(found)}'
            )
        return found[0]
