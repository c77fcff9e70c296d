"""Driver: runs an engine in a world.

    1. settle      pass each stimulus to the engine and perform each command, until none are left
    2. work        do one unit of work that is due now, such as a scheduling cycle; settle again
    3. wait        let time pass until the world or the engine has something due

The consequences of one event (a script entry, the start of a pod, a scheduling cycle) settle before
the next event happens. Among events of the same time, the world's events come before the engine's.

The number of steps at one instant is limited. Without this limit, time would never advance if a
world never settled, or if an engine always had work due.

A run can be paused, so that a server can answer requests. During the pause, work of several
controllers may become due, while a long list of commands of one controller is unfinished.
Therefore, before a paused run continues, all waiting stimuli are passed to the engine, and each
controller does one unit of its due work. Then the queued commands are reordered: one command of
each controller in turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from fairlead.engine.core.command import IssuedCommand
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.issuer import Issuer
from fairlead.engine.core.stimulus import Stimulus

# 100,000 pods may arrive at one instant and cause some ten steps each.
STEPS_PER_INSTANT_MAX: Final = 5_000_000
HISTORY_LENGTH: Final = 20


class CommandSource(Protocol):
    """Returns commands in response to stimuli and deadlines, as an Engine does."""

    def handle(self, stimulus: Stimulus, now: Instant) -> Sequence[IssuedCommand]:
        """Return the commands that the engine issues in response to `stimulus`."""
        ...

    def next_deadline(self) -> Instant | None:
        """Return the next time at which `handle_deadline` has work.

        Returns None if `handle_deadline` has no work until the next stimulus.
        """
        ...

    def handle_deadline(self, now: Instant) -> Sequence[IssuedCommand]:
        """Do one unit of work that is due at `now`; return the resulting commands."""
        ...


class World(Protocol):
    """Performs the engine's commands, and reports changes and outcomes to the engine as stimuli."""

    def perform(self, issued: IssuedCommand, now: Instant) -> Stimulus | None:
        """Perform a command; return its outcome, or None if `poll` will return it later."""
        ...

    def poll(self, now: Instant) -> list[Stimulus]:
        """Return the stimuli since the last call, in the order in which they occurred.

        If there are no stimuli, perform due events, one after another, until an event causes a
        stimulus. An empty list means that no event is due.
        """
        ...

    def next_event(self) -> Instant | None:
        """Return the due time of the world's next event; None if there is none."""
        ...


class LivelockError(RuntimeError):
    """Raised after too many steps at one instant.

    `history` contains the causes of the last steps: a stimulus, or None for a deadline.
    """

    def __init__(self, now: Instant, steps: int, history: tuple[Stimulus | None, ...]) -> None:
        super().__init__(f"the time did not advance in {steps} steps at {now} ns")
        self.now = now
        self.steps = steps
        self.history = history


class Driver:
    """Runs one engine in one world, and keeps the world's current time."""

    def __init__(
        self,
        engine: CommandSource,
        world: World,
        *,
        now: Instant,
        steps_per_instant_max: int = STEPS_PER_INSTANT_MAX,
        handle_overdue: Callable[[Instant], Sequence[IssuedCommand]] | None = None,
    ) -> None:
        """Connect `engine` and `world`, and set the current time to `now`.

        When a paused run continues at a later time, the driver first calls `handle_overdue`, which
        lets each controller do one unit of its due work. If `handle_overdue` is None, the driver
        continues with the queued stimuli and commands.
        """
        self.now = now
        self._engine = engine
        self._world = world
        self._stimuli: deque[Stimulus] = deque()
        self._commands: deque[IssuedCommand] = deque()
        self._handle_overdue = handle_overdue
        self._paused_at: Instant | None = None
        self._steps = 0
        self._steps_max = steps_per_instant_max
        # Only the last steps before the limit are evidence; recording each would cost time.
        self._recorded_from = steps_per_instant_max - HISTORY_LENGTH
        self._history: deque[Stimulus | None] = deque(maxlen=HISTORY_LENGTH)

    def run(
        self,
        until: Instant,
        *,
        stop_when: Callable[[], bool] | None = None,
        pause_when: Callable[[], bool] | None = None,
        on_progress: Callable[[Instant], None] | None = None,
    ) -> None:
        """Perform everything that is due at or before `until`, then set the time to `until`.

        The world and the engine have settled when no stimulus and no command is left. The run ends
        early in two cases: `stop_when` returns True when both have settled, or `pause_when` returns
        True between two steps. `on_progress` receives the time whenever both have settled. Raises
        LivelockError.
        """
        if self._paused_at is not None and self._paused_at < self.now:
            self._interleave_controllers()
        self._paused_at = None
        while True:
            if not self._settle(pause_when):
                self._paused_at = self.now
                return
            if on_progress is not None:
                on_progress(self.now)
            if stop_when is not None and stop_when():
                return
            deadline, event = self._engine.next_deadline(), self._world.next_event()
            due = _earlier(deadline, event)
            if due is None or due > until:
                self.now = max(self.now, until)
                return
            if due > self.now:
                self.now, self._steps = due, 0
                continue
            # One unit of due engine work; the next poll handles the world's due events.
            self._step(None)
            if deadline is not None and deadline <= self.now:
                self._commands.extend(self._engine.handle_deadline(self.now))

    def pass_time(self, until: Instant, *, busy_max: DurationNs = 0) -> None:
        """Advance the time to `until`, or to the next due time if that is earlier.

        Call this method before `run` if clients also change the world. Without this call, `run`
        would handle the clients' changes at the end time of the previous run.

        If work is already due, the time advances by at most `busy_max` ns. Without this advance,
        work that is due slightly later would wait until all current work is done. This advance does
        not reset the count of steps at one instant, so that endless work is still detected.
        """
        due = self.next_due()
        if due is not None and due <= self.now:
            self.now = max(self.now, min(until, self.now + busy_max))
            return
        then = until if due is None else min(until, due)
        if then > self.now:
            self.now, self._steps = then, 0

    def next_due(self) -> Instant | None:
        """Return the next time at which the world or the engine has work due, or None.

        If a pause interrupted work, the result is the current time.
        """
        if self._commands or self._stimuli:
            return self.now
        return _earlier(self._engine.next_deadline(), self._world.next_event())

    @property
    def is_settled(self) -> bool:
        """Whether all stimuli are handled and all commands are performed."""
        return not self._is_busy()

    def _settle(self, pause_when: Callable[[], bool] | None) -> bool:
        """Handle all stimuli and perform all commands, then return True.

        If `pause_when` returns True while work is left, stop early and return False.
        """
        commands, stimuli = self._commands, self._stimuli
        handle, perform, poll = self._engine.handle, self._world.perform, self._world.poll
        now, recorded_from = self.now, self._recorded_from
        while True:
            if commands:
                outcome = perform(commands.popleft(), now)
                if outcome is not None:
                    stimuli.append(outcome)
            elif stimuli:
                stimulus = stimuli.popleft()
                self._steps = steps = self._steps + 1
                if steps > recorded_from:
                    self._record(stimulus)
                issued = handle(stimulus, now)
                if issued:
                    commands.extend(issued)
            else:
                arrived = poll(now)
                if not arrived:
                    return True
                stimuli.extend(arrived)
                continue
            if pause_when is not None and pause_when() and self._is_busy():
                return False

    def _interleave_controllers(self) -> None:
        """Handle all stimuli; then let each controller do one unit of due work.

        The resulting commands, and the commands that were already queued, are queued in a new
        order: one command of each controller in turn. Does nothing if the driver does not
        interleave controllers.
        """
        if self._handle_overdue is None:
            return
        while self._stimuli or self._poll():
            stimulus = self._stimuli.popleft()
            self._step(stimulus)
            self._commands.extend(self._engine.handle(stimulus, self.now))
        self._step(None)
        self._commands.extend(self._handle_overdue(self.now))
        by_issuer: dict[Issuer, deque[IssuedCommand]] = {}
        for issued in self._commands:
            by_issuer.setdefault(issued.issuer, deque()).append(issued)
        self._commands.clear()
        while by_issuer:
            for issuer in list(by_issuer):
                self._commands.append(by_issuer[issuer].popleft())
                if not by_issuer[issuer]:
                    del by_issuer[issuer]

    def _is_busy(self) -> bool:
        return bool(self._commands or self._stimuli or self._poll())

    def _poll(self) -> bool:
        self._stimuli.extend(self._world.poll(self.now))
        return bool(self._stimuli)

    def _step(self, cause: Stimulus | None) -> None:
        self._steps += 1
        if self._steps > self._recorded_from:
            self._record(cause)

    def _record(self, cause: Stimulus | None) -> None:
        """Add `cause` to the history. Raises LivelockError after too many steps at one instant."""
        self._history.append(cause)
        if self._steps > self._steps_max:
            raise LivelockError(self.now, self._steps, tuple(self._history))


def _earlier(one: Instant | None, other: Instant | None) -> Instant | None:
    """Return the earlier of two instants; None counts as later than every instant."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
