"""PodGroupTable: the PodGroups of scheduling.k8s.io, and the pods that belong to them.

A pod's spec.schedulingGroup names a PodGroup in the pod's namespace. The pod belongs to this
PodGroup even if the PodGroup does not exist yet. PodGroups of kube-batch and Volcano are not stored
here.
upstream: pkg/scheduler/backend/cache/podgroupstate.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.objects import ApiObject, PodGroup
from fairlead.engine.state.pod_info import PodInfo

GROUP: Final = "scheduling.k8s.io"


class PodGroupTable:
    """PodGroups and their member pods, keyed by `namespace/name` of the PodGroup."""

    def __init__(self) -> None:
        """Start empty."""
        self._groups: dict[str, PodGroup] = {}
        self._members: dict[str, dict[str, PodInfo]] = {}
        self._scheduled: dict[str, dict[str, None]] = {}

    def put(self, group: PodGroup) -> PodGroup | None:
        """Store a new or changed PodGroup; return its previous version, None if it is new."""
        before = self._groups.get(group.key)
        self._groups[group.key] = group
        return before

    def remove(self, group: PodGroup) -> PodGroup | None:
        """Remove a PodGroup; return its last version, None if it was not stored.

        The member pods of the PodGroup stay stored.
        """
        return self._groups.pop(group.key, None)

    def put_member(self, pod: PodInfo, *, is_scheduled: bool) -> None:
        """Store the current version of a pod that names a PodGroup.

        `is_scheduled` is True if the pod is on a node or assumed on a node.
        """
        key = group_key(pod)
        self._members.setdefault(key, {})[pod.id] = pod
        scheduled = self._scheduled.setdefault(key, {})
        if is_scheduled:
            scheduled[pod.id] = None
        else:
            scheduled.pop(pod.id, None)

    def remove_member(self, pod: PodInfo) -> None:
        """Remove a pod that has finished or was deleted."""
        key = group_key(pod)
        members = self._members.get(key, {})
        members.pop(pod.id, None)
        self._scheduled.get(key, {}).pop(pod.id, None)
        if not members:
            self._members.pop(key, None)
            self._scheduled.pop(key, None)

    def has_member(self, pod: PodInfo) -> bool:
        """Return whether the pod is stored as a member of its PodGroup."""
        return pod.id in self._members.get(group_key(pod), {})

    def find(self, key: str) -> PodGroup | None:
        """Return the PodGroup `key`; None if it does not exist."""
        return self._groups.get(key)

    def group_of(self, pod: PodInfo) -> PodGroup | None:
        """Return the PodGroup that `pod` names; None if it does not exist."""
        return self._groups.get(group_key(pod))

    def member_count(self, key: str) -> int:
        """Return the number of unfinished pods that name the PodGroup `key`."""
        return len(self._members.get(key, {}))

    def scheduled_count(self, key: str) -> int:
        """Return how many pods of the PodGroup `key` are on a node or assumed on a node."""
        return len(self._scheduled.get(key, {}))

    def unscheduled(self, key: str) -> Iterator[PodInfo]:
        """Yield the unscheduled pods of the PodGroup `key`, in order of arrival.

        A pod is unscheduled if it is neither on a node nor assumed on a node.
        """
        scheduled = self._scheduled.get(key, {})
        for pod in self._members.get(key, {}).values():
            if pod.id not in scheduled:
                yield pod


def group_key(pod: PodInfo) -> str:
    """Return the key `namespace/name` of the PodGroup that `pod` names; "" if it names no group."""
    group = pod.pod.spec.scheduling_group
    return "" if group is None else f"{pod.namespace}/{group.pod_group_name}"


def is_kubernetes_pod_group(changed: ApiObject) -> bool:
    """Return whether `changed` is a PodGroup of scheduling.k8s.io."""
    return isinstance(changed, PodGroup) and changed.api_version.startswith(f"{GROUP}/")
