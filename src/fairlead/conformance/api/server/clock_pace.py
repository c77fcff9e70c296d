"""Pace: advances the cluster's clock while commands run one after the other.

The computation of a command takes no simulated time, so results do not depend on the speed of the
machine. The clock advances

    before a command    by a pause, in which the changes of the previous command take effect
    at each request     by 10 ms, so that later events have later times
    at the next poll    by the time that the command slept, rounded to seconds
    during a watch      in steps of 100 ms while the command waits for an event, but at most to 10 s
                        after the last request of the command

upstream: cli-runtime and kubectl wait by watching, or poll at most once a second
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.engine.core.instant import DurationNs, Instant, seconds

# The simulated duration of a request.
REQUEST_DURATION: Final[DurationNs] = seconds(0.01)
# Commands that do not start immediately start at a multiple of START_INTERVAL.
START_INTERVAL: Final[DurationNs] = seconds(0.5)
# The pause after a command that changed an object, and after every other command.
PAUSE_AFTER_CHANGE: Final[DurationNs] = seconds(2.3)
PAUSE_AFTER_READ: Final[DurationNs] = seconds(0.25)
# The pause before a command that starts immediately: the start-up time of a program.
STARTUP_TIME: Final[DurationNs] = seconds(0.05)
WAITING_STEP: Final[DurationNs] = seconds(0.1)
WAITING_MAX: Final[DurationNs] = seconds(10)
# Times on the machine's clock. If a command sends no request for at least WATCH_PAUSE_MIN, it waits
# for an event of a watch. If two of its requests are at least SLEEP_MIN apart, it slept. Shorter
# pauses are computation.
WATCH_PAUSE_MIN: Final[DurationNs] = seconds(0.05)
SLEEP_MIN: Final[DurationNs] = seconds(0.6)
_SECOND: Final[DurationNs] = seconds(1)


class Pace(Struct):
    """The simulated time of a cluster that replays recorded commands.

    The simulated time is `now`, and does not advance beyond `latest`. The argument `real_ns` of
    the methods is the time on the machine's clock, in ns.
    """

    now: Instant
    latest: Instant | None = None
    _requested_at: Instant | None = None
    _requested_real_ns: int = 0

    def begin(self, rest: DurationNs) -> None:
        """Advance `now` to the start of the next command; `rest` is the pause before this start.

        If `rest` exceeds STARTUP_TIME, the time of the start is rounded up to a multiple of
        START_INTERVAL. Therefore a small delay of one command does not shift all later commands.
        """
        self._requested_at = None
        start = self.now + rest
        if rest > STARTUP_TIME:
            start = -(-start // START_INTERVAL) * START_INTERVAL
        self.reach(start)

    def reach(self, instant: Instant) -> None:
        """Advance `now` to `instant`, or to `latest` if `latest` is earlier; never go back."""
        if self.latest is not None:
            instant = min(instant, self.latest)
        self.now = max(self.now, instant)

    def ask(self, real_ns: int) -> None:
        """Advance `now` to the next request of the command, sent at the real time `real_ns`."""
        if self._requested_at is not None:
            pause = real_ns - self._requested_real_ns
            slept = round(pause / _SECOND) * _SECOND if pause >= SLEEP_MIN else 0
            self.reach(self._requested_at + slept)
        self.reach(self.now + REQUEST_DURATION)
        self._requested_at, self._requested_real_ns = self.now, real_ns

    def wait(self, real_ns: int) -> None:
        """Advance `now` by at most WAITING_STEP if the replayed command waits for a watch event.

        The command counts as waiting if it sent its last request at least WATCH_PAUSE_MIN before
        `real_ns`.
        """
        if self._requested_at is None or real_ns - self._requested_real_ns < WATCH_PAUSE_MIN:
            return
        self.reach(min(self.now + WAITING_STEP, self._requested_at + WAITING_MAX))
