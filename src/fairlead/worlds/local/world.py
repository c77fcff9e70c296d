"""LocalWorld: a store that clients and the engine both change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from fairlead.api.json import Json
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import DEPLOYMENT, POD, Kind, kind_of
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.registry.precondition import require_uid
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.apiserver.suspension import WebhookAnswer
from fairlead.engine.core.command import (
    CallExtender,
    Command,
    CreateObject,
    IssuedCommand,
    PatchObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Component
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, Stimulus
from fairlead.worlds.extender.extender_caller import ExtenderCaller, NoExtenders
from fairlead.worlds.informer import (
    decoded,
    is_watched_resource,
    net_changes,
    stimulus_if_decodable,
)
from fairlead.worlds.local.admission_gateway import AdmissionGateway, PendingCommand
from fairlead.worlds.local.events.expiry import EventExpiry
from fairlead.worlds.local.events.writer import HOST, EventWriter
from fairlead.worlds.local.field_manager import FieldManagers
from fairlead.worlds.local.kubelet.container_events import ContainerEvents
from fairlead.worlds.local.kubelet.pod_status import PodDetails, with_generate_name
from fairlead.worlds.local.write_audit import WriteAudit
from fairlead.worlds.perform import Outcome, refused
from fairlead.worlds.pod_views import PodViews


class StoreListener(Protocol):
    """Receives all changes to objects except Events, before the engine receives them.

    A listener makes no decisions.
    """

    def observe(self, change: StoredChange, store: Store, now: Instant) -> None:
        """React to `change`, which was made in `store` at the time `now`."""
        ...


class LocalWorld:
    """Performs commands on `store`, and reports the changes that clients and commands make."""

    def __init__(
        self,
        store: Store,
        listeners: Sequence[StoreListener] = (),
        host: str = HOST,
        *,
        has_kubelets: bool = False,
    ) -> None:
        """Create a world that performs commands on `store`.

        The caller must then call `enqueue` with an `ObjectsLoaded` of all objects in `store`.
        `host` is the host name that controllers report. If `has_kubelets` is True, container events
        are recorded.
        """
        self.store = store
        self.extenders: ExtenderCaller = NoExtenders()
        self._pod_status = PodDetails()
        field_managers = FieldManagers()
        self.gateway = AdmissionGateway(store, field_managers)
        self._events = EventWriter(store, field_managers, host)
        self._event_expiry = EventExpiry(store)
        kubelets = (ContainerEvents(self._events.record),) if has_kubelets else ()
        self._listeners: tuple[StoreListener, ...] = (self._pod_status, *kubelets, *listeners)
        self._pod_views = PodViews(decoded)
        self._changes: list[StoredChange] = []
        self._pending_stimuli: list[Stimulus] = []
        self._issued: IssuedCommand | None = None  # the command that is being performed
        self._issued_at: Instant = 0
        store.storage.subscribe(self._changes.append, is_watched_resource)

    def audit_writes(self, audit: WriteAudit) -> None:
        """Pass to `audit` each later change that a command makes, but no change of a client."""

        def observe(change: StoredChange) -> None:
            if self._issued is not None:
                audit.observe(self._issued, change, self._issued_at)

        self.store.storage.subscribe(observe, is_watched_resource)

    @property
    def is_performing(self) -> bool:
        """Whether a command is being performed."""
        return self._issued is not None

    def enqueue(self, stimulus: Stimulus) -> None:
        """Add `stimulus` to the stimuli that the next `poll` returns."""
        self._pending_stimuli.append(stimulus)

    def show_all(self, now: Instant) -> None:
        """Pass every object in the store to the listeners, as if it had just been added.

        Each Event expires an hour after `now`, unless it is written again.
        """
        self._event_expiry.restart(now)
        for kind in self.store.storage.kinds():
            for obj in self.store.list(kind):
                key = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
                change = StoredChange(ChangeType.ADDED, kind, obj, None, 0, key)
                for listener in self._listeners:
                    listener.observe(change, self.store, now)

    # --- World -----------------------------------------------------------------------------

    def perform(self, issued: IssuedCommand, now: Instant) -> Stimulus | None:
        """Perform a command.

        Returns the outcome if the command calls an extender, else None. If the result is None,
        `poll` later returns the changes that the command makes, followed by its outcome. A command
        that records an event has no outcome.
        """
        command = issued.command
        if isinstance(command, RecordEvent):
            self._events.record(command, issued.issuer.component, now)
        elif isinstance(command, CallExtender):
            return self.extenders.call(command, b"")
        else:
            self._issued, self._issued_at = issued, now
            self._do(issued, now)
            self._issued = None
        return None

    def resume(self, pending: PendingCommand, answer: WebhookAnswer, now: Instant) -> None:
        """Continue a command with the answer of its webhook.

        The command may then wait for another webhook.
        """
        self._issued, self._issued_at = pending.issued, now
        outcome = self.gateway.resume(pending, answer)
        self._issued = None
        self._queue_outcome(pending.issued, outcome, now)

    def _do(self, issued: IssuedCommand, now: Instant) -> None:
        command = detailed = issued.command
        if isinstance(command, PatchStatus) and command.target.kind == POD.kind:
            self._write_pod_status(issued, command, now)
            return
        if isinstance(command, PatchObject) and _only_annotates(command):
            self._annotate(issued, command, now)
            return
        if is_own_endpoints(issued):
            self._store_own_endpoints(issued, now)
            return
        if isinstance(command, CreateObject):
            detailed = CreateObject(with_generate_name(command.manifest))
        self._queue_outcome(issued, self.gateway.perform(issued, detailed, now), now)

    def _write_pod_status(self, issued: IssuedCommand, command: PatchStatus, now: Instant) -> None:
        """Write a pod's status with the details that clients expect; see `PodDetails.detailed`.

        If a kubelet made an equal write before, copy the result of the earlier write instead.
        """
        details, is_kubelets = self._pod_status, issued.issuer.component is Component.KUBELET
        inputs = details.inputs(command, self.store) if is_kubelets else None
        report = None if inputs is None else self.gateway.described_report(command, inputs, now)
        outcome = None if report is None else self.gateway.copied(command, report)
        if outcome is None:
            detailed = details.detailed(command, inputs, self.store, now)
            outcome = self.gateway.perform(issued, detailed, now, report)
        self._queue_outcome(issued, outcome, now)

    def _queue_outcome(self, issued: IssuedCommand, outcome: Outcome | None, now: Instant) -> None:
        """Queue the changes that the command in `issued` made, then its outcome.

        `outcome` is None if the command waits for a webhook; only the changes are queued then.
        """
        self._queue_changes(now)
        if outcome is not None:
            self._pending_stimuli.append(_outcome_of(issued, outcome))

    def _annotate(self, issued: IssuedCommand, command: PatchObject, now: Instant) -> None:
        """Write a Deployment's annotations and its status in one status update, as upstream does.

        upstream: pkg/controller/deployment/sync.go:getNewReplicaSet, which calls UpdateStatus
        """
        target = command.target
        try:
            old = self.store.get(DEPLOYMENT, target.namespace, target.name)
            require_uid(DEPLOYMENT, old, target.uid)
            write = self.gateway.write_of(issued.issuer, now)(DEPLOYMENT, "status")
            new = merge_patch(old, command.patch)
            self.store.update_status(DEPLOYMENT, old, new, now, write=write)
        except ApiError as refusal:
            outcome: Outcome = refused(command, refusal)
        else:
            outcome = CommandSucceeded(command)
        self._queue_outcome(issued, outcome, now)

    def _store_own_endpoints(self, issued: IssuedCommand, now: Instant) -> None:
        command = issued.command
        try:
            store_own_endpoints(self.store, command, now, self.gateway.write_of(issued.issuer, now))
        except ApiError as refusal:
            outcome: Outcome = refused(command, refusal)
        else:
            outcome = CommandSucceeded(command)
        self._queue_outcome(issued, outcome, now)

    def poll(self, now: Instant) -> list[Stimulus]:
        """Delete the expired Events, and return the pending stimuli in order."""
        self._queue_changes(now)
        self._event_expiry.run(now)
        stimuli, self._pending_stimuli = self._pending_stimuli, []
        return stimuli

    def next_event(self) -> Instant | None:
        """Return the time at which the next Event expires; None if there are no Events.

        The driver can sleep until then, because a client's change wakes it.
        """
        return self._event_expiry.next_due()

    def _queue_changes(self, now: Instant) -> None:
        while self._changes:
            changes, self._changes[:] = self._changes[:], []
            for listener in self._listeners:
                for change in changes:
                    listener.observe(change, self.store, now)
            for change in net_changes(changes):
                stimulus = stimulus_if_decodable(change, self._pod_views.view_of)
                if stimulus is not None:
                    self._pending_stimuli.append(stimulus)


def _only_annotates(command: PatchObject) -> bool:
    """Return whether `command` patches a Deployment's annotations, and at most its status, too."""
    parts = set(command.patch)
    if command.target.kind != DEPLOYMENT.kind or parts - {"status"} != {"metadata"}:
        return False
    return set(command.patch["metadata"]) <= {"annotations", "resourceVersion"}


def _outcome_of(issued: IssuedCommand, outcome: Outcome) -> Outcome:
    """Return `outcome` as the outcome of the command in `issued`.

    `outcome` contains the command that was performed: a copy of the issued command with more
    details.
    """
    match outcome:
        case CommandSucceeded():
            return CommandSucceeded(issued.command, issued.issuer)
        case CommandFailed(_, reason, message):
            return CommandFailed(issued.command, reason, message)
        case _:
            return outcome


# --- endpoints of the API server -----------------------------------------------------------------

# A local API server may listen on a loopback address. Validation refuses such an address in
# Endpoints and EndpointSlices, because clients must not direct a Service to the server's own
# machine.

ENDPOINTS: Final = kind_of({"apiVersion": "v1", "kind": "Endpoints"})
ENDPOINT_SLICE: Final = kind_of({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice"})
_KINDS: Final = {one.kind: one for one in (ENDPOINTS, ENDPOINT_SLICE)}


def is_own_endpoints(issued: IssuedCommand) -> bool:
    """Return whether the command is the API server's write to its own endpoints."""
    command = issued.command
    return (
        issued.issuer.component is Component.API_SERVER
        and isinstance(command, CreateObject | PatchObject)
        and command.target.kind in _KINDS
    )


def store_own_endpoints(
    store: Store, command: Command, now: Instant, write_of: Callable[[Kind, str], Write]
) -> None:
    """Create or update the API server's Endpoints or EndpointSlice. Raises ApiError."""
    assert isinstance(command, CreateObject | PatchObject)
    target, kind = command.target, _KINDS[command.target.kind]
    write = write_of(kind, "")
    if isinstance(command, CreateObject):
        new = write.tracked(None, dict(command.manifest))
        store.put_as_is(_with_generation(kind, new, 1), now)
        return
    old = store.get(kind, target.namespace, target.name)
    new = write.tracked(old, {**old, **command.patch})
    store.write(kind, old, _with_generation(kind, new, old["metadata"].get("generation", 0) + 1))


def _with_generation(kind: Kind, obj: Json, generation: int) -> Json:
    """Return `obj`; if it is an EndpointSlice, `generation` becomes its metadata.generation."""
    if kind is not ENDPOINT_SLICE:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "generation": generation}}
