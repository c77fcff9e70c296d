"""SimulatedWorld: virtual time over a store in memory.

Three things make something happen: the engine's commands, the script (`at`), and commands that are
still in flight when requests take time. Each happens by itself; its net changes to the store are
reported next, and its outcome after them. So an engine that learns that a command succeeded knows
what it did.

Extenders are called for real, and no virtual time passes meanwhile. One that binds pods would do so
at an API server, which does not exist here; where it answers that it has, the world binds the pod.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fairlead.api.codec import decode
from fairlead.api.extender import BindingResult, encode
from fairlead.apiserver.admission.chain import SIMULATED_ADMISSION
from fairlead.apiserver.admission.quota.ledger import QuotaLedgers
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import StoredChange
from fairlead.engine.core.command import (
    Bind,
    CallExtender,
    Command,
    ExtenderVerb,
    Issued,
    PatchObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.stimulus import CommandFailed, ExtenderAnswered, ObjectsLoaded, Stimulus
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.worlds.driver import CommandSource, Driver
from fairlead.worlds.extender.caller import ExtenderCaller, NoExtenders, has_bound
from fairlead.worlds.extender.request import held_by, request_body
from fairlead.worlds.informer import net_changes, stimulus_of
from fairlead.worlds.perform import perform
from fairlead.worlds.simulation.command_log import command_line
from fairlead.worlds.simulation.event_list import EventList
from fairlead.worlds.simulation.seeded_ids import SeededIds

Act = Callable[[Store, Instant], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long requests take from being sent to being applied and answered."""

    bind: DurationNs = 0
    patch: DurationNs = 0

    def of(self, command: Command) -> DurationNs:
        """How long `command` takes."""
        match command:
            case Bind():
                return self.bind
            case PatchStatus() | PatchObject():
                return self.patch
            case _:
                return 0


class SimulatedWorld:
    """A store, a virtual clock and a script, with an engine that acts on them.

    `last_change` is when an object changed last. `events` holds what controllers recorded.
    `extenders` calls the scheduler's extenders; there are none unless it is set.
    """

    def __init__(
        self,
        engine: CommandSource,
        *,
        start: Instant,
        seed: int = 0,
        latency: Latency | None = None,
        events_max: int | None = None,
        command_log: Callable[[str], None] | None = None,
    ) -> None:
        """An empty world at `start`.

        `seed` settles the ids of new objects, `events_max` bounds `events` (None: all), and
        `command_log` is given the line of each command as it is given.
        """
        # No containers run, and dumps may lack images.
        self.store = Store(SeededIds(seed), admission=SIMULATED_ADMISSION)
        self.events = EventList(events_max)
        self.last_change = start
        self.extenders: ExtenderCaller = NoExtenders()
        self._quotas = QuotaLedgers(self.store.storage)
        self._driver = Driver(engine, self, now=start)
        self._latency = latency or Latency()
        self._command_log = command_log
        self._agenda: TimerQueue[Callable[[Instant], None]] = TimerQueue()
        self._due: deque[Callable[[Instant], None]] = deque()
        self._changes: list[StoredChange] = []
        self._untold: list[Stimulus] = []
        self.store.subscribe(self._changes.append)

    @property
    def now(self) -> Instant:
        """What time it is."""
        return self._driver.now

    def load(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Start with these objects, told as one stimulus. Raises ApiError that names the object."""
        loaded = self.store.load(manifests, self.now)
        self._untold.append(ObjectsLoaded(list(map(decode, loaded))))

    def at(self, due: Instant, act: Act) -> None:
        """Let `act` happen at `due`; acts of one instant happen in the order they were given.

        What `act` raises ends the run.
        """
        self._agenda.add(due, partial(act, self.store))

    def run(
        self,
        until: Instant,
        *,
        stop_when: Callable[[], bool] | None = None,
        on_progress: Callable[[Instant], None] | None = None,
    ) -> None:
        """Let everything due at or before `until` happen; see `Driver.run`."""
        self._driver.run(until, stop_when=stop_when, on_progress=on_progress)

    # --- World -----------------------------------------------------------------------------

    def perform(self, issued: Issued, now: Instant) -> Stimulus | None:
        """Apply a command, now or after its latency; `poll` returns its outcome."""
        command = issued.command
        if self._command_log is not None:
            self._command_log(command_line(command, now))
        if isinstance(command, RecordEvent):
            self.events.record(command, now)
        elif isinstance(command, CallExtender):
            self._untold.append(self._ask(command, now))
        elif latency := self._latency.of(command):
            self._agenda.add(now + latency, partial(self._apply, command))
        else:
            self._apply(command, now)
        return None

    def poll(self, now: Instant) -> list[Stimulus]:
        """What was not told yet; else what the next due act causes; else nothing."""
        while not self._untold and self._is_due(now):
            self._due.popleft()(now)
            self._tell_changes(now)
        untold, self._untold = self._untold, []
        return untold

    def next_event(self) -> Instant | None:
        """When the script goes on or a command arrives."""
        return self._agenda.next_due()

    def _is_due(self, now: Instant) -> bool:
        if not self._due:
            self._due.extend(self._agenda.pop_due(now))
        return bool(self._due)

    def _apply(self, command: Command, now: Instant) -> None:
        outcome = perform(self.store, command, now, quotas=self._quotas)
        self._tell_changes(now)
        self._untold.append(outcome)

    def _ask(self, call: CallExtender, now: Instant) -> Stimulus:
        """What an extender says; where it has bound the pod, that is told first."""
        answer = self.extenders.call(call, request_body(call, partial(held_by, self.store)))
        if call.verb is not ExtenderVerb.BIND or not has_bound(answer):
            return answer
        outcome = perform(self.store, Bind(call.pod, call.nodes[0]), now)
        self._tell_changes(now)
        if isinstance(outcome, CommandFailed):  # as the API server would have told the extender
            return ExtenderAnswered(call, 200, encode(BindingResult(outcome.message)))
        return answer

    def _tell_changes(self, now: Instant) -> None:
        """Turn what just changed into stimuli."""
        if self._changes:
            self.last_change = now
            self._untold.extend(map(stimulus_of, net_changes(self._changes)))
            self._changes.clear()
