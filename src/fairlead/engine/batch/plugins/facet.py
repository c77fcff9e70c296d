"""Facets: one side of a scheduler plugin, so that it filters without scoring or the other way.

`predicates` and `nodeorder` are switched separately, while many scheduler plugins do both; the
framework finds out what a plugin does by looking at what it has.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.engine.framework.interface import Plugin
from fairlead.engine.framework.points import locality_of

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


class Facet:
    """Some of a plugin's methods, under its name."""

    def __init__(self, plugin: Plugin, members: tuple[str, ...]) -> None:
        """Those of `members` that `plugin` has."""
        self.name = plugin.name
        self.locality = locality_of(plugin)
        for member in members:
            found: Any = getattr(plugin, member, None)
            if found is not None:
                setattr(self, member, found)


def filter_facet(plugin: Plugin) -> Plugin:
    """`plugin` as far as it says where a pod may go, and prepares what it needs there."""
    return Facet(plugin, _FILTERING)


def score_facet(plugin: Plugin) -> Plugin:
    """`plugin` as far as it says how good a node is."""
    return Facet(plugin, _SCORING)
