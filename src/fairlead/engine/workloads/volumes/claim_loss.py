"""Claims whose volume is gone, or is another's: they are Lost, and an event says why.

upstream: pkg/controller/volume/persistentvolume/pv_controller.go:syncBoundClaim
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import PersistentVolumeClaim
from fairlead.engine.core.command import Command, PatchStatus, RecordEvent
from fairlead.engine.plugins.volume_lookup.volume_lookup import BIND_COMPLETED
from fairlead.engine.workloads.volumes.command import claim_ref
from fairlead.engine.workloads.volumes.volume_index import VolumeBook

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


def losses(book: VolumeBook, claim: PersistentVolumeClaim) -> list[Command]:
    """Say that `claim` was bound and has lost its volume, where it does not say so yet."""
    why = _loss(book, claim)
    if why is None or claim.status.phase == LOST:
        return []
    reason, note = why
    target = claim_ref(claim)
    told = RecordEvent(
        regarding=target,
        type="Warning",
        reason=reason,
        action=reason,
        note=note,
        reporting_controller=CONTROLLER,
    )
    return [PatchStatus(target, {"phase": LOST, "accessModes": None, "capacity": None}), told]


def _loss(book: VolumeBook, claim: PersistentVolumeClaim) -> tuple[str, str] | None:
    if BIND_COMPLETED not in claim.metadata.annotations:
        return None
    if not claim.spec.volume_name:
        return _NO_REFERENCE
    volume = book.volumes.get(claim.spec.volume_name)
    if volume is None:
        return _NO_VOLUME
    reference = volume.spec.claim_ref
    is_ours = reference is None or reference.uid in ("", claim.metadata.uid)
    return None if is_ours else _MISBOUND
