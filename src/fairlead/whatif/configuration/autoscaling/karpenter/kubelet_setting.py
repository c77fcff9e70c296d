"""The settings for the kubelet in an EC2NodeClass, and the instance types with these settings.

    maxPods       the largest number of pods on a node; it replaces the number that the network
                  interfaces allow
    podsPerCore   limits the number of pods by the cores of the node; images of Bottlerocket ignore
                  it

    kubeReserved, systemReserved, evictionHard, evictionSoft
                  reserve resources (`KubeletReservation`). If a node of the class and of the
                  instance type exists, it shows how much its kubelet reserves. Otherwise, the
                  amounts follow from the settings

source: karpenter-provider-aws pkg/providers/instancetype/types.go: pods;
pkg/providers/amifamily/bottlerocket.go: FeatureFlags
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.objects import Node, QuantityText
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.text.name_list import joined
from fairlead.engine.autoscaling.karpenter.apis import NodeClassReference, NodePool
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL
from fairlead.whatif.configuration.autoscaling.allocatable import SystemReservations
from fairlead.whatif.configuration.autoscaling.instance_type_file import StatedType
from fairlead.whatif.configuration.autoscaling.karpenter.kubelet_reservation import (
    RESERVING,
    KubeletReservation,
    check_reservation,
)
from fairlead.whatif.configuration.autoscaling.node_price import type_of_labels
from fairlead.whatif.snapshot.manifest import Manifest

_KIND: Final = "EC2NodeClass"
_BOTTLEROCKET: Final = "Bottlerocket"
# source: pkg/providers/amifamily: FeatureFlags: UsesENILimitedMemoryOverhead
_WITHOUT_INTERFACES: Final = (_BOTTLEROCKET, "Windows2019", "Windows2022", "Windows2025")
_PODS: Final = 110  # source: types.go: pods


class NodeClassKubelet(Struct, frozen=True):
    """Settings that change the capacity of the nodes of a node class."""

    max_pods: int | None = None  # None if it is not set
    pods_per_core: int = 0
    reservation: KubeletReservation | None = None  # None if no setting reserves resources
    reserving: tuple[str, ...] = ()  # the names of the settings that reserve resources
    # Whether the kubelet reserves memory for as many pods as the network interfaces allow.
    memory_by_interfaces: bool = True
    problem: str = ""  # why settings are ignored, or ""

    @property
    def limits_pods(self) -> bool:
        """Whether the settings change the number of pods on a node."""
        return self.max_pods is not None or self.pods_per_core > 0

    @property
    def changes_nodes(self) -> bool:
        """Whether the settings change the number of pods or the reserved resources."""
        return self.limits_pods or self.reservation is not None

    @property
    def words(self) -> str:
        """The settings that limit pods, as in `maxPods 58 and podsPerCore 10`."""
        per_core = f"podsPerCore {self.pods_per_core:,}" if self.pods_per_core > 0 else ""
        most = "" if self.max_pods is None else f"maxPods {self.max_pods:,}"
        return joined([one for one in (most, per_core) if one])

    def reserved(
        self,
        one: StatedType,
        stated: StatedType,
        own: SystemReservations,
        other: SystemReservations,
    ) -> StatedType:
        """Return the type `one` with the allocatable amounts of nodes of the class.

        `stated` is `one` with only the allocatable amounts that a file states. `own` has the
        reservations of the nodes of the class, and `other` those of the nodes of all classes.
        """
        if self.reservation is None:
            return one
        if own.has_node_of(one):
            found = own.allocatable(stated)
        else:
            like = one if self.memory_by_interfaces else self.applied(one)
            pods = whole_value(like.allocatable.get("pods", _PODS))
            if self.memory_by_interfaces and one.interface_pods:
                pods = one.interface_pods
            found = self.reservation.allocatable(other.reported(stated), pods) | stated.allocatable
        kept = {name: amount for name, amount in found.items() if name != "pods"}
        return replace(one, allocatable={**one.allocatable, **kept})

    def applied(self, one: StatedType) -> StatedType:
        """Return the instance type `one` with the number of pods that these settings allow.

        If maxPods is not set, the number follows from the file of instance types, the network
        interfaces or an existing node.
        """
        if not self.limits_pods:
            return one
        pods = self.max_pods
        if pods is None:
            stated = one.capacity.get("pods")
            derived = stated or one.interface_pods or one.allocatable.get("pods", _PODS)
            pods = whole_value(derived)
        if self.pods_per_core > 0:
            pods = min(pods, self.pods_per_core * (milli_value(one.capacity["cpu"]) // 1000))
        number = {"pods": str(pods)}
        return replace(one, capacity=one.capacity | number, allocatable=one.allocatable | number)


class _KubeletForm(msgspec.Struct, rename="camel"):
    max_pods: int | None = None
    pods_per_core: int | None = None
    kube_reserved: dict[str, QuantityText] | None = None
    system_reserved: dict[str, QuantityText] | None = None
    eviction_hard: dict[str, QuantityText] | None = None
    eviction_soft: dict[str, QuantityText] | None = None


class _TermForm(msgspec.Struct):
    alias: str = ""


class _SpecForm(msgspec.Struct, rename="camel"):
    kubelet: _KubeletForm | None = None
    ami_family: str = ""
    ami_selector_terms: list[_TermForm] = []


class _NodeClassForm(msgspec.Struct):
    """The parts of an EC2NodeClass that change the capacity of nodes."""

    spec: _SpecForm = msgspec.field(default_factory=_SpecForm)


def kubelet_settings(
    pools: Iterable[NodePool], found: Iterable[Manifest]
) -> dict[NodeClassReference, NodeClassKubelet]:
    """Return the settings of the EC2NodeClasses in `found` that `pools` use.

    Classes that state no settings are left out.
    """
    used = {pool.spec.template.spec.node_class_ref for pool in pools}
    settings: dict[NodeClassReference, NodeClassKubelet] = {}
    for one in found:
        if one.kind.kind == _KIND:
            ref = NodeClassReference(group=one.kind.group, kind=_KIND, name=one.ref.name)
            stated = _settings_in(one.value)
            if ref in used and (stated.changes_nodes or stated.problem):
                settings[ref] = stated
    return settings


def _settings_in(value: Json) -> NodeClassKubelet:
    try:
        spec = msgspec.convert(value, _NodeClassForm).spec
    except msgspec.ValidationError as cause:
        return NodeClassKubelet(problem=str(cause))
    stated = spec.kubelet or _KubeletForm()
    aliases = (term.alias.partition("@")[0] for term in spec.ami_selector_terms)
    families = {spec.ami_family, *map(str.title, aliases)}
    is_bottlerocket = _BOTTLEROCKET in families
    reservation = KubeletReservation(
        stated.kube_reserved or {},
        stated.system_reserved or {},
        stated.eviction_hard or {},
        (stated.eviction_soft or {}) if not is_bottlerocket else {},
    )
    problem = ""
    try:
        check_reservation(reservation)
    except ValueError as cause:
        reservation, problem = KubeletReservation(), str(cause)
    is_reserving = reservation != KubeletReservation()
    return NodeClassKubelet(
        stated.max_pods,
        0 if is_bottlerocket else max(0, stated.pods_per_core or 0),
        reservation if is_reserving else None,
        tuple(name for name in RESERVING if (value["spec"].get("kubelet") or {}).get(name))
        if is_reserving
        else (),
        memory_by_interfaces=families.isdisjoint(_WITHOUT_INTERFACES),
        problem=problem,
    )


def types_of_classes(
    pools: Iterable[NodePool],
    found: Iterable[Manifest],
    types: Iterable[StatedType],
    stated: Iterable[StatedType],
    nodes: Iterable[Node],
) -> dict[NodeClassReference, list[StatedType]]:
    """Return the changed `types` for each node class of `pools` whose kubelet settings change them.

    `types` must have allocatable amounts; `stated` are the same types with only the amounts that a
    file states. `found` contains the node classes, and `nodes` are the nodes of the cluster.
    """
    both, every, pools = list(zip(types, stated, strict=True)), list(nodes), list(pools)
    known = [one for _, one in both]
    other = SystemReservations(every, known)
    changed: dict[NodeClassReference, list[StatedType]] = {}
    for ref, one in kubelet_settings(pools, found).items():
        if not one.changes_nodes:
            continue
        names = nodes_of_classes({ref}, pools, every)
        own = SystemReservations((node for node in every if node.metadata.name in names), known)
        changed[ref] = [
            one.applied(one.reserved(each, as_stated, own, other)) for each, as_stated in both
        ]
    return changed


def nodes_with_limits(
    pools: Iterable[NodePool], found: Iterable[Manifest], nodes: Iterable[Node]
) -> frozenset[str]:
    """Return the names of those `nodes` whose node class limits the number of their pods.

    `found` contains the node classes.
    """
    return nodes_of_classes(_classes(found, lambda one: one.limits_pods), pools, nodes)


def reserving_as_usual(
    pools: Iterable[NodePool], found: Iterable[Manifest], nodes: Iterable[Node]
) -> list[Node]:
    """Return the `nodes` whose node class has no settings that reserve resources.

    If all nodes of an instance type have a class with such settings, the nodes of this type are
    returned, too. `found` contains the classes.
    """
    every = list(nodes)
    reserving = _classes(found, lambda one: one.reservation is not None)
    names = nodes_of_classes(reserving, pools, every)
    usual = {_type_of(node) for node in every if node.metadata.name not in names}
    return [
        node for node in every if node.metadata.name not in names or _type_of(node) not in usual
    ]


def _type_of(node: Node) -> str:
    return type_of_labels(node.metadata.labels)


def _classes(
    found: Iterable[Manifest], has: Callable[[NodeClassKubelet], bool]
) -> frozenset[NodeClassReference]:
    """Return the EC2NodeClasses in `found` for whose settings `has` returns True."""
    return frozenset(
        NodeClassReference(group=one.kind.group, kind=_KIND, name=one.ref.name)
        for one in found
        if one.kind.kind == _KIND and has(_settings_in(one.value))
    )


def nodes_of_classes(
    classes: Collection[NodeClassReference], pools: Iterable[NodePool], nodes: Iterable[Node]
) -> frozenset[str]:
    """Return the names of the `nodes` whose node class is one of `classes`.

    A label of the node names its class. If this label is missing, the node has the class of its
    NodePool in `pools`.

    upstream: karpenter pkg/apis/v1/labels.go: NodeClassLabelKey
    """
    if not classes:
        return frozenset()
    keys = {f"{ref.group}/{ref.kind.lower()}": ref for ref in classes}
    by_pool = {pool.metadata.name: pool.spec.template.spec.node_class_ref for pool in pools}
    names = set()
    for node in nodes:
        labels = node.metadata.labels
        stated = [replace(ref, name=labels[key]) for key, ref in keys.items() if key in labels]
        of_pool = by_pool.get(labels.get(NODE_POOL, ""), NodeClassReference())
        if any(ref in classes for ref in stated or [of_pool]):
            names.add(node.metadata.name)
    return frozenset(names)


def without_limits(nodes: Iterable[Node], limited: Container[str]) -> list[Node]:
    """Return `nodes`; the nodes that `limited` names no longer state their number of pods.

    The nodes that `limited` names come last, because the size of an instance type is taken from the
    first node of the type.
    """
    every = list(nodes)
    return [
        *(node for node in every if node.metadata.name not in limited),
        *(_without_pods(node) for node in every if node.metadata.name in limited),
    ]


def _without_pods(node: Node) -> Node:
    capacity, allocatable = (
        {name: amount for name, amount in amounts.items() if name != "pods"}
        for amounts in (node.status.capacity, node.status.allocatable)
    )
    status = replace(node.status, capacity=capacity, allocatable=allocatable)
    return replace(node, status=status)


def setting_notes(settings: Mapping[NodeClassReference, NodeClassKubelet]) -> Iterator[str]:
    """Yield notes about kubelet settings that are applied, and about settings that are ignored."""
    for ref in _ordered(settings):
        one = settings[ref]
        if one.limits_pods:
            yield f"New nodes of {ref.kind} {ref.name} have its limits of pods: {one.words}."
    for ref in _ordered(settings):
        if settings[ref].reserving:
            yield (
                f"New nodes of {ref.kind} {ref.name} reserve as much as its existing nodes of the "
                f"instance type. Without such a node, {joined(list(settings[ref].reserving))} of "
                "the class and Karpenter's defaults apply."
            )
    for ref in _ordered(settings):
        if problem := settings[ref].problem:
            yield f"Invalid kubelet settings of {ref.kind} {ref.name} are ignored: {problem}"


def _ordered(settings: Iterable[NodeClassReference]) -> Sequence[NodeClassReference]:
    return sorted(settings, key=lambda ref: (ref.group, ref.name))
