"""ClaimRecorder: the PersistentVolumeClaims that are deleted, and what happens to their volumes.

While a pod uses a deleted claim, a finalizer keeps the claim. Such a claim is recorded, too,
because its deletion cannot be undone.

upstream: pkg/controller/volume/pvcprotection/pvc_protection_controller.go: processPVC
"""

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
        self._known: set[str] = set()  # the uids of claims that were already being deleted
        self._marked: dict[str, DeletedClaim] = {}  # by uid: the claims that are being deleted

    def load(self, one: ApiObject) -> None:
        """Record a volume, StorageClass or claim of the snapshot; ignore other objects."""
        if isinstance(one, PersistentVolume):
            self._policies[one.metadata.name] = one.spec.persistent_volume_reclaim_policy
        elif isinstance(one, StorageClass):
            self._class_policies[one.metadata.name] = one.reclaim_policy
        elif isinstance(one, PersistentVolumeClaim) and one.metadata.deletion_timestamp:
            self._known.add(one.metadata.uid)

    def observe(self, claim: PersistentVolumeClaim, now: Instant) -> None:
        """Record `claim` if it was marked for deletion at `now`."""
        uid = claim.metadata.uid
        if claim.metadata.deletion_timestamp and uid not in self._known:
            self._known.add(uid)
            if not _is_of_pod(claim):
                self._marked[uid] = self._deletion(claim, now, is_in_use=True)

    def forget(self, claim: PersistentVolumeClaim, now: Instant) -> None:
        """Record that `claim` was deleted at `now`."""
        self._marked.pop(claim.metadata.uid, None)
        if not _is_of_pod(claim):
            self._deleted.append(self._deletion(claim, now, is_in_use=False))

    def _deletion(
        self, claim: PersistentVolumeClaim, now: Instant, *, is_in_use: bool
    ) -> DeletedClaim:
        volume = claim.spec.volume_name
        of_class = self._class_policies.get(class_name(claim), "")
        policy = self._policies.get(volume, of_class) if volume else ""
        return DeletedClaim(claim.key, volume, policy, now, is_in_use)

    def deleted_since(self, since: Instant) -> Iterator[DeletedClaim]:
        """Yield the claims that were deleted at `since` or later, in the order of deletion.

        The claims that pods still use come last.
        """
        found = (*self._deleted, *self._marked.values())
        return (one for one in found if one.at >= since)


def _is_of_pod(claim: PersistentVolumeClaim) -> bool:
    """Return whether `claim` belongs to an ephemeral volume of a pod."""
    owners = claim.metadata.owner_references
    return any(one.kind == "Pod" and one.controller for one in owners)
