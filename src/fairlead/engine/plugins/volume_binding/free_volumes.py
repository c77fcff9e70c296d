"""FreeVolumes: live index of the free volumes by storage class.

A volume that is finally bound is removed from its class, so that a class with dynamic provisioning
stays as cheap as an empty one.
upstream: binder.go: pvCache; component-helpers/storage/volume/pv_helpers.go: FindMatchingVolume
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import PersistentVolume, PersistentVolumeClaim
from fairlead.engine.plugins.volume_binding.class_volumes import (
    ClassVolumes,
    has_kind,
    size_of,
    traits_of,
)
from fairlead.engine.plugins.volume_lookup.volume_lookup import class_name
from fairlead.engine.state.cluster import Cluster

_AVAILABLE: Final = "Available"


class FreeVolumes:
    """The free volumes by storage class; call `refresh` before reading."""

    def __init__(self, cluster: Cluster) -> None:
        """For the volumes of `cluster`; promised volumes count as taken."""
        self._table = cluster.table
        self._related = cluster.related
        self._promises = cluster.volume_promises
        self._position = -1
        self._forget_all()

    def _forget_all(self) -> None:
        self._known: dict[str, PersistentVolume] = {}
        self._names: dict[str, dict[str, None]] = {}  # of volumes that are or were free, by class
        self._classes: dict[str, ClassVolumes] = {}
        self._claimed: dict[str, str] = {}
        self._for_claim: dict[str, dict[str, None]] = {}

    # --- reading ---------------------------------------------------------------------------

    def of_class(self, name: str) -> ClassVolumes:
        """The volumes of the storage class with that name."""
        found = self._classes.get(name)
        if found is None:
            volumes = [self._known[one] for one in self._names.get(name, ())]
            found = self._classes[name] = ClassVolumes(volumes, self._table)
            for position, volume in enumerate(found.volumes):
                found.set_free(position, free=self._is_free(volume))
        return found

    def reserved_for(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Volumes reserved for `claim` that fit its class, mode and size, smallest first.

        Reserved means pre-bound or promised. Phase, access modes and the claim's selector are not
        checked for them.
        """
        names = self._for_claim.get(claim.key, ())
        volumes = [self._known[name] for name in names]
        fitting = [volume for volume in volumes if self._fits(volume, claim)]
        return sorted(fitting, key=lambda volume: (size_of(volume), volume.key))

    def _fits(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        reference = self._promises.claim_of(volume)
        return (
            reference is not None
            and reference.uid in ("", claim.metadata.uid)
            and class_name(volume) == class_name(claim)
            and has_kind(claim, traits_of(volume))
            and size_of(volume) >= size_of(claim)
            and not volume.metadata.deletion_timestamp
        )

    def _is_free(self, volume: PersistentVolume) -> bool:
        return (
            self._promises.claim_of(volume) is None
            and volume.status.phase == _AVAILABLE
            and not volume.metadata.deletion_timestamp
        )

    # --- updating --------------------------------------------------------------------------

    def refresh(self) -> None:
        """Apply the changes since the last call."""
        log = self._related.storage_log
        changes = log.since(self._position) if self._position >= 0 else None
        self._position = log.position
        if changes is None:
            self._forget_all()
            for volume in self._related.all_of(PersistentVolume):
                self._take_in(volume.key)
        else:
            for kind, name in dict.fromkeys(changes):
                if kind is PersistentVolume:
                    self._take_in(name)

    def _take_in(self, name: str) -> None:
        old = self._known.pop(name, None)
        new = self._related.get(PersistentVolume, name)
        if new is not None:
            self._known[name] = new
        self._file_claim(name, new)
        if old is not None and (new is None or _differ(old, new)):
            self._leave(old)
        if new is not None:
            self._enter(new)

    def _leave(self, volume: PersistentVolume) -> None:
        of_class = class_name(volume)
        names = self._names.get(of_class, {})
        if volume.key in names:
            del names[volume.key]
            self._classes.pop(of_class, None)

    def _enter(self, volume: PersistentVolume) -> None:
        of_class, free = class_name(volume), self._is_free(volume)
        names = self._names.setdefault(of_class, {})
        if volume.key not in names:
            if not free:
                return
            names[volume.key] = None
            self._classes.pop(of_class, None)
        built = self._classes.get(of_class)
        if built is not None:
            position = built.position[volume.key]
            built.volumes[position] = volume
            built.set_free(position, free=free)

    def _file_claim(self, name: str, volume: PersistentVolume | None) -> None:
        before = self._claimed.pop(name, None)
        if before is not None:
            del self._for_claim[before][name]
            if not self._for_claim[before]:
                del self._for_claim[before]
        reference = None if volume is None else self._promises.claim_of(volume)
        if reference is not None:
            key = f"{reference.namespace}/{reference.name}"
            self._claimed[name] = key
            self._for_claim.setdefault(key, {})[name] = None


def _differ(old: PersistentVolume, new: PersistentVolume) -> bool:
    """Return True if the volume's position in its class, or its class, changed."""
    return (
        class_name(old) != class_name(new)
        or old.spec.capacity != new.spec.capacity
        or old.spec.node_affinity != new.spec.node_affinity
        or traits_of(old) != traits_of(new)
    )
