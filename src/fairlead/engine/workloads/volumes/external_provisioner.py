"""ExternalProvisioner: provisions volumes for a stock persistent volume controller.

A stock kube-controller-manager may run instead of Fairlead's own volume controller (`Volumes`). The
stock controller leaves the creation and deletion of provisioned volumes to the provisioners of CSI
drivers. A simulated cluster has no CSI drivers, so this controller replaces their provisioners.

    the stock controller annotates a claim with the provisioner's name; if the StorageClass has the
    mode WaitForFirstConsumer, the claim must also have the annotation selected-node
      └─ after a delay ─▶ a volume for the claim is created; the stock controller binds the two
    the stock controller releases the volume of a deleted claim
      └─ reclaim policy Delete ─▶ the volume is deleted

upstream: sigs.k8s.io/sig-storage-lib-external-provisioner/controller/controller.go:
shouldProvision, shouldDelete
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fairlead.api.objects import ApiObject, PersistentVolume, PersistentVolumeClaim, StorageClass
from fairlead.engine.core.command import Command, CreateObject, DeleteObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.plugins.volume_lookup.volume_lookup import (
    WAIT_FOR_FIRST_CONSUMER,
    class_name,
)
from fairlead.engine.state.volumes.assumed_volumes import SELECTED_NODE
from fairlead.engine.workloads.config import VolumesConfig
from fairlead.engine.workloads.refusal_backoff import RefusalBackoff
from fairlead.engine.workloads.volumes.binding_step import BindingStep, StepKind, commands_of
from fairlead.engine.workloads.volumes.claim_event import PROVISIONERS
from fairlead.engine.workloads.volumes.command import PROVISIONED_BY, RELEASED, volume_ref
from fairlead.engine.workloads.volumes.volume_index import VolumeIndex


class ExternalProvisioner:
    """Provisions volumes for claims with a provisioner annotation, whatever its value."""

    issuer: ClassVar[Issuer] = controller_account("persistent-volume-binder")
    interest: ClassVar[Interest] = Interest(succeeded=(), failed=(CreateObject,))

    def __init__(self, config: VolumesConfig) -> None:
        """Start empty; `config` contains the delays of provisioning and of retries."""
        self._config = config
        self._index = VolumeIndex()
        self._begun: dict[str, None] = {}  # claims that wait for their volume, by key
        self._timers: TimerQueue[str] = TimerQueue()
        # source: kubernetes-csi/external-provisioner/cmd/csi-provisioner/csi-provisioner.go:
        # CreateProvisionedPVLimiter: the default limits
        self._backoff: RefusalBackoff[str] = RefusalBackoff()  # by key of the claim

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Schedule the creation of required volumes; return deletions of released volumes."""
        match stimulus:
            case ObjectChanged(one):
                self._index.observe(one)
                return [*self._react(one, now)]
            case ObjectDeleted(one):
                self._index.forget(one)
                if isinstance(one, PersistentVolumeClaim):
                    self._end(one.key)
            case ObjectsLoaded(objects):
                for one in objects:
                    self._index.observe(one)
                return [command for one in objects for command in self._react(one, now)]
            case CommandFailed(CreateObject() as command, reason):
                self._retry(command, reason, now)
            case _:
                pass
        return []

    def next_deadline(self) -> Instant | None:
        """Return the time at which the next volume is provisioned or its creation is retried.

        Returns None if no provisioning and no retry is scheduled.
        """
        return self._timers.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return, for each claim whose volume is due, the command that creates this volume.

        If the claim's selected node does not exist, the command is instead a patch that removes the
        claim's annotation selected-node. The scheduler then chooses another node.
        """
        commands: list[Command] = []
        for key in self._timers.pop_due(now):
            claim = self._index.claims.get(key)
            storage_class = None if claim is None else self._index.class_of(claim)
            if claim is None or storage_class is None or not self._is_requested(claim):
                self._end(key)
                continue
            step = BindingStep(StepKind.PROVISION, claim, storage_class=storage_class)
            made = commands_of(self._index, step)
            if not any(isinstance(command, CreateObject) for command in made):
                self._end(key)
            commands += made
        return commands

    def _react(self, one: ApiObject, now: Instant) -> Iterator[Command]:
        match one:
            case PersistentVolumeClaim() if self._is_requested(one):
                self._begin(one, now)
            case StorageClass():
                for claim in self._index.claims.values():
                    if class_name(claim) == one.metadata.name and self._is_requested(claim):
                        self._begin(claim, now)
            case PersistentVolume() if _is_left(one):
                yield DeleteObject(volume_ref(one), why="claim deleted")
            case _:
                pass

    def _begin(self, claim: PersistentVolumeClaim, now: Instant) -> None:
        if claim.key not in self._begun:
            self._begun[claim.key] = None
            self._timers.add(now + self._config.provision_delay, claim.key)

    def _end(self, key: str) -> None:
        self._begun.pop(key, None)
        self._backoff.reset(key)

    def _is_requested(self, claim: PersistentVolumeClaim) -> bool:
        """Return whether the persistent volume controller has requested a volume for `claim`."""
        meta, storage_class = claim.metadata, self._index.class_of(claim)
        if not any(name in meta.annotations for name in PROVISIONERS):
            return False
        if claim.spec.volume_name or meta.deletion_timestamp:
            return False
        mode = None if storage_class is None else storage_class.volume_binding_mode
        return mode != WAIT_FOR_FIRST_CONSUMER or SELECTED_NODE in meta.annotations

    def _retry(self, command: CreateObject, reason: FailureReason, now: Instant) -> None:
        """Schedule a retry of a refused creation, if the volume does not exist yet."""
        reference = command.manifest.get("spec", {}).get("claimRef")
        if command.target.kind == "PersistentVolume" and reference is not None:
            key = f"{reference['namespace']}/{reference['name']}"
            if key in self._begun and reason is not FailureReason.ALREADY_EXISTS:
                self._timers.add(self._backoff.next_try(key, now), key)


def _is_left(volume: PersistentVolume) -> bool:
    """Return whether `volume` was provisioned and released, and must be deleted."""
    is_free = volume.status.phase == RELEASED and not volume.metadata.deletion_timestamp
    is_ours = PROVISIONED_BY in volume.metadata.annotations
    return is_free and is_ours and volume.spec.persistent_volume_reclaim_policy == "Delete"
