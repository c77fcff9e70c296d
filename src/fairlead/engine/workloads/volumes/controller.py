"""Volumes: the persistent volume controller, and the external provisioners.

    claim ── refers to a volume, or a volume refers to it ───────────▶ bound
      ├──── Immediate: a suitable volume is free ────────────────────▶ bound
      │                no volume is free: provisioned after a delay ─▶ bound
      ├──── WaitForFirstConsumer: provisioned for the selected node ─▶ bound
      └──── no class: it gets the default class

At most one step of a claim is in flight. When all commands of the step have succeeded, the claim is
synced again. A step that changed nothing is not repeated.

The controller differs from upstream. CSIStorageCapacity objects never change, and no volume is
attached. Every provisioner exists and works, except for old claims of a dump (`lacks_provisioner`).
In a simulation, a claim without its volume does not become Lost, because the dump may lack the
volume.

upstream: pkg/controller/volume/persistentvolume/pv_controller.go: syncClaim, syncVolume
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import ClassVar, Final

from fairlead.api.objects import (
    ApiObject,
    CSINode,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StatefulSet,
    StorageClass,
)
from fairlead.api.pods.volumes import BOUND, all_claims, is_claimed
from fairlead.engine.core.command import (
    Command,
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.core.instant import DurationNs, Instant, earliest
from fairlead.engine.core.interest import Interest, WritesTo
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.plugins.volume_lookup.volume_lookup import class_name, is_bound
from fairlead.engine.workloads.config import VolumesConfig
from fairlead.engine.workloads.refusal_backoff import RefusalBackoff
from fairlead.engine.workloads.volumes.binding_step import (
    BindingStep,
    StepKind,
    commands_of,
    lacks_provisioner,
    next_step,
)
from fairlead.engine.workloads.volumes.claim_creation import ClaimCreator
from fairlead.engine.workloads.volumes.claim_event import ClaimOutput, NoClaimEvents
from fairlead.engine.workloads.volumes.command import free, reclaim
from fairlead.engine.workloads.volumes.volume_index import (
    AVAILABLE,
    VolumeIndex,
    claim_key,
)

_WRITES: Final = (CreateObject, PatchObject, PatchStatus, DeleteObject)
_KINDS: Final = ("PersistentVolume", "PersistentVolumeClaim")
_OWN_WRITES: Final = tuple(WritesTo(command, _KINDS) for command in _WRITES)
# Pods, and the kinds that `ClaimCreator` and `VolumeIndex` store.
_OBJECTS: Final = (
    Pod,
    StatefulSet,
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
    Node,
    CSINode,
)


class Volumes:
    """The persistent volume controller: binds claims to volumes, and provisions volumes."""

    issuer: ClassVar[Issuer] = controller_account("persistent-volume-binder")
    interest: ClassVar[Interest] = Interest(
        changed=_OBJECTS,
        deleted=_OBJECTS,
        succeeded=_OWN_WRITES,
        failed=_OWN_WRITES,
        readiness=False,
    )

    def __init__(
        self,
        config: VolumesConfig | None = None,
        output: ClaimOutput | None = None,
        *,
        is_complete: bool = False,
        provisions_old: bool = True,
    ) -> None:
        """Start empty.

        `output` returns the commands that write the events, the annotations and the phase Lost of
        claims. The default `output` returns no commands. If `is_complete` is not set, the loaded
        snapshot may lack storage objects, and the controller creates the missing objects
        (`missing_storage`). If `provisions_old` is not set, the objects are from a dump, and claims
        whose provisioner failed in the dumped cluster (`lacks_provisioner`) get no new volume.
        """
        self._provisions_old = provisions_old
        self._failing: set[str] = set()  # claims whose provisioner fails
        self._output: ClaimOutput = output or NoClaimEvents()
        self._is_complete = is_complete
        self._config = config or VolumesConfig()
        self._index = VolumeIndex()
        self._creator = ClaimCreator(self._index, self._output)
        self._waiting: dict[str, None] = {}  # claims without a next step
        self._planned: dict[str, StepKind] = {}
        self._timers: TimerQueue[tuple[str, StepKind]] = TimerQueue()
        self._volume_timers: TimerQueue[str] = TimerQueue()  # volumes whose write was refused
        self._claim_timers: TimerQueue[str] = TimerQueue()  # claims whose creation was refused
        self._creation_backoff: RefusalBackoff[str] = RefusalBackoff()  # by claim
        self._provision_backoff: RefusalBackoff[str] = RefusalBackoff()  # by claim
        self._in_flight: dict[
            int, tuple[Command, str]
        ] = {}  # by identity of the command: (command, claim key)
        self._outstanding: dict[str, int] = {}
        self._failed: dict[str, None] = {}
        self._executed: dict[str, BindingStep] = {}

    # --- stimuli ------------------------------------------------------------------------------

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return the commands for the claims and volumes that `stimulus` affects."""
        if type(stimulus) is ObjectChanged and type(stimulus.object) is Node:
            self._observe(stimulus.object)
            return self._react(stimulus.object, now)
        match stimulus:
            case ObjectChanged(Pod() as pod):
                return [*self._creator.claims_for(pod)]
            case ObjectChanged(one):
                self._observe(one)
                return self._react(one, now)
            case ObjectDeleted(one):
                self._index.forget(one)
                commands: list[Command] = [*self._creator.forget(one)]
                if isinstance(one, PersistentVolumeClaim):
                    commands += self._release(one)
                elif isinstance(one, PersistentVolume):
                    commands += self._sync_claim_of(one, now)
                return commands
            case ObjectsLoaded():
                return self._load(stimulus, now)
            case CommandSucceeded(command):
                return [*self._claim_event(command), *self._handle_outcome(command, now)]
            case CommandFailed(command, message=message):
                self._plan_repeat(command, now)
                events = self._claim_event(command, message)
                return [*events, *self._handle_outcome(command, now, failed=True)]
            case _:
                return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Handle a changed pod, as `handle` does."""
        return tuple(self._creator.claims_for(pod)) if pod.spec.volumes else ()

    def next_deadline(self) -> Instant | None:
        """Return the time at which the next step or retry is due, or None if there is none."""
        return earliest(
            self._timers.next_due(), self._volume_timers.next_due(), self._claim_timers.next_due()
        )

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return the commands of the steps and retries that are due."""
        commands: list[Command] = []
        for key, kind in self._timers.pop_due(now):
            claim = self._index.claims.get(key)
            if self._planned.get(key) is not kind or claim is None:
                continue
            del self._planned[key]
            step = next_step(self._index, claim)
            if step is not None and step.kind is kind:
                commands += self._execute(step)
            else:
                commands += self._sync(claim, now)
        for name in self._volume_timers.pop_due(now):
            volume = self._index.volumes.get(name)
            if volume is not None:
                commands += self._react_to_volume(volume, now)
        for key in self._claim_timers.pop_due(now):
            repeated = [*self._creator.repeat(key)]
            if not repeated:  # no pod needs the claim
                self._creation_backoff.reset(key)
            commands += repeated
        return commands

    def _plan_repeat(self, command: Command, now: Instant) -> None:
        """Schedule a retry if the refused `command` writes a volume or creates a pod's claim.

        Upstream's volume controller repeats a failed write of a volume at its next resync. The
        controllers of ephemeral volumes and of StatefulSets create the claims of pods. They have
        the default backoff (volume/ephemeral/controller.go: NewController,
        statefulset/stateful_set.go: NewStatefulSetController).
        """
        if not isinstance(command, _WRITES):
            return
        kind, key = command.target.kind, command.target.key
        if kind == "PersistentVolume":
            self._volume_timers.add(now + self._config.resync_period, command.target.name)
        is_creation = isinstance(command, CreateObject)
        if kind == "PersistentVolumeClaim" and is_creation and self._creator.observe_refusal(key):
            self._claim_timers.add(self._creation_backoff.next_try(key, now), key)

    def _load(self, loaded: ObjectsLoaded, now: Instant) -> list[Command]:
        """Store all loaded objects, then sync them; return the resulting commands.

        If the snapshot may be incomplete, the commands also create the storage objects that the
        snapshot lacks, and a volume that was bound to a missing claim is not synced.
        """
        objects = [*loaded.others]
        for one in objects:
            self._observe(one)
        for pods in loaded.replicas:
            if any(map(is_claimed, pods[0].spec.volumes)):
                objects += pods
        if not self._provisions_old:
            self._failing = self._failing_claims(objects, now)
        commands: list[Command] = []
        if not self._is_complete:
            commands += self._creator.missing_objects(objects)
        for kind in (PersistentVolume, PersistentVolumeClaim, Pod):
            for one in objects:
                if isinstance(one, kind) and (self._is_complete or not self._is_orphan(one)):
                    commands += self._react(one, now)
        return commands

    @property
    def failing(self) -> Collection[str]:
        """The claims (namespace/name) that get no volume because their provisioner fails."""
        return self._failing

    def _failing_claims(self, objects: Iterable[ApiObject], now: Instant) -> set[str]:
        """Return the claims whose provisioner fails; `objects` includes the pods with claims."""
        users: defaultdict[str, list[Pod]] = defaultdict(list)
        for one in objects:
            if type(one) is Pod:
                for name in all_claims(one):
                    users[f"{one.metadata.namespace}/{name}"].append(one)
        return {
            key
            for key, claim in self._index.claims.items()
            if lacks_provisioner(claim, self._index.class_of(claim), users[key], now)
        }

    def _is_orphan(self, one: ApiObject) -> bool:
        """Return whether `one` is a volume that was bound to a claim that does not exist."""
        return isinstance(one, PersistentVolume) and self._index.is_orphan(one)

    def _observe(self, one: ApiObject) -> None:
        self._index.observe(one)
        self._creator.observe(one)
        if type(one) is PersistentVolumeClaim:
            self._creation_backoff.reset(one.key)

    def _react(self, one: ApiObject, now: Instant) -> list[Command]:
        if type(one) is PersistentVolumeClaim:
            return self._sync(one, now)
        if type(one) is PersistentVolume:
            return self._react_to_volume(one, now)
        if type(one) is StorageClass:
            return self._sync_waiting(now)
        return [*self._creator.claims_for(one)] if type(one) is Pod else []

    def _react_to_volume(self, volume: PersistentVolume, now: Instant) -> list[Command]:
        if self._index.is_orphan(volume):
            return self._reclaim(volume)
        key, reference = claim_key(volume), volume.spec.claim_ref
        is_named = reference is not None and bool(reference.uid)
        claim = self._index.holder_of(volume)
        # A Bound volume stays Bound if its claim exists: the sync of the claim repairs claimRef.
        is_kept = claim is not None and volume.status.phase == BOUND
        if volume.status.phase != AVAILABLE and not is_named and not is_kept:
            return [free(volume)]
        if claim is not None:
            return self._sync(claim, now)
        return self._sync_waiting(now, class_name(volume)) if key is None else []

    def _sync_waiting(self, now: Instant, of_class: str | None = None) -> list[Command]:
        """Sync the waiting claims in the order of their keys.

        If `of_class` is given, sync only the claims of this storage class.
        """
        claims = [self._index.claims[key] for key in sorted(self._waiting)]
        return [
            command
            for claim in claims
            if of_class is None or class_name(claim) == of_class
            for command in self._sync(claim, now)
        ]

    def _release(self, gone: PersistentVolumeClaim) -> list[Command]:
        """Release the volumes of a deleted claim.

        Volumes that were only pre-bound to the claim's name (claimRef without uid) are kept.
        """
        self._waiting.pop(gone.key, None)
        self._failing.discard(gone.key)
        self._planned.pop(gone.key, None)
        self._provision_backoff.reset(gone.key)
        self._undo(gone.key)
        self._output.forget(gone)
        volumes = self._index.volumes_of(gone)
        bound = (one for one in volumes if one.spec.claim_ref and one.spec.claim_ref.uid)
        return [command for one in bound for command in self._reclaim(one)]

    def _reclaim(self, volume: PersistentVolume) -> list[Command]:
        return reclaim(volume, deletes=self._config.provisions)

    def _sync_claim_of(self, gone: PersistentVolume, now: Instant) -> list[Command]:
        """Sync the claim of the deleted volume `gone`."""
        claim = self._index.claims.get(claim_key(gone) or "")
        return [] if claim is None else self._sync(claim, now)

    # --- one claim -------------------------------------------------------------------------

    def _sync(self, claim: PersistentVolumeClaim, now: Instant) -> list[Command]:
        """Execute or schedule the next step of `claim`, if no step is in flight."""
        key = claim.key
        if key in self._outstanding:
            return []
        lost = self._output.lost(self._index, claim)
        if lost is not None:
            self._undo(key)
            return lost
        step = next_step(self._index, claim)
        events = self._output.next_step(self._index, claim, step)
        return [*events, *self._schedule(claim, step, now)]

    def _schedule(
        self, claim: PersistentVolumeClaim, step: BindingStep | None, now: Instant
    ) -> list[Command]:
        """Execute `step`, schedule it after its delay, or record that the claim waits."""
        key = claim.key
        is_others = step is not None and (
            step.kind is StepKind.PROVISION
            and (not self._config.provisions or key in self._failing)
        )
        if step is None or is_others or step == self._executed.get(key):
            self._planned.pop(key, None)
            if not is_bound(claim):
                self._waiting[key] = None
            return []
        self._waiting.pop(key, None)
        before = self._executed.get(key)
        is_half_done = before is not None and before.kind is step.kind is StepKind.BIND
        delay = 0 if is_half_done else self._delay(step.kind)
        if not delay:
            self._planned.pop(key, None)
            return self._execute(step)
        if self._planned.get(key) is not step.kind:
            self._plan(key, step.kind, now + delay)
        return []

    def _plan(self, key: str, kind: StepKind, due: Instant) -> None:
        self._planned[key] = kind
        self._timers.add(due, (key, kind))

    def _delay(self, kind: StepKind) -> DurationNs:
        match kind:
            case StepKind.BIND:
                return self._config.bind_delay
            case StepKind.PROVISION:
                return self._config.provision_delay
            case _:
                return 0

    # --- binding steps ---------------------------------------------------------------------

    def _execute(self, step: BindingStep) -> list[Command]:
        key, commands = step.claim.key, commands_of(self._index, step)
        self._executed[key] = step
        if step.volume is not None and self._index.is_free(step.volume, step.claim):
            self._index.assume_volume(step.volume, step.claim)
        if commands:
            self._outstanding[key] = len(commands)
            self._in_flight |= {id(command): (command, key) for command in commands}
        return [*commands, *self._output.provisioned(step, commands)]

    def _undo(self, key: str) -> None:
        step = self._executed.pop(key, None)
        if step is not None and step.volume is not None:
            self._index.restore_volume(step.volume)

    def _claim_event(self, command: Command, error: str = "") -> Iterator[Command]:
        if isinstance(command, CreateObject):
            yield from self._creator.creation_event(command.target, error)

    def _handle_outcome(
        self, command: Command, now: Instant, *, failed: bool = False
    ) -> list[Command]:
        """Handle the outcome of `command`; `failed` is set if it failed.

        When all commands of a step have an outcome, sync the claim again. If any command failed,
        schedule this sync for later.
        """
        _, key = self._in_flight.pop(id(command), (None, None))
        if key is None:
            return []
        if failed:
            self._failed[key] = None
        self._outstanding[key] -= 1
        if self._outstanding[key]:
            return []
        del self._outstanding[key]
        claim = self._index.claims.get(key)
        if self._failed.pop(key, "") is None:
            step = self._executed.get(key)
            self._undo(key)
            # Another program, such as a CSI driver, creates volumes with the default backoff.
            if step is not None and step.kind is StepKind.PROVISION:
                due = self._provision_backoff.next_try(key, now)
            else:
                due = now + self._config.resync_period
            self._plan(key, StepKind.RETRY, due)
            return []
        self._provision_backoff.reset(key)
        return [] if claim is None else self._sync(claim, now)
