"""RelatedObjects: the objects beside nodes and pods that plugins and preemption look at.

Objects of storage change often and are many, so beside them a log is kept that names what changed;
whoever keeps something per volume or claim redoes just that.
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
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


class RelatedObjects:
    """By kind and key.

    `storage_log` names the objects of storage that changed, by kind and key. `version` grows with
    every change of another kind kept, but for budgets and those of devices, for which there is
    `engine.state.device_ledger`.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._by_kind: dict[type[object], dict[str, Any]] = {kind: {} for kind in _KEPT}
        self._budgets: list[PodDisruptionBudget] | None = None
        self.version = 0
        self.budget_version = 0
        self.storage_log: ChangeLog[StorageKey] = ChangeLog()

    def put(self, changed: ApiObject) -> ApiObject | None:
        """Take in a new or changed object, returning its last version if there was one.

        Kinds nobody looks at are passed over.
        """
        objects = self._by_kind.get(type(changed))
        if objects is None:
            return None
        before: ApiObject | None = objects.get(changed.key)
        objects[changed.key] = changed
        self._note(changed)
        return before

    def remove(self, gone: ApiObject) -> ApiObject | None:
        """Forget an object, returning its last version if it was known."""
        objects = self._by_kind.get(type(gone))
        before: ApiObject | None = None if objects is None else objects.pop(gone.key, None)
        if before is not None:
            self._note(before)
        return before

    def _note(self, touched: ApiObject) -> None:
        if isinstance(touched, PodDisruptionBudget):
            self._budgets = None
            self.budget_version += 1
        elif isinstance(touched, STORAGE):
            self.storage_log.append((type(touched), touched.key))
        elif not isinstance(touched, DEVICES):
            self.version += 1

    def get(self, kind: type[View], key: str) -> View | None:
        """The object of `kind` called `key` (`namespace/name` or `name`)."""
        found: View | None = self._by_kind[kind].get(key)
        return found

    def all_of(self, kind: type[View]) -> list[View]:
        """All objects of `kind`, by key."""
        objects = self._by_kind[kind]
        return [objects[key] for key in sorted(objects)]

    def budgets(self) -> list[PodDisruptionBudget]:
        """All PodDisruptionBudgets, by key."""
        if self._budgets is None:
            self._budgets = self.all_of(PodDisruptionBudget)
        return self._budgets
