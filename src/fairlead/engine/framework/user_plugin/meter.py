"""Meter: counts the calls of each plugin at each extension point, and measures their time.

A plugin's time excludes the time of the plugins that it calls: a PostFilter, for example, runs the
Filters.

A meter also measures the steps of scheduling cycles. The steps have the same names as in upstream's
trace. Upstream's snapshot step is missing, because Fairlead takes no snapshot.

upstream: pkg/scheduler/schedule_one.go: schedulePod
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from msgspec import Struct

from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import DurationNs
from fairlead.engine.framework.extension_point import BoundMethod, Kind, Method, wrap_methods

FILTERED: Final = "Computing predicates done"
SCORED: Final = "Prioritizing done"


class Stopwatch(Protocol):
    """A monotonic clock."""

    def __call__(self) -> DurationNs:
        """Return nanoseconds since an arbitrary fixed time."""
        ...


class PluginTime(Struct):
    """The number of calls and their total time in ns, for one plugin at one extension point."""

    plugin: str
    point: str
    calls: int = 0
    taken: DurationNs = 0


class Meter:
    """Counts the calls of plugins and measures how long they take.

    `measured` wraps a plugin so that its calls are measured. `times` returns the results.
    """

    def __init__(self, stopwatch: Stopwatch) -> None:
        self._stopwatch = stopwatch
        self._times: dict[tuple[str, str], PluginTime] = {}
        # the calls and the time of each plugin when the measurement began
        self._before: dict[tuple[str, str], tuple[int, DurationNs]] = {}
        self._taken_inside: DurationNs = 0
        self._pods: dict[str, ObjectRef] = {}
        self._steps: dict[str, DurationNs] = {}
        self._step_began: DurationNs = 0
        self._measurement_began = stopwatch()

    def begin_steps(self, pod: ObjectRef) -> None:
        """Begin the first step of the scheduling cycle of `pod`."""
        self._pods[pod.key] = pod
        self._step_began = self._stopwatch()

    def end_step(self, name: str) -> None:
        """End the step `name` of a scheduling cycle, and begin the next."""
        began, self._step_began = self._step_began, self._stopwatch()
        self._steps[name] = self._steps.get(name, 0) + self._step_began - began

    def take_steps(self) -> dict[str, DurationNs]:
        """Return the total time (ns) of each scheduling step since the last call of this method.

        A step can run several times. The steps are ordered by the end of their first run.
        """
        steps, self._steps = self._steps, {}
        return steps

    def take_pods(self) -> list[ObjectRef]:
        """Return the pods whose scheduling cycles began since the last call of this method."""
        pods, self._pods = self._pods, {}
        return list(pods.values())

    def times(self) -> list[PluginTime]:
        """Return the calls and times of the plugins that ran, longest total time first."""
        called = [one for one in self._times.values() if one.calls]
        return sorted(called, key=lambda one: (-one.taken, one.plugin, one.point))

    def begin_measurement(self) -> None:
        """Start a measurement; `elapsed` and `plugin_times` cover the time since this call."""
        self._before.clear()
        self._measurement_began = self._stopwatch()

    def elapsed(self) -> DurationNs:
        """Return the time since `begin_measurement`."""
        return self._stopwatch() - self._measurement_began

    def plugin_times(self) -> list[PluginTime]:
        """Return the calls and times of the plugins that ran since `begin_measurement`."""
        found = []
        for key, (calls, taken) in self._before.items():
            time = self._times[key]
            found.append(PluginTime(*key, time.calls - calls, time.taken - taken))
        return found

    def measured(self, plugin: Kind) -> Kind:
        """Return `plugin` wrapped so that its calls are counted and timed."""
        return wrap_methods(
            plugin,
            lambda method, bound_method: self._timed(plugin.name, method, bound_method),
            as_built_in=True,
        )

    def _timed(self, plugin: str, method: Method, bound_method: BoundMethod) -> BoundMethod:
        key = (plugin, method.point)
        time = self._times.setdefault(key, PluginTime(*key))
        stopwatch, before = self._stopwatch, self._before

        def timed(*args: Any) -> Any:
            if key not in before:
                before[key] = time.calls, time.taken
            outside, self._taken_inside = self._taken_inside, 0
            began = stopwatch()
            try:
                return bound_method(*args)
            finally:
                taken = stopwatch() - began
                time.calls += 1
                time.taken += taken - self._taken_inside
                self._taken_inside = outside + taken

        return timed
