"""Explains which devices the ResourceClaims of a pending pod lack.

The scheduler says only that it cannot allocate all claims on a node. There are three possible
reasons: the selectors match no device, no node has enough devices, or the devices are in use.

Extended resources that DeviceClasses provide are explained, too. The claim for such a resource
exists only while the scheduler looks for devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import DeviceClass, ResourceClaim
from fairlead.api.text.count import counted
from fairlead.engine.plugins.dynamic_resources.claims_of_pod import ClaimError, claims_of
from fairlead.engine.plugins.dynamic_resources.device_request import (
    ALL,
    AllocationError,
    ResolvedClaim,
    ResolvedRequest,
    Selector,
    resolve_claim,
)
from fairlead.engine.plugins.dynamic_resources.device_search import SharedCapacity, is_repelled
from fairlead.engine.plugins.dynamic_resources.device_selectors import (
    CompileError,
    DeviceSelectors,
    EvaluationError,
)
from fairlead.engine.plugins.dynamic_resources.extended_resource_claim import (
    SpecialClaim,
    extended_requests,
)
from fairlead.engine.plugins.dynamic_resources.shared_counters import SharedCounters
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.devices.device_pools import DeviceId, PoolDevice, is_usable_on
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

_TOGETHER: Final = (
    "For each request of the pod's claims, there is a node with enough free devices. No node has "
    "enough for all requests together, within the constraints of the claims."
)


class _State(StrEnum):
    """A state of a device, in the words of messages such as `2 free, 1 in use`."""

    FREE = "free"
    IN_USE = "in use"
    PARTLY_USED = "on hardware that other devices use"
    TAINTED = "with a taint that the request does not tolerate"
    SMALL = "without enough free capacity"


class _Request(Struct, frozen=True):
    """A request for devices; `what` is the beginning of each sentence about the request."""

    what: str
    request: ResolvedRequest


class _Found(Struct):
    """The devices for a request.

    The fields `most_free` and `suffices` are about the nodes on which the claims cannot be
    allocated.
    """

    of_class: set[DeviceId] = field(default_factory=set)  # the devices of the DeviceClass
    # The devices of the DeviceClass that also match the selectors of the request.
    states: dict[DeviceId, _State] = field(default_factory=dict)
    most: tuple[int, str] = (0, "")  # (largest number of matching devices on one node, node)
    # (largest number of free matching devices on one such node, node).
    most_free: tuple[int, str] = (0, "")
    suffices: bool = False  # whether one such node has enough free devices for the request
    # Whether a node on which the claims can be allocated has enough free devices. That node refuses
    # the pod for another reason.
    has_enough: bool = False


def may_need_devices(pod: PodInfo, cluster: Cluster) -> bool:
    """Return whether `pod` has claims, or requests an extended resource of a DeviceClass."""
    extended = extended_requests(pod, cluster.table.resources, cluster.devices.extended)
    return bool(pod.pod.spec.resource_claims) or extended is not None


def device_shortages(pod: PodInfo, cluster: Cluster, lacking: Collection[str]) -> Iterator[str]:
    """Yield a sentence about each request of `pod` for which no node has enough free devices.

    If no request lacks devices by itself, a sentence says that no node has enough devices for all
    requests together. Sentences about pools whose devices cannot be allocated follow.

    `lacking` are the names of the nodes on which the scheduler cannot allocate all claims of the
    pod. Only these nodes are examined. Yield nothing if `lacking` is empty, or if a claim is
    invalid or missing. There is no sentence about a claim that is allocated already.
    """
    if not lacking:
        return

    def resolved(claim: ResourceClaim) -> ResolvedClaim:
        return resolve_claim(claim, lambda name: cluster.related.get(DeviceClass, name))

    nodes = [one for one in map(cluster.table.find, sorted(lacking)) if one is not None]
    try:
        requests = [
            *_of_claims(
                resolved(one)
                for one in claims_of(pod.pod, cluster.related)
                if one.status.allocation is None
            ),
            *_of_extended_resources(
                (one, resolved(one.claim)) for one in _special_claims(pod, cluster, nodes)
            ),
        ]
    except (ClaimError, AllocationError):
        return
    search = _Search(cluster, lacking)
    is_explained = not requests
    for alternatives in requests:
        found = [search.shortage(one) for one in alternatives]
        if all(found):
            yield from found
            is_explained = True
    if not is_explained:
        yield _TOGETHER
    yield from _unusable(cluster, nodes)


def _of_claims(claims: Iterable[ResolvedClaim]) -> Iterator[Sequence[_Request]]:
    """Yield the list of alternatives of each request in `claims`."""
    for claim in claims:
        for alternatives in claim.requests:
            yield [
                _Request(f"Request {one.full_name} of claim {claim.claim.key}", one)
                for one in alternatives
            ]


def _of_extended_resources(
    claims: Iterable[tuple[SpecialClaim, ResolvedClaim]],
) -> Iterator[Sequence[_Request]]:
    """Yield a list with a single request for each request of `claims`.

    `claims` are the special claims for extended resources.
    """
    for special, claim in claims:
        # The first mapping to a request belongs to the container for which the request was made.
        of = {one.request_name: one for one in reversed(special.mappings)}
        for [request] in claim.requests:
            mapping = of[request.full_name]
            what = f"Request {mapping.resource_name} of container {mapping.container_name}"
            yield [_Request(what, request)]


def _special_claims(
    pod: PodInfo, cluster: Cluster, nodes: Iterable[NodeInfo]
) -> Sequence[SpecialClaim]:
    """Return the distinct claims for the extended resources that `nodes` provide as devices."""
    extended = extended_requests(pod, cluster.table.resources, cluster.devices.extended)
    if extended is None:
        return ()
    found = (extended.claim_for(node) for node in nodes)
    return list({id(one): one for one in found if isinstance(one, SpecialClaim)}.values())


def _unusable(cluster: Cluster, nodes: Iterable[NodeInfo]) -> Iterator[str]:
    """Yield a sentence for each reason that makes device pools on `nodes` unusable.

    The scheduler allocates no devices of a pool that is incomplete or invalid.
    """
    # upstream: structured/internal/stable/pools_stable.go: GatherPools
    found: dict[str, dict[str, None]] = {}
    for node in nodes:
        for one in cluster.devices.pools.on(node.node):
            if not one.is_usable:
                why = one.flaw or "some of its ResourceSlices are missing"
                found.setdefault(why, {})["/".join(one.pool.id)] = None
    for why, pools in found.items():
        name, *others = pools
        more = f" The same is true of {counted(len(others), 'more pool')}." if others else ""
        yield f"No device of pool {name} can be allocated: {why}.{more}"


class _Search:
    """Counts the devices of `cluster` that match a request.

    `lacking` are the nodes on which the claims of the pod cannot be allocated.
    """

    def __init__(self, cluster: Cluster, lacking: Collection[str]) -> None:
        self._cluster = cluster
        self._lacking = lacking
        self._selectors = DeviceSelectors()

    def shortage(self, named: _Request) -> str:
        """Return a sentence if no node in `lacking` has enough devices for the request, else ""."""
        found, what, request = _Found(), named.what, named.request
        for node in self._cluster.table.nodes():
            self._count(request, node, found)
        if not found.of_class:
            return f"{what}: no node has a device of DeviceClass {request.device_class.key}."
        if not found.states:
            devices = counted(len(found.of_class), "device")
            of_class = f"the {devices} of DeviceClass {request.device_class.key}"
            return f"{what}: its selectors match none of {of_class}."
        if found.suffices:
            return ""
        return f"{what} needs {_needed(request, found)}"

    def _count(self, request: ResolvedRequest, node: NodeInfo, found: _Found) -> None:
        """Add the devices of `node` to `found`."""
        ledger = self._cluster.devices
        pools = [one for one in ledger.pools.on(node.node) if one.is_usable]
        counters, capacity = SharedCounters(pools, ledger), SharedCapacity(ledger)
        class_selectors = len(request.device_class.spec.selectors)
        of_class, own = request.selectors[:class_selectors], request.selectors[class_selectors:]
        matching = free = 0
        for one in (device for pool in pools for device in pool.devices):
            if not is_usable_on(one, node.node) or not self._match(of_class, one):
                continue
            found.of_class.add(one.id)
            if not self._match(own, one):
                continue
            state = self._state(request, one, counters, capacity)
            found.states[one.id] = state
            matching += 1
            free += state is _State.FREE
        if request.spec.allocation_mode == ALL:
            is_enough = free == matching > 0
        else:
            is_enough = free >= request.spec.count
        if node.name in self._lacking:
            found.most_free = max(found.most_free, (free, node.name), key=lambda one: one[0])
            found.suffices |= is_enough
        else:
            found.has_enough |= is_enough
        found.most = max(found.most, (matching, node.name), key=lambda one: one[0])

    def _match(self, selectors: Collection[Selector], one: PoolDevice) -> bool:
        try:
            return all(self._selectors.matches(each.expression, one) for each in selectors)
        except (CompileError, EvaluationError):
            return False

    def _state(
        self,
        request: ResolvedRequest,
        one: PoolDevice,
        counters: SharedCounters,
        capacity: SharedCapacity,
    ) -> _State:
        if not request.spec.admin_access and self._cluster.devices.is_taken(one.id):
            return _State.IN_USE
        if is_repelled(one.device, request.spec.tolerations):
            return _State.TAINTED
        is_shared = one.device.allow_multiple_allocations and capacity.is_in_use(one)
        if not is_shared and not counters.suffice(one):
            return _State.PARTLY_USED
        return _State.SMALL if capacity.consumption(request, one) is None else _State.FREE


def _needed(request: ResolvedRequest, found: _Found) -> str:
    """Return the devices that `request` needs on one node, and why no node has them."""
    count = request.spec.count
    if request.spec.allocation_mode == ALL:
        needed = "all matching devices of a node"
        if found.has_enough:
            rest = ". Nodes on which all are free refuse the pod for other reasons"
        else:
            rest = ", but on no node are all of them free"
        return f"{needed}{rest}. {_totals(found)}"
    needed = f"{counted(count, 'device')} on one node"
    if found.most[0] < count:
        return f"{needed}, but no node has more than {_on(found.most)} that match."
    if found.has_enough:
        others = f"the other nodes have at most {_on(found.most_free)} free"
        rest = f". Nodes with enough refuse the pod for other reasons; {others}"
    elif found.most_free[0]:
        rest = f", but no node has more than {_on(found.most_free)} free"
    else:
        rest = ", but none is free"
    return f"{needed}{rest}. {_totals(found)}"


def _on(most: tuple[int, str]) -> str:
    number, node = most
    return f"{number:,} (on {node})" if number else "0"


def _totals(found: _Found) -> str:
    numbers = Counter(found.states.values())
    parts = [f"{numbers[state]:,} {state}" for state in _State if numbers[state]]
    verb = "matches" if len(found.states) == 1 else "match"
    return f"{counted(len(found.states), 'device')} {verb}: {', '.join(parts)}."
