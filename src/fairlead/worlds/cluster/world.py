"""ClusterWorld: a real cluster as the engine sees it.

    updates of watches ──▶ observe ──▶ poll ──▶ engine ──▶ perform ──▶ `submit` ──▶ requests
                                        ▲                                             │
                                        └── outcomes ◀── held until seen ◀── finish ◀─┘

The first stimulus contains all objects. As in every world, the engine receives the effect of a
command before the outcome. Therefore an outcome is held back until a watch has shown the effect, or
until HOLD_MAX has passed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from fairlead.api.objects import ApiObject, Pod
from fairlead.client.cache.reflector import ObjectUpdate, Reflector, is_newer
from fairlead.engine.core.command import CallExtender, IssuedCommand, ObjectRef, RecordEvent
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded, Stimulus
from fairlead.worlds.cluster.perform import Performed, WrittenEffect
from fairlead.worlds.cluster.resource import resources_by_kind

HOLD_MAX: Final[DurationNs] = seconds(5)


class Outbox(Protocol):
    """Sends the engine's commands; their outcomes are passed to `ClusterWorld.finish`."""

    def submit(self, issued: IssuedCommand, now: Instant) -> None:
        """Perform a command; its outcome is passed to `ClusterWorld.finish`."""
        ...

    def record(self, event: RecordEvent, now: Instant) -> None:
        """Write an event, or drop it if too many events are waiting."""
        ...

    def call_extender(self, call: CallExtender) -> None:
        """Call an extender; its response is passed to `ClusterWorld.enqueue` as a stimulus."""
        ...


class ClusterWorld:
    """Passes the reflectors' updates to the engine, and the engine's commands to `outbox`."""

    def __init__(self, reflectors: Sequence[Reflector], outbox: Outbox) -> None:
        """`reflectors` are the reflectors of all resources that the engine reads."""
        self._reflectors = tuple(reflectors)
        self._by_kind: Mapping[str, Reflector] = _keyed(reflectors)
        self._outbox = outbox
        self._pending: deque[Stimulus] = deque()
        self._held: dict[tuple[str, str], list[tuple[Instant, Performed]]] = {}
        self._deadlines: deque[tuple[Instant, tuple[str, str]]] = deque()

    # --- updates and outcomes --------------------------------------------------------------

    def observe(self, updates: Sequence[ObjectUpdate]) -> None:
        """Queue the object changes of a reflector as stimuli; called only after `start`."""
        for update in updates:
            view = update.object
            self._pending.append(ObjectDeleted(view) if update.is_deleted else ObjectChanged(view))

        # The reflector shows the state after all of `updates`.
        for update in updates if self._held else ():
            self._release((type(update.object).__name__, update.object.key))

    def start(self) -> None:
        """Queue a stimulus with all objects of the reflectors."""
        objects = [view for one in self._reflectors for view in one.objects.values()]
        self._pending.append(ObjectsLoaded(objects))

    def finish(self, performed: Performed, now: Instant) -> Instant | None:
        """Queue the outcome of a command, or hold it back if the command's effect was not seen yet.

        Returns None if the outcome is queued. If the outcome is held back, returns the time at
        which it is queued even if no watch has shown the effect.
        """
        effect = performed.effect
        if effect is None or self._is_seen(effect):
            self._pending.append(performed.outcome)
            return None
        # Kinds with the same name, such as PodGroups of two API groups, share their entries.
        key = (effect.ref.kind.partition(".")[0], effect.ref.key)
        self._held.setdefault(key, []).append((now + HOLD_MAX, performed))
        self._deadlines.append((now + HOLD_MAX, key))
        return now + HOLD_MAX

    def enqueue(self, stimulus: Stimulus) -> None:
        """Queue `stimulus` for the next poll."""
        self._pending.append(stimulus)

    def find(self, ref: ObjectRef) -> ApiObject | None:
        """Return the newest known version of an object.

        Returns None if no object has the key of `ref`, or if the object's uid is not the uid of
        `ref`. If `ref` has no uid, uids are not compared.
        """
        reflector = self._by_kind.get(ref.kind)
        found = None if reflector is None else reflector.objects.get(ref.key)
        if found is None or ref.uid not in ("", found.metadata.uid):
            return None
        return found

    # --- World -----------------------------------------------------------------------------

    def perform(self, issued: IssuedCommand, now: Instant) -> None:
        """Pass a command to the outbox; `poll` returns its outcome later."""
        match issued.command:
            case RecordEvent() as event:
                self._outbox.record(event, now)
            case CallExtender() as call:
                self._outbox.call_extender(call)
            case _:
                self._outbox.submit(issued, now)

    def poll(self, now: Instant) -> list[Stimulus]:
        """Return the queued stimuli, and remove them from the queue.

        Outcomes that have been held back for HOLD_MAX are included.
        """
        while self._deadlines and self._deadlines[0][0] <= now:
            self._give_up(self._deadlines.popleft()[1], now)
        stimuli = list(self._pending)
        self._pending.clear()
        return stimuli

    def next_event(self) -> Instant | None:
        """Return the earliest deadline for queueing an outcome; None if there is no deadline.

        The deadline is HOLD_MAX after `finish` held the outcome back. If the effect of the command
        is seen earlier, the outcome is queued then, but its deadline remains.
        """
        return self._deadlines[0][0] if self._deadlines else None

    @property
    def is_quiet(self) -> bool:
        """Whether no stimulus waits for the engine, and no outcome is held back."""
        return not self._pending and not self._held

    # --- held outcomes ---------------------------------------------------------------------

    def _release(self, key: tuple[str, str]) -> None:
        """Queue the held-back outcomes of the commands whose effect on object `key` was seen."""
        for due, performed in self._held.pop(key, ()):
            assert performed.effect is not None
            if self._is_seen(performed.effect):
                self._pending.append(performed.outcome)
            else:
                self._held.setdefault(key, []).append((due, performed))

    def _give_up(self, key: tuple[str, str], now: Instant) -> None:
        for due, performed in self._held.pop(key, ()):
            if due <= now:
                self._pending.append(performed.outcome)
            else:
                self._held.setdefault(key, []).append((due, performed))

    def _is_seen(self, effect: WrittenEffect) -> bool:
        reflector = self._by_kind.get(effect.ref.kind)
        if reflector is None or not reflector.is_served:
            return True
        found = reflector.objects.get(effect.ref.key)
        if found is None or effect.ref.uid not in ("", found.metadata.uid):
            return True
        if effect.is_deletion:
            return bool(found.metadata.deletion_timestamp) and not effect.is_removal
        if effect.node:
            return isinstance(found, Pod) and bool(found.spec.node_name)
        return not is_newer(effect.version, found.metadata.resource_version)


def _keyed(reflectors: Sequence[Reflector]) -> dict[str, Reflector]:
    """Return `reflectors`, keyed by the kind names that commands use."""
    by_resource = {one.resource: one for one in reflectors}
    named = resources_by_kind([one.resource for one in reflectors])
    return {name: by_resource[resource] for name, resource in named.items()}
