"""RelatedObjects: the objects that plugins and preemption read, except nodes and pods.

There are many storage objects, and they change often. So a log lists the storage objects that
changed. Caches with an entry per volume or claim recompute only the entries of objects in the log.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from fairlead.api.objects import (
    ApiObject,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceSlice,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
)
from fairlead.engine.state.change_log import ChangeLog
from fairlead.engine.state.disruption_budgets import DisruptionBudgets

View = TypeVar("View", bound=ApiObject)
StorageKey = tuple[type[object], str]

STORAGE: Final = (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
)
DEVICES: Final = (ResourceClaim, ResourceSlice, DeviceClass)
_KEPT: Final = (
    *STORAGE,
    *DEVICES,
    Namespace,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


class RelatedObjects:
    """The objects that plugins and preemption read, except nodes and pods.

    The objects are keyed by kind and by `namespace/name`, or by `name` if they have no namespace.
    `storage_log` contains the kinds and keys of the storage objects that changed. `budgets` are the
    PodDisruptionBudgets. `version` increases when a Namespace, a Service or a controller of pods
    (such as a ReplicaSet) changes. For device objects, see `engine.state.devices`.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._by_kind: dict[type[object], dict[str, Any]] = {kind: {} for kind in _KEPT}
        self.budgets = DisruptionBudgets()
        self.version = 0
        self.storage_log: ChangeLog[StorageKey] = ChangeLog()

    def put(self, changed: ApiObject) -> ApiObject | None:
        """Store a new or changed object; return its previous version, None if it is new.

        Objects of kinds that no plugin reads are not stored.
        """
        if type(changed) is PodDisruptionBudget:
            return self.budgets.put(changed)
        objects = self._by_kind.get(type(changed))
        if objects is None:
            return None
        before: ApiObject | None = objects.get(changed.key)
        objects[changed.key] = changed
        self._note(changed)
        return before

    def remove(self, gone: ApiObject) -> ApiObject | None:
        """Remove an object; return its last version, None if it was not stored."""
        if type(gone) is PodDisruptionBudget:
            return self.budgets.remove(gone.key)
        objects = self._by_kind.get(type(gone))
        before: ApiObject | None = None if objects is None else objects.pop(gone.key, None)
        if before is not None:
            self._note(before)
        return before

    def _note(self, touched: ApiObject) -> None:
        if isinstance(touched, STORAGE):
            self.storage_log.append((type(touched), touched.key))
        elif not isinstance(touched, DEVICES):
            self.version += 1

    def get(self, kind: type[View], key: str) -> View | None:
        """Return the object of `kind` with the key `namespace/name` (or `name`), or None."""
        found: View | None = self._by_kind[kind].get(key)
        return found

    def all_of(self, kind: type[View]) -> list[View]:
        """Return all objects of `kind`, sorted by key (`namespace/name` or `name`)."""
        objects = self._by_kind[kind]
        return [objects[key] for key in sorted(objects)]
