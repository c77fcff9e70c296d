"""What people are told of claims that have no volume yet: what they wait for, or what is wrong.

The controller says so in events, and notes on a claim whose provisioner it is; provisioners, which
speak under their own names, say when they begin and when they are done.

upstream: pkg/controller/volume/persistentvolume/pv_controller.go: syncUnboundClaim,
provisionClaimOperation, provisionClaimOperationExternal, setClaimProvisioner
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.objects import PersistentVolumeClaim, StorageClass
from fairlead.engine.core.command import Command, CreateObject, PatchObject, RecordEvent
from fairlead.engine.plugins.volume_lookup.volume_lookup import (
    BIND_COMPLETED,
    WAIT_FOR_FIRST_CONSUMER,
    class_name,
)
from fairlead.engine.state.volumes.assumed_volumes import SELECTED_NODE
from fairlead.engine.workloads.volumes.binding_step import Kind, Step
from fairlead.engine.workloads.volumes.claim_loss import CONTROLLER
from fairlead.engine.workloads.volumes.command import claim_ref, driver_of
from fairlead.engine.workloads.volumes.volume_index import VolumeBook

PROVISIONERS: Final = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
)
_NO_CLASS: Final = "no persistent volumes available for this claim and no storage class is set"
_WAITING: Final = "waiting for first consumer to be created before binding"


class ClaimNews:
    """Tells the same of a claim once."""

    def __init__(self) -> None:
        """Nothing was told."""
        self._told: dict[str, list[Command]] = {}

    def forget(self, claim: PersistentVolumeClaim) -> None:
        """The claim is gone."""
        self._told.pop(claim.key, None)

    def of(
        self, book: VolumeBook, claim: PersistentVolumeClaim, step: Step | None
    ) -> list[Command]:
        """What to tell of `claim`, for which `step` comes next."""
        news = _news(book, claim, step)
        if news == self._told.get(claim.key, []):
            return []
        self._told[claim.key] = news
        return [*_marked(claim, step), *news]


def provisioned(step: Step, commands: Sequence[Command]) -> list[Command]:
    """What the provisioner says when `commands` make a volume."""
    made = [one for one in commands if isinstance(one, CreateObject)]
    if step.kind is not Kind.PROVISION or step.of is None or not made:
        return []
    note = f"Successfully provisioned volume {made[0].manifest['metadata']['name']}"
    speaker = driver_of(step.of)
    return [_event(step.claim, "ProvisioningSucceeded", note, speaker=speaker)]


def _news(book: VolumeBook, claim: PersistentVolumeClaim, step: Step | None) -> list[Command]:
    has_had_one = claim.spec.volume_name or BIND_COMPLETED in claim.metadata.annotations
    if claim.metadata.deletion_timestamp or has_had_one:
        return []
    of = book.class_of(claim)
    if step is None:
        return [_complaint(claim, of)]
    if step.kind is not Kind.PROVISION or step.of is None:
        return []
    return _provisioning(claim, step.of)


def _complaint(claim: PersistentVolumeClaim, of: StorageClass | None) -> Command:
    """Why nothing can be done for `claim`."""
    name, is_chosen = class_name(claim), SELECTED_NODE in claim.metadata.annotations
    if not name:
        return _event(claim, "FailedBinding", _NO_CLASS)
    if of is None:
        return _failed(claim, f'storageclass.storage.k8s.io "{name}" not found')
    if of.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER and not is_chosen:
        return _event(claim, "WaitForFirstConsumer", _WAITING)
    return _failed(claim, f"no volume plugin matched name: {of.provisioner}")


def _provisioning(claim: PersistentVolumeClaim, of: StorageClass) -> list[Command]:
    driver = driver_of(of)
    waiting = (
        f"Waiting for a volume to be created either by the external provisioner '{driver}' or "
        "manually by the system administrator. If volume creation is delayed, please verify that "
        "the provisioner is running and correctly registered."
    )
    begun = f'External provisioner is provisioning volume for claim "{claim.key}"'
    return [
        _event(claim, "ExternalProvisioning", waiting),
        _event(claim, "Provisioning", begun, speaker=driver),
    ]


def _marked(claim: PersistentVolumeClaim, step: Step | None) -> list[Command]:
    """Note on `claim` who makes its volume."""
    if step is None or step.kind is not Kind.PROVISION or step.of is None:
        return []
    driver = driver_of(step.of)
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
    speaker: str = CONTROLLER,
) -> RecordEvent:
    return RecordEvent(
        regarding=claim_ref(claim),
        type="Warning" if is_warning else "Normal",
        reason=reason,
        action=reason,
        note=note,
        reporting_controller=speaker,
    )
