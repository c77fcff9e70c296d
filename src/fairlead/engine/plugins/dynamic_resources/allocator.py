"""Allocator: allocates devices on a node for a pod's claims, and caches the results by node.

Claims with equal requests share results. A cached result is dropped when the change logs show that
the node's labels, its devices or their allocations changed. All results are dropped when a
DeviceClass changes.

`allocation_of` builds status.allocation for the chosen devices: results, configuration and node
selector (allocator_stable.go: the second half of Allocate, createNodeSelector).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from fairlead.api.json import Json
from fairlead.api.objects import (
    AllocatedDevice,
    AllocatedDevices,
    ClaimAllocation,
    DeviceClass,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    QuantityText,
    ResourceClaim,
)
from fairlead.api.quantity import canonical
from fairlead.engine.core.status import SUCCESS, Status, error, unresolvable
from fairlead.engine.framework.interface import Rows, Verdicts
from fairlead.engine.plugins.dynamic_resources.claims_of_pod import NOT_ENOUGH
from fairlead.engine.plugins.dynamic_resources.consumable_capacity import Consumption
from fairlead.engine.plugins.dynamic_resources.device_request import (
    AllocationError,
    ResolvedClaim,
    ResolvedRequest,
    resolve_claim,
)
from fairlead.engine.plugins.dynamic_resources.device_search import (
    DeviceSearch,
    SearchTooLongError,
    Taken,
)
from fairlead.engine.plugins.dynamic_resources.device_selectors import DeviceSelectors
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.devices.device_pools import EVERYWHERE, PoolDevice
from fairlead.engine.state.node_info import NodeInfo

TOO_LONG: Final = unresolvable("timed out trying to allocate devices")
INVALID_POOLS: Final = unresolvable("invalid resource pools were encountered")
_KINDS_MAX: Final = 256
_OPEN: Final = -1

Allocations = tuple[ClaimAllocation, ...]
_ENCODER: Final = msgspec.msgpack.Encoder()
# The placeholder for share IDs in cached allocations: several claims use one cached allocation.
# `Allocator.with_share_ids` replaces it.
PENDING_SHARE: Final = "pending"


class _CachedResults:
    """The cached allocation results of one set of requests on each node.

    `codes[row]` is the result for the node at `row`. `codes[row]` is _OPEN if no result is cached,
    and 0 if `allocations[row]` holds the allocations. Otherwise it is the index of the failure in
    `statuses`.
    """

    def __init__(self) -> None:
        self.codes: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self.statuses: list[Status] = [SUCCESS]
        self.allocations: dict[int, Allocations] = {}
        self.position = (-1, -1)

    def put(self, row: int, found: Allocations | Status) -> None:
        """Store `found`, the result for the node at `row`."""
        if not isinstance(found, Status):
            self.codes[row] = 0
            self.allocations[row] = found
            return
        if found not in self.statuses:
            self.statuses.append(found)
        self.codes[row] = self.statuses.index(found)


class Demand:
    """Claims to allocate together."""

    __slots__ = ("cached", "resolved")

    def __init__(self, resolved: tuple[ResolvedClaim, ...], cached: _CachedResults) -> None:
        self.resolved = resolved
        self.cached = cached


class Allocator:
    """Finds allocations of the devices of `cluster`, without changing the device ledger."""

    def __init__(self, cluster: Cluster) -> None:
        self._ledger = cluster.devices
        self._related = cluster.related
        self._table = cluster.table
        self._selectors = DeviceSelectors()
        self._kinds: dict[bytes, _CachedResults] = {}
        self._class_version = -1

    def find_class(self, name: str) -> DeviceClass | None:
        """Return the DeviceClass `name`; None if it does not exist."""
        return self._related.get(DeviceClass, name)

    def demand(self, claims: Sequence[ResourceClaim]) -> Demand:
        """Resolve the requests of `claims`. Raises AllocationError if a claim is invalid."""
        resolved = tuple(resolve_claim(claim, self.find_class) for claim in claims)
        if self._class_version != self._ledger.class_version or len(self._kinds) >= _KINDS_MAX:
            self._class_version = self._ledger.class_version
            self._kinds.clear()
        key = _ENCODER.encode([claim.spec for claim in claims])
        cached = self._kinds.get(key)
        if cached is None:
            cached = self._kinds[key] = _CachedResults()
        return Demand(resolved, cached)

    # --- cached results --------------------------------------------------------------------

    def allocate(self, demand: Demand, node: NodeInfo) -> Allocations | Status:
        """Return one allocation on `node` for each claim, in the order of the claims.

        Returns a status instead if a claim cannot get its devices.
        """
        cached = demand.cached
        self._catch_up(cached)
        code = int(cached.codes[node.row])
        if code == _OPEN:
            return self._find(demand, node)
        return cached.allocations[node.row] if code == 0 else cached.statuses[code]

    def verdicts(self, demand: Demand, rows: Rows) -> Verdicts:
        """Return the Filter verdict for the node at each of `rows`: whether `allocate` succeeds."""
        cached = demand.cached
        self._catch_up(cached)
        broken: dict[int, Status] = {}
        for row in rows[cached.codes[rows] == _OPEN].tolist():
            found = self._find(demand, self._table.at(row))
            if cached.codes[row] == _OPEN:
                assert isinstance(found, Status)
                broken[row] = found
        codes = cached.codes[rows]
        if not broken:
            return Verdicts(codes, cached.statuses)
        statuses = [*cached.statuses, *broken.values()]
        at = {row: len(cached.statuses) + i for i, row in enumerate(broken)}
        filled = [
            at.get(row, code) for row, code in zip(rows.tolist(), codes.tolist(), strict=True)
        ]
        return Verdicts(np.array(filled, np.int32), statuses)

    def _find(self, demand: Demand, node: NodeInfo) -> Allocations | Status:
        """Search the devices of `node` for `demand`; return the allocations, or why there are none.

        The result is cached, unless it is an ERROR status. Claims with equal requests share cached
        results, but the message of an ERROR status can name the claim.
        """
        try:
            found = self._search(demand, node)
        except AllocationError as cause:
            return error(str(cause))
        demand.cached.put(node.row, found)
        return found

    def _catch_up(self, cached: _CachedResults) -> None:
        """Drop the cached results of nodes whose labels or devices have changed."""
        devices, nodes = self._ledger.pools.log, self._table.node_log
        position = (devices.position, nodes.position)
        if cached.position == position:
            return
        names, rows = devices.since(cached.position[0]), nodes.since(cached.position[1])
        is_new = cached.position[0] < 0 or len(cached.codes) != self._table.capacity
        cached.position = position
        if is_new or names is None or rows is None or EVERYWHERE in names:
            cached.codes = np.full(self._table.capacity, _OPEN, np.int32)
            return
        cached.codes[rows] = _OPEN
        for name in names:
            node = self._table.find(name)
            if node is not None:
                cached.codes[node.row] = _OPEN

    def _search(self, demand: Demand, node: NodeInfo) -> Allocations | Status:
        pools = self._ledger.pools.on(node.node)
        search = DeviceSearch(demand.resolved, pools, node.node, self._ledger, self._selectors)
        try:
            taken = search.run()
        except SearchTooLongError:
            return TOO_LONG
        if taken is not None:
            pairs = zip(demand.resolved, taken, strict=True)
            return tuple(allocation_of(claim, devices, node.name) for claim, devices in pairs)
        if any(one.flaw for one in pools):
            return INVALID_POOLS
        return unresolvable(NOT_ENOUGH)

    @staticmethod
    def with_share_ids(claim: ResourceClaim, allocation: ClaimAllocation) -> ClaimAllocation:
        """Return `allocation` with a unique share ID for each allocated share of a device.

        Upstream uses random IDs. Fairlead derives each ID from the claim's UID, its
        resourceVersion, and the index of the share in the allocation results.
        """
        results = allocation.devices.results
        if not any(one.share_id for one in results):
            return allocation
        meta = claim.metadata
        named = tuple(
            msgspec.structs.replace(one, share_id=_uuid(f"{meta.uid}/{meta.resource_version}/{i}"))
            if one.share_id
            else one
            for i, one in enumerate(results)
        )
        devices = msgspec.structs.replace(allocation.devices, results=named)
        return msgspec.structs.replace(allocation, devices=devices)


def allocation_of(claim: ResolvedClaim, taken: Sequence[Taken], node: str) -> ClaimAllocation:
    """Build the allocation of `claim` from the devices in `taken`, for a pod on `node`.

    Raises AllocationError if a device's node selector has several terms.
    """
    results = tuple(
        AllocatedDevice(
            request=request.full_name,
            driver=one.id[0],
            pool=one.id[1],
            device=one.id[2],
            admin_access=bool(request.spec.admin_access),
            tolerations=request.spec.tolerations,
            share_id="" if consumption is None else PENDING_SHARE,
            consumed_capacity=_texts(consumption),
            binding_conditions=one.device.binding_conditions,
            binding_failure_conditions=one.device.binding_failure_conditions,
        )
        for request, one, consumption in taken
    )
    devices = AllocatedDevices(results=results, config=tuple(_configs(claim, taken)))
    selector = _node_selector([one for _, one, _ in taken], node)
    return ClaimAllocation(devices=devices, node_selector=selector)


def _texts(consumption: Consumption | None) -> dict[str, QuantityText]:
    return {} if consumption is None else {k: canonical(v) for k, v in consumption.items()}


def _uuid(text: str) -> str:
    digits = hashlib.sha256(text.encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-8{digits[17:20]}-{digits[20:32]}"


def _chosen(claim: ResolvedClaim, taken: Sequence[Taken]) -> list[ResolvedRequest]:
    """Return the chosen alternative of each request.

    If `taken` contains no device for a request, its first alternative counts as chosen.
    """
    got = {request.parent: request for request, _, _ in taken}
    return [
        got.get(alternatives[0].parent, alternatives[0])
        for alternatives in claim.requests
        if alternatives
    ]


def _configs(claim: ResolvedClaim, taken: Sequence[Taken]) -> Iterator[Json]:
    """Yield the configurations that apply to the chosen requests.

    Configurations of the requests' DeviceClasses come first, then configurations of the claim.
    """
    chosen = _chosen(claim, taken)
    by_class: dict[str, list[ResolvedRequest]] = {}
    for request in chosen:
        by_class.setdefault(request.device_class.key, []).append(request)
    for alternatives in by_class.values():
        names = [request.full_name for request in alternatives]
        for config in alternatives[0].device_class.spec.config:
            yield _config("FromClass", names, config, len(chosen))
    for config in claim.claim.spec.devices.config:
        names = config.get("requests", [])
        if not names:
            yield _config("FromClaim", [], config, len(chosen))
        for request in chosen:
            if request.is_named_in(names):
                yield _config("FromClaim", names, config, len(chosen))


def _config(source: str, names: Sequence[str], config: Json, requests: int) -> Json:
    """Return one entry of `allocation.devices.config`.

    `names` are the requests to which `config` applies. If `names` is empty, `config` applies to all
    requests. The argument `requests` is the number of requests of the claim. If `config` applies to
    all of them, the field `requests` is left out of the entry.
    """
    own = {key: value for key, value in config.items() if key != "requests"}
    named = {"requests": list(names)} if names and len(names) != requests else {}
    return {"source": source, **named, **own}


def _node_selector(devices: Sequence[PoolDevice], node: str) -> NodeSelector | None:
    """Return a selector for the nodes that can use `devices`; None means all nodes."""
    expressions: list[NodeSelectorRequirement] = []
    fields: list[NodeSelectorRequirement] = []
    for one in devices:
        spec = one.slice.spec
        reach = one.device if spec.per_device_node_selection else spec
        if reach.node_name or one.device.binds_to_node:
            return _named(node)
        if reach.node_selector is not None:
            for term in _terms(reach.node_selector):
                _add_new(term.match_expressions, expressions)
                _add_new(term.match_fields, fields)
    if not expressions and not fields:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))


def _named(node: str) -> NodeSelector:
    name = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))


def _terms(selector: NodeSelector) -> tuple[NodeSelectorTerm, ...]:
    terms = selector.node_selector_terms
    if len(terms) > 1:
        raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
    return terms


def _add_new(
    found: Sequence[NodeSelectorRequirement], known: list[NodeSelectorRequirement]
) -> None:
    for one in found:
        if not any(_is_equal(one, other) for other in known):
            known.append(one)


def _is_equal(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    is_alike = one.key == other.key and one.operator == other.operator
    return is_alike and sorted({*one.values}) == sorted({*other.values})
