"""LocalWorld: a store that others write to as well, with a controller living in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import DEPLOYMENT, POD
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.registry.precondition import require_uid
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import NO_ANSWERS, WebhookAnswer
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.command import (
    CallExtender,
    Command,
    CreateObject,
    Issued,
    PatchObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Issuer
from fairlead.engine.core.stimulus import CommandFailed, CommandSucceeded, Stimulus
from fairlead.worlds.extender.caller import ExtenderCaller, NoExtenders
from fairlead.worlds.informer import is_told, net_changes, told_if_known
from fairlead.worlds.local.admission_gateway import AdmissionGateway, PendingCommand
from fairlead.worlds.local.events.writer import HOST, EventWriter
from fairlead.worlds.local.field_manager import FieldManagers
from fairlead.worlds.local.kubelet.container_events import ContainerEvents
from fairlead.worlds.local.kubelet.pod_status import PodDetails, with_generate_name
from fairlead.worlds.perform import Outcome, refused


class Attendant(Protocol):
    """Sees to something that clients rely on and no controller of the engine does."""

    def attend(self, change: StoredChange, store: Store, now: Instant) -> None:
        """React to a change, at once."""
        ...


@runtime_checkable
class TimedAttendant(Attendant, Protocol):
    """One that acts when it is time, too."""

    def next_due(self) -> Instant | None:
        """When to call `act`, None when only a change can give it work."""
        ...

    def act(self, store: Store, now: Instant) -> None:
        """Do what is due."""
        ...


class LocalWorld:
    """Performs commands on `store`, and tells what anybody has changed there."""

    def __init__(
        self,
        store: Store,
        attendants: Sequence[Attendant] = (),
        host: str = HOST,
        *,
        has_kubelets: bool = False,
    ) -> None:
        """What is in `store` already must be told by `ObjectsLoaded`.

        `host` is where controllers say that they run; with `has_kubelets` those of the controller
        tell of containers.
        """
        self.store = store
        self.extenders: ExtenderCaller = NoExtenders()
        self._pod_status = PodDetails()
        self._timed = [one for one in attendants if isinstance(one, TimedAttendant)]
        field_managers = FieldManagers()
        self.gateway = AdmissionGateway(store, field_managers)
        self._events = EventWriter(store, field_managers, host)
        kubelets = (ContainerEvents(self._events.record),) if has_kubelets else ()
        self._attendants: tuple[Attendant, ...] = (self._pod_status, *kubelets, *attendants)
        self._changes: list[StoredChange] = []
        self._untold: list[Stimulus] = []
        store.subscribe(self._changes.append)

    def tell(self, stimulus: Stimulus) -> None:
        """Let `stimulus` be told next."""
        self._untold.append(stimulus)

    def look_around(self, now: Instant) -> None:
        """Let the attendants see everything that is there already, as if it were new."""
        for kind in self.store.storage.kinds():
            for obj in self.store.list(kind):
                change = StoredChange(ChangeType.ADDED, kind, obj, None, 0)
                for attendant in self._attendants:
                    attendant.attend(change, self.store, now)

    # --- World -----------------------------------------------------------------------------

    def perform(self, issued: Issued, now: Instant) -> Stimulus | None:
        """Perform a command; `poll` returns its outcome after what it changed."""
        command = issued.command
        if isinstance(command, RecordEvent):
            self._events.record(command, issued.issuer.component, now)
            return CommandSucceeded(command)
        if isinstance(command, CallExtender):
            return self.extenders.call(command, b"")
        self._do(issued, now)
        return None

    def resume(self, pending: PendingCommand, answer: WebhookAnswer, now: Instant) -> None:
        """Continue a command whose webhook has answered; it may have to wait for another."""
        answers = {**pending.answers, pending.call.key: answer}
        self._do(pending.issued, now, answers, pending.drawn)

    def _do(
        self,
        issued: Issued,
        now: Instant,
        answers: Mapping[str, WebhookAnswer] = NO_ANSWERS,
        drawn: tuple[str, ...] = (),
    ) -> None:
        command = detailed = issued.command
        if isinstance(command, PatchStatus) and command.target.kind == POD.kind:
            detailed = self._pod_status.detailed(command, issued.issuer, self.store, now)
        elif isinstance(command, PatchObject) and _only_annotates(command):
            self._annotate(command, issued.issuer, now)
            return
        elif isinstance(command, CreateObject):
            detailed = CreateObject(with_generate_name(command.manifest))
        outcome = self.gateway.perform(issued, detailed, now, answers=answers, drawn=drawn)
        self._tell_changes(now)
        if outcome is not None:
            self._untold.append(_outcome_of(command, outcome))

    def _annotate(self, command: PatchObject, issuer: Issuer, now: Instant) -> None:
        """Write a Deployment's annotations as its controller does: with its status.

        upstream: pkg/controller/deployment/sync.go:getNewReplicaSet, which calls UpdateStatus
        """
        target = command.target
        try:
            old = self.store.get(DEPLOYMENT, target.namespace, target.name)
            require_uid(DEPLOYMENT, old, target.uid)
            write = self.gateway.write_of(issuer, now)(DEPLOYMENT, "status")
            new = merge_patch(old, command.patch)
            self.store.update_status(DEPLOYMENT, old, new, now, write=write)
        except ApiError as refusal:
            outcome: Outcome = refused(command, refusal)
        else:
            outcome = CommandSucceeded(command)
        self._tell_changes(now)
        self._untold.append(outcome)

    def poll(self, now: Instant) -> list[Stimulus]:
        """What was not told yet, in order."""
        self._tell_changes(now)
        if not self._untold:
            self._let_act(now)
        untold, self._untold = self._untold, []
        return untold

    def next_event(self) -> Instant | None:
        """When an attendant has something to do; who changes something wakes the driver."""
        dues = (one.next_due() for one in self._timed)
        return min((due for due in dues if due is not None), default=None)

    def _let_act(self, now: Instant) -> None:
        for one in self._timed:
            due = one.next_due()
            if due is not None and due <= now:
                one.act(self.store, now)
        self._tell_changes(now)

    def _tell_changes(self, now: Instant) -> None:
        while self._changes:
            changes, self._changes[:] = self._changes[:], []
            for attendant in self._attendants:
                for change in changes:
                    attendant.attend(change, self.store, now)
            for change in net_changes([one for one in changes if is_told(one.kind)]):
                stimulus = told_if_known(change)
                if stimulus is not None:
                    self._untold.append(stimulus)


def _only_annotates(command: PatchObject) -> bool:
    """Whether a Deployment gets annotations, and perhaps a status with them."""
    parts = set(command.patch)
    if command.target.kind != DEPLOYMENT.kind or parts - {"status"} != {"metadata"}:
        return False
    return set(command.patch["metadata"]) <= {"annotations", "resourceVersion"}


def _outcome_of(command: Command, outcome: Outcome) -> Outcome:
    """The outcome of `command`, which was performed in a more detailed form."""
    match outcome:
        case CommandFailed(_, reason, message):
            return CommandFailed(command, reason, message)
        case CommandSucceeded():
            return CommandSucceeded(command)
        case _:
            return outcome
