"""PointPlugins: what a profile says about one extension point, and whom that makes it ask there.

A plugin that is enabled everywhere (multiPoint) is asked wherever it takes part. At one point a
profile may leave plugins out, put them in another order, or ask further ones. Then are asked

    1  those enabled everywhere that are named here again, in the order named here
    2  the others enabled everywhere, in their own order, without those disabled here
    3  those named here only

upstream: framework/runtime/framework.go: updatePluginList, expandMultiPointPlugins
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

ALL: Final = "*"


class PointError(ValueError):
    """A plugin is named where it cannot be asked; says which and where."""


@dataclass(frozen=True, slots=True)
class PointPlugins:
    """`enabled` are (name, score weight) in order; `disabled` are names, ALL for everyone."""

    enabled: tuple[tuple[str, int], ...] = ()
    disabled: tuple[str, ...] = ()

    def asked(
        self, point: str, everywhere: Sequence[str], extends: Callable[[str], bool]
    ) -> list[str]:
        """Whom to ask at `point`, in order.

        `extends` tells of a plugin whether it takes part there. Raises PointError.
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
