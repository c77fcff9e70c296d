"""NodeOffer: a kind of node that can be added to a cluster: a pool, an instance type and a zone.

Nodes form a pool if they are equal except for place, type, size and devices. New nodes of a pool
can be in any zone of the cluster that has a Ready node. If no present node of the pool has a zone,
new nodes have a zone only if their type is sold only in certain zones. A file of instance types
determines the types of a pool's new nodes. A type must have the architecture, operating system and
capacity type of the pool. If there is no file, new nodes can have the types of the pool's present
nodes. Nodes of one type with different devices count as several types. If the nodes of the pool
belong to a NodePool of Karpenter, new nodes meet the requirements of the NodePool.

A new node is modelled on an existing node of its pool, if possible on a node of the same type. The
new node has the same labels, taints, static pods and volume limits, and pods of the same
DaemonSets. If it has the same type as the existing node, it also has the same devices
(ResourceSlices). The resources that the new node reserves for the system follow from the nodes of
its pool (`SystemReservations`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.nodes.readiness import is_ready_node
from fairlead.api.objects import Node, QuantityText, ResourceList
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.resource_name import is_native_resource
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import ARCH, OS, STABLE, ZONE
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaimtemplate import pool_requirements
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import Requirements
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import allocatable_amount
from fairlead.whatif.configuration.autoscaling.allocatable import (
    Assumption,
    SystemReservations,
    reservation_notes,
    size_notes,
)
from fairlead.whatif.configuration.autoscaling.instance_type_file import (
    StatedType,
    assumed_spot_prices,
    type_requirements,
)
from fairlead.whatif.configuration.autoscaling.karpenter.provider_label import (
    FACT_LABELS,
    labels_with_type,
    provider_groups,
    unchecked_requirements,
    with_type_labels,
)
from fairlead.whatif.configuration.autoscaling.node_price import (
    TYPE_LABELS,
    price_uses,
    type_of_node,
)
from fairlead.whatif.configuration.autoscaling.open_cost_price import capacity_type_of
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node.device_kind import DeviceKinds
from fairlead.whatif.planner.node.node_copy import (
    NodeCopy,
    node_like,
    node_to_copy,
    own_labels_of,
    own_pods,
    pod_on,
)
from fairlead.whatif.snapshot.node_pool import (
    POOL_LABELS,
    NodeTraits,
    labels_in_zone,
    managed_pool,
    name_of_node,
    node_traits,
)

_SCALED: Final = ("cpu", "memory")
# Weights for comparing types if no prices are stated.
_CORE_WEIGHT: Final = 0.03
_GIB_WEIGHT: Final = 0.004
_GIB: Final = 1 << 30
# The prefix of the labels in which EKS names the launch template of a node group.
_TEMPLATE: Final = "eks.amazonaws.com/sourceLaunchTemplate"


class NodeOffer(Struct, frozen=True):
    """A kind of node of which any number can be added.

    A new node is a copy of `sample` with `node_type` and `zone`.
    """

    pool: str
    node_type: str
    zone: str
    price: float  # per hour
    sample: NodeInfo
    capacity: ResourceList
    allocatable: ResourceList
    own_pods: tuple[PodInfo, ...] = ()  # the pods of DaemonSets and the static pods of a new node
    own_labels: tuple[str, ...] = ()  # the keys of the labels whose value is the name of the node
    today: tuple[str, ...] = ()  # the names of the existing nodes of this kind
    # The labels that follow from a type in a file; None means that the new node has the type of
    # `sample`, with its labels.
    type_labels: Mapping[str, str] | None = None
    # Names the properties in which offers of the same type differ: the size of the machine
    # (`8/32Gi` in clusters of k3s), the maximum number of pods (`110 pods`), and the devices (`4
    # gpu.example.com devices`). "" if the offers of the type do not differ in these properties.
    size: str = ""
    devices: Hashable = frozenset()  # nodes of two offers with the same value have equal devices

    @property
    def title(self) -> str:
        """A name for messages: type, zone and pool."""
        return " ".join(part for part in (self.node_type, self.zone, self.pool) if part)

    @property
    def has_devices(self) -> bool:
        """Whether a new node has the devices of `sample`."""
        return self.node_type == _type_or_size(self.sample)

    def room(self, resources: Sequence[str]) -> list[float]:
        """Return the room for new pods: an amount per resource, then the number of pods.

        `resources` are the names of the resources, in the order of `Shape.load` and of the result.
        The requests of `own_pods` are subtracted.
        """
        found = [float(allocatable_amount(name, self.allocatable)) for name in resources]
        found.append(float(whole_value(self.allocatable.get("pods", 0))))
        for pod in self.own_pods:
            found[-1] -= 1
            for column, amount in pod.shape.load:
                found[column] -= amount
        return found

    def node(self, name: str) -> NodeCopy:
        """Return a new node of this kind with the name `name`."""
        pods = tuple(pod_on(pod.pod, name) for pod in self.own_pods)
        return NodeCopy(self._node(name), pods, self.sample.name, self.has_devices)

    def with_own_pods(self, model: ClusterModel) -> NodeOffer:
        """Return this offer with the `own_pods` that a new node has in `model`."""
        pods = own_pods(model, self._node("new"), self.sample)
        return replace(self, own_pods=tuple(map(model.pod_info, pods)))

    def _node(self, name: str) -> Node:
        node = node_like(self.sample, name, self.own_labels)
        labels = labels_in_zone(node.metadata.labels, self.zone)
        labels |= {key: self.node_type for key in TYPE_LABELS if key in labels}
        if self.type_labels is not None:
            labels = labels_with_type(labels, self.type_labels)
        meta = replace(node.metadata, labels=labels)
        status = replace(node.status, allocatable=self.allocatable)
        return replace(node, metadata=meta, status=status)


def node_offers(
    model: ClusterModel,
    infos: Sequence[NodeInfo],
    stated: Sequence[StatedType],
    headroom: float,
    node_pools: Iterable[NodePool] = (),
) -> list[NodeOffer]:
    """Return the kinds of nodes that could replace `infos`, which are nodes of `model`.

    `headroom` is the fraction of CPU and memory to keep free. `stated` are the instance types from
    a file. If `stated` is empty, the types of `infos` are offered. `node_pools` are the NodePools
    of Karpenter. If a pool of nodes belongs to a NodePool, its new nodes have only types and zones
    that the NodePool allows.
    """
    found: list[NodeOffer] = []
    down = failed_zones(model.table.nodes())
    zones = [zone for zone in _zones(infos) if zone not in down]
    stated = _labelled(stated, model)
    by_name = {one.name: one for one in node_pools}
    devices = DeviceKinds(model)
    pools = _pools(infos)
    zonal = _zones_of_zonal_groups(pools)
    for pool, members in pools.items():
        rules = _rules(members, by_name)
        only = zonal.get(pool)
        allowed = [zone for zone in zones if rules.get(ZONE).has(zone) and only in (None, zone)]
        own = allowed if _zones(members) else [""]
        if stated:
            types = _stated_types(members, stated, rules, devices)
        else:
            types = _present_types(members, devices)
        present: dict[tuple[Hashable, str], list[str]] = {}  # {(type, zone): names of nodes}
        for info in members:
            kind = _stated_kind(info, devices) if stated else _kind(info, devices)
            present.setdefault((kind, info.labels.get(ZONE, "")), []).append(info.name)
        for node_type in types:
            found += [
                NodeOffer(
                    pool,
                    node_type.name,
                    zone,
                    node_type.price(zone),
                    node_type.sample,
                    node_type.capacity,
                    _reduced(node_type.allocatable, headroom),
                    own_labels=own_labels_of(model, node_type.sample),
                    today=tuple(present.get((node_type.kind, zone), ())),
                    type_labels=node_type.labels,
                ).with_own_pods(model)
                for zone in node_type.zones(own) or node_type.zones(allowed)
            ]
    found = [
        replace(one, devices=devices.of(one.sample.name)) if one.has_devices else one
        for one in found
    ]
    return _with_sizes(found, devices)


def _labelled(stated: Sequence[StatedType], model: ClusterModel) -> list[StatedType]:
    """Return the types `stated`, with the labels that the provider of the model's nodes sets."""
    nodes = sorted((info.node for info in model.table.nodes()), key=name_of_node)
    return with_type_labels(stated, provider_groups(nodes), nodes)


def _rules(members: Sequence[NodeInfo], node_pools: Mapping[str, NodePool]) -> Requirements:
    """Return the requirements of the NodePool to which `members`, the nodes of a pool, belong."""
    found = _node_pool(members, node_pools)
    return Requirements() if found is None else pool_requirements(found)


def _node_pool(members: Sequence[NodeInfo], node_pools: Mapping[str, NodePool]) -> NodePool | None:
    """Return the NodePool to which `members` belong; None if there is none in `node_pools`."""
    return node_pools.get(members[0].labels.get(NODE_POOL, ""))


def _with_sizes(offers: Sequence[NodeOffer], devices: DeviceKinds) -> list[NodeOffer]:
    """Return `offers`, each with the `size` that distinguishes it from other offers of its type.

    The offers of a type can differ in machine size, in the largest number of pods, and in devices.
    """
    sizes: dict[str, set[str]] = {}
    numbers: dict[tuple[str, str], set[str]] = {}  # of pods, by type and size
    kinds: dict[tuple[str, str, str], dict[Hashable, NodeOffer]] = {}  # of devices
    for one in offers:
        size = _machine_size(one.capacity)
        sizes.setdefault(one.node_type, set()).add(size)
        numbers.setdefault((one.node_type, size), set()).add(_pods_max(one))
        kinds.setdefault((one.node_type, size, _pods_max(one)), {}).setdefault(one.devices, one)
    found = []
    for one in offers:
        size = _machine_size(one.capacity)
        parts = [size] if len(sizes[one.node_type]) > 1 else []
        parts += [_pods_max(one)] if len(numbers[one.node_type, size]) > 1 else []
        alike = kinds[one.node_type, size, _pods_max(one)]
        words = [_devices_of(other, devices) for other in alike.values()]
        if len(words) > 1:
            own = alike[one.devices]
            text = _devices_of(own, devices)
            parts.append(f"{text} as on {own.sample.name}" if words.count(text) > 1 else text)
        found.append(replace(one, size=", ".join(parts)))
    return found


def _devices_of(offer: NodeOffer, devices: DeviceKinds) -> str:
    return (devices.in_words(offer.sample.name) if offer.has_devices else "") or "no devices"


def _pods_max(offer: NodeOffer) -> str:
    return counted(whole_value(offer.allocatable.get("pods", 0)), "pod")


def _machine_size(capacity: ResourceList) -> str:
    """Return `capacity`, rounded to whole cores and GiB, such as `8/32Gi`.

    A kubelet reports a little less memory than its machine has.
    """
    cores = round(milli_value(capacity.get("cpu", 0)) / 1000)
    return f"{cores}/{round(whole_value(capacity.get('memory', 0)) / _GIB)}Gi"


def failed_zones(infos: Iterable[NodeInfo]) -> list[str]:
    """Return the zones in which no node is Ready, sorted; [] if no zone has a Ready node.

    `infos` are all nodes of the cluster. A node without a Ready condition counts as Ready.
    """
    every = list(infos)
    ready = _zones(info for info in every if is_ready_node(info.node))
    return [zone for zone in _zones(every) if ready and zone not in ready]


def failed_zone_notes(infos: Iterable[NodeInfo]) -> tuple[str, ...]:
    """Return the note about zones that get no new nodes; `infos` are all nodes of the cluster."""
    down = failed_zones(infos)
    if not down:
        return ()
    which = f"Zone {down[0]} gets" if len(down) == 1 else f"The zones {listed(down)} get"
    return (f"{which} no new nodes, because no node is Ready there.",)


def _zones(infos: Iterable[NodeInfo]) -> list[str]:
    """Return the zones of `infos`, sorted; nodes without a zone do not count."""
    return sorted({info.labels.get(ZONE, "") for info in infos} - {""})


def _pools(infos: Iterable[NodeInfo]) -> dict[str, list[NodeInfo]]:
    """Return the nodes of each pool by name of the pool.

    The name is the cloud provider's label for node pools, as `key=value`. If several pools have the
    same value, the labels that distinguish these pools are added. If the nodes have no such label,
    the name consists of the labels that distinguish the pool from all others, or of its taints.
    """
    by_traits: dict[NodeTraits, list[NodeInfo]] = {}
    for info in infos:
        of_type = [key for key in info.labels if key.startswith(FACT_LABELS)]
        traits = node_traits(info.node, (*TYPE_LABELS, *of_type))
        by_traits.setdefault(traits, []).append(info)
    every = [traits.labels for traits in by_traits]
    alike: dict[tuple[str, str] | None, list[frozenset[tuple[str, str]]]] = {None: every}
    for labels in every:
        if (own := managed_pool(dict(labels))) is not None:
            alike.setdefault(own, []).append(labels)
    named: dict[str, list[NodeInfo]] = {}
    for traits, members in sorted(by_traits.items(), key=lambda item: item[0].taints):
        taints = ",".join(traits.taints)
        own = managed_pool(dict(traits.labels))
        unusual = traits.labels - frozenset.intersection(*alike[own])
        words = [*([own] if own else []), *sorted(_without_deprecated(unusual))]
        name = ",".join(f"{key}={value}" for key, value in words) or taints
        named[f"{name} with {taints}" if name in named else name] = members
    return dict(sorted(named.items()))


def _zones_of_zonal_groups(pools: Mapping[str, Sequence[NodeInfo]]) -> dict[str, str]:
    """Return the zone of each pool that belongs to a set of node groups, one for each zone.

    Cluster Autoscaler's documentation recommends such groups for pods with volumes. The groups
    differ only in the provider's labels of the group and in their zones. Pools of Karpenter are
    left out, because the requirements of their NodePool state the zones.
    """
    alike: dict[Hashable, dict[str, str]] = {}  # {traits: {pool: its zone}}
    for pool, members in pools.items():
        labels, zones = members[0].labels, _zones(members)
        if NODE_POOL in labels or managed_pool(labels) is None:
            continue
        own = [key for key in labels if key in POOL_LABELS or key.startswith(_TEMPLATE)]
        of_type = [key for key in labels if key.startswith(FACT_LABELS)]
        traits = node_traits(members[0].node, (*own, *TYPE_LABELS, *of_type))
        alike.setdefault(traits, {})[pool] = zones[0] if len(zones) == 1 else ""
    found: dict[str, str] = {}
    for groups in alike.values():
        if "" not in groups.values() and len(set(groups.values())) == len(groups) > 1:
            found |= groups
    return found


def _without_deprecated(labels: frozenset[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return `labels` without deprecated labels that repeat the value of a stable label."""
    return [(key, value) for key, value in labels if (STABLE.get(key), value) not in labels]


class _Type(Struct, frozen=True):
    """An instance type for one pool; `stated` is None if no file contains the type.

    `kind` is a key of the type: `_stated_kind` for a type from a file, otherwise `_kind`.
    """

    name: str
    sample: NodeInfo
    capacity: ResourceList
    allocatable: ResourceList
    kind: Hashable
    stated: StatedType | None = None

    def price(self, zone: str) -> float:
        """Return the price per hour; it is estimated from the size if no file contains a price."""
        if self.stated is not None:
            return self.stated.price(capacity_type_of(self.sample.labels), zone)
        return estimated_price(self.capacity)

    @property
    def labels(self) -> Mapping[str, str] | None:
        """The labels of the type in a file of instance types; None if no file contains the type."""
        return None if self.stated is None else self.stated.labels

    def zones(self, zones: Sequence[str]) -> list[str]:
        """Return the zones of `zones` in which the instance type is sold."""
        sold = () if self.stated is None else self.stated.zones
        return [zone for zone in zones if not sold or zone in sold]


def _present_types(members: Iterable[NodeInfo], devices: DeviceKinds) -> list[_Type]:
    """Return one `_Type` for each group of nodes in `members` with an equal `_kind`."""
    by_kind: dict[Hashable, list[NodeInfo]] = {}
    for info in members:
        by_kind.setdefault(_kind(info, devices), []).append(info)
    found = []
    for kind, infos in by_kind.items():
        sample = node_to_copy(infos)
        status = sample.node.status
        allocatable = dict(status.allocatable)
        capacity = dict(status.capacity or status.allocatable)
        found.append(_Type(_type_or_size(sample), sample, capacity, allocatable, kind))
    return found


def _kind(info: NodeInfo, devices: DeviceKinds) -> Hashable:
    """Return a key that is equal for nodes with equal types, allocatable amounts and devices."""
    allocatable = info.node.status.allocatable
    extended = [(name, str(amount)) for name, amount in _extended(info)]
    pods = str(allocatable.get("pods"))
    return _type_or_size(info), _size(info), pods, devices.of(info.name), *extended


def _size(info: NodeInfo) -> str:
    """Return the size of a node, such as `8/32Gi`, or `8/32Gi/2 example.com/gpu` with GPUs."""
    allocatable = info.node.status.allocatable
    others = (f"/{amount} {name}" for name, amount in _extended(info))
    return f"{allocatable.get('cpu')}/{allocatable.get('memory')}{''.join(others)}"


def _extended(info: NodeInfo) -> list[tuple[str, QuantityText]]:
    """Return the extended resources of a node, such as GPUs, with their amounts, sorted."""
    return sorted(
        (name, amount)
        for name, amount in info.node.status.allocatable.items()
        if not is_native_resource(name) and whole_value(amount)
    )


def _type_or_size(info: NodeInfo) -> str:
    """Return the name of the type of a node, or its size if it has no type."""
    return type_of_node(info) or _size(info)


def _stated_types(
    members: Sequence[NodeInfo],
    stated: Sequence[StatedType],
    rules: Requirements,
    devices: DeviceKinds,
) -> list[_Type]:
    """Return those instance types in `stated` that further nodes of a pool can have.

    `members` are the nodes of the pool. The types have the architecture and the operating system of
    the pool; a type without a stated operating system can run any operating system. If some types
    in `stated` have the capacity type of the pool, only these types are returned. The types meet
    `rules`, the requirements of a NodePool. Types on which the reservation for the system leaves no
    CPU or no memory are left out. If members of one type have different devices, the result
    contains the type once for each kind of devices.
    """
    sample = node_to_copy(members)
    by_kind: dict[tuple[str, Hashable], list[NodeInfo]] = {}
    for info in members:
        by_kind.setdefault(_stated_kind(info, devices), []).append(info)
    samples: dict[str, list[NodeInfo]] = {}
    for (name, _), infos in by_kind.items():
        samples.setdefault(name, []).append(node_to_copy(infos))
    reserved = SystemReservations((info.node for info in members), stated)
    return [
        _Type(
            one.name,
            like,
            one.capacity,
            reserved.allocatable(one),
            (one.name, devices.of(like.name)),
            one,
        )
        for one in _fitting_types(sample, stated, rules)
        if not reserved.leaves_nothing(one)
        for like in samples.get(one.name, [sample])
    ]


def _stated_kind(info: NodeInfo, devices: DeviceKinds) -> tuple[str, Hashable]:
    """Return a key that nodes share if their types and devices are equal."""
    return type_of_node(info), devices.of(info.name)


def _fitting_types(
    sample: NodeInfo, stated: Sequence[StatedType], rules: Requirements
) -> list[StatedType]:
    """Return the instance types in `stated` that nodes like `sample` can have (`_stated_types`)."""
    arch, system = sample.labels.get(ARCH, "amd64"), sample.labels.get(OS, "linux")
    kind = capacity_type_of(sample.labels)
    sold = [one for one in stated if kind in one.capacity_types] or stated
    return [
        one
        for one in sold
        if arch in one.architectures and (not one.systems or system in one.systems)
        if rules.intersects(type_requirements(one))
    ]


def _reduced(allocatable: ResourceList, headroom: float) -> ResourceList:
    """Return `allocatable` with the share `headroom` of CPU and memory removed."""
    if not headroom:
        return allocatable
    found = dict(allocatable)
    for name in _SCALED:
        if name in found:
            read = milli_value if name == "cpu" else whole_value
            kept = int(read(found[name]) * (1 - headroom))
            found[name] = f"{kept}m" if name == "cpu" else str(kept)
    return found


def estimated_price(capacity: ResourceList) -> float:
    """Return an hourly price estimated from CPU and memory, for a type without a price."""
    cores = milli_value(capacity.get("cpu", 0)) / 1000
    memory = whole_value(capacity.get("memory", 0)) / _GIB
    return cores * _CORE_WEIGHT + memory * _GIB_WEIGHT


def price_of_node(info: NodeInfo, stated: Sequence[StatedType]) -> float:
    """Return the hourly price of an existing node: the price of its type, or an estimate.

    `stated` are the instance types with their prices.
    """
    known = next((one for one in stated if one.name == type_of_node(info)), None)
    if known is not None:
        return known.price(capacity_type_of(info.labels), info.labels.get(ZONE, ""))
    status = info.node.status
    return estimated_price(status.capacity or status.allocatable)


def estimated_types(
    infos: Iterable[NodeInfo], offers: Iterable[NodeOffer], stated: Sequence[StatedType]
) -> list[str]:
    """Return the names of the instance types without a stated price, sorted."""
    priced = {one.name for one in stated if one.has_price}
    names = {one.node_type for one in offers} | {type_of_node(info) for info in infos}
    return sorted((names - priced) - {""})


def untyped_nodes(infos: Iterable[NodeInfo]) -> list[str]:
    """Return the names of the nodes in `infos` that have no instance type in their labels."""
    return [info.name for info in infos if not type_of_node(info)]


def assumption_notes(
    model: ClusterModel,
    infos: Sequence[NodeInfo],
    stated: Sequence[StatedType],
    node_pools: Iterable[NodePool] = (),
) -> tuple[str, ...]:
    """Return the notes about new nodes whose types are in `stated`, and about their NodePools.

    `infos` are the nodes that are to be replaced; they belong to `model`. Some notes are about
    assumed reservations, or about labels that NodePools require. Other notes are about types whose
    stated size differs from the size of a node of this type in `infos`.
    """
    assumed: list[Assumption] = []
    stated, used = _labelled(stated, model), dict[str, NodePool]()
    by_name = {one.name: one for one in node_pools}
    for members in _pools(infos).values():
        reserved = SystemReservations((info.node for info in members), stated)
        types = _fitting_types(node_to_copy(members), stated, _rules(members, by_name))
        assumed += reserved.assumed(types)
        if (found := _node_pool(members, by_name)) is not None:
            used[found.name] = found
    sizes = size_notes((info.node for info in infos), stated)
    unchecked = unchecked_requirements(used.values(), stated)
    existing = {type_of_node(info) for info in infos}
    return *sizes, *reservation_notes(assumed, existing), *unchecked


def spot_notes(
    infos: Iterable[NodeInfo], offers: Iterable[NodeOffer], stated: Sequence[StatedType]
) -> tuple[str, ...]:
    """Return the note about spot prices of `infos` and `offers` that are missing in `stated`."""
    known = {one.name: one for one in stated}
    uses = [*price_uses((info.labels for info in infos), stated)]
    uses += (
        (known[one.node_type], capacity_type_of(one.sample.labels), one.zone)
        for one in offers
        if one.node_type in known
    )
    return tuple(assumed_spot_prices(uses))
