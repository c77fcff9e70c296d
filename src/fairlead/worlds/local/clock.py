"""LocalClock: the time in a local world, which may run fast, stand still or jump ahead."""

from __future__ import annotations

import time
from collections.abc import Callable

from fairlead.engine.core.instant import DurationNs, Instant


class LocalClock:
    """Runs `speed` times as fast as the machine's clock, from `start` (ns since 1970) on."""

    def __init__(
        self,
        start: Instant | None = None,
        *,
        speed: float = 1.0,
        paused: bool = False,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`start` None is now."""
        self._monotonic = monotonic
        # The one place where a local world learns what time it is.
        self._base = time.time_ns() if start is None else start  # noqa: TID251
        self._since = monotonic()
        self._speed = speed
        self._paused = paused

    @property
    def speed(self) -> float:
        """Seconds here per second outside, while it is not paused."""
        return self._speed

    @property
    def is_paused(self) -> bool:
        """Whether time stands still but for jumps."""
        return self._paused

    def now(self) -> Instant:
        """What time it is."""
        if self._paused:
            return self._base
        return self._base + int((self._monotonic() - self._since) * self._speed)

    def jump_to(self, instant: Instant) -> None:
        """Let it be `instant`, unless that is past."""
        now = self.now()
        self._base, self._since = max(now, instant), self._monotonic()

    def steer(self, *, speed: float | None = None, paused: bool | None = None) -> None:
        """Go on from now at another speed, or not at all."""
        self._base, self._since = self.now(), self._monotonic()
        self._speed = self._speed if speed is None else speed
        self._paused = self._paused if paused is None else paused

    def seconds_until(self, instant: Instant) -> float | None:
        """How long it takes outside until it is `instant` here; None while time stands still."""
        if self._paused:
            return None
        left: DurationNs = instant - self.now()
        return max(0.0, left / 1e9 / self._speed)
