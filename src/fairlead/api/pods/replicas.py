"""Replicas: pods that are equal in everything but the parts that identify or locate a pod.

In a dump, the pods of a workload are usually adjacent. These pods are grouped, so that their common
parts are examined only once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, count, repeat
from operator import attrgetter
from typing import Final, overload

from msgspec import Struct

from fairlead.api.lazy_dict import Row
from fairlead.api.objects import (
    Affinity,
    ApiObject,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodCondition,
    PodSpec,
    PodStatus,
    Volume,
)


def _parts_except(view: type[Struct], *fields: str) -> attrgetter[tuple[object, ...]]:
    """Return a function that returns the field values of an object of type `view`, as a tuple.

    The tuple leaves out `fields`.
    """
    return attrgetter(*(one for one in view.__struct_fields__ if one not in fields))


_own_metadata: Final = _parts_except(
    ObjectMeta, "name", "uid", "creation_timestamp", "resource_version"
)
_own_spec: Final = _parts_except(PodSpec, "node_name", "affinity", "volumes")
_own_status: Final = _parts_except(PodStatus, "start_time", "pod_ip", "conditions")
_own_volume: Final = _parts_except(Volume, "name")
_own_condition: Final = _parts_except(PodCondition, "last_transition_time")


class Replicas:
    """One or more pods that are equal in everything but the parts that identify or locate a pod.

    The pods may differ in name, uid, resourceVersion, node, addresses, times, volume names and
    affinity. All or none of them have a node, and all or none have a start time. The affinity may
    differ because the node affinity of a DaemonSet's pod contains the name of its node.

    The properties that are sequences have one entry for each pod.
    """

    def __init__(self, pods: Sequence[Pod]) -> None:
        """Store `pods`, which must not be changed later."""
        self._pods = pods

    def __len__(self) -> int:
        return len(self._pods)

    @overload
    def __getitem__(self, index: int) -> Pod: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Pod]: ...

    def __getitem__(self, index: int | slice) -> Pod | Sequence[Pod]:
        return self._pods[index]

    def __iter__(self) -> Iterator[Pod]:
        """Return an iterator over the pods, faster than the default iterator of Sequence."""
        return iter(self._pods)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Replicas) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # as lists

    @cached_property
    def names(self) -> Sequence[str]:
        """The names of the pods."""
        return [pod.metadata.name for pod in self]

    @cached_property
    def keys(self) -> Sequence[str]:
        """The keys of the pods, `namespace/name`."""
        prefix = f"{self[0].metadata.namespace}/"
        return [prefix + name for name in self.names]

    @cached_property
    def uids(self) -> Sequence[str]:
        """The UIDs of the pods."""
        return [pod.metadata.uid for pod in self]

    @cached_property
    def nodes(self) -> Sequence[str]:
        """The names of the nodes; empty strings for pods without a node."""
        return [pod.spec.node_name for pod in self]

    @cached_property
    def created(self) -> Sequence[str]:
        """The creationTimestamps of the pods."""
        return [pod.metadata.creation_timestamp for pod in self]

    @cached_property
    def start_times(self) -> Sequence[str]:
        """The startTimes of the statuses; empty strings for pods that have not started."""
        return [pod.status.start_time for pod in self]

    @cached_property
    def have_own_keys(self) -> bool:
        """Whether all pods have a uid, and no two have the same uid or name."""
        uids = {*self.uids}
        return "" not in uids and len({*self.names}) == len(uids) == len(self)

    @cached_property
    def share_pod_affinity(self) -> bool:
        """Whether all pods have the same pod affinity; their node affinity may differ."""
        first = self[0].spec.affinity
        others = {id(pod.spec.affinity): pod.spec.affinity for pod in self}.values()
        return all(one is first or _to_pods(one) == _to_pods(first) for one in others)

    @cached_property
    def rows(self) -> Sequence[Row]:
        """For each pod, (`self`, index): a LazyDict row, from which `pod_at` returns the pod."""
        return list(zip(repeat(self, len(self)), count()))

    @cached_property
    def rows_by_name(self) -> dict[str, Row]:
        """The items of `rows` by the pod's name; an argument for `LazyDict.load`."""
        return dict(zip(self.names, self.rows, strict=True))

    @cached_property
    def rows_by_key(self) -> dict[str, Row]:
        """The items of `rows` by the pod's `namespace/name`; an argument for `LazyDict.load`."""
        return dict(zip(self.keys, self.rows, strict=True))

    @cached_property
    def rows_by_uid(self) -> dict[str, Row]:
        """The items of `rows` by the pod's uid; an argument for `LazyDict.load`."""
        return dict(zip(self.uids, self.rows, strict=True))


def pod_at(replicas: Replicas, index: int) -> Pod:
    """Return the pod at `index` of `replicas`.

    A LazyDict of pods gets this function as its argument `make`.
    """
    return replicas[index]


def _to_pods(affinity: Affinity | None) -> tuple[PodAffinity | None, PodAffinity | None]:
    return (None, None) if affinity is None else (affinity.pod_affinity, affinity.pod_anti_affinity)


class LoadedObjects(Sequence[ApiObject]):
    """All objects loaded at the start of a run: `others`, and then the pods in `replicas`."""

    def __init__(self, others: Iterable[ApiObject], replicas: Iterable[Replicas]) -> None:
        """Store `others` and `replicas`; their order is kept."""
        self.others = list(others)
        self.replicas = list(replicas)

    def __len__(self) -> int:
        return len(self.others) + sum(map(len, self.replicas))

    @overload
    def __getitem__(self, index: int) -> ApiObject: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ApiObject]: ...

    def __getitem__(self, index: int | slice) -> ApiObject | Sequence[ApiObject]:
        return list(self)[index]

    def __iter__(self) -> Iterator[ApiObject]:
        return chain(self.others, *self.replicas)

    @property
    def uids(self) -> Iterator[str]:
        """The uids of all objects."""
        uids = (one.metadata.uid for one in self.others)
        return chain(uids, *(replicas.uids for replicas in self.replicas))


def neighbouring_replicas(pods: Iterable[Pod], templates: Iterable[object] = ()) -> list[Replicas]:
    """Return `pods` in their order, with neighbouring replicas grouped into `Replicas`.

    `templates` is empty, or has one item for each pod: the pod's template, or None if the pod has
    none. Neighbouring pods with the same template object are replicas if all or none of them have a
    node, and all or none have a start time. Other neighbouring pods are compared part by part.
    """
    found: list[list[Pod]] = []
    latest: object = None
    has_node = has_start = False
    like: tuple[object, ...] | None = None
    volumes: Sequence[Volume] = ()
    conditions: Sequence[PodCondition] = ()
    for pod, template in zip(pods, chain(templates, repeat(None)), strict=False):
        spec, status = pod.spec, pod.status
        if (
            template is not None
            and template is latest
            and (spec.node_name != "") is has_node
            and (status.start_time != "") is has_start
        ):
            found[-1].append(pod)
            continue
        latest, has_node, has_start = template, spec.node_name != "", status.start_time != ""
        # Equal parts of replicas are mostly the same object, so this comparison is fast.
        parts = (
            _own_metadata(pod.metadata),
            _own_spec(spec),
            _own_status(status),
            has_node,
            has_start,
        )
        if (
            parts == like
            and (spec.volumes is volumes or _are_equal(spec.volumes, volumes, _own_volume))
            and (
                status.conditions is conditions
                or _are_equal(status.conditions, conditions, _own_condition)
            )
        ):
            found[-1].append(pod)
        else:
            like, volumes, conditions = parts, spec.volumes, status.conditions
            found.append([pod])
    return list(map(Replicas, found))


def _are_equal(
    some: Sequence[object], others: Sequence[object], parts: attrgetter[tuple[object, ...]]
) -> bool:
    """Return whether `some` and `others` have the same length and equal parts at each index.

    `parts` returns the parts of an item.
    """
    if len(some) != len(others):
        return False
    for one, other in zip(some, others, strict=True):
        if one is not other and parts(one) != parts(other):
            return False
    return True
