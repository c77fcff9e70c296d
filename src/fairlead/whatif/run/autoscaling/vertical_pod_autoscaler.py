"""RecommendedRequests: gives new pods the requests that VerticalPodAutoscalers recommend.

The admission webhook replaces the requests of every new pod of a workload that has a VPA, unless
the update mode of the VPA is Off. So a pod that is created again after an eviction can get other
requests than before. The recommendations are read from the dump. The updater, which evicts pods, is
not simulated.

upstream: autoscaler/vertical-pod-autoscaler/pkg/admission-controller/resource/pod/handler.go,
resource/vpa/matcher.go: GetMatchingVPA
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from msgspec import Struct, field

from fairlead.api.json import Json, mapping, text
from fairlead.apiserver.admission.attributes import AdmissionAttributes
from fairlead.apiserver.kind import JOB, LIMIT_RANGE, POD, REPLICA_SET, Kind
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import Instant
from fairlead.whatif.change.edit.container_range import ContainerRange, range_of
from fairlead.whatif.change.edit.vertical_pod_autoscaler import (
    VERTICAL_POD_AUTOSCALER,
    PodRecommendation,
    Target,
    pod_recommendations,
)
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import Manifest

_OWNED: Final = {one.kind: one for one in (REPLICA_SET, JOB)}  # may have a controller themselves
_NOTES_MAX: Final = 3


class _Known(Struct):
    """Results that stay valid until a VPA or LimitRange of the store changes."""

    objects: tuple[Json, ...] = ()
    by_target: dict[Target, PodRecommendation] = field(default_factory=dict)
    ranges: dict[str, ContainerRange] = field(default_factory=dict)  # by namespace


class _Admitted(Struct, frozen=True):
    """The changes that a recommendation made in a new pod at the instant `at`, as texts."""

    at: Instant
    recommendation: PodRecommendation
    changes: list[str]


class RecommendedRequests:
    """An admission plugin that gives new pods the requests that VPAs in the store recommend."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        """`now` returns the time of the run; it is called when a VPA changes a new pod."""
        self._now = now
        self._known = _Known()
        self._last: dict[Target, _Admitted] = {}

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Return the admitted object; if it is a new pod, set the requests that a VPA recommends.

        The requests come from the VPA of the pod's workload. A VPA with a malformed field is
        ignored, because an API server would have refused it.
        """
        obj = attributes.obj
        if attributes.kind is not POD or not attributes.is_new:
            return obj
        target = _target(obj, attributes.namespace, storage)
        found, spec, changes = self._applied(target, obj["spec"], storage)
        if found is None or not changes:
            return obj
        self._last[target] = _Admitted(self._now(), found, changes)
        return {**obj, "spec": spec}

    def recommended(self, pod: Json, storage: Storage) -> Json:
        """Return the spec of `pod` with the requests that a pod like it would get on creation."""
        target = _target(pod, pod["metadata"]["namespace"], storage)
        return self._applied(target, pod["spec"], storage)[1]

    def targets(self, storage: Storage) -> Collection[Target]:
        """Return the workloads whose new pods get the requests that a VPA recommends."""
        self._renew(storage)
        return self._known.by_target

    def _applied(
        self, target: Target, spec: Json, storage: Storage
    ) -> tuple[PodRecommendation | None, Json, list[str]]:
        """Return (the recommendation for `target`, the changed pod spec, texts on the changes)."""
        self._renew(storage)
        found = self._known.by_target.get(target)
        if found is None:
            return None, spec, []
        changed = {**spec, "containers": copy.deepcopy(spec.get("containers") or [])}
        try:
            return found, changed, list(found.apply(changed, self._range(target[0], storage)))
        except InputError:
            return None, spec, []

    def notes(self, since: Instant) -> Iterator[str]:
        """Yield notes about the VPAs that changed new pods at or after `since`."""
        notes = [
            one.recommendation.note(target, one.changes)
            for target, one in self._last.items()
            if one.at >= since
        ]
        yield from notes[:_NOTES_MAX]
        rest = len(notes) - _NOTES_MAX
        if rest > 0:
            yield f"VerticalPodAutoscalers set the requests of new pods of {rest:,} more workloads."

    def _renew(self, storage: Storage) -> None:
        vpas = tuple(storage.unsorted(VERTICAL_POD_AUTOSCALER))
        objects = (*vpas, *storage.unsorted(LIMIT_RANGE))
        if objects != self._known.objects:
            found = pod_recommendations(_manifests(VERTICAL_POD_AUTOSCALER, vpas))
            self._known = _Known(objects, found)

    def _range(self, namespace: str, storage: Storage) -> ContainerRange:
        ranges = self._known.ranges
        if namespace not in ranges:
            stored = storage.items(LIMIT_RANGE, namespace)
            ranges[namespace] = range_of(list(_manifests(LIMIT_RANGE, stored)))
        return ranges[namespace]


def _manifests(kind: Kind, objects: Iterable[Json]) -> Iterator[Manifest]:
    for obj in objects:
        meta = obj["metadata"]
        ref = ObjectRef(kind.kind, meta.get("namespace", ""), meta["name"], meta.get("uid", ""))
        yield Manifest("", kind, ref, obj)


def _target(pod: Json, namespace: str, storage: Storage) -> Target:
    """Return the workload that controls `pod`, directly or through a ReplicaSet or Job.

    upstream: vertical-pod-autoscaler/pkg/target/controller_fetcher/controller_fetcher.go:
    FindTopMostWellKnownOrScalable
    """
    found = _controller(pod)
    kind = _OWNED.get(text(found, "kind"))
    owner = None if kind is None else storage.find(kind, namespace, text(found, "name"))
    found = _controller(owner or {}) or found
    return namespace, text(found, "kind"), text(found, "name")


def _controller(obj: Json) -> Json:
    """Return the reference to the controller of `obj`; {} if `obj` has no controller."""
    references: Iterable[Json] = mapping(obj, "metadata").get("ownerReferences") or ()
    return next((one for one in references if one.get("controller")), {})
