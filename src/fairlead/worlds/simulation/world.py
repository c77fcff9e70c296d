"""SimulatedWorld: virtual time over a store in memory.

Commands change the store, immediately or after their `Latency`. Entries of the script (`at`) also
change the store. These events happen one at a time. After each event, the engine receives the net
changes to the store. After a command, it then receives the outcome. Therefore the engine knows the
effects of a command before it learns that the command succeeded.

Extenders are called over HTTP; virtual time stands still during a call. A real extender that binds
pods calls an API server, but a simulation has none. If an extender reports that it has bound the
pod, the world binds the pod instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct

from fairlead.api.extender import BindingResult, encode
from fairlead.api.json import Json
from fairlead.api.objects import Node, Pod
from fairlead.api.pods.original import REPLACES
from fairlead.apiserver.admission.quota.ledger import QuotaLedgers
from fairlead.apiserver.admission.simulation import SimulatedAdmission
from fairlead.apiserver.admission.write import PLAIN, Write
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import CONFIG_MAP, NODE, POD, Kind
from fairlead.apiserver.registry.admission_control import (
    DYNAMIC_ADMISSION_RESOURCES,
    has_dynamic_admission,
)
from fairlead.apiserver.registry.dump.snapshot_load import Content
from fairlead.apiserver.registry.store import PodCopying, Store
from fairlead.apiserver.request import ADMIN
from fairlead.apiserver.storage.deferred_storage import DeferredStorage
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.command import (
    Bind,
    CallExtender,
    Command,
    DeleteObject,
    ExtenderVerb,
    IssuedCommand,
    PatchObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    ExtenderAnswered,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.worlds.component_identity import sender_of
from fairlead.worlds.driver import CommandSource, Driver
from fairlead.worlds.extender.extender_caller import ExtenderCaller, NoExtenders, has_bound
from fairlead.worlds.informer import net_changes
from fairlead.worlds.node_views import NodeViews
from fairlead.worlds.perform import Outcome, perform
from fairlead.worlds.pod_views import PodViews
from fairlead.worlds.seeded_ids import SeededIds
from fairlead.worlds.simulation.event_list import EventList
from fairlead.worlds.simulation.lease_write import LeaseWrites
from fairlead.worlds.simulation.node_write import NodeWrites
from fairlead.worlds.simulation.pod_binding import PodBindings
from fairlead.worlds.simulation.pod_deletion import PodDeletions
from fairlead.worlds.simulation.pod_status_write import PodStatusWrites, is_of_readiness
from fairlead.worlds.simulation.viewed_object import ViewedObjects

Act = Callable[[Store, Instant], None]
# Called with the kind, the object, and the API server's error about a value of a wrong type.
Malformed = Callable[[Kind, Json, ApiError], Exception]
_ENCODER = msgspec.json.Encoder(order="deterministic")
_COPYING: Final = PodCopying(after=20, own_annotation=REPLACES)


class Latency(Struct, frozen=True, kw_only=True):
    """The time in ns from issuing a binding or a patch until it is performed."""

    bind: DurationNs = 0
    patch: DurationNs = 0

    def of(self, command: Command) -> DurationNs:
        """Return the latency of `command` in ns; 0 for all commands but bindings and patches."""
        if type(command) is Bind:
            return self.bind
        return self.patch if type(command) in (PatchStatus, PatchObject) else 0


class SimulatedWorld:
    """The world of a simulation: a store, a virtual clock and a script.

    `last_change` is the time of the last change to an object. Heartbeats in a node's status and
    updates of Cluster Autoscaler's status do not count. `events` holds the recorded Kubernetes
    Events. `admission.unchecked` records the checks that admission could not make. `extenders`
    calls the scheduler's extenders; by default there are none.

    Listeners of `store` miss frequent writes to pods, nodes and Leases, which the store does not
    perform (`PodStatusWrites`, `NodeWrites`, `LeaseWrites`). The engine gets all changes.
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
        malformed: Malformed | None = None,
    ) -> None:
        """Create an empty world at `start`.

        `seed` determines the ids of new objects. `events_max` limits `events`; None means no limit.
        `command_log` receives the line of each command when it is issued. If `preemption_policies`
        is False, new pods get no preemptionPolicy. If `group_priorities` is True, PodGroups get the
        priority of their PriorityClass.

        A stored object may have a value of a wrong type in a field that the simulation does not
        read. If an admission policy or a webhook needs such an object, `malformed` returns the
        exception to raise. If `malformed` is None, the request is refused.
        """
        self._ids = ids = SeededIds(seed)
        self.admission = SimulatedAdmission(
            ids.new_suffix,
            partial(_completed, malformed or _as_refusal),
            preemption_policies=preemption_policies,
            group_priorities=group_priorities,
        )
        # No containers run, and dumps may lack images. No client watches, so no change is logged.
        storage = DeferredStorage(log_capacity=0)
        self.store = Store(ids, admission=self.admission.plugins, storage=storage, copying=_COPYING)
        self.events = EventList(events_max)
        self.last_change = start
        self.extenders: ExtenderCaller = NoExtenders()
        self._quotas = QuotaLedgers(self.store.storage)
        self._driver = Driver(engine, self, now=start)
        self._latency = latency
        self.command_log = command_log
        self._timers: TimerQueue[Callable[[Instant], None]] = TimerQueue()
        self._due: deque[Callable[[Instant], None]] = deque()
        self._changes: list[StoredChange] = []
        self._pod_views = PodViews()
        self._node_views = NodeViews()
        pods = ViewedObjects(POD, storage, self._pod_views, self._quotas)
        nodes = ViewedObjects(NODE, storage, self._node_views, self._quotas)
        self._pod_status_writes = PodStatusWrites(pods)
        self._pod_bindings = PodBindings(pods, self.store.admission, storage)
        self._pod_deletions = PodDeletions(pods)
        self._node_writes = NodeWrites(nodes)
        self._lease_writes = LeaseWrites(self.store)
        self._pending_stimuli: list[Stimulus] = []
        # The result of `has_dynamic_admission` for the store; None if it must be determined again.
        self._has_dynamic_admission: bool | None = None
        self.store.subscribe(self._changes.append)

    @property
    def now(self) -> Instant:
        """The current virtual time."""
        return self._driver.now

    def load(self, manifests: Iterable[Content]) -> None:
        """Load the initial objects; the engine receives them all in one stimulus.

        Raises ApiError if an object is refused; the error names the object.
        """
        views = self.store.load(manifests, self.now)
        self._ids.skip(views.uids)
        self.admission.observe(views, self.store.storage)
        self._pod_views.load(views)
        self._node_views.load(views.others)
        self._has_dynamic_admission = None
        self._pending_stimuli.append(ObjectsLoaded(views))

    def at(self, due: Instant, act: Act) -> None:
        """Schedule a call of `act` at the time `due`; calls with equal times keep their order.

        An exception that `act` raises ends the run.
        """
        self._timers.add(due, partial(act, self.store))

    def run(
        self,
        until: Instant,
        *,
        stop_when: Callable[[], bool] | None = None,
        on_progress: Callable[[Instant], None] | None = None,
    ) -> None:
        """Perform all events and work that are due at or before `until`; see `Driver.run`."""
        self._driver.run(until, stop_when=stop_when, on_progress=on_progress)

    def pass_time(self, until: Instant) -> None:
        """Advance the time to `until`, but not beyond the next due time; see `Driver.pass_time`."""
        self._driver.pass_time(until)

    def user_write(self) -> Write:
        """Return the Write for changes by the script.

        If a webhook or an admission policy may check the user, the user is a cluster administrator.
        If nothing may check the user, the Write has no user.
        """
        return Write(user=ADMIN) if has_dynamic_admission(self.store.storage) else PLAIN

    def perform_scripted(self, command: Command, now: Instant) -> Outcome:
        """Perform `command`, the only command of a script entry, and return its outcome.

        The engine receives the changes, but not the outcome.
        """
        change = None if self._is_admission_dynamic() else self._performed_on_view(command, now)
        if change is None:
            return perform(self.store, command, now)
        self.last_change = now
        self._pending_stimuli.append(change)
        return CommandSucceeded(command)

    # --- World -----------------------------------------------------------------------------

    def perform(self, issued: IssuedCommand, now: Instant) -> Stimulus | None:
        """Perform a command, immediately or after its latency.

        Returns None; `poll` returns the outcome of the command later. A `RecordEvent` has no
        outcome.
        """
        command = issued.command
        if self.command_log is not None:
            self.command_log(command_line(command, now))
        if type(command) is RecordEvent:
            self.events.record(command, now)
        elif type(command) is CallExtender:
            self._pending_stimuli.append(self._call_extender(command, now))
        elif self._latency is not None and (latency := self._latency.of(command)):
            self._timers.add(now + latency, partial(self._apply, issued))
        else:
            self._apply(issued, now)
        return None

    def poll(self, now: Instant) -> list[Stimulus]:
        """Return the pending stimuli.

        If there are no stimuli, perform due events until an event causes a stimulus. An empty list
        means that no event is due.
        """
        while not self._pending_stimuli and self._is_due(now):
            self._due.popleft()(now)
            self._queue_changes(now)
        stimuli, self._pending_stimuli = self._pending_stimuli, []
        return stimuli

    def next_event(self) -> Instant | None:
        """Return the due time of the next script entry or delayed command, or None."""
        return self._timers.next_due()

    def _is_due(self, now: Instant) -> bool:
        if not self._due:
            self._due.extend(self._timers.pop_due(now))
        return bool(self._due)

    def _is_admission_dynamic(self) -> bool:
        """Return the result of `has_dynamic_admission` for the store."""
        if self._has_dynamic_admission is None:
            self._has_dynamic_admission = has_dynamic_admission(self.store.storage)
        return self._has_dynamic_admission

    def _apply(self, issued: IssuedCommand, now: Instant) -> None:
        command, is_dynamic = issued.command, self._is_admission_dynamic()
        change = None if is_dynamic else self._performed_on_view(command, now)
        if change is not None:
            self.last_change = now
            self._pending_stimuli += (change, CommandSucceeded(command, issued.issuer))
            return
        outcome = None
        if not is_dynamic:
            outcome = self._lease_writes.perform(command, now, issued.issuer)
        if outcome is None:
            user = sender_of(issued, self.store) if is_dynamic else None
            write = PLAIN if user is None else Write(user=user)
            outcome = perform(
                self.store, command, now, lambda *_: write, self._quotas, issued.issuer
            )
        self._queue_changes(now)
        self._pending_stimuli.append(outcome)

    def _performed_on_view(self, command: Command, now: Instant) -> Stimulus | None:
        """Perform a frequent write to a pod or a node without making its JSON value.

        Returns the change of the object. Returns None and changes nothing if the store must
        perform `command` instead.
        """
        changed: Pod | Node | None = None
        if type(command) is PatchStatus:
            if command.target.kind == NODE.kind:
                changed = self._node_writes.patch_status(command, now)
            else:
                changed = pod = self._pod_status_writes.perform(command, now)
                if pod is not None and is_of_readiness(command, pod):
                    return ReadinessChanged(pod)
        elif type(command) is Bind:
            changed = self._pod_bindings.perform(command, now)
        elif type(command) is DeleteObject:
            return self._pod_deletions.perform(command, now)
        elif type(command) is PatchObject and command.target.kind == NODE.kind:
            changed = self._node_writes.patch(command)
        return None if changed is None else ObjectChanged(changed)

    def _call_extender(self, call: CallExtender, now: Instant) -> Stimulus:
        """Call an extender and return its response.

        If the response says that the extender has bound the pod, the pod is also bound in the
        store. If the store refuses the binding, the returned response contains the store's error
        instead.
        """
        # Few simulations call extenders.
        from fairlead.worlds.extender.request import held_by, request_body  # noqa: PLC0415

        answer = self.extenders.call(call, request_body(call, partial(held_by, self.store)))
        if call.verb is not ExtenderVerb.BIND or not has_bound(answer):
            return answer
        outcome = perform(self.store, Bind(call.pod, call.nodes[0]), now)
        self._queue_changes(now)
        if isinstance(outcome, CommandFailed):  # An API server would report this to the extender.
            return ExtenderAnswered(call, 200, encode(BindingResult(outcome.message)))
        return answer

    def _queue_changes(self, now: Instant) -> None:
        """Queue the stimuli of the changes that were made to the store since the last call."""
        if self._changes:
            if not all(map(_is_heartbeat, self._changes)):
                self.last_change = now
            if not DYNAMIC_ADMISSION_RESOURCES.isdisjoint(
                change.kind.resource for change in self._changes
            ):
                self._has_dynamic_admission = None
            self._pending_stimuli.extend(map(self._stimulus_of, net_changes(self._changes)))
            self._changes.clear()

    def _stimulus_of(self, change: StoredChange) -> Stimulus:
        views = self._node_views if change.kind is NODE else self._pod_views
        view = views.view_of(change)
        return ObjectDeleted(view) if change.type is ChangeType.DELETED else ObjectChanged(view)


# The annotation of the ConfigMap with Cluster Autoscaler's status.
_LAST_UPDATED: Final = "cluster-autoscaler.kubernetes.io/last-updated"


def _is_heartbeat(change: StoredChange) -> bool:
    """Return whether `change` is a node's heartbeat or Cluster Autoscaler's status."""
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
    """Return one line of the command log: `command`, issued at `now`, as JSON.

        {"t_ns":1767225600000000000,"command":"Bind","pod":{…},"node":"node-1"}

    Members are in the order of the command's fields. In free-form JSON (a patch, a manifest),
    members are sorted. Equal commands therefore give equal lines, and the logs of two runs can be
    compared.
    """
    fields = _ENCODER.encode(command).decode()
    return f'{{"t_ns":{now},"command":"{type(command).__name__}",{fields[1:]}'


def _completed(malformed: Malformed, kind: Kind, obj: Json) -> Json:
    """Return `obj` in the form in which an API server stores it, with all defaults.

    If a value has a wrong type, raises the exception that `malformed` returns.
    """
    # Imported here, because only CEL policies read completed objects.
    from fairlead.apiserver.registry import api_server  # noqa: PLC0415

    try:
        return api_server.default(kind, api_server.decode(kind, obj))
    except ApiError as refused:
        raise malformed(kind, obj, refused) from None


def _as_refusal(_kind: Kind, _obj: Json, refused: ApiError) -> ApiError:
    return refused
