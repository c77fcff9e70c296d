"""ClaimOutput: events and annotations of claims, and the phase Lost.

Events state why a claim is not bound, and when provisioning starts and ends. A bound claim becomes
Lost if its volume was deleted or is bound to another claim.

upstream: pkg/controller/volume/persistentvolume/pv_controller.go: syncUnboundClaim, syncBoundClaim,
provisionClaimOperation, provisionClaimOperationExternal, setClaimProvisioner
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from fairlead.api.objects import PersistentVolumeClaim, StorageClass
from fairlead.engine.core.command import (
    Command,
    CreateObject,
    PatchObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.plugins.volume_lookup.volume_lookup import (
    BIND_COMPLETED,
    WAIT_FOR_FIRST_CONSUMER,
    class_name,
)
from fairlead.engine.state.volumes.assumed_volumes import SELECTED_NODE
from fairlead.engine.workloads.volumes.binding_step import BindingStep, StepKind
from fairlead.engine.workloads.volumes.command import claim_ref, driver_of
from fairlead.engine.workloads.volumes.volume_index import VolumeIndex, why_unsuitable

LOST: Final = "Lost"
CONTROLLER: Final = "persistentvolume-controller"
_NO_REFERENCE: Final = (
    "ClaimLost",
    "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
)
_NO_VOLUME: Final = (
    "ClaimLost",
    "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
)
_MISBOUND: Final = (
    "ClaimMisbound",
    "Two claims are bound to the same volume, this one is bound incorrectly",
)
PROVISIONERS: Final = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
)
_NO_CLASS: Final = "no persistent volumes available for this claim and no storage class is set"
_WAITING: Final = "waiting for first consumer to be created before binding"


class ClaimOutput(Protocol):
    """Writes the parts of claims that only API clients read: events, annotations, phase Lost."""

    def forget(self, claim: PersistentVolumeClaim) -> None:
        """Remove a deleted claim."""
        ...

    def lost(self, index: VolumeIndex, claim: PersistentVolumeClaim) -> list[Command] | None:
        """Return the writes that set `claim` to Lost, or None if no writes are needed."""
        ...

    def next_step(
        self, index: VolumeIndex, claim: PersistentVolumeClaim, step: BindingStep | None
    ) -> list[Command]:
        """Return the writes of events and annotations for `claim`.

        `step` is the next step of the claim, or None if the claim has no next step.
        """
        ...

    def provisioned(self, step: BindingStep, commands: Sequence[Command]) -> list[Command]:
        """Return the provisioner's event if `commands` create a volume, else []."""
        ...

    def created(self, event: RecordEvent) -> list[Command]:
        """Return the commands that record `event` about a claim that was created for a pod."""
        ...


class ClaimEvents:
    """Writes the events, the annotations and the phase Lost of claims.

    Events that equal the last events of the claim are not written again. The phase Lost is written
    only once for each version of a claim.
    """

    def __init__(self, *, provisions: bool = True) -> None:
        """Record the event Provisioning only if `provisions` is set.

        If `provisions` is not set, other programs provision the volumes and record this event.
        """
        self._provisions = provisions
        self._written: dict[str, list[Command]] = {}
        # claims in the version for which the phase Lost was last written
        self._lost: dict[str, PersistentVolumeClaim] = {}

    def forget(self, claim: PersistentVolumeClaim) -> None:
        """Remove a deleted claim."""
        self._written.pop(claim.key, None)
        self._lost.pop(claim.key, None)

    def lost(self, index: VolumeIndex, claim: PersistentVolumeClaim) -> list[Command] | None:
        """Return the writes that set `claim` to Lost, or None if no writes are needed.

        Returns [] if writes are needed, but were already returned for this version of the claim.
        """
        commands = set_lost(index, claim)
        if not commands:
            self._lost.pop(claim.key, None)
            return None
        is_written = self._lost.get(claim.key) == claim
        self._lost[claim.key] = claim
        return [] if is_written else commands

    def next_step(
        self, index: VolumeIndex, claim: PersistentVolumeClaim, step: BindingStep | None
    ) -> list[Command]:
        """Return the commands that annotate the claim with its provisioner, and record an event.

        The event reports the state of the claim. Returns [] if the event is the same as the last
        event about the claim.
        """
        events = _events(index, claim, step, provisions=self._provisions)
        if events == self._written.get(claim.key, []):
            return []
        self._written[claim.key] = events
        return [*_marked(claim, step), *events]

    def provisioned(self, step: BindingStep, commands: Sequence[Command]) -> list[Command]:
        """Return the event ProvisioningSucceeded if `commands` create a volume, else []."""
        return provisioned(step, commands)

    def created(self, event: RecordEvent) -> list[Command]:
        """Return [event]: a RecordEvent is itself the command that records the event."""
        return [event]


class NoClaimEvents:
    """Writes no events and no annotations, for simulations without API clients.

    No claim from a dump gets the phase Lost, because the dump may lack the volume of the claim.
    """

    def forget(self, claim: PersistentVolumeClaim) -> None:
        """Do nothing."""

    def lost(self, index: VolumeIndex, claim: PersistentVolumeClaim) -> list[Command] | None:
        """Return None, because no claim becomes Lost."""
        return None

    def next_step(
        self, index: VolumeIndex, claim: PersistentVolumeClaim, step: BindingStep | None
    ) -> list[Command]:
        """Return no commands."""
        return []

    def provisioned(self, step: BindingStep, commands: Sequence[Command]) -> list[Command]:
        """Return no commands."""
        return []

    def created(self, event: RecordEvent) -> list[Command]:
        """Return no commands."""
        return []


def provisioned(step: BindingStep, commands: Sequence[Command]) -> list[Command]:
    """Return the event ProvisioningSucceeded if `commands` provision a volume, else []."""
    made = [one for one in commands if isinstance(one, CreateObject)]
    if step.kind is not StepKind.PROVISION or step.storage_class is None or not made:
        return []
    note = f"Successfully provisioned volume {made[0].manifest['metadata']['name']}"
    reporting_controller = driver_of(step.storage_class)
    return [
        _event(step.claim, "ProvisioningSucceeded", note, reporting_controller=reporting_controller)
    ]


def _events(
    index: VolumeIndex,
    claim: PersistentVolumeClaim,
    step: BindingStep | None,
    *,
    provisions: bool,
) -> list[Command]:
    if claim.metadata.deletion_timestamp or BIND_COMPLETED in claim.metadata.annotations:
        return []
    if claim.spec.volume_name:
        return _mismatch(index, claim)
    storage_class = index.class_of(claim)
    if step is None:
        return [_not_bound_event(claim, storage_class)]
    if step.kind is not StepKind.PROVISION or step.storage_class is None:
        return []
    waiting = _waiting(claim, step.storage_class)
    return [waiting, _begun(claim, step.storage_class)] if provisions else [waiting]


def _mismatch(index: VolumeIndex, claim: PersistentVolumeClaim) -> list[Command]:
    """Return an event if the volume that `claim` names is free but unsuitable, else []."""
    volume = index.volumes.get(claim.spec.volume_name)
    if volume is None or volume.spec.claim_ref is not None:
        return []
    reason = why_unsuitable(volume, claim)
    note = f'Cannot bind to requested volume "{volume.key}": {reason}'
    return [_event(claim, "VolumeMismatch", note, is_warning=True)] if reason else []


def _not_bound_event(claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> Command:
    """Return the event with the reason why `claim` cannot be bound."""
    name, is_chosen = class_name(claim), SELECTED_NODE in claim.metadata.annotations
    if not name:
        return _event(claim, "FailedBinding", _NO_CLASS)
    if storage_class is None:
        return _failed(claim, f'storageclass.storage.k8s.io "{name}" not found')
    if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER and not is_chosen:
        return _event(claim, "WaitForFirstConsumer", _WAITING)
    return _failed(claim, f"no volume plugin matched name: {storage_class.provisioner}")


def _waiting(claim: PersistentVolumeClaim, storage_class: StorageClass) -> Command:
    """Return the event ExternalProvisioning: `claim` waits until a provisioner creates a volume."""
    waiting = (
        "Waiting for a volume to be created either by the external provisioner "
        f"'{driver_of(storage_class)}' or manually by the system administrator. If volume creation "
        "is delayed, please verify that the provisioner is running and correctly registered."
    )
    return _event(claim, "ExternalProvisioning", waiting)


def _begun(claim: PersistentVolumeClaim, storage_class: StorageClass) -> Command:
    """Return the event Provisioning: a provisioner has begun to create a volume for `claim`."""
    begun = f'External provisioner is provisioning volume for claim "{claim.key}"'
    return _event(claim, "Provisioning", begun, reporting_controller=driver_of(storage_class))


def _marked(claim: PersistentVolumeClaim, step: BindingStep | None) -> list[Command]:
    """Return the patch that annotates `claim` with its provisioner, or [] if nothing changes."""
    if step is None or step.kind is not StepKind.PROVISION or step.storage_class is None:
        return []
    driver = driver_of(step.storage_class)
    known = claim.metadata.annotations
    if all(known.get(name) == driver for name in PROVISIONERS):
        return []
    patch = {"metadata": {"annotations": dict.fromkeys(PROVISIONERS, driver)}}
    return [PatchObject(claim_ref(claim), patch)]


def _failed(claim: PersistentVolumeClaim, note: str) -> Command:
    return _event(claim, "ProvisioningFailed", note, is_warning=True)


def _event(
    claim: PersistentVolumeClaim,
    reason: str,
    note: str,
    *,
    is_warning: bool = False,
    reporting_controller: str = CONTROLLER,
) -> RecordEvent:
    return RecordEvent(
        regarding=claim_ref(claim),
        type="Warning" if is_warning else "Normal",
        reason=reason,
        action=reason,
        note=note,
        reporting_controller=reporting_controller,
    )


def set_lost(index: VolumeIndex, claim: PersistentVolumeClaim) -> list[Command]:
    """Return the writes that set `claim` to Lost.

    Returns [] if the claim still has its volume or is already Lost.
    """
    why = _loss(index, claim)
    if why is None or claim.status.phase == LOST:
        return []
    reason, note = why
    target = claim_ref(claim)
    event = RecordEvent(
        regarding=target,
        type="Warning",
        reason=reason,
        action=reason,
        note=note,
        reporting_controller=CONTROLLER,
    )
    return [PatchStatus(target, {"phase": LOST, "accessModes": None, "capacity": None}), event]


def _loss(index: VolumeIndex, claim: PersistentVolumeClaim) -> tuple[str, str] | None:
    if BIND_COMPLETED not in claim.metadata.annotations:
        return None
    if not claim.spec.volume_name:
        return _NO_REFERENCE
    volume = index.volumes.get(claim.spec.volume_name)
    if volume is None:
        return _NO_VOLUME
    reference = volume.spec.claim_ref
    is_ours = reference is None or reference.uid in ("", claim.metadata.uid)
    return None if is_ours else _MISBOUND
