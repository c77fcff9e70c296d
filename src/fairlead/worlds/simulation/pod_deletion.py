"""PodDeletions: graceful deletions that change a pod's view immediately and its JSON value later.

Most pods are deleted in two steps, which this module performs. The first request sets the
deletionTimestamp of a running pod. When the pod has stopped, its kubelet removes the pod with a
second request, whose grace period is 0. Admission does not run, because no admission plugin of a
simulation handles the deletion of a pod. The store performs all other deletions. Examples are
deletions of pods without a node, of finished pods, and of pods with finalizers. Another example is
a deletion with a grace period of 0 of a pod that is not terminating. `ViewedObjects.find` lists
further cases.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from fairlead.api.json import Json
from fairlead.api.objects import ObjectMeta, Pod
from fairlead.api.pods.facts import is_terminal, is_terminating
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.deletion import mark_for_deletion, shortened
from fairlead.engine.core.command import DeleteObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.worlds.simulation.viewed_object import ViewedObjects, WrittenObject

_BACKGROUND: Final = "Background"


class _DeletionMark(msgspec.Struct, frozen=True, gc=False):
    """A write that marks a pod for deletion; the deletion was requested at `now`."""

    now: Instant
    grace_period_s: int

    def applied_to(self, pod: Json, /) -> Json:
        return mark_for_deletion(pod, self.now, self.grace_period_s)


class PodDeletions:
    """Performs graceful deletions of pods."""

    def __init__(self, pods: ViewedObjects[Pod]) -> None:
        self._pods = pods

    def perform(self, command: DeleteObject, now: Instant) -> ObjectChanged | ObjectDeleted | None:
        """Perform `command` and return the resulting stimulus.

        Returns None and changes nothing if the store must perform `command` instead.
        """
        target = command.target
        if target.kind != POD.kind or command.policy != _BACKGROUND:
            return None
        stored = self._pods.find(target)
        if stored is None or not _is_graceful(stored.view):
            return None
        if is_terminating(stored.view):
            return self._removed(stored) if command.grace_period_s == 0 else None
        grace_s = command.grace_period_s
        if grace_s is None:
            grace_s = stored.view.spec.termination_grace_period_seconds
        if grace_s is None or grace_s <= 0:
            return None
        return self._marked(stored, _DeletionMark(now, grace_s))

    def _marked(self, stored: WrittenObject[Pod], mark: _DeletionMark) -> ObjectChanged | None:
        before = stored.view
        meta = self._pods.next_metadata(before.metadata)
        _set_end(meta, mark.applied_to(_deletion_fields(before.metadata)))
        view = Pod(metadata=meta, spec=before.spec, status=before.status)
        return ObjectChanged(view) if self._pods.replace(stored, mark, view) else None

    def _removed(self, stored: WrittenObject[Pod]) -> ObjectDeleted | None:
        """Set the remaining grace period of a terminating pod to 0, then remove the pod.

        Returns None and changes nothing if the store must remove the pod instead.
        """
        before = stored.view
        if not before.metadata.deletion_grace_period_seconds:
            return None
        versions = 2  # the store writes the grace period, then it removes the pod
        meta = self._pods.next_metadata(before.metadata, versions)
        _set_end(meta, shortened(_deletion_fields(before.metadata), 0, 0))
        view = Pod(metadata=meta, spec=before.spec, status=before.status)
        return ObjectDeleted(view) if self._pods.remove(stored, versions) else None


def _is_graceful(pod: Pod) -> bool:
    """Return whether `pod` is bound to a node, has not ended and has no finalizers.

    The API server deletes unbound and ended pods without a grace period.
    """
    return bool(pod.spec.node_name) and not is_terminal(pod) and not pod.metadata.finalizers


def _deletion_fields(meta: ObjectMeta) -> Json:
    """Return an object that has only the members of `meta` that a deletion reads."""
    fields: dict[str, Any] = {
        "deletionTimestamp": meta.deletion_timestamp,
        "deletionGracePeriodSeconds": meta.deletion_grace_period_seconds,
        "generation": meta.generation,
    }
    return {"metadata": fields}


def _set_end(meta: ObjectMeta, deleted: Json) -> None:
    """Copy from `deleted` to `meta` the values of the members that a deletion changes."""
    fields = deleted["metadata"]
    force_setattr(meta, "deletion_timestamp", fields["deletionTimestamp"])
    force_setattr(meta, "deletion_grace_period_seconds", fields["deletionGracePeriodSeconds"])
    force_setattr(meta, "generation", fields["generation"])
