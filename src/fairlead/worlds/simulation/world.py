"""SimulatedWorld: virtual time over a store in memory.

There are three sources of events: the engine's commands, the script (`at`), and commands in flight
when requests take time. They happen one at a time; the net changes to the store are reported next,
and the command's outcome after them. So the engine knows the effects of a command before it learns
that the command succeeded.

Extenders are called over HTTP, and no virtual time passes meanwhile. An extender that binds pods
would call an API server, which does not exist here; so if it reports success, the world binds the
pod.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from fairlead.api.extender import BindingResult, encode
from fairlead.api.json import Json
from fairlead.apiserver.admission.quota.ledger import QuotaLedgers
from fairlead.apiserver.admission.simulation import SimulatedAdmission
from fairlead.apiserver.admission.write import PLAIN, Write
from fairlead.apiserver.kind import CONFIG_MAP, NODE, Kind
from fairlead.apiserver.registry import api_server
from fairlead.apiserver.registry.admission_control import judges_users
from fairlead.apiserver.registry.snapshot_load import DumpedObject
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import ADMIN
from fairlead.apiserver.storage.deferred_storage import DeferredStorage
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
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
from fairlead.engine.core.stimulus import (
    CommandFailed,
    ExtenderAnswered,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.worlds.component_identity import sender_of
from fairlead.worlds.driver import CommandSource, Driver
from fairlead.worlds.extender.extender_caller import ExtenderCaller, NoExtenders, has_bound
from fairlead.worlds.extender.request import held_by, request_body
from fairlead.worlds.informer import net_changes
from fairlead.worlds.perform import perform
from fairlead.worlds.pod_views import PodViews
from fairlead.worlds.seeded_ids import SeededIds
from fairlead.worlds.simulation.event_list import EventList

Act = Callable[[Store, Instant], None]
_ENCODER = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The time from sending a request to its execution and its answer."""

    bind: DurationNs = 0
    patch: DurationNs = 0

    def of(self, command: Command) -> DurationNs:
        """Return the latency of `command`."""
        match command:
            case Bind():
                return self.bind
            case PatchStatus() | PatchObject():
                return self.patch
            case _:
                return 0


class SimulatedWorld:
    """A store, a virtual clock and a script, for the engine to act on.

    `last_change` is the time of the last change to an object other than a heartbeat. `events` holds
    the events that controllers recorded. `admission` records what it could not check. `extenders`
    calls the scheduler's extenders; by default there are none.
    """

    def __init__(  # noqa: PLR0913 - what a world is made of
        self,
        engine: CommandSource,
        *,
        start: Instant,
        seed: int = 0,
        latency: Latency | None = None,
        events_max: int | None = None,
        command_log: Callable[[str], None] | None = None,
        preemption_policies: bool = True,
        group_priorities: bool = False,
    ) -> None:
        """Create an empty world at `start`.

        `seed` determines the ids of new objects, `events_max` limits `events` (None: no limit), and
        `command_log` receives the line of each command when it is issued. If `preemption_policies`
        is False, new pods get no preemptionPolicy. With `group_priorities`, PodGroups get the
        priority of their class.
        """
        ids = SeededIds(seed)
        self.admission = SimulatedAdmission(
            ids.new_suffix,
            _completed,
            preemption_policies=preemption_policies,
            group_priorities=group_priorities,
        )
        # No containers run, and dumps may lack images.
        self.store = Store(ids, admission=self.admission.plugins, storage=DeferredStorage())
        self.events = EventList(events_max)
        self.last_change = start
        self.extenders: ExtenderCaller = NoExtenders()
        self._quotas = QuotaLedgers(self.store.storage)
        self._driver = Driver(engine, self, now=start)
        self._latency = latency or Latency()
        self.command_log = command_log
        self._agenda: TimerQueue[Callable[[Instant], None]] = TimerQueue()
        self._due: deque[Callable[[Instant], None]] = deque()
        self._changes: list[StoredChange] = []
        self._pod_views = PodViews()
        self._pending_stimuli: list[Stimulus] = []
        self.store.subscribe(self._changes.append)

    @property
    def now(self) -> Instant:
        """The current virtual time."""
        return self._driver.now

    def load(self, manifests: Iterable[Mapping[str, Any] | DumpedObject]) -> None:
        """Load the initial objects as one stimulus. Raises ApiError that names the object."""
        views = self.store.load(manifests, self.now)
        self._pod_views.load(views)
        self._pending_stimuli.append(ObjectsLoaded(views))

    def at(self, due: Instant, act: Act) -> None:
        """Call `act` at `due`; calls at equal times keep their order.

        An exception that `act` raises ends the run.
        """
        self._agenda.add(due, partial(act, self.store))

    def run(
        self,
        until: Instant,
        *,
        stop_when: Callable[[], bool] | None = None,
        on_progress: Callable[[Instant], None] | None = None,
    ) -> None:
        """Run everything that is due at or before `until`; see `Driver.run`."""
        self._driver.run(until, stop_when=stop_when, on_progress=on_progress)

    def user_write(self) -> Write:
        """Return how the script creates objects: as a cluster administrator, if that matters."""
        return Write(user=ADMIN) if judges_users(self.store.storage) else PLAIN

    # --- World -----------------------------------------------------------------------------

    def perform(self, issued: Issued, now: Instant) -> Stimulus | None:
        """Perform a command now or after its latency; `poll` returns its outcome."""
        command = issued.command
        if self.command_log is not None:
            self.command_log(command_line(command, now))
        if isinstance(command, RecordEvent):
            self.events.record(command, now)
        elif isinstance(command, CallExtender):
            self._pending_stimuli.append(self._call_extender(command, now))
        elif latency := self._latency.of(command):
            self._agenda.add(now + latency, partial(self._apply, issued))
        else:
            self._apply(issued, now)
        return None

    def poll(self, now: Instant) -> list[Stimulus]:
        """Return the pending stimuli, or those that the next due event causes, or []."""
        while not self._pending_stimuli and self._is_due(now):
            self._due.popleft()(now)
            self._queue_changes(now)
        stimuli, self._pending_stimuli = self._pending_stimuli, []
        return stimuli

    def next_event(self) -> Instant | None:
        """Return when the next script entry or command in flight is due."""
        return self._agenda.next_due()

    def _is_due(self, now: Instant) -> bool:
        if not self._due:
            self._due.extend(self._agenda.pop_due(now))
        return bool(self._due)

    def _apply(self, issued: Issued, now: Instant) -> None:
        user = sender_of(issued, self.store) if judges_users(self.store.storage) else None
        write = PLAIN if user is None else Write(user=user)
        outcome = perform(self.store, issued.command, now, lambda *_: write, self._quotas)
        self._queue_changes(now)
        self._pending_stimuli.append(outcome)

    def _call_extender(self, call: CallExtender, now: Instant) -> Stimulus:
        """Call an extender; if it has bound the pod, report that first."""
        answer = self.extenders.call(call, request_body(call, partial(held_by, self.store)))
        if call.verb is not ExtenderVerb.BIND or not has_bound(answer):
            return answer
        outcome = perform(self.store, Bind(call.pod, call.nodes[0]), now)
        self._queue_changes(now)
        if isinstance(outcome, CommandFailed):  # an API server would have reported it
            return ExtenderAnswered(call, 200, encode(BindingResult(outcome.message)))
        return answer

    def _queue_changes(self, now: Instant) -> None:
        """Queue the stimuli of the latest changes."""
        if self._changes:
            if not all(map(_is_heartbeat, self._changes)):
                self.last_change = now
            self._pending_stimuli.extend(map(self._stimulus_of, net_changes(self._changes)))
            self._changes.clear()

    def _stimulus_of(self, change: StoredChange) -> Stimulus:
        view = self._pod_views.view_of(change)
        return ObjectDeleted(view) if change.type is ChangeType.DELETED else ObjectChanged(view)


# Cluster Autoscaler's status, which follows what happened.
_LAST_UPDATED: Final = "cluster-autoscaler.kubernetes.io/last-updated"


def _is_heartbeat(change: StoredChange) -> bool:
    """Return whether a kubelet posted its node's conditions again, or a component its status."""
    if change.kind is CONFIG_MAP:
        return _LAST_UPDATED in (change.object["metadata"].get("annotations") or ())
    if change.kind is not NODE or change.previous is None or change.type is ChangeType.DELETED:
        return False
    return _without_heartbeats(change.object) == _without_heartbeats(change.previous)


def _without_heartbeats(node: Json) -> Json:
    """Return `node` without the fields that a heartbeat changes."""
    status = node.get("status", {})
    conditions = [{**one, "lastHeartbeatTime": None} for one in status.get("conditions", ())]
    metadata = {**node["metadata"], "resourceVersion": None, "managedFields": None}
    return {**node, "metadata": metadata, "status": {**status, "conditions": conditions}}


def command_line(command: Command, now: Instant) -> str:
    """Return `command`, issued at `now`, as one line of the command log, to compare runs.

        {"t_ns":1767225600000000000,"command":"Bind","pod":{…},"node":"node-1"}

    Members are in the order of the command's fields; in free-form JSON (a patch, a manifest) they
    are sorted. So equal commands give equal lines.
    """
    fields = _ENCODER.encode(command).decode()
    return f'{{"t_ns":{now},"command":"{type(command).__name__}",{fields[1:]}'


def _completed(kind: Kind, obj: Json) -> Json:
    """Return `obj` as a server stores it: decoded by its type, with all defaults."""
    return api_server.default(kind, api_server.decode(kind, obj))
