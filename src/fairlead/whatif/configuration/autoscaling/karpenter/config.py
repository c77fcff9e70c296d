"""KarpenterConfig from a snapshot (NodePools, NodeClaims, NodeOverlays) and an instance type file.

If there is no instance type file, Karpenter can create nodes of the instance types that the
snapshot's nodes have. Karpenter can also create nodes of the types of launched NodeClaims whose
nodes do not exist yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from msgspec import structs

from fairlead.api.codec import DecodeError, decode_as, without_nulls
from fairlead.api.json import Json
from fairlead.api.objects import Node, NodeSpec, NodeStatus
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.apiserver.kind import NODE
from fairlead.engine.autoscaling.karpenter.apis import (
    WHEN_EMPTY_OR_UNDERUTILIZED,
    NodeClaim,
    NodeOverlay,
    NodePool,
    with_lifetime,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import InstanceType
from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
from fairlead.engine.autoscaling.karpenter.labels import (
    CAPACITY_TYPE,
    NODE_POOL,
    ON_DEMAND,
    SPOT,
)
from fairlead.engine.autoscaling.karpenter.nodeclaim.conditions import is_offered
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaimtemplate import (
    template_requirements,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import label_requirements
from fairlead.whatif.configuration.autoscaling.allocatable import (
    SystemReservations,
    size_notes,
    with_allocatable,
)
from fairlead.whatif.configuration.autoscaling.instance_type_file import (
    StatedType,
    assumed_spot_prices,
    instance_types,
    read_instance_types,
    types_of_nodes,
)
from fairlead.whatif.configuration.autoscaling.karpenter.daemon_overhead import daemon_notes
from fairlead.whatif.configuration.autoscaling.karpenter.kubelet_setting import (
    nodes_with_limits,
    reserving_as_usual,
    types_of_classes,
    without_limits,
)
from fairlead.whatif.configuration.autoscaling.karpenter.node_class import offered_zones
from fairlead.whatif.configuration.autoscaling.karpenter.provider_label import (
    labels_of_all,
    unchecked_requirements,
    with_type_labels,
)
from fairlead.whatif.configuration.autoscaling.karpenter.setting import karpenter_options
from fairlead.whatif.configuration.autoscaling.karpenter.validation import require_valid
from fairlead.whatif.configuration.autoscaling.place_label import (
    labels_of_offerings,
    topology_keys,
)
from fairlead.whatif.input.document import read
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.node_class import created_node_classes
from fairlead.whatif.snapshot.node_pool import name_of_node
from fairlead.whatif.snapshot.samples import samples
from fairlead.whatif.snapshot.validation.custom_resource_check import CustomResourceCheck

_GROUP: Final = "karpenter.sh"
_VERSION: Final = f"{_GROUP}/v1"
_NODES_SHOWN: Final = 3
_HOW: Final = "give some with --{0} (in a scenario: settings.{0})"

View = TypeVar("View", NodePool, NodeClaim, NodeOverlay)


def karpenter_config(
    source: str,
    initial: Sequence[Manifest],
    instance_type_file: str | None = None,
    node_pool_file: str | None = None,
    written: Sequence[Manifest] = (),
) -> tuple[KarpenterConfig, list[str]]:
    """Return (configuration for the cluster `initial`, notes about assumptions).

    The NodePools, NodeClaims and NodeOverlays in `node_pool_file` are added to those of the
    cluster. `written` are the objects that a change writes during the run. Instance types are
    chosen for the new NodePools and node classes in `written`, too, but these NodePools are not in
    the configuration. Raises InputError; its message names the file, or the snapshot `source`.
    """
    about_daemons, initial = daemon_notes(initial), samples(initial)
    stated = list(_karpenter_objects(initial))
    added = [] if node_pool_file is None else list(_objects_of_file(node_pool_file))
    stated += added
    present = _of_kind(stated, "NodePool", NodePool)
    pools = [*present, *_created_pools(written, present)]
    if not pools:
        problem = f"contains no NodePool, which Karpenter needs; {_HOW.format('node-pools')}"
        raise InputError(node_pool_file or source, problem)
    nodes = sorted((one.node for one in initial if one.kind is NODE), key=name_of_node)
    claims = _of_kind(stated, "NodeClaim", NodeClaim)
    overlays = _of_kind(stated, "NodeOverlay", NodeOverlay)
    initial = [*initial, *created_node_classes(written, initial)]
    # The first machine of a type is its model. Nodes come first, because a NodeClaim has estimates.
    machines = [*nodes, *_awaited_nodes(claims, nodes)]
    limited = nodes_with_limits(pools, initial, machines)
    models = without_limits(machines, limited)
    types = _stated_types(source, instance_type_file, pools, models)
    zones, notes = offered_zones(pools, types, initial, machines)
    if instance_type_file is None:
        notes.append(
            "Karpenter can create the instance types of the dump's nodes: "
            f"{', '.join(one.name for one in types)}."
        )
    notes += (*_unused_pools(pools), *_offer_notes(pools, types, zones))
    notes += () if instance_type_file is None else size_notes(nodes, types)
    usual = reserving_as_usual(pools, initial, nodes)
    reserved = SystemReservations(usual, types, limited)
    notes += reserved.notes(types)
    groups = {pool.spec.template.spec.node_class_ref.group for pool in pools}
    stated_types = types
    types = with_type_labels(with_allocatable(types, reserved), groups, machines)
    notes += unchecked_requirements(pools, types)
    offered = instance_types(types, zones, nodes)
    notes += (*_unoffered_spot(pools, offered), *about_daemons)
    adds_overlays = any(obj["kind"] == "NodeOverlay" for _, obj in added)
    options, about_options = karpenter_options(
        initial,
        has_overlays=bool(overlays),
        adds_overlays=adds_overlays,
        has_static=any(one.is_static for one in pools),
    )
    options, about_static = _with_known_claims(options, pools, nodes, claims)
    well_known = options.well_known_labels | labels_of_all(types)
    options = structs.replace(options, well_known_labels=well_known)
    notes += (
        *about_options,
        *about_static,
        *_nodes_of_missing_types(machines, offered, options.well_known_labels),
    )
    config = KarpenterConfig(
        pools=tuple(present),
        types=offered,
        class_types={
            ref: instance_types(own, zones, nodes)
            for ref, own in types_of_classes(pools, initial, types, stated_types, nodes).items()
        },
        claims=tuple(claims),
        overlays=tuple(overlays),
        options=options,
        place_labels=labels_of_offerings(offered, nodes, topology_keys(initial)),
        estimated_prices=frozenset(one.name for one in types if not one.has_price),
    )
    return config, notes


def _objects_of_file(path: str) -> Iterator[tuple[str, Json]]:
    """Yield the objects of Karpenter in the file `path`. Raises InputError."""
    found = manifests(read(path))
    CustomResourceCheck(Inventory(found)).refuse_invalid(found)
    yield from _karpenter_objects(found)


def _stated_types(
    source: str, instance_type_file: str | None, pools: Iterable[NodePool], machines: Sequence[Node]
) -> list[StatedType]:
    """Return the instance types in the file, or else those of `machines`. Raises InputError."""
    if instance_type_file is not None:
        return _with_used_spot(read_instance_types(instance_type_file, machines), pools, machines)
    types = types_of_nodes(machines)
    if not types:
        problem = f"no node has an instance type; {_HOW.format('instance-types')}"
        raise InputError(source, problem)
    return types


def node_pools(found: Iterable[Manifest]) -> list[NodePool]:
    """Return the NodePools in `found`, except NodePools of old API versions.

    Raises InputError for a NodePool that an API server would refuse.
    """
    objects = _karpenter_objects(samples(found))
    current = [(source, value) for source, value in objects if value["apiVersion"] == _VERSION]
    return _of_kind(current, "NodePool", NodePool)


def refuse_invalid(written: Iterable[Manifest]) -> None:
    """Raise InputError for an object of Karpenter that an API server would refuse."""
    for source, value in _karpenter_objects(written):
        stated = [(source, value)]
        _of_kind(stated, "NodePool", NodePool)
        _of_kind(stated, "NodeClaim", NodeClaim)
        _of_kind(stated, "NodeOverlay", NodeOverlay)


def _created_pools(written: Iterable[Manifest], present: Iterable[NodePool]) -> list[NodePool]:
    """Return the NodePools in `written`, except those that are `present` already."""
    names = {one.name for one in present}
    created = _of_kind(list(_karpenter_objects(written)), "NodePool", NodePool)
    return [one for one in created if one.name not in names]


def _awaited_nodes(claims: Iterable[NodeClaim], nodes: Iterable[Node]) -> list[Node]:
    """Return a Node, with the NodeClaim's name, for each of `claims` without a Node in `nodes`.

    The provider offers the instance types and zones of these NodeClaims, too: it has created their
    machines. NodeClaims that are not launched have no machine, even if their labels name an
    instance type. The result is sorted by name.
    """
    known: set[str] = set()
    for node in nodes:
        known |= {node.metadata.name, node.spec.provider_id}
    return [
        Node(
            metadata=claim.metadata,
            spec=NodeSpec(provider_id=claim.status.provider_id),
            status=NodeStatus(capacity=claim.status.capacity, allocatable=claim.status.allocatable),
        )
        for claim in sorted(claims, key=lambda one: one.name)
        if claim.status.provider_id
        and known.isdisjoint({claim.status.node_name, claim.status.provider_id} - {""})
        and INSTANCE_TYPE in claim.metadata.labels
    ]


def _unused_pools(pools: Sequence[NodePool]) -> Iterator[str]:
    """Yield notes about NodePools from which the simulated Karpenter creates no nodes.

    upstream: pkg/controllers/provisioning/provisioner.go: NewScheduler
    """
    unready = [one.metadata.name for one in pools if not one.is_ready]
    if unready:
        which, them = ("NodePool", "it") if len(unready) == 1 else ("NodePools", "them")
        yield (
            f"The Ready condition of {which} {listed(unready)} is not True in the dump, so "
            f"Karpenter creates no nodes from {them}."
        )


def _with_known_claims(
    options: KarpenterOptions,
    pools: Iterable[NodePool],
    nodes: Iterable[Node],
    claims: Iterable[NodeClaim],
) -> tuple[KarpenterOptions, tuple[str, ...]]:
    """Return (`options`, notes); StaticCapacity is turned off if `claims` are not complete.

    If the NodeClaims of its nodes are missing, a static NodePool seems to have too few nodes.
    """
    static = {one.name for one in pools if one.is_static}
    claimed = {one.status.node_name for one in claims}
    unclaimed = [
        one.metadata.name
        for one in nodes
        if one.metadata.labels.get(NODE_POOL) in static and one.metadata.name not in claimed
    ]
    if not unclaimed or not options.static_capacity:
        return options, ()
    note = (
        "The replicas of static NodePools are not simulated, because the dump lacks the "
        f"NodeClaims of {listed(unclaimed, _NODES_SHOWN)}."
    )
    return structs.replace(options, static_capacity=False), (note,)


def _offer_notes(
    pools: Iterable[NodePool], types: Sequence[StatedType], zones: Sequence[str]
) -> Iterator[str]:
    """Yield notes about assumed offers and prices of `types`; `zones` are the cluster's zones."""
    if any(one.is_on_demand_assumed and SPOT in one.capacity_types for one in types):
        yield (
            "A NodePool uses spot, but --instance-types offers no type as spot. Its types without "
            "capacityType are offered as spot, too."
        )
    if not all(one.has_price for one in types):
        yield "Prices that are not given are estimated from cores and memory."
    if any(template_requirements(pool).get(CAPACITY_TYPE).has(SPOT) for pool in pools):
        yield from assumed_spot_prices(
            (one, kind, zone)
            for one in types
            for kind in one.capacity_types
            for zone in one.zones or zones or ("",)
        )


def _with_used_spot(
    types: Sequence[StatedType], pools: Iterable[NodePool], machines: Iterable[Node]
) -> list[StatedType]:
    """Return `types`, with spot added to them if the cluster uses spot but no type offers it.

    Spot is not added to types whose capacity types the file states. The cluster uses spot if a
    NodePool has a spot node among `machines`, or allows only spot nodes.
    """
    labels = (one.metadata.labels for one in machines)
    kinds = [template_requirements(pool).get(CAPACITY_TYPE) for pool in pools]
    is_used = any(NODE_POOL in one and one.get(CAPACITY_TYPE) == SPOT for one in labels) or any(
        kind.has(SPOT) and not kind.has(ON_DEMAND) for kind in kinds
    )
    if not is_used or any(SPOT in one.capacity_types for one in types):
        return list(types)
    return [
        structs.replace(one, capacity_types=(*one.capacity_types, SPOT))
        if one.is_on_demand_assumed
        else one
        for one in types
    ]


def _unoffered_spot(pools: Iterable[NodePool], types: Iterable[InstanceType]) -> Iterator[str]:
    """Yield a note about NodePools whose consolidation needs spot capacity that no type offers.

    If a replacement may be spot or on-demand, Karpenter restricts it to spot, even if no type
    offers spot. The launch of the replacement then fails.

    upstream: consolidation.go:computeConsolidation
    """
    if any(offer.capacity_type == SPOT for one in types for offer in one.offerings):
        return
    names = [
        pool.metadata.name
        for pool in pools
        if not pool.is_static
        and pool.spec.disruption.consolidation_policy == WHEN_EMPTY_OR_UNDERUTILIZED
        and all(
            template_requirements(pool).get(CAPACITY_TYPE).has(one) for one in (SPOT, ON_DEMAND)
        )
    ]
    if names:
        which, allow = ("NodePool", "allows") if len(names) == 1 else ("NodePools", "allow")
        yield (
            f"{which} {', '.join(names)} {allow} spot and on-demand, but no instance type has a "
            "spot offering. Karpenter replaces an on-demand node there only by a spot node, so "
            "replacements by consolidation fail for lack of capacity. Require "
            f"{CAPACITY_TYPE} on-demand in the NodePool, or state spotPrice in --instance-types."
        )


def _nodes_of_missing_types(
    nodes: Iterable[Node], types: Iterable[InstanceType], well_known: frozenset[str]
) -> Iterator[str]:
    """Yield a note about nodes that Karpenter replaces because no instance type matches them.

    Only nodes of NodePools are considered.

    upstream: drift.go:instanceTypeNotFound
    """
    known = {one.name: one for one in types}
    missing = []
    for node in nodes:
        labels = node.metadata.labels
        offered = known.get(labels.get(INSTANCE_TYPE, ""))
        is_found = offered and is_offered(offered, label_requirements(labels), well_known)
        if NODE_POOL in labels and not is_found:
            kind = (labels.get(INSTANCE_TYPE, ""), labels.get(CAPACITY_TYPE, ""))
            missing.append(f"{node.metadata.name} ({' '.join(filter(None, kind))})")
    if missing:
        yield (
            "No offering of --instance-types has the type, zone and capacity type of "
            f"{listed(missing, _NODES_SHOWN)}. Karpenter replaces such a node "
            "as drifted (InstanceTypeNotFound) once it is older than an hour, and its price is "
            "unknown. Add the missing types, or spotPrice for spot nodes."
        )


def _karpenter_objects(found: Iterable[Manifest]) -> Iterator[tuple[str, Json]]:
    for manifest in found:
        if manifest.kind.group == _GROUP:
            yield manifest.source, manifest.value


def _of_kind(stated: Iterable[tuple[str, Json]], kind: str, view: type[View]) -> list[View]:
    """Return the objects of `kind` in `stated`. Raises InputError for an invalid object."""
    found: list[View] = []
    for source, value in stated:
        if value["kind"] == kind:
            try:
                found.append(decode_as(view, with_lifetime(without_nulls(value))))
            except DecodeError as cause:
                raise InputError.of_decode(source, cause) from None
            require_valid(source, found[-1])
    return found
