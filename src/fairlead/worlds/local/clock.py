"""LocalClock: the clock of a local cluster, which can run faster, stop, or jump ahead."""

from __future__ import annotations

import time
from collections.abc import Callable

from fairlead.engine.core.instant import DurationNs, Instant


class LocalClock:
    """A clock that starts at `start` (ns since 1970) and runs at `speed` times real time."""

    def __init__(
        self,
        start: Instant | None = None,
        *,
        speed: float = 1.0,
        paused: bool = False,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Start the clock at `start`; None means the machine's current time.

        `speed` is in simulated seconds per real second. `monotonic` returns the real time in ns.
        """
        self._monotonic = monotonic
        # The only place where a local world reads the machine's clock.
        self._base = time.time_ns() if start is None else start  # noqa: TID251
        self._since = monotonic()
        self._speed = speed
        self._paused = paused
        self._limit: Instant | None = None

    @property
    def speed(self) -> float:
        """Simulated seconds per real second while the clock is not paused."""
        return self._speed

    @property
    def is_paused(self) -> bool:
        """Whether the clock is paused; a paused clock changes only by jumps."""
        return self._paused

    def now(self) -> Instant:
        """Return the current time of the cluster, in ns since 1970."""
        if self._paused:
            return self._base
        now = self._base + int((self._monotonic() - self._since) * self._speed)
        return now if self._limit is None else max(self._base, min(now, self._limit))

    def hold(self, limit: Instant | None) -> None:
        """Stop the clock when it shows `limit`, or immediately if it has passed `limit`.

        A later call of this method replaces the limit; None removes the limit. `jump_to` may pass
        the limit.
        """
        if limit is not None or self._limit is not None:
            self._base, self._since = self.now(), self._monotonic()
            self._limit = limit

    def jump_to(self, instant: Instant) -> None:
        """Set the time to `instant`, unless the clock has already passed it."""
        now = self.now()
        self._base, self._since = max(now, instant), self._monotonic()

    def set_to(self, instant: Instant) -> None:
        """Set the time to `instant`, even if it is in the past.

        Call this method only before the cluster starts.
        """
        self._base, self._since = instant, self._monotonic()

    def control(self, *, speed: float | None = None, paused: bool | None = None) -> None:
        """Change the speed of the clock, or pause or resume it; None leaves a setting unchanged."""
        self._base, self._since = self.now(), self._monotonic()
        self._speed = self._speed if speed is None else speed
        self._paused = self._paused if paused is None else paused

    def seconds_until(self, instant: Instant) -> float | None:
        """Return the real seconds until the clock shows `instant`.

        Returns None while the clock is paused.
        """
        if self._paused:
            return None
        left: DurationNs = instant - self.now()
        return max(0.0, left / 1e9 / self._speed)
