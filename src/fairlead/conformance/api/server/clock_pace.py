"""Pace: how time passes in a cluster while one command after the other asks something of it.

A command's own work takes no time here, however slow the machine is, so that what it finds does
not depend on that. Time passes when

    it asks           a moment, so that what follows is later
    it comes back     as many seconds as it has slept, for it polls
    it watches        quickly, for it waits for something to happen
    another begins    until what was changed has come to rest

upstream: cli-runtime and kubectl wait by watching, or poll once a second or more rarely
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.engine.core.instant import DurationNs, Instant, seconds

ASKING: Final[DurationNs] = seconds(0.01)
BEAT: Final[DurationNs] = seconds(0.5)
# After commands that changed something, and after others.
CHANGED: Final[DurationNs] = seconds(2.3)
LOOKED: Final[DurationNs] = seconds(0.25)
# How long a program needs to start.
AT_ONCE: Final[DurationNs] = seconds(0.05)
WAITING_STEP: Final[DurationNs] = seconds(0.1)
WAITING_MAX: Final[DurationNs] = seconds(10)
# Of the machine's time: shorter pauses are work, longer ones a wait for an answer or a sleep.
QUIET: Final[DurationNs] = seconds(0.05)
SLEEP_MIN: Final[DurationNs] = seconds(0.6)
_SECOND: Final[DurationNs] = seconds(1)


@dataclass(slots=True)
class Pace:
    """`now` is the cluster's time; what is given is the machine's, in ns of any epoch."""

    now: Instant
    _asked_at: Instant | None = None
    _asked_machine: int = 0

    def begin(self, rest: DurationNs) -> None:
        """Another command begins, after a rest.

        But for the shortest one each begins on a full beat: that one took a little longer does not
        shift all others.
        """
        self._asked_at = None
        self.now += rest
        if rest > AT_ONCE:
            self.now = -(-self.now // BEAT) * BEAT

    def reach(self, instant: Instant) -> None:
        """It is so late, unless it is later already."""
        self.now = max(self.now, instant)

    def ask(self, machine: int) -> None:
        """The command asks something."""
        if self._asked_at is not None:
            pause = machine - self._asked_machine
            slept = round(pause / _SECOND) * _SECOND if pause >= SLEEP_MIN else 0
            self.now = max(self.now, self._asked_at + slept)
        self.now += ASKING
        self._asked_at, self._asked_machine = self.now, machine

    def wait(self, machine: int) -> None:
        """The command watches."""
        if self._asked_at is None or machine - self._asked_machine < QUIET:
            return
        self.now = max(self.now, min(self.now + WAITING_STEP, self._asked_at + WAITING_MAX))
