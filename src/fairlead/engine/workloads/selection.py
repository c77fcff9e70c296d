"""Selection: which objects an owner selects, and indexes that find them.

A selector with `matchLabels` selects only objects that have all of these labels. So it is enough to
choose one of these labels, and to compare the selector with the objects that have this label. If
there were no indexes, each of 2,000 new ReplicaSets would be compared with each of 2,000 pods
without a controller.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final, Generic, TypeVar

from msgspec import Struct, field

from fairlead.api.objects import (
    ControllerRevision,
    DaemonSet,
    Deployment,
    Job,
    LabelSelector,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.selector import map_selector, selector_matches

Adopter = ReplicaSet | ReplicationController | DaemonSet | StatefulSet | Deployment | Job
Child = Pod | ReplicaSet | ControllerRevision

_Key = TypeVar("_Key", bound=Hashable)
_Child = TypeVar("_Child", bound=Child)
_Label = tuple[str, str]
_NO_LABEL: Final[_Label] = ("", "")


def selects(owner: Adopter, child: Child) -> bool:
    """Return whether the selector of `owner` matches the labels of `child`."""
    return selector_matches(selector_of(owner), child.metadata.labels)


def selector_of(owner: Adopter) -> LabelSelector | None:
    """Return the selector of `owner`; None if `owner` has no selector."""
    if isinstance(owner, ReplicationController):
        return map_selector(owner.spec.selector) if owner.spec.selector else None
    return owner.spec.selector


class ChildIndex(Struct, Generic[_Key, _Child]):
    """The objects by key, and the keys by label."""

    _objects: dict[_Key, _Child] = field(default_factory=dict)
    _by_label: dict[_Label, dict[_Key, None]] = field(default_factory=dict)

    def put(self, key: _Key, one: _Child) -> None:
        """Store `one`; it replaces the object with the same key."""
        before = self._objects.get(key)
        if before is not None and before.metadata.labels != one.metadata.labels:
            self.pop(key)
            before = None
        self._objects[key] = one
        if before is None:
            for label in one.metadata.labels.items():
                self._by_label.setdefault(label, {})[key] = None

    def pop(self, key: _Key) -> None:
        """Remove the object with this key, if any."""
        one = self._objects.pop(key, None)
        if one is not None:
            for label in one.metadata.labels.items():
                _remove(self._by_label, label, key)

    def selectable(self, owner: Adopter) -> list[_Child]:
        """Return the objects that `owner` may select: all that it selects, and perhaps others."""
        labels = _required(selector_of(owner))
        if not labels:
            return list(self._objects.values())
        keys = min((self._by_label.get(label, {}) for label in labels.items()), key=len)
        return [self._objects[key] for key in keys]


class OwnerIndex(Struct):
    """The owners by uid, and an index of these owners by label.

    Each owner is stored under only one of the labels that its selector requires: the label with the
    fewest owners. The reason is that all owners in a namespace may require the same label, such as
    the label of their application.
    """

    _owners: dict[str, Adopter] = field(default_factory=dict)
    _labels: dict[str, _Label] = field(default_factory=dict)  # the used label, by uid
    _by_label: dict[_Label, dict[str, None]] = field(default_factory=dict)

    def get(self, uid: str) -> Adopter | None:
        """Return the owner with this uid, or None."""
        return self._owners.get(uid)

    def put(self, owner: Adopter) -> None:
        """Store `owner`; it replaces the owner with the same uid."""
        uid, required = owner.metadata.uid, _required(selector_of(owner))
        before = self._owners.get(uid)
        if before is not None and _required(selector_of(before)) != required:
            self.pop(uid)
            before = None
        self._owners[uid] = owner
        if before is None:
            label = min(required.items(), key=self._size_and_label, default=_NO_LABEL)
            self._labels[uid] = label
            self._by_label.setdefault(label, {})[uid] = None

    def pop(self, uid: str) -> None:
        """Remove the owner with this uid, if any."""
        if self._owners.pop(uid, None) is not None:
            _remove(self._by_label, self._labels.pop(uid), uid)

    def selecting(self, child: Child) -> list[Adopter]:
        """Return the owners that may select `child`: all that select it, and perhaps others."""
        labels = (_NO_LABEL, *child.metadata.labels.items())
        return [self._owners[uid] for label in labels for uid in self._by_label.get(label, ())]

    def _size_and_label(self, label: _Label) -> tuple[int, _Label]:
        return len(self._by_label.get(label, ())), label


def _required(selector: LabelSelector | None) -> Mapping[str, str]:
    return {} if selector is None else selector.match_labels


def _remove(by_label: dict[_Label, dict[_Key, None]], label: _Label, key: _Key) -> None:
    keys = by_label[label]
    del keys[key]
    if not keys:
        del by_label[label]
