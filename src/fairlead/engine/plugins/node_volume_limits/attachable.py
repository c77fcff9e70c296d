"""The attachable volumes of a pod: the driver and a unique name of each volume.

A claim is identified by the driver and handle of its volume. A claim without a volume is identified
by the provisioner of its storage class and a handle made from the claim's name. An in-tree volume
counts for the CSI driver to which it is migrated.
upstream: csi.go: filterAttachableVolumes, getCSIDriverInfo
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlead.api.objects import PersistentVolume, PersistentVolumeClaim, StorageClass, Volume
from fairlead.api.pods.volumes import claim_name, is_claimed, is_made_for, is_migratable
from fairlead.engine.core.status import Status, error, unresolvable
from fairlead.engine.plugins.volume_lookup.in_tree_volume import (
    IN_TREE_KINDS,
    TranslationError,
    csi_of_inline,
    csi_of_volume,
)
from fairlead.engine.plugins.volume_lookup.volume_lookup import (
    VolumeLookup,
    claim_not_found,
    claim_not_owned,
    class_name,
)
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.related_objects import StorageKey

NameAndDriver = tuple[str, str]
Note = Callable[[StorageKey], None]
_UNBOUND: Final = "unbound"


class Attachables:
    """Finds the attachable volumes of pods."""

    def __init__(self, lookup: VolumeLookup) -> None:
        self._lookup = lookup

    def of(
        self, pod: PodInfo, note: Note | None = None, *, is_new: bool
    ) -> dict[str, str] | Status:
        """Return {unique volume name: driver} of the pod's attachable volumes, or a rejection.

        `note` is called with the key of each claim, volume and class that the result depends on.
        `is_new` is set if the pod is not placed yet. If a claim is missing, a new pod is rejected,
        but a placed pod is not.
        """
        found: dict[str, str] = {}
        for volume in pod.pod.spec.volumes:
            if is_claimed(volume):
                answer = self._of_claim(pod, volume, note, is_new=is_new)
            else:
                answer = _of_inline(volume)
            if isinstance(answer, Status):
                return answer
            if answer is not None:
                found[answer[0]] = answer[1]
        return found

    def _of_claim(
        self, pod: PodInfo, volume: Volume, note: Note | None, *, is_new: bool
    ) -> NameAndDriver | Status | None:
        name = claim_name(pod.pod, volume)
        if not name:
            return error("PersistentVolumeClaim had no name")
        if note is not None:
            note((PersistentVolumeClaim, f"{pod.namespace}/{name}"))
        claim = self._lookup.claim(pod.namespace, name)
        if claim is None:
            reason = f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}"
            return unresolvable(reason) if is_new else None
        if volume.persistent_volume_claim is None and not is_made_for(claim, pod.pod):
            return error(claim_not_owned(pod.namespace, name, pod.pod.metadata.name))
        return self._of_bound(claim, note)

    def _of_bound(self, claim: PersistentVolumeClaim, note: Note | None) -> NameAndDriver | None:
        volume_name = claim.spec.volume_name
        if volume_name and note is not None:
            note((PersistentVolume, volume_name))
        volume = self._lookup.volume(volume_name) if volume_name else None
        if volume is None:
            return self._of_class(claim, note)
        try:
            source = csi_of_volume(volume)
        except TranslationError:
            return None
        if source is None or not source.driver or not source.volume_handle:
            return None
        return unique_name(source.driver, source.volume_handle), source.driver

    def _of_class(self, claim: PersistentVolumeClaim, note: Note | None) -> NameAndDriver | None:
        name = class_name(claim)
        if name and note is not None:
            note((StorageClass, name))
        found = self._lookup.class_of(claim)
        if found is None or not found.provisioner:
            return None
        in_tree = IN_TREE_KINDS.get(found.provisioner)
        driver = found.provisioner if in_tree is None else in_tree.driver
        return unique_name(driver, f"{_UNBOUND}-{claim.key}"), driver


def _of_inline(volume: Volume) -> NameAndDriver | Status | None:
    if not is_migratable(volume):
        return None
    try:
        source = csi_of_inline(volume)
    except TranslationError as cause:
        return error(f"converting volume({volume.name}) from inline to csi: {cause}")
    if source is None:
        return None
    return unique_name(source.driver, source.volume_handle), source.driver


def unique_name(driver: str, handle: str) -> str:
    """Return the name that identifies a volume (csi.go: getVolumeUniqueName)."""
    return f"{driver}/{handle}"
