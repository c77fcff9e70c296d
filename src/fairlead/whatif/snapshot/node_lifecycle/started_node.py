"""The changes that kubelet, Karpenter and controllers make while a node starts.

    kubelet       posts Ready=True, and the resources of device plugins
    Karpenter     registers the Node: it gets the labels, taints and providerID of its NodeClaim
    controllers   remove startup taints, and set the condition NetworkUnavailable to False
    drivers       repeat the zone of the node in a label of their own

If the kubelet has not posted a resource yet, the node gets the amount in its NodeClaim. If the node
has no NodeClaim, it gets the amount of a started node with the same pool and instance type. A node
that Karpenter has initialized keeps its resources, because the kubelet has posted all resources.

The flags of the dump's Cluster Autoscaler, such as --startup-taint, name further startup taints.

upstream: karpenter pkg/controllers/state/statenode.go: Allocatable; cluster-autoscaler
processors/customresources/gpu_processor.go: FilterOutNodesWithUnreadyResources,
utils/taints/taints.go: FilterOutNodesWithStartupTaints
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import DecodeError, View, as_json, decode_as
from fairlead.api.json import Json
from fairlead.api.nodes.autoscaler_taint import UNREGISTERED_TAINT
from fairlead.api.nodes.readiness import FALSE, READY, TRUE, ready_status
from fairlead.api.nodes.taint import CONDITION_TAINTS
from fairlead.api.objects import Node, Taint
from fairlead.api.text.name_list import listed
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import INSTANCE_TYPE, region_and_zone
from fairlead.apiserver.kind import NODE
from fairlead.engine.autoscaling.cluster_autoscaler.command_line import (
    flags_of_command_line,
    options_of_flags,
)
from fairlead.engine.autoscaling.cluster_autoscaler.taint import TaintConfig
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim, NodePool
from fairlead.engine.autoscaling.karpenter.labels import GROUP, INITIALIZED, NODE_POOL, REGISTERED
from fairlead.engine.core.instant import Instant
from fairlead.engine.kubelet.node_status.node_condition import HEALTHY
from fairlead.engine.nodelifecycle.well_known import NETWORK_UNAVAILABLE
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.installed_autoscaler import installed_flags
from fairlead.whatif.snapshot.manifest import Manifest, Manifests, entries_of
from fairlead.whatif.snapshot.node_lifecycle.starting_node import nodes_of, valid_node
from fairlead.whatif.snapshot.node_pool import POOL_LABELS, awaits_agent, zone_labels
from fairlead.whatif.snapshot.samples import samples

_STARTUP_TAINTS: Final = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/network-unavailable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        UNREGISTERED_TAINT,
    }
)
_NAMED_MAX: Final = 3


class _Start(Struct, frozen=True):
    """A node after its start, and what the start has changed on it."""

    name: str
    value: Json  # the object of the started node
    taints: tuple[str, ...]  # the keys of the removed taints
    resources: tuple[str, ...]  # the names of the added resources
    has_model: bool  # False if no other object shows the resources of the node
    lacks_zone: bool  # whether the node has no zone but other nodes have zones


def with_started_nodes(
    manifests: Sequence[Manifest], starting: Mapping[str, Node], at: Instant
) -> tuple[Sequence[Manifest], tuple[str, ...]]:
    """Return (`manifests` after the start of the nodes in `starting`, notes about these nodes).

    `starting` maps names to nodes: the result of `starting_nodes` for `manifests`. The nodes become
    Ready at the instant `at`. If no node starts, `manifests` are returned unchanged. Raises
    InputError for a NodeClaim or NodePool with a field of the wrong type.
    """
    cluster = _Cluster(manifests, starting)
    found: dict[str, _Start] = {}
    for one in nodes_of(manifests):
        node = starting.get(one.ref.name)
        start = None if node is None else cluster.start(one, node, at)
        if start is not None:
            found[start.name] = start
    if not found:
        return manifests, ()
    entries = (
        _replaced(one, found[one.ref.name].value)
        if isinstance(one, Manifest) and one.kind is NODE and one.ref.name in found
        else one
        for one in entries_of(manifests)
    )
    return Manifests(entries), tuple(_notes(list(found.values())))


def _replaced(manifest: Manifest, value: Json) -> Manifest:
    return replace(manifest, content=value, newest="", managed=manifest.managed_fields)


class _Cluster:
    """The objects of a dump that show what the start of a node will change."""

    def __init__(self, manifests: Iterable[Manifest], starting: Collection[str]) -> None:
        """Collect the objects in `manifests`. Raises InputError.

        `starting` are the names of the nodes that may be starting.
        """
        own = [one for one in samples(manifests) if one.kind.group == GROUP]
        claims = _decoded(NodeClaim, own)
        self._claims = {one.status.provider_id: one for one in claims}
        self._named_claims = {one.status.node_name: one for one in claims}
        self._pools = {pool.metadata.name: pool for pool in _decoded(NodePool, own)}
        self._starting = starting
        # A status taint (--status-taint) is no startup taint: the node stays tainted.
        flags = flags_of_command_line(installed_flags(manifests) or ())
        self._taints = TaintConfig(options_of_flags(flags))
        self._nodes: dict[tuple[str, str], list[Manifest]] = {}
        self._has_zones = False
        for one in nodes_of(manifests):
            labels = one.labels
            self._nodes.setdefault(_pool_and_type(labels), []).append(one)
            self._has_zones = self._has_zones or bool(region_and_zone(labels)[1])
        self._models: dict[tuple[str, str], Node | None] = {}

    def start(self, manifest: Manifest, node: Node, at: Instant) -> _Start | None:
        """Return what changes in `manifest`, the object of `node`, if `node` becomes Ready at `at`.

        Returns None if the node has already started, or if Karpenter is removing the node.
        """
        claim = self._claim_of(node)
        if claim is not None and claim.metadata.deletion_timestamp:
            return None
        labels = _labels(node, claim)
        startup = self._startup_taints(claim, labels)
        removed = [one for one in node.spec.taints if self._is_startup_taint(one, startup)]
        model = self._model(labels)
        source = model if claim is None else claim
        capacity, allocatable = (
            _missing(getattr(node.status, field), getattr(source.status, field))
            if source is not None and node.metadata.labels.get(INITIALIZED) != "true"
            else {}
            for field in ("capacity", "allocatable")
        )
        lacks_devices = any("/" in name for name in allocatable)
        if not removed and ready_status(node) != FALSE and not lacks_devices:
            return None
        zone = region_and_zone(labels)[1]
        repeated = zone_labels(model.metadata.labels) if model is not None and zone else ()
        value = manifest.value
        spec, status = _mapping(value.get("spec")), _mapping(value.get("status"))
        return _Start(
            name=node.metadata.name,
            value={
                **value,
                "metadata": {
                    **value["metadata"],
                    "labels": {**dict.fromkeys(repeated, zone), **labels},
                },
                "spec": {**_provider_id(claim), **spec, "taints": _taints(node, removed, claim)},
                "status": {
                    **status,
                    "conditions": _conditions(status.get("conditions") or (), at),
                    "capacity": {**_mapping(status.get("capacity")), **capacity},
                    "allocatable": {**_mapping(status.get("allocatable")), **allocatable},
                },
            },
            taints=tuple(one.key for one in removed),
            resources=tuple(allocatable),
            has_model=source is not None,
            lacks_zone=self._has_zones and not zone,
        )

    def _claim_of(self, node: Node) -> NodeClaim | None:
        """Return the NodeClaim of `node`; None if `node` has no NodeClaim.

        Some Nodes get their providerID only during the start, and some NodeClaims get their
        status.nodeName only then. So a NodeClaim is found by either of these fields.
        """
        named = self._named_claims.get(node.metadata.name)
        return self._claims.get(node.spec.provider_id, named) if node.spec.provider_id else named

    def _startup_taints(
        self, claim: NodeClaim | None, labels: Mapping[str, str]
    ) -> Collection[tuple[str, str]]:
        """Return (key, effect) of the startup taints of a node with `labels` and `claim`."""
        pool = self._pools.get(labels.get(NODE_POOL, ""))
        spec = claim.spec if claim is not None else pool and pool.spec.template.spec
        return {(one.key, one.effect) for one in spec.startup_taints} if spec else ()

    def _is_startup_taint(self, taint: Taint, startup: Collection[tuple[str, str]]) -> bool:
        """Return whether `taint` is removed when the node has started.

        `startup` contains (key, effect) of the startup taints that Karpenter sets on the node.
        """
        key = taint.key
        is_known = key in _STARTUP_TAINTS or awaits_agent(key)
        is_known = is_known or self._taints.is_startup_taint(key)
        return is_known or (key, taint.effect) in startup

    def _model(self, labels: Mapping[str, str]) -> Node | None:
        """Return a Ready node with the pool and the instance type in `labels`; None if none exists.

        If there are several such nodes, the result is the newest node that is not in `_starting`.
        If all these nodes are in `_starting`, the result is the node with the most kinds of
        allocatable resources.
        """
        key = _pool_and_type(labels)
        if not any(key):
            return None
        if key not in self._models:
            valid = filter(None, map(valid_node, self._nodes.get(key, ())))
            ready = (one for one in valid if ready_status(one) == TRUE)
            self._models[key] = max(ready, key=self._fitness, default=None)
        return self._models[key]

    def _fitness(self, node: Node) -> tuple[bool, int, str]:
        meta, is_old = node.metadata, node.metadata.name not in self._starting
        return is_old, 0 if is_old else len(node.status.allocatable), meta.creation_timestamp


def _decoded(view: type[View], manifests: Iterable[Manifest]) -> list[View]:
    """Return the objects whose kind is the name of `view`, decoded. Raises InputError."""
    found = []
    for one in manifests:
        if one.kind.kind == view.__name__:
            try:
                found.append(decode_as(view, one.value))
            except DecodeError as cause:
                raise InputError.of_decode(one.source, cause) from None
    return found


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _pool_and_type(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return (pool, instance type) in the `labels` of a node; each is "" if it is unknown."""
    pool = next((labels[key] for key in POOL_LABELS if key in labels), "")
    return pool, labels.get(INSTANCE_TYPE, "")


def _labels(node: Node, claim: NodeClaim | None) -> dict[str, str]:
    """Return the labels that `node` has after its start.

    If `claim` is set, the labels of a registered and initialized Node are added. If `node` was not
    registered, the labels of `claim` are added, too.
    """
    # upstream: pkg/controllers/nodeclaim/lifecycle/registration.go:syncNode
    if claim is None:
        return node.metadata.labels
    own = node.metadata.labels
    added = {} if _is_registered(node) else claim.metadata.labels
    return {**own, **added, REGISTERED: "true", INITIALIZED: "true"}


def _taints(node: Node, removed: Collection[Taint], claim: NodeClaim | None) -> list[Json]:
    """Return the taints of `node` after its start: its present taints except `removed`.

    If Karpenter had not registered `node` yet, the taints of `claim` are added.
    """
    kept = [one for one in node.spec.taints if one not in removed]
    present = {(one.key, one.effect) for one in kept}
    of_claim = () if claim is None or _is_registered(node) else claim.spec.taints
    added = [one for one in of_claim if (one.key, one.effect) not in present]
    return [as_json(one) for one in (*kept, *added)]


def _is_registered(node: Node) -> bool:
    return node.metadata.labels.get(REGISTERED) == "true"


def _provider_id(claim: NodeClaim | None) -> Json:
    return {} if claim is None else {"providerID": claim.status.provider_id}


def _conditions(posted: Iterable[Json], at: Instant) -> list[Json]:
    """Return the conditions of a node that becomes Ready at `at`, made from `posted`."""
    # upstream: k8s.io/cloud-provider controllers/route/route_controller.go:
    # updateNetworkingCondition
    now = format_timestamp(at)
    found = [
        {**one, "status": FALSE, "reason": "RouteCreated", "lastTransitionTime": now}
        if one.get("type") == NETWORK_UNAVAILABLE and one.get("status") == TRUE
        else one
        for one in posted
        if one.get("type") != READY or one.get("status") == TRUE
    ]
    if not any(one.get("type") == READY for one in found):
        ready = as_json(HEALTHY[READY])
        found.append({**ready, "lastTransitionTime": now, "lastHeartbeatTime": now})
    return found


def _missing(stated: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the amounts in `usual` that are missing or zero in `stated`."""
    return {
        name: amount
        for name, amount in usual.items()
        if _is_positive(amount) and not _is_positive(stated.get(name))
    }


def _is_positive(amount: Any) -> bool:
    return str(amount or 0) != "0"


# --- notes -------------------------------------------------------------------------------------


def _notes(starts: Sequence[_Start]) -> Iterator[str]:
    """Yield notes about the nodes in `starts`, which are assumed to have started."""
    are, have = ("is", "has") if len(starts) == 1 else ("are", "have")
    they = "it" if len(starts) == 1 else "they"
    agents = _distinct(key for one in starts for key in one.taints if not _is_usual(key))
    without = f", without {listed(agents, _NAMED_MAX)}" if agents else ""
    yield (
        f"{_names(starts)} {are} starting in the dump. The answer assumes that {they} {have} "
        f"started and {are} Ready{without}."
    )
    resources = _distinct(key for one in starts for key in one.resources)
    if resources:
        yield (
            f"{_names([one for one in starts if one.resources])} had not reported "
            f"{listed(resources, _NAMED_MAX)} yet. The amounts are those of the NodeClaim or of "
            "a node of the same pool and instance type."
        )
    unknown = [one for one in starts if not one.has_model]
    if unknown:
        yield (
            f"This answer lacks resources that {_names(unknown)} had not reported yet, such as "
            "GPUs: the dump has no started node of the same pool and instance type."
        )
    unzoned = [one for one in starts if one.lacks_zone]
    if unzoned:
        yield (
            f"{_names(unzoned)} had no zone label yet, so pods that need a zone do not fit there."
        )


def _is_usual(key: str) -> bool:
    """Return whether Kubernetes or Karpenter sets the taint `key` on every starting node."""
    return key in CONDITION_TAINTS or key == UNREGISTERED_TAINT


def _names(starts: Sequence[_Start]) -> str:
    return listed([one.name for one in starts], _NAMED_MAX)


def _distinct(keys: Iterable[str]) -> list[str]:
    return sorted(set(keys))
