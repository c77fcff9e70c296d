"""ExponentialBackoff: the time for which a node group must not grow after a failure.

upstream: utils/backoff/exponential_backoff.go
"""

from __future__ import annotations

from msgspec import Struct

from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.core.instant import DurationNs, Instant


class _Failure(Struct, frozen=True):
    duration: DurationNs
    until: Instant
    last: Instant
    code: str = ""
    message: str = ""


class ExponentialBackoff:
    """The backoff of each node group.

    A successful scale-up does not end a backoff.
    """

    def __init__(self, options: AutoscalingOptions) -> None:
        self._initial = options.initial_node_group_backoff_duration
        self._maximum = options.max_node_group_backoff_duration
        self._reset = options.node_group_backoff_reset_timeout
        self._failures: dict[str, _Failure] = {}

    def back_off(self, group: str, now: Instant, code: str = "", message: str = "") -> Instant:
        """Record a failure of `group`; return the end of its backoff.

        A failure during a backoff starts the backoff again with the same duration. A failure after
        the end of a backoff starts a backoff of twice the duration, up to the maximum.
        """
        known = self._failures.get(group)
        duration = self._initial
        if known is not None:
            is_over = known.until < now
            duration = min(2 * known.duration, self._maximum) if is_over else known.duration
        self._failures[group] = _Failure(duration, now + duration, now, code, message)
        return now + duration

    def is_backed_off(self, group: str, now: Instant) -> bool:
        """Return True if the group must not grow at `now`."""
        known = self._failures.get(group)
        return known is not None and known.until >= now

    def error(self, group: str) -> tuple[str, str]:
        """Return (code, message) of the group's last failure; ("", "") if there is none."""
        known = self._failures.get(group)
        return ("", "") if known is None else (known.code, known.message)

    def remove_stale(self, now: Instant) -> None:
        """Forget the failures of each group whose last failure is older than the reset timeout."""
        self._failures = {
            group: failure
            for group, failure in self._failures.items()
            if failure.last + self._reset >= now
        }

    def ends(self) -> list[Instant]:
        """Return the times at which the recorded backoffs end or ended."""
        return [failure.until for failure in self._failures.values()]
