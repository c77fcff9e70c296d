"""The selector of default constraints, derived from Services and the pod's owner.

The default selector combines the selector of the pod's controller and the selectors of all Services
that select the pod. Only an existing ReplicationController, ReplicaSet or StatefulSet is used as
the controller. A pod with neither a Service nor such a controller gets no default constraints
(plugins/helper/spread.go: DefaultSelector).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from fairlead.api.objects import (
    LabelSelector,
    LabelSelectorRequirement,
    OwnerReference,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from fairlead.api.pods.facts import controller_of
from fairlead.engine.state.pod_index.pod_selector import AnchorIndex
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.related_objects import RelatedObjects

SelectorLabels = tuple[tuple[str, str], ...]
_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")
_WORKLOADS: Final[Mapping[tuple[str, str], type[ReplicaSet | StatefulSet]]] = {
    ("apps/v1", "ReplicaSet"): ReplicaSet,
    ("apps/v1", "StatefulSet"): StatefulSet,
}
_FOUND_MAX: Final = 1 << 14
_CONTROLLER: Final = ("v1", "ReplicationController")


class DefaultSelector(Struct, frozen=True):
    """The selector that default constraints use for pods of the same Services and owner.

    Two objects have the same `key` if their selectors are equal.
    """

    selector: LabelSelector
    key: bytes


class DefaultSelectors:
    """Caches default selectors by namespace, labels and owner until a related object changes."""

    def __init__(self, related: RelatedObjects) -> None:
        self._related = related
        self._read = -1
        self._services: dict[str, AnchorIndex[SelectorLabels]] = {}
        self._found: dict[object, DefaultSelector | None] = {}
        # A scheduling cycle needs the selector of its pod several times.
        self._last_pod: PodInfo | None = None
        self._last: DefaultSelector | None = None

    def of(self, pod: PodInfo) -> DefaultSelector | None:
        """Return the default selector of `pod`; None if the pod has no Service and no workload."""
        if self._read != self._related.version:
            self._read_services()
            self._last_pod = None
        if pod is not self._last_pod:
            self._last_pod, self._last = pod, self._find(pod)
        return self._last

    def _find(self, pod: PodInfo) -> DefaultSelector | None:
        services = self._services.get(pod.namespace)
        owner = controller_of(pod.pod.metadata) if pod.pod.metadata.owner_references else None
        if services is None and owner is None:
            return None
        key = (pod.namespace, frozenset(pod.labels.items()), owner)
        if key not in self._found:
            if len(self._found) >= _FOUND_MAX:
                self._found.clear()
            candidates = services.candidates(pod.labels) if services is not None else ()
            self._found[key] = self._deduce(pod, candidates, owner)
        return self._found[key]

    def _read_services(self) -> None:
        self._read = self._related.version
        self._found.clear()
        self._services.clear()
        for service in self._related.all_of(Service):
            selecting = tuple(service.spec.selector.items())
            if selecting:
                filed = self._services.setdefault(service.metadata.namespace, AnchorIndex())
                filed.add(selecting[0], selecting)

    def _deduce(
        self, pod: PodInfo, services: Sequence[SelectorLabels], owner: OwnerReference | None
    ) -> DefaultSelector | None:
        labels: dict[str, str] = {}
        for selecting in services:
            if all(pod.labels.get(key) == value for key, value in selecting):
                labels.update(selecting)
        expressions: tuple[LabelSelectorRequirement, ...] = ()
        if owner is not None:
            labels.update(self._controller_labels(pod.namespace, owner))
            expressions = self._workload_requirements(pod.namespace, owner)
        selector = LabelSelector(match_labels=labels, match_expressions=expressions)
        if selector == LabelSelector():
            return None
        return DefaultSelector(selector, _ENCODER.encode(selector))

    def _controller_labels(self, namespace: str, owner: OwnerReference) -> Mapping[str, str]:
        if (owner.api_version, owner.kind) != _CONTROLLER:
            return {}
        found = self._related.get(ReplicationController, f"{namespace}/{owner.name}")
        return {} if found is None else found.spec.selector

    def _workload_requirements(
        self, namespace: str, owner: OwnerReference
    ) -> tuple[LabelSelectorRequirement, ...]:
        """Return the requirements of the selector of the workload `owner`.

        The requirements may contradict the selectors of Services.
        """
        kind = _WORKLOADS.get((owner.api_version, owner.kind))
        found = None if kind is None else self._related.get(kind, f"{namespace}/{owner.name}")
        if found is None or found.spec.selector is None:
            return ()
        selector = found.spec.selector
        exact = tuple(
            LabelSelectorRequirement(key=key, operator="In", values=(value,))
            for key, value in sorted(selector.match_labels.items())
        )
        return exact + selector.match_expressions
