"""RelatedObjects: the objects beside nodes and pods that plugins and preemption look at."""

from __future__ import annotations

from typing import Any, TypeVar

from fairlead.api.objects import (
    ApiObject,
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

View = TypeVar("View", bound=ApiObject)

_KEPT = (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)


class RelatedObjects:
    """By kind and key; `version` grows with every change of one of the kinds kept."""

    def __init__(self) -> None:
        """Start empty."""
        self._by_kind: dict[type[object], dict[str, Any]] = {kind: {} for kind in _KEPT}
        self._budgets: list[PodDisruptionBudget] | None = None
        self.version = 0
        self.budget_version = 0

    def put(self, changed: ApiObject) -> None:
        """Take in a new or changed object; kinds nobody looks at are passed over."""
        objects = self._by_kind.get(type(changed))
        if objects is not None:
            objects[changed.key] = changed
            self._note(changed)

    def remove(self, gone: ApiObject) -> None:
        """Forget an object."""
        objects = self._by_kind.get(type(gone))
        if objects is not None and objects.pop(gone.key, None) is not None:
            self._note(gone)

    def _note(self, touched: ApiObject) -> None:
        if isinstance(touched, PodDisruptionBudget):
            self._budgets = None
            self.budget_version += 1
        else:
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
