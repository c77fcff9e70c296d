"""The load of workloads: the amount of a resource that all pods of a workload use together.

A `LoadCurve` contains the load over time. The curve is linear between its points, and two points at
the same time are a step:

    points (0 s, 1000), (60 s, 1000), (60 s, 4000), (120 s, 2000)

The load is 1000 from 0 s to 60 s. At 60 s it jumps to 4000, then falls to 2000 until 120 s, and
then stays at 2000 forever.

If a period is set, the curve between 0 and the period repeats. Amounts are thousandths of a core
for cpu and bytes for memory.

On a live cluster, the annotation `fairlead.dev/load: cpu=4,memory=8Gi` of a workload sets a
constant load.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.text.text_cache import text_cache
from fairlead.engine.core.instant import DurationNs, Instant

LOAD: Final = "fairlead.dev/load"
CPU: Final = "cpu"
MEMORY: Final = "memory"
RESOURCES: Final = (CPU, MEMORY)

ScaleTargetKey = tuple[str, str, str]  # kind, namespace, name


@dataclass(frozen=True, slots=True)
class LoadCurve:
    """The use of one resource over time.

    `points` are (nanoseconds since `start`, amount), in chronological order. Before the first
    point, the amount of the first point applies. After the last point, the amount of the last point
    applies. If `period` is set, all points are between 0 and the period, and the curve repeats.
    Before `start`, the amount at `start` applies.
    """

    points: tuple[tuple[DurationNs, int], ...]
    start: Instant = 0
    period: DurationNs | None = None
    _times: tuple[DurationNs, ...] = field(init=False, repr=False, compare=False)
    _is_constant: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Store the times of the points for bisection, and whether all amounts are equal."""
        object.__setattr__(self, "_times", tuple(time for time, _ in self.points))
        amounts = {amount for _, amount in self.points}
        object.__setattr__(self, "_is_constant", len(amounts) == 1)

    def at(self, now: Instant) -> int:
        """Return the amount at `now`."""
        elapsed = max(now - self.start, 0)
        if self.period is not None:
            elapsed %= self.period
        after = bisect_right(self._times, elapsed)
        if after == 0:
            return self.points[0][1]
        time, amount = self.points[after - 1]
        if after == len(self.points):
            return amount
        next_time, next_amount = self.points[after]
        return amount + (next_amount - amount) * (elapsed - time) // (next_time - time)

    def constant_until(self, now: Instant) -> Instant | None:
        """Return an instant until which the amount stays constant; None if it never changes again.

        The amount may also stay constant after the returned instant. Returns `now` itself if the
        amount is rising or falling at `now`.
        """
        if self._is_constant:
            return None
        if now < self.start:
            return self.start
        elapsed, begin = now - self.start, self.start
        if self.period is not None:
            elapsed %= self.period
            begin = now - elapsed
        after = bisect_right(self._times, elapsed)
        if after == len(self.points):
            return None if self.period is None else begin + self.period
        if after and self.points[after - 1][1] != self.points[after][1]:
            return now
        return begin + self._times[after]

    def linear_until(self, now: Instant) -> Instant | None:
        """Return the end of the segment of the curve that contains `now`, or None if it has no end.

        Within a segment, up to but not including its end, the amount only rises, only falls or
        stays constant.
        """
        if now < self.start:
            return self.start
        elapsed, begin = now - self.start, self.start
        if self.period is not None:
            elapsed %= self.period
            begin = now - elapsed
        after = bisect_right(self._times, elapsed)
        if after == len(self.points):
            return None if self.period is None else begin + self.period
        return begin + self._times[after]

    @property
    def is_constant(self) -> bool:
        """Whether the amount never changes."""
        return self._is_constant

    def delayed(self, delay: DurationNs) -> LoadCurve:
        """Return the same curve, but with a start that is `delay` nanoseconds later."""
        return replace(self, start=self.start + delay)

    def held(self) -> LoadCurve:
        """Return a constant curve: the amount at `start`."""
        return LoadCurve(((0, self.at(self.start)),), self.start)


WorkloadLoad = Mapping[str, LoadCurve]  # by resource: cpu, memory
WorkloadLoads = Mapping[ScaleTargetKey, WorkloadLoad]
NO_LOAD: Final[WorkloadLoad] = {}


def vary(loads: WorkloadLoads) -> bool:
    """Return whether any of `loads` changes over time."""
    return any(not curve.is_constant for load in loads.values() for curve in load.values())


def beginning(loads: WorkloadLoads, delay: DurationNs | None) -> WorkloadLoads:
    """Return `loads` with each curve delayed by `delay` nanoseconds.

    If `delay` is None, each curve becomes constant: it keeps the amount at its `start`.
    """
    return {
        key: {
            name: curve.held() if delay is None else curve.delayed(delay)
            for name, curve in load.items()
        }
        for key, load in loads.items()
    }


def annotated_load(annotations: Mapping[str, str]) -> WorkloadLoad:
    """Return the load in the annotation `fairlead.dev/load` of a workload.

    The result maps each resource to a constant load. Returns {} if the annotation is missing or
    invalid.
    """
    text = annotations.get(LOAD)
    return NO_LOAD if text is None else _parsed(text)


@text_cache(maxsize=1 << 12)
def _parsed(text: str) -> WorkloadLoad:
    try:
        return {name: LoadCurve(((0, amount),)) for name, amount in parse_load(text).items()}
    except ValueError:
        return NO_LOAD


def parse_load(text: str) -> dict[str, int]:
    """Return the amounts in a text such as `cpu=4,memory=8Gi`, by resource.

    Cpu is in thousandths of a core, and memory is in bytes. Raises ValueError if the text is
    invalid.
    """
    load = {}
    for part in text.split(","):
        name, _, amount = part.strip().partition("=")
        if name not in RESOURCES:
            raise ValueError(f"{part.strip()!r} is not of the form {'|'.join(RESOURCES)}=amount")
        load[name] = parse_amount(name, amount)
    return load


def parse_amount(resource: str, text: str) -> int:
    """Return the amount of `resource` in `text`: cpu in thousandths of a core, memory in bytes.

    Raises ValueError if `text` is not a quantity or is negative.
    """
    amount = milli_value(text) if resource == CPU else whole_value(text)
    if amount < 0:
        raise ValueError(f"{text!r} is negative")
    return amount
