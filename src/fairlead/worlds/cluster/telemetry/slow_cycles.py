"""SlowCycles: logs each unit of an engine's work that took 100 ms or longer, with its steps.

    slow cycle: "Scheduling" namespace:shop,name:web-0 (total time: 152ms): "Computing predicates
    done" 20ms, "Prioritizing done" 131ms; 120 ms NodePrice/Score (5000 calls), 9 ms …

A unit of work is a scheduling cycle, a session of the batch scheduler or a pass of a node
controller. The line of a scheduling cycle has the name, the fields and the steps of upstream's
trace. The line of any other unit has the duration and the pods that the unit changes. A line ends
with the five longest plugin steps, longest first. A plugin step is the time of one plugin at one
extension point.

upstream: schedule_one.go: schedulePod, whose trace is logged by utiltrace.LogIfLong
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.engine.core.command import Bind, IssuedCommand, ObjectRef
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.stimulus import Stimulus
from fairlead.engine.framework.user_plugin.meter import Meter, Stopwatch
from fairlead.worlds.cluster.telemetry.tracer import SCHEDULING, PluginStep, Tracer
from fairlead.worlds.driver import CommandSource

SLOW_NS: Final[DurationNs] = 100 * NANOSECONDS_PER_MILLISECOND  # upstream: schedule_one.go
STEPS_MAX: Final = 5
_PODS_MAX: Final = 3


class SlowCycles:
    """A `CommandSource` that forwards every call to `engine` and times each unit of work."""

    def __init__(
        self,
        engine: CommandSource,
        meter: Meter | None,
        stopwatch: Stopwatch,
        log: Callable[[str], None],
        tracer: Tracer | None = None,
    ) -> None:
        """`meter` contains the times of the engine's plugins.

        `log` is called with a line for each unit of work that takes SLOW_NS or longer. `tracer`
        receives the time and the steps of every unit.
        """
        self._engine = engine
        self._meter = meter
        self._stopwatch = stopwatch
        self._log = log
        self._tracer = tracer

    def handle(self, stimulus: Stimulus, now: Instant) -> Sequence[IssuedCommand]:
        """Pass `stimulus` to the engine, and return the commands that the engine issues."""
        if self._meter is not None:
            self._meter.begin_measurement()  # The stimulus may end a cycle or a binding.
        return self._engine.handle(stimulus, now)

    def next_deadline(self) -> Instant | None:
        """Return the engine's next deadline; None if the engine has no work."""
        return self._engine.next_deadline()

    def handle_deadline(self, now: Instant) -> Sequence[IssuedCommand]:
        """Run one unit of the engine's work at `now`, and log the unit if it was slow."""
        if self._meter is not None:
            self._meter.begin_measurement()
        self._take_cycles()  # Drop the steps of cycles that `handle` continued for an extender.
        if self._tracer is not None:
            self._tracer.begin_unit()
        began = self._stopwatch()
        issued = self._engine.handle_deadline(now)
        taken = self._stopwatch() - began
        scheduled, steps = self._take_cycles()
        if taken >= SLOW_NS:
            listed = [f'"{name}" {_whole_ms(time)}' for name, time in steps.items()]
            parts = (", ".join(listed), _text(self._plugin_steps()))
            detail = "; ".join(part for part in parts if part)
            unit = _unit(taken, scheduled or _pods(issued), is_cycle=bool(scheduled))
            self._log(f"slow cycle: {unit}{': ' if detail else ''}{detail}")
        if self._tracer is not None:
            self._tracer.end_unit(taken, self._plugin_steps(), steps)
        return issued

    def _take_cycles(self) -> tuple[list[ObjectRef], dict[str, DurationNs]]:
        """Return (pods, {step: time that it took}) of the scheduling cycles since the last call."""
        if self._meter is None:
            return [], {}
        return self._meter.take_pods(), self._meter.take_steps()

    def _plugin_steps(self) -> list[PluginStep]:
        """Return the plugin steps of the current unit, longest first, at most STEPS_MAX."""
        times = [] if self._meter is None else self._meter.plugin_times()
        steps = [PluginStep(one.taken, one.calls, one.plugin, one.point) for one in times]
        steps.sort(reverse=True)
        return steps[:STEPS_MAX]


def _unit(taken: DurationNs, pods: Sequence[ObjectRef], *, is_cycle: bool) -> str:
    """Return a text with the duration `taken` and the pods of a unit of work.

    If `is_cycle` is True and the unit has one pod, the text has the format of upstream's trace.
    """
    if len(pods) == 1 and is_cycle:
        fields = f"namespace:{pods[0].namespace},name:{pods[0].name}"
        return f'"{SCHEDULING}" {fields} (total time: {_whole_ms(taken)})'
    keys = [pod.key for pod in pods]
    more = f" and {len(keys) - _PODS_MAX} more" if len(keys) > _PODS_MAX else ""
    named = f" for pod {', '.join(keys[:_PODS_MAX])}{more}" if keys else ""
    return f"{_ms(taken)}{named}"


def _text(steps: Sequence[PluginStep]) -> str:
    """Return the steps of plugins as text; "" if there are none."""
    shown = [
        f"{_ms(one.taken)} {one.plugin}/{one.point} "
        f"({one.calls} {'call' if one.calls == 1 else 'calls'})"
        for one in steps
    ]
    return ", ".join(shown)


def _pods(issued: Sequence[IssuedCommand]) -> list[ObjectRef]:
    """Return the pods that a unit of work binds, patches or deletes; `issued` are its commands."""
    refs = (
        one.command.pod if isinstance(one.command, Bind) else getattr(one.command, "target", None)
        for one in issued
    )
    return list({ref.key: ref for ref in refs if ref is not None and ref.kind == "Pod"}.values())


def _whole_ms(duration: DurationNs) -> str:
    """Return `duration` in whole milliseconds, such as `152ms`, as upstream's traces do."""
    return f"{duration // NANOSECONDS_PER_MILLISECOND}ms"


def _ms(duration: DurationNs) -> str:
    return f"{duration / NANOSECONDS_PER_MILLISECOND:.0f} ms"
