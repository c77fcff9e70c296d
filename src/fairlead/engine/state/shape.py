"""Shape: the compiled part of a pod spec that affects scheduling, shared by equivalent pods.

Plugin caches are keyed by shape. Selectors, requests, ports and images are computed once per
distinct spec instead of once per pod. Priority, labels, names and the assigned node are not part of
the shape, but of `PodInfo`. A shape states whether a volume plugin needs a pod's volumes, but does
not contain the volumes. Volumes differ between pods: each pod of a StatefulSet has its own claims,
and almost every pod has a token volume with a random name.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from fairlead.api.objects import ContainerStatus, Pod, PodSpec, PodStatus, Volume
from fairlead.api.pods.host_port import host_ports
from fairlead.api.pods.image import pod_images
from fairlead.api.pods.requests import RESIZE_PENDING, pod_nonzero_requests, pod_requests
from fairlead.api.pods.volumes import is_placed
from fairlead.engine.state.resource_columns import CPU, MEMORY, ResourceColumns

_ENCODER: Final = msgspec.msgpack.Encoder()
_NO_VOLUMES: Final = ((), False)
_KEYS_MAX: Final = 256  # for each key, a pod is kept
_HUGE: Final = 1 << 48  # the sum of 2 ** 15 smaller requests fits in int64
HostPort = tuple[str, str, int]
Amounts = tuple[tuple[int, int], ...]
_Key = tuple[bytes, bytes]  # (key of the affinity, key of all other parts)


class _Sums:
    """The sums of requests of pods with equal containers, resources, overhead and in-place resizes.

    Pod specs (`Shape`) that differ only in other fields share one object. For example, the specs of
    a DaemonSet's pods differ only in their affinity.
    """

    __slots__ = (
        "__weakref__",
        "container_count",
        "load",
        "memory",
        "milli_cpu",
        "nonzero_load",
        "nonzero_requests",
        "requests",
        "wanted",
    )

    def __init__(self, pod: Pod, columns: ResourceColumns) -> None:
        self.requests: Amounts = columns.amounts(pod_requests(pod))
        self.nonzero_requests = pod_nonzero_requests(pod, existing=False)
        self.load: Amounts = self.requests
        self.nonzero_load = self.nonzero_requests
        # A placed pod usually occupies the amounts that it requests. The amounts may differ if the
        # spec has pod-level resources, or if the status shows an in-place resize.
        if pod.spec.resources is not None or _reported_resources_key(pod) is not None:
            self.load = columns.amounts(pod_requests(pod, existing=True))
            self.nonzero_load = pod_nonzero_requests(pod, existing=True)
        amounts = dict(self.requests)
        self.milli_cpu = amounts.get(CPU, 0)
        self.memory = amounts.get(MEMORY, 0)
        self.wanted: Amounts = tuple((c, amount) for c, amount in self.requests if amount)
        self.container_count = len(pod.spec.containers) + len(pod.spec.init_containers)


class Shape:
    """The part of a pod spec that affects scheduling; pods with an equal part share a Shape.

    `requests` are the requests of a pending pod of this shape. `load` are the requests of a placed
    pod, which also depend on the status of an in-place resize. `requests` and `load` are (column,
    amount) pairs in base units; cpu is in millicores. `nonzero_requests` and `nonzero_load` are
    (cpu in millicores, memory in bytes). In these two sums, containers without requests count with
    upstream's default amounts (least_allocated.go). `has_volumes` is True if a volume plugin may
    need the volumes of the shape's pods. `spec` is the spec of one of these pods; the other pods
    may have other volumes.
    """

    __slots__ = (
        "_amounts_of",
        "container_count",
        "has_volumes",
        "host_ports",
        "id",
        "images",
        "load",
        "milli_cpu",
        "memory",
        "nonzero_load",
        "nonzero_requests",
        "requests",
        "spec",
        "sums",
        "wanted",
        "__weakref__",
    )

    def __init__(self, shape_id: int, pod: Pod, sums: _Sums, like: Shape | None = None) -> None:
        """Compile the shape of `pod`, whose requests add up to `sums`.

        `like` is a known shape that differs from the new shape only in its affinity, or None.
        """
        spec = pod.spec
        self.id = shape_id
        self.spec: PodSpec = spec
        self.sums = sums  # the cache in ShapeTable has only weak references
        self.requests = sums.requests
        self.nonzero_requests = sums.nonzero_requests
        self.load = sums.load
        self.nonzero_load = sums.nonzero_load
        self.milli_cpu = sums.milli_cpu
        self.memory = sums.memory
        self.wanted = sums.wanted
        self.host_ports: tuple[HostPort, ...] = like.host_ports if like else host_ports(spec)
        self.images: tuple[str, ...] = like.images if like else pod_images(spec)
        self.container_count = sums.container_count
        self._amounts_of: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
        self.has_volumes: bool = like.has_volumes if like else any(map(is_placed, spec.volumes))

    def requested_of(self, column: int) -> int:
        """Return the amount that a pending pod requests of the resource in `column`."""
        return next((amount for each, amount in self.requests if each == column), 0)

    def amounts_of(self, columns: tuple[int, ...]) -> tuple[int, ...]:
        """Return the amount of each resource in `columns` that a placed pod occupies; cached."""
        if self._amounts_of[0] != columns:
            load = dict(self.load)
            self._amounts_of = columns, tuple(load.get(column, 0) for column in columns)
        return self._amounts_of[1]


def _sums_key(pod: Pod) -> bytes:
    spec = pod.spec
    return _ENCODER.encode(
        (
            spec.containers,
            spec.init_containers,
            spec.overhead,
            spec.resources,
            _reported_resources_key(pod),
        )
    )


def _key_of(pod: Pod) -> _Key:
    """Return a key that is equal for pods of one shape."""
    spec = pod.spec
    others = _ENCODER.encode(
        (
            spec.containers,
            spec.init_containers,
            spec.overhead,
            spec.resources,
            _reported_resources_key(pod),
            sorted(spec.node_selector.items()) if spec.node_selector else None,
            spec.tolerations,
            spec.topology_spread_constraints,
            _volumes_key(spec),
            spec.resource_claims,
            spec.host_network,
            spec.host_users,
        )
    )
    return _affinity_key(spec), others


def _affinity_key(spec: PodSpec) -> bytes:
    return b"" if spec.affinity is None else _ENCODER.encode(spec.affinity)


def _volumes_key(spec: PodSpec) -> object:
    if not spec.volumes:
        return _NO_VOLUMES
    images = [volume.image for volume in spec.volumes if volume.image is not None]
    return images, any(is_placed(volume) for volume in spec.volumes)


def _reported_resources_key(pod: Pod) -> object:
    """Return the resources in the pod's status, for comparisons with other pods.

    Returns None if these resources do not change the pod's requests. Every running pod reports
    resources. Except during a resize, the reported resources equal the resources in the spec.
    """
    spec, status = pod.spec, pod.status
    statuses = status.container_statuses
    if status.init_container_statuses:
        statuses = (*statuses, *status.init_container_statuses)
    if status.resources is None and not _is_resized(spec, statuses):
        return None
    resizing = [c for c in status.conditions if c.type == RESIZE_PENDING]
    sizes = [(s.name, s.resources, s.allocated_resources) for s in statuses]
    of_pod = status.resources, status.allocated_resources
    return [len(status.container_statuses), sizes, resizing, of_pod]


def _is_resized(spec: PodSpec, statuses: Sequence[ContainerStatus]) -> bool:
    """Return whether the requests in `statuses` differ from the container requests in `spec`."""
    reported = [one for one in statuses if one.resources is not None]
    if not reported:
        return False
    wanted = {one.name: one.resources.requests for one in (*spec.containers, *spec.init_containers)}
    for one in reported:
        assert one.resources is not None
        requests = wanted.get(one.name)
        if one.resources.requests != requests or one.allocated_resources not in ({}, requests):
            return True
    return False


def _have_equal_reported_resources(one: Pod, other: Pod) -> bool:
    """Return whether two pods have equal `_reported_resources_key`s.

    The comparison is fast if the resources in the pods' statuses are equal.
    """
    before, after = one.status, other.status
    statuses, others = before.container_statuses, after.container_statuses
    if (
        (statuses is others or _have_equal_resources(statuses, others))
        and before.init_container_statuses is after.init_container_statuses
        and before.resources == after.resources
        and before.allocated_resources == after.allocated_resources
        and (before.conditions is after.conditions or not (_resizes(before) or _resizes(after)))
    ):
        return True
    return _reported_resources_key(one) == _reported_resources_key(other)


def _have_equal_resources(
    statuses: Sequence[ContainerStatus], others: Sequence[ContainerStatus]
) -> bool:
    """Return whether the containers have equal names and equal resources, in the same order."""
    if len(statuses) != len(others):
        return False
    for one, other in zip(statuses, others, strict=True):
        if (
            one.resources != other.resources
            or one.allocated_resources != other.allocated_resources
            or one.name != other.name
        ):
            return False
    return True


def _resizes(status: PodStatus) -> bool:
    for one in status.conditions:  # noqa: SIM110, because it is called for each change of a pod
        if one.type == RESIZE_PENDING:
            return True
    return False


def is_same_shape(before: Pod, after: Pod) -> bool:
    """Return True if two pods certainly have equal scheduling-relevant specs (`Shape`).

    If the result is False, the specs may still be equal.
    """
    if before.spec is not after.spec and not (
        _have_equal_requests(before.spec, after.spec)
        and before.spec.affinity == after.spec.affinity
        and _have_equal_other_fields(before.spec, after.spec)
    ):
        return False
    return _have_equal_reported_resources(before, after)


def _have_equal_requests(one: PodSpec, other: PodSpec) -> bool:
    return (
        one.containers == other.containers
        and one.init_containers == other.init_containers
        and one.overhead == other.overhead
        and one.resources == other.resources
    )


def _have_equal_other_fields(one: PodSpec, other: PodSpec) -> bool:
    """Return True if the keys (`_key_of`) of two specs are certainly equal, except for two parts.

    The two parts are the affinity and the fields that `_have_equal_requests` compares. The callers
    compare these parts. If the result is False, the keys may still be equal. This function takes
    half the time that `_key_of` takes for one spec.
    """
    return (
        one.node_selector == other.node_selector
        and one.tolerations == other.tolerations
        and one.topology_spread_constraints == other.topology_spread_constraints
        and one.resource_claims == other.resource_claims
        and one.host_network == other.host_network
        and one.host_users == other.host_users
        and (one.volumes is other.volumes or _have_equal_volumes_keys(one.volumes, other.volumes))
    )


def _have_equal_volumes_keys(volumes: Sequence[Volume], others: Sequence[Volume]) -> bool:
    """Return True if `_volumes_key` is certainly equal for specs with `volumes` and `others`."""
    if len(volumes) != len(others):
        return False
    for one, other in zip(volumes, others, strict=True):
        if one is other:
            continue
        if one.image is not None or other.image is not None or is_placed(one) != is_placed(other):
            return False
    return True


class _Latest(Struct, frozen=True, eq=False):
    """The last pod whose `Shape`, the scheduling-relevant part of its spec, was looked up.

    Most pods have the same `Shape` as the pod before them, because pods are loaded workload by
    workload.
    """

    pod: Pod
    shape: Shape
    key: _Key

    def has_sums_of(self, pod: Pod) -> bool:
        """Return True if comparing `pod` with `self.pod` shows that their request sums are equal.

        If the result is False, the sums may still be equal.
        """
        return _have_equal_requests(self.pod.spec, pod.spec) and _have_equal_reported_resources(
            self.pod, pod
        )


class _KnownKey(Struct, frozen=True, eq=False):
    """A pod, and the key of its shape."""

    pod: Pod
    key: _Key

    def of(self, pod: Pod) -> _Key | None:
        """Return the key of the shape of `pod`; None if it cannot be derived from `self.key`."""
        before, spec = self.pod.spec, pod.spec
        if not (
            _have_equal_requests(before, spec)
            and _have_equal_other_fields(before, spec)
            and _have_equal_reported_resources(self.pod, pod)
        ):
            return None
        if before.affinity is spec.affinity:
            return self.key
        return _affinity_key(spec), self.key[1]


class ShapeTable:
    """The shapes of one cluster; pods with equal scheduling-relevant specs share a `Shape`.

    Shapes get ids in order of first use. A shape exists while a pod or a plan (`ShapePlan`) refers
    to it. If an equal spec occurs again later, it gets a new shape with a new id.
    """

    def __init__(self, columns: ResourceColumns) -> None:
        """Start without shapes; `columns` is the cluster's resource table."""
        self._columns = columns
        self._sums: WeakValueDictionary[bytes, _Sums] = WeakValueDictionary()
        self._shapes: WeakValueDictionary[_Key, Shape] = WeakValueDictionary()
        self._ids = count()
        self.has_huge = False  # whether sums of requests may exceed int64
        self._latest: _Latest | None = None
        # By id() of the list of containers. A planner places, removes and restores the pods of some
        # workloads again and again, in any order.
        self._known_keys: dict[int, _KnownKey] = {}

    def shape_of(self, pod: Pod) -> Shape:
        """Return the `Shape` of `pod`; compile a new `Shape` if no equal one exists.

        Raises QuantityError if a quantity cannot be parsed.
        """
        latest, spec = self._latest, pod.spec
        if (
            latest is not None
            and latest.has_sums_of(pod)
            and _have_equal_other_fields(latest.pod.spec, spec)
        ):
            if latest.pod.spec.affinity == spec.affinity:
                return latest.shape
            return self.shape_of_replica(pod)
        key = self._key_of(pod)
        shape = self._shapes.get(key)
        if shape is None:
            sums_key = _sums_key(pod)
            sums = self._sums.get(sums_key)
            if sums is None:
                sums = self._sums[sums_key] = _Sums(pod, self._columns)
                self.has_huge |= any(amount > _HUGE for _, amount in sums.load)
            shape = self._shapes[key] = Shape(next(self._ids), pod, sums)
        self._latest = _Latest(pod, shape, key)
        return shape

    def _key_of(self, pod: Pod) -> _Key:
        """Return the key of the shape of `pod`, derived from a similar pod's key if possible."""
        known = self._known_keys.get(id(pod.spec.containers))
        key = known.of(pod) if known is not None else None
        if key is None:
            key = _key_of(pod)
            if len(self._known_keys) >= _KEYS_MAX:
                self._known_keys.clear()
            # The pod keeps its list of containers, so no other list gets the same id().
            self._known_keys[id(pod.spec.containers)] = _KnownKey(pod, key)
        return key

    def shape_of_replica(self, pod: Pod) -> Shape:
        """Return the shape of `pod`, which resembles the pod that was looked up last.

        The caller has checked that the keys (`_key_of`) of the two pods are equal, except perhaps
        for the affinity.
        """
        latest = self._latest
        assert latest is not None
        like = latest.shape
        key = _affinity_key(pod.spec), latest.key[1]
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = Shape(next(self._ids), pod, like.sums, like)
        self._latest = _Latest(pod, shape, key)
        return shape
