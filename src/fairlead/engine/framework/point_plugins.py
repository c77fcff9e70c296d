"""PointPlugins: a profile's settings for one extension point, and the plugins that result.

A plugin that is enabled everywhere (multiPoint) runs at each point it implements. For one point a
profile may disable plugins, reorder them, or enable further ones. The resulting order is

    1  plugins enabled everywhere that are named here again, in the order named here
    2  the other plugins enabled everywhere, in their own order, without those disabled here
    3  plugins named here only

upstream: framework/runtime/framework.go: updatePluginList, expandMultiPointPlugins
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

ALL: Final = "*"


class PointError(ValueError):
    """A plugin is named at a point that it does not implement; the text names both."""


@dataclass(frozen=True, slots=True)
class PointPlugins:
    """`enabled` are (name, score weight) in order; `disabled` are names, or ALL."""

    enabled: tuple[tuple[str, int], ...] = ()
    disabled: tuple[str, ...] = ()

    def plugin_names(
        self, point: str, everywhere: Sequence[str], extends: Callable[[str], bool]
    ) -> list[str]:
        """Names of the plugins to call at `point`, in order.

        `extends` returns True for plugins that implement the point. Raises PointError.
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
