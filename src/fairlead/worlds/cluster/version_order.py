"""VersionOrder: passes object changes to an engine in the order of their resource versions.

    stimulus ──▶ waits for WAIT ──▶ engine, lowest resource version first

Every resource has a watch of its own, so a change of a claim can arrive after a later change of the
pod that uses the claim. The resource versions of most API servers are revisions of one etcd, so
they order the changes of all resources. The changes of one kind are always passed in the order of
their arrival. If a resource version is not a number, the change is passed after the changes that
arrived before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Final, Protocol

from fairlead.client.cache.reflector import version_number
from fairlead.engine.core.command import IssuedCommand
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, Stimulus
from fairlead.engine.state.cluster import Cluster
from fairlead.worlds.driver import CommandSource

WAIT: Final[DurationNs] = seconds(0.1)
_Change = ObjectChanged | ObjectDeleted


class _Engine(CommandSource, Protocol):
    cluster: Cluster


class VersionOrder:
    """A `CommandSource` that delays object changes by WAIT to sort them by resource version."""

    def __init__(self, engine: _Engine) -> None:
        """`engine` receives object changes in order, and any other stimulus immediately."""
        self.cluster = engine.cluster
        self._engine = engine
        self._number = count()
        self._waiting: list[tuple[int, int, _Change]] = []  # a heap: (version, number, change)
        self._arrived: deque[tuple[Instant, int]] = deque()  # (time at which WAIT ends, version)
        self._last: dict[type, int] = {}  # the version of the last change of each kind
        self._highest = 0
        # (time, version): all changes up to this version may be passed on, because WAIT has ended
        # for the change with this version.
        self._released: tuple[Instant, int] = (0, -1)

    def handle(self, stimulus: Stimulus, now: Instant) -> Sequence[IssuedCommand]:
        """Queue an object change and return (); pass any other stimulus to the engine.

        For a stimulus that is passed to the engine, returns the engine's commands.
        """
        if not isinstance(stimulus, ObjectChanged | ObjectDeleted):
            return self._engine.handle(stimulus, now)
        version = self._version_of(stimulus)
        heappush(self._waiting, (version, next(self._number), stimulus))
        self._arrived.append((now + WAIT, version))
        return ()

    def next_deadline(self) -> Instant | None:
        """Return the time at which the next change may be passed on; None if no change waits."""
        if not self._waiting:
            return None
        due, version = self._released
        return due if self._waiting[0][0] <= version else self._arrived[0][0]

    def handle_deadline(self, now: Instant) -> Sequence[IssuedCommand]:
        """Pass the waiting change with the lowest resource version to the engine, if it is due.

        The change is due if WAIT has ended for this change, or for a change with a higher version.
        Returns the commands of the engine; () if no change is due.
        """
        while self._arrived and self._arrived[0][0] <= now:
            due, version = self._arrived.popleft()
            self._released = due, max(version, self._released[1])
        if self._waiting and self._waiting[0][0] <= self._released[1]:
            return self._engine.handle(heappop(self._waiting)[2], now)
        return ()

    def flush(self, now: Instant) -> None:
        """Pass all waiting changes to the engine, and drop the commands that the engine returns.

        Call this method when no more changes will arrive.
        """
        while self._waiting:
            self._engine.handle(heappop(self._waiting)[2], now)

    def _version_of(self, change: _Change) -> int:
        """Return the version of `change`, but at least the version of the last change of its kind.

        `change` can have a lower version than the previous change if it deletes an object that is
        missing from a new list. Such an object still has the version of its last modification.
        """
        text, kind = change.object.metadata.resource_version, type(change.object)
        number = version_number(text)
        version = self._highest if number is None else number
        version = max(version, self._last.get(kind, 0))
        self._last[kind] = version
        self._highest = max(self._highest, version)
        return version
