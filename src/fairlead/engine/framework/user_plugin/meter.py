"""Meter: how often plugins were asked at each extension point, and how long they took.

The clock is a port: whoever wants to know brings one. Without a meter nothing is counted and
plugins are asked directly. A plugin's time is its own: what others take while it asks them (a
PostFilter asks the Filters) counts as theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from fairlead.engine.core.instant import DurationNs
from fairlead.engine.framework.extension_point import Method
from fairlead.engine.framework.user_plugin.method_wrapper import Ask, Kind, rewired


class Stopwatch(Protocol):
    """A clock that only ever goes forward."""

    def __call__(self) -> DurationNs:
        """Nanoseconds since some moment."""
        ...


@dataclass(slots=True)
class PluginTime:
    """What asking one plugin at one extension point came to."""

    plugin: str
    point: str
    calls: int = 0
    taken: DurationNs = 0


class Meter:
    """`measured` plugins are counted in `times`."""

    def __init__(self, stopwatch: Stopwatch) -> None:
        """Nothing is counted yet."""
        self._stopwatch = stopwatch
        self._times: dict[tuple[str, str], PluginTime] = {}
        self._taken_inside: DurationNs = 0

    def times(self) -> list[PluginTime]:
        """Whoever was asked at all, dearest first."""
        asked = [one for one in self._times.values() if one.calls]
        return sorted(asked, key=lambda one: (-one.taken, one.plugin, one.point))

    def measured(self, plugin: Kind) -> Kind:
        """`plugin`, counted from now on."""
        return rewired(plugin, lambda method, ask: self._timed(plugin.name, method, ask))

    def _timed(self, plugin: str, method: Method, ask: Ask) -> Ask:
        key = (plugin, method.point)
        time = self._times.setdefault(key, PluginTime(*key))
        return self._timing(time, ask)

    def _timing(self, time: PluginTime, ask: Ask) -> Callable[..., Any]:
        stopwatch = self._stopwatch

        def timed(*args: Any) -> Any:
            outside, self._taken_inside = self._taken_inside, 0
            began = stopwatch()
            try:
                return ask(*args)
            finally:
                taken = stopwatch() - began
                time.calls += 1
                time.taken += taken - self._taken_inside
                self._taken_inside = outside + taken

        return timed
