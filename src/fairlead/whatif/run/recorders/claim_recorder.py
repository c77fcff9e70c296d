"""ClaimRecorder: the PersistentVolumeClaims that are deleted, and what happens to their volumes."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.objects import ApiObject, PersistentVolume, PersistentVolumeClaim, StorageClass
from fairlead.engine.core.instant import Instant
from fairlead.engine.plugins.volume_lookup.volume_lookup import class_name
from fairlead.whatif.outcome.run_outcome import DeletedClaim


class ClaimRecorder:
    """The deleted claims of one run, except the claims of ephemeral volumes of pods."""

    def __init__(self) -> None:
        """Start without objects."""
        self._policies: dict[str, str] = {}  # by the name of the volume
        self._class_policies: dict[str, str] = {}  # by the name of the StorageClass
        self._deleted: list[DeletedClaim] = []

    def load(self, one: ApiObject) -> None:
        """Record a volume or StorageClass of the snapshot; other objects are ignored."""
        if isinstance(one, PersistentVolume):
            self._policies[one.metadata.name] = one.spec.persistent_volume_reclaim_policy
        elif isinstance(one, StorageClass):
            self._class_policies[one.metadata.name] = one.reclaim_policy

    def forget(self, claim: PersistentVolumeClaim, now: Instant) -> None:
        """Record that `claim` was deleted at `now`."""
        owners = claim.metadata.owner_references
        if any(one.kind == "Pod" and one.controller for one in owners):
            return
        volume = claim.spec.volume_name
        of_class = self._class_policies.get(class_name(claim), "")
        policy = self._policies.get(volume, of_class) if volume else ""
        self._deleted.append(DeletedClaim(claim.key, volume, policy, now))

    def deleted_since(self, since: Instant) -> Iterator[DeletedClaim]:
        """Yield the claims that were deleted at `since` or later, in the order of deletion."""
        return (one for one in self._deleted if one.at >= since)
