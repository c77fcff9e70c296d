"""PartialPlugin: a scheduler plugin with only some of its extension points, such as Filter.

Many scheduler plugins both filter and score, and the framework calls every extension point that a
plugin has. So `predicates` uses a plugin without its scores, and `nodeorder` uses it without its
filters.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.engine.batch.session.plugin import BatchHandle
from fairlead.engine.framework.interface import Plugin
from fairlead.engine.framework.points import locality_of
from fairlead.engine.plugins.registry import IN_TREE
from fairlead.engine.plugins.release_1_16.registry import release_1_16

_FILTERING: Final = (
    "concerns",
    "pre_filter",
    "filter",
    "filter_columns",
    "add_pod",
    "remove_pod",
    "reserve",
    "unreserve",
    "pre_bind",
    "is_prepared",
)
_SCORING: Final = (
    "concerns",
    "pre_score",
    "score",
    "score_columns",
    "normalize_scores",
    "normalization",
    "scores_alike",
    "epoch",
)


class PartialPlugin:
    """A plugin with the name and some methods of the plugin `wrapped` (see `original_of`)."""

    def __init__(self, plugin: Plugin, members: tuple[str, ...]) -> None:
        """Copy the methods in `members` that `plugin` has."""
        self.wrapped = plugin
        self.name = plugin.name
        self.locality = locality_of(plugin)
        for member in members:
            found: Any = getattr(plugin, member, None)
            if found is not None:
                setattr(self, member, found)


def filtering_part(plugin: Plugin) -> Plugin:
    """Return the part of `plugin` for PreFilter, Filter, Reserve and PreBind."""
    return PartialPlugin(plugin, _FILTERING)


def scoring_part(plugin: Plugin) -> Plugin:
    """Return the part of `plugin` that scores nodes."""
    return PartialPlugin(plugin, _SCORING)


def build_scheduler_plugin(name: str, handle: BatchHandle) -> Plugin:
    """Return the scheduler plugin `name` with its default arguments.

    Raises KeyError if the name is unknown.
    """
    factory = release_1_16(handle.sums).get(name) or IN_TREE[name]
    return factory(handle, {})
