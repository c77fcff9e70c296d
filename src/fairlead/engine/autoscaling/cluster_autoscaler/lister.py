"""Listers: the objects that the autoscaler reads, in order of creation.

upstream: utils/kubernetes/listers.go: ListerRegistry
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from msgspec.structs import replace

from fairlead.api.objects import (
    ApiObject,
    DaemonSet,
    Job,
    Node,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.pods.facts import condition, is_terminal, is_terminating
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.pod_kind import is_expendable

View = TypeVar("View", bound=ApiObject)
_KEPT: Final = (DaemonSet, Job, PodDisruptionBudget, ReplicaSet, ReplicationController, StatefulSet)


class Listers:
    """The objects that the autoscaler reads, in order of creation.

    `nodes` are indexed by name, `pods` by key, and all other objects by kind and key. If
    --allowed-scheduler-names is set, the pods of schedulers that are not listed are in `other_pods`
    instead of `pods`. Loops ignore these pods, but drains evict them.
    """

    def __init__(self, options: AutoscalingOptions) -> None:
        """Start without objects; `options` determine which pods are ignored."""
        self._allowed = frozenset(options.allowed_scheduler_names)
        self._bypassed = frozenset(options.bypassed_scheduler_names)
        self._cutoff = options.expendable_pods_priority_cutoff
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.other_pods: dict[str, Pod] = {}
        self.unbound: dict[str, Pod] = {}
        self.order: dict[str, int] = {}
        self._added = 0
        self._by_kind: dict[type[object], dict[str, ApiObject]] = {kind: {} for kind in _KEPT}

    # --- writing ---------------------------------------------------------------------------

    def put(self, changed: ApiObject) -> None:
        """Store a new or changed object.

        Objects of kinds that the autoscaler does not read are ignored. A finished pod is removed
        instead of stored. A changed object keeps its position in the order of creation. A pod that
        was created again gets a new position.
        """
        if isinstance(changed, Pod):
            self._put_pod(changed)
        elif isinstance(changed, Node):
            self.nodes[changed.metadata.name] = changed
        elif type(changed) in self._by_kind:
            self._by_kind[type(changed)][changed.key] = changed

    def remove(self, gone: ApiObject) -> None:
        """Remove a deleted object; objects that are not stored are ignored."""
        if isinstance(gone, Pod):
            self._drop_pod(gone.key)
        elif isinstance(gone, Node):
            self.nodes.pop(gone.metadata.name, None)
        elif type(gone) in self._by_kind:
            self._by_kind[type(gone)].pop(gone.key, None)

    def _put_pod(self, pod: Pod) -> None:
        key = pod.key
        if is_terminal(pod):
            self._drop_pod(key)
            return
        known = self.any_pod(key)
        if known is not None and known.metadata.uid != pod.metadata.uid:
            self._drop_pod(key)
        if key not in self.order:
            self._added += 1
            self.order[key] = self._added
        if self._allowed and pod.spec.scheduler_name not in self._allowed:
            self.other_pods[key] = pod
            return
        self.pods[key] = pod
        if pod.spec.node_name:
            self.unbound.pop(key, None)
        else:
            self.unbound[key] = pod

    def _drop_pod(self, key: str) -> None:
        self.pods.pop(key, None)
        self.other_pods.pop(key, None)
        self.unbound.pop(key, None)
        self.order.pop(key, None)

    # --- reading ---------------------------------------------------------------------------

    def find(self, obj: ApiObject) -> ApiObject | None:
        """Return the stored version of the object `obj`; None if no version is stored."""
        if isinstance(obj, Pod):
            return self.any_pod(obj.key)
        if isinstance(obj, Node):
            return self.nodes.get(obj.metadata.name)
        return self._by_kind.get(type(obj), {}).get(obj.key)

    def any_pod(self, key: str) -> Pod | None:
        """Return the stored pod with this key, of any scheduler; None if there is none."""
        return self.pods.get(key) or self.other_pods.get(key)

    def get(self, kind: type[View], key: str) -> View | None:
        """Return the object of `kind` with key `namespace/name`; None if there is none."""
        found = self._by_kind[kind].get(key)
        return found if isinstance(found, kind) else None

    def all_of(self, kind: type[View]) -> list[View]:
        """Return all objects of `kind`, in order of creation."""
        return [one for one in self._by_kind[kind].values() if isinstance(one, kind)]

    def unschedulable_pods(self) -> list[Pod]:
        """Return the unschedulable pods, then the untried pods of bypassed schedulers.

        A bypassed scheduler is listed in --bypassed-scheduler-names. A pod is untried if it has no
        PodScheduled condition, or if this condition is False without a reason. Terminating pods and
        nominated pods are left out.
        upstream: utils/kubernetes/listers.go: UnschedulablePods, SchedulerUnprocessedPods
        """
        pending = [
            pod
            for pod in self.unbound.values()
            if not is_terminating(pod) and not pod.status.nominated_node_name
        ]
        pending.sort(key=lambda pod: self.order[pod.key])
        unschedulable = [pod for pod in pending if _reason(pod) == "Unschedulable"]
        if not self._bypassed:
            return unschedulable
        unprocessed = (
            pod for pod in pending if pod.spec.scheduler_name in self._bypassed and not _reason(pod)
        )
        return [*unschedulable, *unprocessed]

    def in_order(self, pods: Iterable[Pod]) -> list[Pod]:
        """Return `pods` in order of creation."""
        return sorted(pods, key=lambda pod: self.order.get(pod.key, 0))

    def in_snapshot(self, pod: Pod) -> Pod | None:
        """Return `pod` as the snapshot contains it: bound to its node or its nominated node.

        Returns None if the pod is terminal or expendable, or if --allowed-scheduler-names leaves
        out its scheduler. Also returns None for an unbound pod that is terminating or has no
        nominated node.
        """
        if is_terminal(pod) or (self._allowed and pod.spec.scheduler_name not in self._allowed):
            return None
        if is_expendable(pod, self._cutoff):
            return None
        if pod.spec.node_name:
            return pod
        nominated = pod.status.nominated_node_name
        if not nominated or is_terminating(pod):
            return None
        return replace(pod, spec=replace(pod.spec, node_name=nominated))


def _reason(pod: Pod) -> str:
    """Return the reason of the pod's PodScheduled condition if the condition is False.

    Returns "Scheduled" if the condition is not False, and "" if the pod has no such condition.
    """
    scheduled = condition(pod, "PodScheduled")
    if scheduled is None:
        return ""
    return scheduled.reason if scheduled.status == "False" else "Scheduled"
