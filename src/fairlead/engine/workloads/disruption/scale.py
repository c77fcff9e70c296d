"""Scales: what the controllers of pods are scaled to, as far as anybody knows.

    Deployment > ReplicaSet, ReplicationController, StatefulSet     their spec.replicas
    DaemonSet, Job, Node                                            have no scale: an error
    anything else, and whatever is not in the snapshot              its pods at their most

Upstream gives up on a controller it does not find. Here it is usual that an owner is not in the
snapshot, so the greatest number of its active pods seen at a time stands for its scale.

upstream: pkg/controller/disruption/disruption.go:finders, getScaleController
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeGuard

from fairlead.api.objects import (
    ApiObject,
    Deployment,
    OwnerReference,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.pods.facts import controller_of
from fairlead.engine.workloads.deployment.rollout import stands_behind
from fairlead.engine.workloads.disruption.budget import BudgetError
from fairlead.engine.workloads.pod_control.pod_set import PodState, pod_state

Scalable = Deployment | ReplicaSet | ReplicationController | StatefulSet
SCALABLE: Final = (Deployment, ReplicaSet, ReplicationController, StatefulSet)
UNSCALABLE: Final = {"DaemonSet": "daemonsets.apps", "Job": "jobs.batch", "Node": "nodes"}
DEPLOYMENT: Final = "Deployment"

Path = tuple[str, str, str]


@dataclass(slots=True)
class _Crew:
    """The pods of a controller: who is active, and how many were at most."""

    sample: Pod
    active: dict[str, None] = field(default_factory=dict)
    peak: int = 0


@dataclass(slots=True)
class Scales:
    """Scalable objects by kind, namespace and name, and the pods of all controllers."""

    _known: dict[Path, Scalable] = field(default_factory=dict)
    _crews: dict[tuple[str, OwnerReference], _Crew] = field(default_factory=dict)

    def see(self, one: Scalable) -> bool:
        """Take the newest version of `one`; whether its scale is news."""
        path = _path(one)
        before, self._known[path] = self._known.get(path), one
        return (
            before is None
            or before.spec.replicas != one.spec.replicas
            or before.metadata.uid != one.metadata.uid
        )

    def forget(self, one: Scalable) -> None:
        """`one` is gone."""
        self._known.pop(_path(one), None)

    def see_pod(self, pod: Pod) -> None:
        """Count `pod` among its controller's."""
        owner = controller_of(pod.metadata)
        if owner is None:
            return
        crew = self._crews.setdefault((pod.metadata.namespace, owner), _Crew(pod))
        if pod_state(pod) is PodState.ACTIVE:
            crew.active[pod.metadata.name] = None
            crew.peak = max(crew.peak, len(crew.active))
        else:
            crew.active.pop(pod.metadata.name, None)

    def forget_pod(self, pod: Pod) -> None:
        """`pod` is gone."""
        owner = controller_of(pod.metadata)
        crew = self._crews.get((pod.metadata.namespace, owner)) if owner is not None else None
        if crew is not None:
            crew.active.pop(pod.metadata.name, None)

    def total(self, namespace: str, owners: Iterable[OwnerReference]) -> int:
        """The sum of the scales of the controllers behind `owners`, each counted once.

        Raises BudgetError for one that has none.
        """
        scales: dict[object, int] = {}
        for owner in owners:
            if owner.kind in UNSCALABLE:
                kind = UNSCALABLE[owner.kind]
                raise BudgetError(f"{kind} does not implement the scale subresource")
            behind = self._behind(namespace, owner)
            if behind is None:
                scales[owner.uid or owner] = self._crews[namespace, owner].peak
            else:
                scales[_path(behind)] = behind.spec.replicas
        return sum(scales.values())

    def is_known(self, namespace: str, owner: OwnerReference) -> bool:
        """Whether the scale of `owner` is said by somebody rather than counted."""
        return self._behind(namespace, owner) is not None

    def _behind(self, namespace: str, owner: OwnerReference) -> Scalable | None:
        """The object whose scale speaks for the pods of `owner`."""
        found = self._find(namespace, owner)
        if found is None:
            return self._implied(namespace, owner)
        above = controller_of(found.metadata) if isinstance(found, ReplicaSet) else None
        deployment = self._find(namespace, above) if above is not None else None
        return deployment or found

    def _find(self, namespace: str, owner: OwnerReference) -> Scalable | None:
        found = self._known.get((owner.kind, namespace, owner.name))
        return found if found is not None and owner.uid in ("", found.metadata.uid) else None

    def _implied(self, namespace: str, owner: OwnerReference) -> Scalable | None:
        """The Deployment behind a ReplicaSet that is not in the snapshot."""
        name = owner.name.rpartition("-")[0]
        deployment = self._known.get((DEPLOYMENT, namespace, name))
        crew = self._crews.get((namespace, owner))
        if isinstance(deployment, Deployment) and crew is not None:
            return deployment if stands_behind(deployment, owner, crew.sample) else None
        return None


def is_scalable(one: ApiObject) -> TypeGuard[Scalable]:
    """Whether `one` has a scale."""
    return isinstance(one, SCALABLE)


def _path(one: Scalable) -> Path:
    return (type(one).__name__, one.metadata.namespace, one.metadata.name)
