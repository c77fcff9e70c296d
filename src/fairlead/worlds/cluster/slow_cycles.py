"""SlowCycles: logs the units of work of an engine that took 100 ms or longer, with their steps.

    slow cycle: 152 ms for pod shop/web-0: 120 ms NodePrice/Score (5000 calls), 9 ms …

A unit of work is a scheduling cycle, a session of the batch scheduler or a pass of a node
controller. A step is one plugin at one extension point. The line lists the five steps in which
plugins spent the most time, longest first.

upstream: schedule_one.go: schedulePod, whose trace is logged by utiltrace.LogIfLong
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.engine.core.command import Bind, Issued
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.stimulus import Stimulus
from fairlead.engine.framework.user_plugin.meter import Meter, Stopwatch
from fairlead.worlds.cluster.tracer import PluginStep, Tracer
from fairlead.worlds.driver import CommandSource

SLOW_NS: Final[DurationNs] = 100 * NANOSECONDS_PER_MILLISECOND  # upstream: schedule_one.go
STEPS_MAX: Final = 5
_PODS_MAX: Final = 3


class SlowCycles:
    """A `CommandSource` that forwards every call to `engine` and measures its units of work."""

    def __init__(
        self,
        engine: CommandSource,
        meter: Meter | None,
        stopwatch: Stopwatch,
        log: Callable[[str], None],
        tracer: Tracer | None = None,
    ) -> None:
        """`meter` contains the times of the engine's plugins.

        `log` is called with a line per slow unit.

        `tracer` receives the time and the steps of every unit.
        """
        self._engine = engine
        self._meter = meter
        self._stopwatch = stopwatch
        self._log = log
        self._tracer = tracer

    def handle(self, stimulus: Stimulus, now: Instant) -> Sequence[Issued]:
        """Pass `stimulus` to the engine and return its commands."""
        return self._engine.handle(stimulus, now)

    def next_deadline(self) -> Instant | None:
        """Return the engine's next deadline, None if it has no work."""
        return self._engine.next_deadline()

    def handle_deadline(self, now: Instant) -> Sequence[Issued]:
        """Run one unit of the engine's work at `now`, and log the unit if it was slow."""
        before = {} if self._meter is None else self._meter.taken()
        if self._tracer is not None:
            self._tracer.begin_unit()
        began = self._stopwatch()
        issued = self._engine.handle_deadline(now)
        taken = self._stopwatch() - began
        if taken >= SLOW_NS:
            self._log(f"slow cycle: {_ms(taken)}{_pods(issued)}{_text(self._steps(before))}")
        if self._tracer is not None:
            self._tracer.end_unit(taken, self._steps(before))
        return issued

    def _steps(self, before: dict[tuple[str, str], tuple[int, DurationNs]]) -> list[PluginStep]:
        """Return the longest STEPS_MAX plugin steps since the measurement `before`."""
        after = {} if self._meter is None else self._meter.taken()
        steps: list[PluginStep] = []
        for (plugin, point), (calls, taken) in after.items():
            calls_before, taken_before = before.get((plugin, point), (0, 0))
            if calls > calls_before:
                steps.append(PluginStep(taken - taken_before, calls - calls_before, plugin, point))
        steps.sort(reverse=True)
        return steps[:STEPS_MAX]


def _text(steps: Sequence[PluginStep]) -> str:
    """Return the steps of a slow unit as the end of its log line."""
    shown = [
        f"{_ms(one.taken)} {one.plugin}/{one.point} "
        f"({one.calls} {'call' if one.calls == 1 else 'calls'})"
        for one in steps
    ]
    return f": {', '.join(shown)}" if shown else ""


def _pods(issued: Sequence[Issued]) -> str:
    """Return the text that names the pods that the commands of a unit bind, patch or delete."""
    refs = (
        one.command.pod if isinstance(one.command, Bind) else getattr(one.command, "target", None)
        for one in issued
    )
    keys = list(dict.fromkeys(ref.key for ref in refs if ref is not None and ref.kind == "Pod"))
    if not keys:
        return ""
    more = f" and {len(keys) - _PODS_MAX} more" if len(keys) > _PODS_MAX else ""
    return f" for pod {', '.join(keys[:_PODS_MAX])}{more}"


def _ms(taken: DurationNs) -> str:
    return f"{taken / NANOSECONDS_PER_MILLISECOND:.0f} ms"
