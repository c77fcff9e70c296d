"""ScaleTargets: the workloads that a HorizontalPodAutoscaler can scale.

Deployments, ReplicaSets, StatefulSets and ReplicationControllers have a scale. In a served cluster,
custom resources with a scale subresource are scaled too (`CustomScales`). In a simulation, custom
resources are not scaled, because no controller would create or delete pods for them.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, TypeGuard

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    CrossVersionObjectReference,
    Deployment,
    LabelSelector,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.selector import map_selector
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import (
    ScaleTargetKey,
    WorkloadLoad,
    annotated_load,
)

ScalableWorkload = Deployment | ReplicaSet | StatefulSet | ReplicationController
SCALABLE: Final = (Deployment, ReplicaSet, StatefulSet, ReplicationController)
_RESOURCES: Final = {
    ("apps", "Deployment"): "deployments.apps",
    ("apps", "ReplicaSet"): "replicasets.apps",
    ("apps", "StatefulSet"): "statefulsets.apps",
    ("", "ReplicationController"): "replicationcontrollers",
}
_WITHOUT_SCALE: Final = (("apps", "DaemonSet"), ("batch", "Job"), ("batch", "CronJob"), ("", "Pod"))
_GROUP_VERSION_PARTS: Final = 2


class ScaleError(ValueError):
    """Raised if the scale of a target cannot be read; the message is in upstream's words."""


class NoScaleError(ScaleError):
    """Raised if `resource`, such as `widgets.example.com`, has no scale subresource."""

    def __init__(self, resource: str) -> None:
        """Store `resource`."""
        super().__init__("the server could not find the requested resource")
        self.resource = resource


class Scale(Struct, frozen=True):
    """The number of replicas of a workload, its pod selector, and its simulated load.

    `ref` identifies the workload, and `path` leads to the field with the number of replicas.
    """

    ref: ObjectRef
    replicas: int
    selector: LabelSelector
    load: WorkloadLoad
    path: tuple[str, ...] = ("spec", "replicas")

    @property
    def key(self) -> ScaleTargetKey:
        """Kind, namespace and name of the workload."""
        return (self.ref.kind, self.ref.namespace, self.ref.name)

    def patch_to(self, replicas: int) -> Json:
        """Return the patch that sets the workload's number of replicas to `replicas`."""
        patch: Any = replicas
        for name in reversed(self.path):
            patch = {name: patch}
        return {**patch}


class OtherScales(Protocol):
    """The scales of objects whose kind has no class in `fairlead.api`, such as custom resources."""

    def observe(self, one: ApiObject) -> bool:
        """Store an object; return whether the object may have a `scale` subresource."""
        ...

    def forget(self, one: ApiObject) -> bool:
        """Remove an object; return whether the object may have had a `scale` subresource."""
        ...

    def find(self, group: str, kind: str, namespace: str, name: str) -> Scale | None:
        """Return the scale of an object; None for an unknown kind.

        Raises ScaleError if the object does not exist or has no scale.
        """
        ...


class NoOtherScales:
    """An implementation of `OtherScales` that has no scales."""

    def observe(self, one: ApiObject) -> bool:
        """Return False."""
        return False

    def forget(self, one: ApiObject) -> bool:
        """Return False."""
        return False

    def find(self, group: str, kind: str, namespace: str, name: str) -> Scale | None:
        """Return None."""
        return None


class ScaleTargets(Struct):
    """The scales of all workloads that an autoscaler can scale."""

    others: OtherScales = field(default_factory=NoOtherScales)
    _scales: dict[ScaleTargetKey, Scale] = field(default_factory=dict)

    def observe(self, workload: ScalableWorkload) -> bool:
        """Store the scale of `workload`; return whether the scale changed."""
        scale = _scale(workload)
        before = self._scales.get(scale.key)
        self._scales[scale.key] = scale
        return before != scale

    def forget(self, workload: ScalableWorkload) -> None:
        """Remove the scale of `workload`."""
        self._scales.pop(_scale(workload).key, None)

    def find(self, reference: CrossVersionObjectReference, namespace: str) -> Scale:
        """Return the scale of the workload in `namespace` to which `reference` refers.

        Raises ScaleError if there is no such workload or it has no scale.
        """
        parts = reference.api_version.split("/")
        if len(parts) > _GROUP_VERSION_PARTS:
            raise ScaleError(f"unexpected GroupVersion string: {reference.api_version}")
        group, kind = parts[0] if len(parts) == _GROUP_VERSION_PARTS else "", reference.kind
        resource = _RESOURCES.get((group, kind))
        if (group, kind) in _WITHOUT_SCALE:
            raise ScaleError("the server could not find the requested resource")
        if resource is None:
            other = self.others.find(group, kind, namespace, reference.name)
            if other is not None:
                return other
            raise ScaleError(f'no matches for kind "{kind}" in group "{group}"')
        scale = self._scales.get((kind, namespace, reference.name))
        if scale is None:
            raise ScaleError(f'{resource} "{reference.name}" not found')
        return scale


def is_scale_target(obj: ApiObject) -> TypeGuard[ScalableWorkload]:
    """Return whether an autoscaler can scale `obj`."""
    return isinstance(obj, SCALABLE)


def _scale(workload: ScalableWorkload) -> Scale:
    meta = workload.metadata
    if isinstance(workload, ReplicationController):
        # upstream: pkg/registry/core/replicationcontroller/storage/storage.go:scaleFromRC
        selector = map_selector(workload.spec.selector)
    else:
        selector = workload.spec.selector or LabelSelector()
    ref = ObjectRef(type(workload).__name__, meta.namespace, meta.name, meta.uid)
    return Scale(ref, workload.spec.replicas, selector, annotated_load(meta.annotations))
