"""Drive: a controller lives in a world.

    settle      tell the controller what happened, perform what it commands, until all is told
    then        let it do the one thing that is due now, and settle again
    then        let time pass until something is due, in the world or for the controller

So whatever happens has settled before the next thing happens: a line of a script, a pod's
start, the next scheduling cycle. At one instant the world comes first.

A world that never settles, or a controller that is never done, would stop time; the number of
steps at one instant is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from fairlead.engine.core.command import Command
from fairlead.engine.core.controller import Controller
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import Stimulus

# A hundred thousand pods may well arrive at one instant and cause some ten steps each.
STEPS_PER_INSTANT_MAX: Final = 5_000_000
STORY_LENGTH: Final = 20


class World(Protocol):
    """Performs commands and tells what happened."""

    def perform(self, command: Command, now: Instant) -> Stimulus | None:
        """Set out to do `command`; its outcome, or None when `poll` will tell it."""
        ...

    def poll(self, now: Instant) -> list[Stimulus]:
        """What has happened by `now` and was not told yet, in order.

        When all is told, the next thing that is due happens, one at a time; an empty list means
        that nothing is due any more.
        """
        ...

    def next_event(self) -> Instant | None:
        """When the world will have something to tell by itself, None when it will not."""
        ...


class LivelockError(RuntimeError):
    """Steps without end at one instant; `story` holds the last stimuli (None is a deadline)."""

    def __init__(self, now: Instant, steps: int, story: tuple[Stimulus | None, ...]) -> None:
        """`steps` were done at `now`, the last ones because of `story`."""
        super().__init__(f"time stands still at {now} ns: {steps} steps and no end")
        self.now = now
        self.steps = steps
        self.story = story


class Driver:
    """One controller in one world, and what time it is there."""

    def __init__(
        self,
        controller: Controller,
        world: World,
        *,
        now: Instant,
        steps_per_instant_max: int = STEPS_PER_INSTANT_MAX,
    ) -> None:
        """Nothing happens before `run`."""
        self.now = now
        self._controller = controller
        self._world = world
        self._stimuli: deque[Stimulus] = deque()
        self._commands: deque[Command] = deque()
        self._steps = 0
        self._steps_max = steps_per_instant_max
        self._story: deque[Stimulus | None] = deque(maxlen=STORY_LENGTH)

    def run(
        self,
        until: Instant,
        *,
        stop_when: Callable[[], bool] | None = None,
        pause_when: Callable[[], bool] | None = None,
        on_progress: Callable[[Instant], None] | None = None,
    ) -> None:
        """Let everything due at or before `until` happen; it is `until` then.

        `stop_when` is asked whenever all has settled and ends the run where it says yes;
        `pause_when` is asked in the midst of it, too. `on_progress` is told the time whenever all
        has settled. Raises LivelockError.
        """
        while True:
            if not self._settle(pause_when):
                return
            if on_progress is not None:
                on_progress(self.now)
            if stop_when is not None and stop_when():
                return
            due = self.next_due()
            if due is None or due > until:
                self.now = max(self.now, until)
                return
            if due > self.now:
                self.now, self._steps = due, 0
            else:
                self._step(None)
                self._do_what_is_due()

    def pass_time(self, until: Instant) -> None:
        """Let it be `until`, or when something is due if that is before.

        For a world that others change too: what they did by then was not done in the past.
        """
        due = self._next_due()
        then = until if due is None else min(due, until)
        if then > self.now:
            self.now, self._steps = then, 0

    def next_due(self) -> Instant | None:
        """When something is due next, in the world or for the controller; now, if left undone."""
        return self.now if self._commands or self._stimuli else self._next_due()

    @property
    def is_settled(self) -> bool:
        """Whether all is told and done that is due now."""
        return not self._is_busy()

    def _next_due(self) -> Instant | None:
        ours, theirs = self._controller.next_deadline(), self._world.next_event()
        if ours is None or theirs is None:
            return theirs if ours is None else ours
        return min(ours, theirs)

    def _settle(self, pause_when: Callable[[], bool] | None) -> bool:
        """Tell everything there is to tell; whether that is done."""
        while self._commands or self._stimuli or self._poll():
            if self._commands:
                self._perform(self._commands.popleft())
            else:
                stimulus = self._stimuli.popleft()
                self._step(stimulus)
                self._commands.extend(self._controller.handle(stimulus, self.now))
            if pause_when is not None and pause_when() and self._is_busy():
                return False
        return True

    def _is_busy(self) -> bool:
        return bool(self._commands or self._stimuli or self._poll())

    def _poll(self) -> bool:
        self._stimuli.extend(self._world.poll(self.now))
        return bool(self._stimuli)

    def _perform(self, command: Command) -> None:
        outcome = self._world.perform(command, self.now)
        if outcome is not None:
            self._stimuli.append(outcome)

    def _do_what_is_due(self) -> None:
        """One unit of the controller's work; what is due in the world, the next poll will tell."""
        deadline = self._controller.next_deadline()
        if deadline is not None and deadline <= self.now:
            self._commands.extend(self._controller.handle_deadline(self.now))

    def _step(self, cause: Stimulus | None) -> None:
        self._steps += 1
        self._story.append(cause)
        if self._steps > self._steps_max:
            raise LivelockError(self.now, self._steps, tuple(self._story))
