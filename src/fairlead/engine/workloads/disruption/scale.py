"""Scales: the desired number of pods of each controller.

    ReplicaSet of a Deployment                            spec.replicas of the Deployment
    other ReplicaSet, ReplicationController, StatefulSet  spec.replicas
    DaemonSet, Job, Node                                  no scale: an error
    custom resource, in a served cluster                  its scale subresource, otherwise an error
    other kinds, and owners missing from the dump         the highest number of active pods so far

Upstream fails if it does not find a controller, but dumps often lack owners. So the scale of a
missing owner is its highest number of simultaneously active pods. But if the status of a budget
says that owners of this kind have no scale, the result is an error, as in upstream.

upstream: pkg/controller/disruption/disruption.go:finders, getScaleController
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeGuard

from msgspec import Struct, field

from fairlead.api.objects import (
    ApiObject,
    Deployment,
    OwnerReference,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.pods.facts import controller_of
from fairlead.api.pods.replicas import Replicas
from fairlead.engine.workloads.deployment.rollout import is_implied_replica_set
from fairlead.engine.workloads.disruption.budget import BudgetError
from fairlead.engine.workloads.horizontal_pod_autoscaler.scale_target import (
    NoOtherScales,
    NoScaleError,
    OtherScales,
    ScaleError,
)
from fairlead.engine.workloads.identity import owner_kind
from fairlead.engine.workloads.pod_control.pod_set import PodState, pod_state

Scalable = Deployment | ReplicaSet | ReplicationController | StatefulSet
SCALABLE: Final = (Deployment, ReplicaSet, ReplicationController, StatefulSet)
_KINDS: Final = frozenset(one.__name__ for one in SCALABLE)
UNSCALABLE: Final = {"DaemonSet": "daemonsets.apps", "Job": "jobs.batch", "Node": "nodes"}
DEPLOYMENT: Final = "Deployment"
_NO_SCALE: Final = "{} does not implement the scale subresource"
# Members that are read often (STYLE.md, rule 19).
_ACTIVE: Final = PodState.ACTIVE

ScalePath = tuple[str, str, str]


class _ControllerPods(Struct):
    """The active pods of a controller, and the highest number of them so far (`peak`).

    `sample` is one of the controller's pods.
    """

    sample: Pod
    active: dict[str, None] = field(default_factory=dict)
    peak: int = 0


class Scales(Struct):
    """The pods of all controllers, and the scalable objects by kind, namespace and name."""

    others: OtherScales = field(default_factory=NoOtherScales)
    _known: dict[ScalePath, Scalable] = field(default_factory=dict)
    _pods: dict[tuple[str, OwnerReference], _ControllerPods] = field(default_factory=dict)
    # Resources without a scale, such as strimzipodsets.core.strimzi.io
    _without_scale: dict[str, None] = field(default_factory=dict)

    def learn(self, budget: PodDisruptionBudget) -> None:
        """Store which resources have no scale subresource, according to the status of `budget`."""
        for one in budget.status.conditions:
            resource, is_named, _ = str(one.get("message", "")).partition(_NO_SCALE.format(""))
            if is_named:
                self._without_scale[resource] = None

    def observe(self, workload: Scalable) -> bool:
        """Store the newest version of `workload`; return whether its scale changed."""
        path = _path(workload)
        before, self._known[path] = self._known.get(path), workload
        return (
            before is None
            or before.spec.replicas != workload.spec.replicas
            or before.metadata.uid != workload.metadata.uid
        )

    def forget(self, workload: Scalable) -> None:
        """Remove `workload`."""
        self._known.pop(_path(workload), None)

    def observe_pod(self, pod: Pod) -> None:
        """Add `pod` to the active pods of its controller, or remove `pod` if it is not active."""
        owner = controller_of(pod.metadata)
        if owner is None:
            return
        key, name = (pod.metadata.namespace, owner), pod.metadata.name
        pods = self._pods.get(key)
        if pods is None:
            pods = self._pods[key] = _ControllerPods(pod)
        if pod_state(pod) is not _ACTIVE:
            pods.active.pop(name, None)
        elif name not in pods.active:
            pods.active[name] = None
            pods.peak = max(pods.peak, len(pods.active))

    def load_pods(self, replicas: Replicas) -> None:
        """Count all pods of `replicas`, with the same result as `observe_pod` for each of them."""
        owner = controller_of(replicas[0].metadata)
        if owner is None:
            return
        key = replicas[0].metadata.namespace, owner
        pods = self._pods.get(key)
        if pods is None:
            pods = self._pods[key] = _ControllerPods(replicas[0])
        for name in replicas.names if pods.active else ():
            pods.active.pop(name, None)
        if pod_state(replicas[0]) is _ACTIVE:
            pods.active |= dict.fromkeys(replicas.names)
            pods.peak = max(pods.peak, len(pods.active))

    def forget_pod(self, pod: Pod) -> None:
        """Remove `pod` from the pods of its controller."""
        owner = controller_of(pod.metadata)
        pods = self._pods.get((pod.metadata.namespace, owner)) if owner is not None else None
        if pods is not None:
            pods.active.pop(pod.metadata.name, None)

    def total(self, namespace: str, owners: Iterable[OwnerReference], expected_pods: int) -> int:
        """Return the sum of the scales of the controllers that `owners` refer to.

        A Deployment that several ReplicaSets in `owners` belong to is counted once. A controller
        whose object is unknown counts with its highest number of active pods so far.
        `expected_pods` is expectedPods from the budget's status, 0 if unknown. If the objects of
        all controllers are unknown and `expected_pods` is not 0, `expected_pods` is returned
        instead of the sum. Raises BudgetError for a controller that has no scale, such as a
        DaemonSet.
        """
        scales: dict[object, int] = {}
        is_known = False
        for owner in owners:
            scaled = self._scaled_object(namespace, owner)
            custom = self._custom(namespace, owner) if scaled is None else None
            if custom is not None:
                scales[owner.uid] = custom
            elif scaled is None:
                self._check_kind(owner.kind)
                scales[owner.uid or owner] = self._pods[namespace, owner].peak
                continue
            else:
                scales[_path(scaled)] = scaled.spec.replicas
            is_known = True
        return sum(scales.values()) if is_known or not expected_pods else expected_pods

    def _check_kind(self, kind: str) -> None:
        """Raise BudgetError if the controllers of `kind` have no scale subresource."""
        singular = kind.lower().removesuffix("y")  # also matches plurals such as "policies"
        named = (one for one in self._without_scale if one.startswith(singular))
        resource = UNSCALABLE.get(kind) or next(named, None)
        if resource is not None:
            raise BudgetError(_NO_SCALE.format(resource))

    def has_scale(self, namespace: str, owner: OwnerReference) -> bool:
        """Return whether `owner` is a controller with a scale.

        A Deployment, for example, has a scale even if the object itself is missing. A custom
        resource has a scale only if `self.others` finds the scale.
        """
        if owner_kind(owner) in _KINDS:
            return True
        try:
            return self._custom(namespace, owner) is not None
        except BudgetError:
            return False

    def _custom(self, namespace: str, owner: OwnerReference) -> int | None:
        """Return the desired number of pods of the custom resource `owner`.

        Returns None if no CustomResourceDefinition defines the kind of `owner`.

        Raises BudgetError if the custom resource does not exist or has no scale.
        """
        group = owner.api_version.rpartition("/")[0]
        try:
            found = self.others.find(group, owner.kind, namespace, owner.name)
        except NoScaleError as cause:
            raise BudgetError(_NO_SCALE.format(cause.resource)) from cause
        except ScaleError as cause:
            raise BudgetError(str(cause)) from cause
        return found.replicas if found is not None else None

    def _scaled_object(self, namespace: str, owner: OwnerReference) -> Scalable | None:
        """Return the object whose scale applies to the pods of `owner`; None if none is known.

        If `owner` is a ReplicaSet of a Deployment, this object is the Deployment.
        """
        found = self._find(namespace, owner)
        if found is None:
            return self._implied(namespace, owner)
        above = controller_of(found.metadata) if isinstance(found, ReplicaSet) else None
        deployment = self._find(namespace, above) if above is not None else None
        return deployment or found

    def _find(self, namespace: str, owner: OwnerReference) -> Scalable | None:
        found = self._known.get((owner_kind(owner), namespace, owner.name))
        return found if found is not None and owner.uid in ("", found.metadata.uid) else None

    def _implied(self, namespace: str, owner: OwnerReference) -> Scalable | None:
        """Return the Deployment of the missing ReplicaSet `owner`, or None if none is found."""
        name = owner.name.rpartition("-")[0]
        deployment = self._known.get((DEPLOYMENT, namespace, name))
        pods = self._pods.get((namespace, owner))
        if isinstance(deployment, Deployment) and pods is not None:
            return deployment if is_implied_replica_set(deployment, owner, pods.sample) else None
        return None


def is_scalable(obj: ApiObject) -> TypeGuard[Scalable]:
    """Return whether `obj` is of a built-in kind with a scale subresource."""
    return isinstance(obj, SCALABLE)


def _path(one: Scalable) -> ScalePath:
    return (type(one).__name__, one.metadata.namespace, one.metadata.name)
