"""NodeWorld: the scripted cluster of recorded node timelines, in virtual time, with a write log.

Requests of the controllers follow the store's rules and take no time. The script and the simulated
kubelets write directly, as in the recorder. The changes that a controller's request makes are
logged in the recorder's format, with the name of the controller (module `write_log`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from fairlead.api.codec import decode
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.id_source import IdSource
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.conformance.nodelifecycle.write_log import EPOCH, NodeWriteLog
from fairlead.engine.core.command import IssuedCommand
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded, Stimulus
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.worlds.driver import CommandSource, Driver
from fairlead.worlds.perform import perform

Act = Callable[[Instant], None]

START_MS = -50  # The time when the controllers receive the initial objects.


def instant(t_ms: int) -> Instant:
    """Return the instant `t_ms` ms after the first monitor pass, which is the recorder's time 0."""
    return EPOCH + t_ms * NANOSECONDS_PER_MILLISECOND


def to_ms(now: Instant) -> int:
    """Return `now` as the recorder's time: ms since the first monitor pass, rounded down."""
    return (now - EPOCH) // NANOSECONDS_PER_MILLISECOND


class _NoIds(IdSource):
    """An id source that derives uids from names and does not generate names."""

    def new_uid(self, kind: Kind, namespace: str, name: str) -> str:
        """Return a uid made of `namespace` and `name`."""
        return f"uid-{namespace}-{name}"

    def new_suffix(self) -> str:
        """Raise NotImplementedError, because no recorded object has a generated name."""
        raise NotImplementedError


class NodeWorld:
    """The scripted cluster; `run` advances it, and `log` contains the writes of the controllers.

    First create the initial objects, then call `begin`, then call `run`.
    """

    def __init__(self, engine: CommandSource) -> None:
        """Start without objects."""
        self.store = Store(_NoIds(), admission=())
        self.log = NodeWriteLog()
        self._timers: TimerQueue[Act] = TimerQueue()
        self._due: deque[Act] = deque()
        self._pending: list[Stimulus] = []
        self._driver = Driver(engine, self, now=instant(START_MS))
        self.store.subscribe(self._observe)

    @property
    def now(self) -> Instant:
        """The current virtual time."""
        return self._driver.now

    def at(self, t_ms: int, act: Act) -> None:
        """Schedule `act` at the recorder's time `t_ms`; calls with equal times keep their order."""
        self._timers.add(instant(t_ms), act)

    def begin(self) -> None:
        """Deliver all existing objects to the controllers, as one stimulus."""
        storage = self.store.storage
        objects = [decode(obj) for kind in storage.kinds() for obj in storage.items(kind)]
        self._pending = [ObjectsLoaded(objects)]

    def run(self, until_ms: int) -> None:
        """Run everything that is due up to and including `until_ms`."""
        self._driver.run(instant(until_ms))

    # --- World -----------------------------------------------------------------------------

    def perform(self, issued: IssuedCommand, now: Instant) -> Stimulus | None:
        """Apply a command and return None; `poll` returns its outcome."""
        self.log.begin(issued.command, issued.issuer.account, now, self.store)
        self._pending.append(perform(self.store, issued.command, now))
        self.log.end()
        return None

    def poll(self, now: Instant) -> list[Stimulus]:
        """Return the stimuli that have not been returned yet.

        If there are none, first perform the actions that are due, until one causes a stimulus.
        """
        while not self._pending and self._is_due(now):
            self._due.popleft()(now)
        pending, self._pending = self._pending, []
        return pending

    def next_event(self) -> Instant | None:
        """Return the time of the script's next action; None if there is none."""
        return self._timers.next_due()

    def _is_due(self, now: Instant) -> bool:
        if not self._due:
            self._due.extend(self._timers.pop_due(now))
        return bool(self._due)

    def _observe(self, change: StoredChange) -> None:
        self.log.observe(change)
        view = decode(change.object)
        is_gone = change.type is ChangeType.DELETED
        self._pending.append(ObjectDeleted(view) if is_gone else ObjectChanged(view))
