"""RefusalLog: when an autoscaler added no node for a pending pod, and why."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.engine.core.instant import DurationNs, Instant


class NodeRefusal(Struct, frozen=True):
    """A reason why an autoscaler added no node for a pod, and how long the reason applied."""

    why: str
    lasted: DurationNs


class _Period(Struct):
    """A time in which one reason applied; `until` is None while the reason applies."""

    why: str
    since: Instant
    until: Instant | None = None


class RefusalLog:
    """The periods in which an autoscaler added no node for a pending pod, with the reasons.

    The log is reported to users; decisions do not read it.
    """

    def __init__(self) -> None:
        self._open: dict[str, _Period] = {}
        self._periods: dict[str, list[_Period]] = {}

    def update(self, reasons: Mapping[str, str], now: Instant) -> None:
        """Record that from `now` on, exactly the pods in `reasons` get no node, for these reasons.

        The keys of `reasons` are the keys of the pods.
        """
        for pod, period in list(self._open.items()):
            if reasons.get(pod) != period.why:
                period.until = now
                del self._open[pod]
        for pod, why in reasons.items():
            if pod not in self._open:
                self._open[pod] = _Period(why, now)
                self._periods.setdefault(pod, []).append(self._open[pod])

    def longest(self, pod: str, since: Instant, until: Instant) -> NodeRefusal | None:
        """Return the reason that applied longest to `pod` between `since` and `until`.

        Returns None if no reason applied in this time.
        """
        times: dict[str, DurationNs] = {}
        for one in self._periods.get(pod, ()):
            end = until if one.until is None else min(one.until, until)
            times[one.why] = times.get(one.why, 0) + max(end - max(one.since, since), 0)
        why = max(times, key=times.__getitem__, default="")
        return NodeRefusal(why, times[why]) if times.get(why) else None
