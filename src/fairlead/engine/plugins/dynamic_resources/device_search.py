"""DeviceSearch: finds devices for all claims of a pod on one node.

The search is depth-first, over claims, then over their requests, then over devices. The result is
the first solution. The order in which a request takes its devices does not matter. So the search
tries each combination only once, in ascending order. Upstream tries all permutations, and finds the
same first solution.

Example: a claim has requests r1 (count 2) and r2 (count 1). The candidates of both are a, b, c. A
constraint requires r1 and r2 to have the same `numa` attribute, which is 0 for a and 1 for b and c.

    r1: a          taken
    r1: a, b       rejected by the constraint
    r1: a, c       rejected by the constraint, so `a` is given back
    r1: b, c       taken
    r2:            a violates the constraint, b and c are already taken, so `c` is given back
    r1: b          no candidate follows c, so `b` is given back
    r1: c          no candidate follows c, so `c` is given back: no solution

Invariant: `_results`, `_taking`, `_counters`, `_capacity` and the constraints reflect exactly the
devices on the current path of the search. `_take` adds a device to this data, and `_give_back`
reverts `_take` exactly. Upstream differs here: when it gives back a shared device, it does not
release the device's counters.

A device with `allowMultipleAllocations` is recorded in `_capacity` instead of `_taking`, because
other requests may take further shares of it. The counters of such a device are consumed once, with
the first share.

upstream: structured/internal/stable/allocator_stable.go: allocateOne, allocateDevice, isSelectable,
taintPreventsAllocation, matchAttributeConstraint; resourceclaim/devicetoleration.go: ToleratesTaint
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import Final

from fairlead.api.nodes.taint import tolerates
from fairlead.api.objects import (
    Device,
    DeviceAttribute,
    DeviceConstraint,
    DeviceToleration,
    Node,
)
from fairlead.engine.plugins.dynamic_resources.consumable_capacity import (
    Consumption,
    consumption_of,
    has_capacity,
)
from fairlead.engine.plugins.dynamic_resources.device_request import (
    ALL,
    DEVICES_MAX,
    AllocationError,
    ResolvedClaim,
    ResolvedRequest,
)
from fairlead.engine.plugins.dynamic_resources.device_selectors import (
    CompileError,
    DeviceSelectors,
    EvaluationError,
)
from fairlead.engine.plugins.dynamic_resources.shared_counters import SharedCounters
from fairlead.engine.state.devices.device_ledger import DeviceLedger
from fairlead.engine.state.devices.device_pools import (
    DeviceId,
    NodeDevicePool,
    PoolDevice,
    is_usable_on,
)

# Real claims need far fewer steps. Upstream stops a search after ten seconds instead.
STEPS_MAX: Final = 20_000

Taken = tuple[ResolvedRequest, PoolDevice, Consumption | None]  # None: the whole device is taken
Candidate = PoolDevice | AllocationError
_REPELLING: Final = ("NoSchedule", "NoExecute")


class SearchTooLongError(Exception):
    """Raised if the search finds no solution within STEPS_MAX steps."""


class _Outcome(Enum):
    """The outcome of a step of the search: a solution (DONE), or no solution (NONE, TOO_MANY).

    TOO_MANY means that the claim would get more than DEVICES_MAX devices.
    """

    DONE = auto()
    NONE = auto()
    TOO_MANY = auto()


class DeviceSearch:
    """A search for the devices of one pod's claims on one node."""

    def __init__(
        self,
        claims: Sequence[ResolvedClaim],
        pools: Sequence[NodeDevicePool],
        node: Node,
        ledger: DeviceLedger,
        selectors: DeviceSelectors,
    ) -> None:
        """Prepare to search `pools`, which `node` can use, for devices that satisfy `claims`."""
        self._claims = claims
        self._pools = pools
        self._node = node
        self._ledger = ledger
        self._selectors = selectors
        self._results: list[list[Taken]] = [[] for _ in claims]
        self._taking: dict[DeviceId, list[int]] = {}  # indexes of the claims that take the device
        self._candidates: dict[ResolvedRequest, list[Candidate]] = {}
        self._constraints = [
            [_constraint_of(constraint) for constraint in claim.constraints] for claim in claims
        ]
        self._counters = SharedCounters(pools, ledger)
        self._capacity = SharedCapacity(ledger)
        self._steps = 0

    def run(self) -> list[list[Taken]] | None:
        """Return the devices of each claim, or None if there is no solution.

        Raises AllocationError if a claim needs more than DEVICES_MAX devices or a selector fails. A
        request with allocationMode All also raises AllocationError if a pool is incomplete or
        invalid, or if a device violates a constraint. Raises SearchTooLongError after STEPS_MAX
        steps.
        """
        for at, claim in enumerate(self._claims):
            least = sum(min(map(self._count, request), default=0) for request in claim.requests)
            if least > DEVICES_MAX:
                raise AllocationError(
                    f"claim {self._claims[at].claim.key}: number of requested devices {least}"
                    f" exceeds the claim limit of {DEVICES_MAX}"
                )
        if self._lacks_devices():
            return None
        return self._results if self._claim(0) is _Outcome.DONE else None

    def _lacks_devices(self) -> bool:
        """Return True if the requests obviously need more devices than there are free candidates.

        On a full node, this check avoids a search through all combinations. The check considers
        only requests with a fixed count, without alternatives and without adminAccess.
        """
        simple = [
            alternatives[0]
            for claim in self._claims
            for alternatives in claim.requests
            if alternatives[0].place is None
            and alternatives[0].spec.allocation_mode != ALL
            and not alternatives[0].spec.admin_access
        ]
        free = [one for request in simple for one in self._free(request)]
        if any(isinstance(one, AllocationError) or _is_shared(one) for one in free):
            return False
        there = {one.id for one in free if isinstance(one, PoolDevice)}
        return sum(request.spec.count for request in simple) > len(there)

    # --- claims and requests ---------------------------------------------------------------

    def _claim(self, at: int) -> _Outcome:
        return _Outcome.DONE if at == len(self._claims) else self._request(at, 0)

    def _request(self, at: int, index: int) -> _Outcome:
        """Choose devices for the remaining requests of a claim, and for all later claims.

        `at` is the index of the claim. The first `index` requests of the claim already have
        devices.
        """
        requests = self._claims[at].requests
        if index == len(requests):
            outcome = self._claim(at + 1)
            return _Outcome.NONE if outcome is _Outcome.TOO_MANY else outcome
        alternatives = requests[index]
        if alternatives[0].place is None:
            return self._pick(at, index, alternatives[0], 0, 0)
        outcomes: dict[_Outcome, None] = {}
        for request in alternatives:
            outcome = self._pick(at, index, request, 0, 0)
            if outcome is _Outcome.DONE:
                return outcome
            outcomes[outcome] = None
        return _Outcome.NONE if _Outcome.NONE in outcomes else _Outcome.TOO_MANY

    def _count(self, request: ResolvedRequest) -> int:
        is_all = request.spec.allocation_mode == ALL
        return len(self._all(request)) if is_all else request.spec.count

    # --- devices ---------------------------------------------------------------------------

    def _pick(
        self, at: int, index: int, request: ResolvedRequest, picked: int, start: int
    ) -> _Outcome:
        """Pick the remaining devices of `request`, then satisfy all later requests.

        `at` is the index of the claim, and `index` is the index of the request within the claim.
        `picked` is the number of devices that are already picked for `request`. Only candidates
        from index `start` on are tried, so that no combination is tried twice.
        """
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise SearchTooLongError
        wanted = self._count(request)
        if picked == wanted and (wanted or request.spec.allocation_mode != ALL):
            return self._request(at, index + 1)
        if len(self._results[at]) + wanted - picked > DEVICES_MAX:
            return _Outcome.TOO_MANY
        for position, one in self._next_candidates(request, wanted - picked, start):
            if not self._take(at, request, one):
                continue
            outcome = self._pick(at, index, request, picked + 1, position + 1)
            if outcome is _Outcome.DONE:
                return outcome
            self._give_back(at, request, one)
            if outcome is _Outcome.TOO_MANY:
                return outcome
        return _Outcome.NONE

    def _next_candidates(
        self, request: ResolvedRequest, lacking: int, start: int
    ) -> Iterator[tuple[int, PoolDevice]]:
        """Yield (index, device) of the candidates from `start` on that may be picked next.

        If allocationMode is All, only the candidate at `start` is yielded. `lacking` is the number
        of devices that `request` still needs. If a selector failed for a candidate, the candidates
        before it are yielded, then the selector's error is raised. If no selector failed, but fewer
        than `lacking` candidates remain, nothing is yielded.
        """
        is_all = request.spec.allocation_mode == ALL
        candidates = self._all(request) if is_all else self._free(request)
        stop = min(start + 1, len(candidates)) if is_all else len(candidates)
        left = candidates[start:]
        if len(left) < lacking and not any(isinstance(one, AllocationError) for one in left):
            return
        for position in range(start, stop):
            one = candidates[position]
            if isinstance(one, AllocationError):
                raise one
            yield position, one

    def _take(self, at: int, request: ResolvedRequest, one: PoolDevice) -> bool:
        """Add the device to the search path if it may be taken; return whether it was added.

        `at` is the index of the claim. If the result is True, `_give_back` reverts this call.
        """
        if self._is_taken(at, request, one):
            return False
        has_share = _is_shared(one) and self._capacity.is_in_use(one)
        if not has_share and not self._counters.suffice(one):
            return False
        if is_repelled(one.device, request.spec.tolerations):
            return False
        consumption = self._capacity.consumption(request, one)
        if not self._add_to_constraints(at, request, one):
            return False
        if consumption is None:
            self._remove_from_constraints(at, request, one)
            return False
        self._results[at].append((request, one, consumption if _is_shared(one) else None))
        if not has_share:
            self._counters.consume(one)
        if _is_shared(one):
            self._capacity.consume(one, consumption)
        else:
            self._taking.setdefault(one.id, []).append(at)
        return True

    def _give_back(self, at: int, request: ResolvedRequest, one: PoolDevice) -> None:
        self._remove_from_constraints(at, request, one)
        _, _, consumption = self._results[at].pop()
        if consumption is None:
            self._taking[one.id].remove(at)
        else:
            self._capacity.release(one, consumption)
        if not (_is_shared(one) and self._capacity.is_in_use(one)):
            self._counters.release(one)

    def _add_to_constraints(self, at: int, request: ResolvedRequest, one: PoolDevice) -> bool:
        """Add the device `one` to all constraints of a claim; return whether all accept it.

        `at` is the index of the claim. If a constraint refuses the device, the device is removed
        from the constraints to which it was added. The result is then False. If allocationMode is
        All, AllocationError is raised instead.
        """
        added: list[Constraint] = []
        for constraint in self._constraints[at]:
            if not constraint.add(request, one):
                for other in added:
                    other.remove(request, one)
                if request.spec.allocation_mode == ALL:
                    raise _unmatched(self._claims[at], request, one)
                return False
            added.append(constraint)
        return True

    def _remove_from_constraints(self, at: int, request: ResolvedRequest, one: PoolDevice) -> None:
        for constraint in self._constraints[at]:
            constraint.remove(request, one)

    def _is_taken(self, at: int, request: ResolvedRequest, one: PoolDevice) -> bool:
        """Return whether the device cannot be taken for `request` because it is in use.

        `at` is the index of the claim. If the request has adminAccess, a device that is in use may
        be taken, but not twice for the same claim.
        """
        taking = self._taking.get(one.id, ())
        if request.spec.admin_access:
            return at in taking
        return bool(taking) or self._ledger.is_taken(one.id)

    # --- candidates ------------------------------------------------------------------------

    def _free(self, request: ResolvedRequest) -> list[Candidate]:
        """Return the free devices that match `request`, from complete and valid pools.

        If the request has adminAccess, devices in use are included. If a selector fails for a
        device, the list contains the selector's error instead of the device.
        """
        found = self._candidates.get(request)
        if found is None:
            is_taken = self._ledger.is_taken
            devices = (
                device
                for one in self._pools
                if one.is_usable
                for device in one.devices
                if request.spec.admin_access or not is_taken(device.id)
            )
            found = self._candidates[request] = []
            for device in devices:
                self._consider(request, device, found)
        return found

    def _all(self, request: ResolvedRequest) -> list[Candidate]:
        """Return every device that matches `request`, free or in use.

        A device with too little of a requested capacity does not match. Raises AllocationError if a
        pool is incomplete or invalid, or if a selector fails.
        """
        found = self._candidates.get(request)
        if found is None:
            found = self._candidates[request] = []
            for one in self._pools:
                self._check_whole(request, one)
                for device in one.devices:
                    self._consider(request, device, found)
            found[:] = [c for c in found if self._has_capacity(request, c)]
            broken = next((c for c in found if isinstance(c, AllocationError)), None)
            if broken is not None:
                raise broken
        return found

    def _has_capacity(self, request: ResolvedRequest, one: Candidate) -> bool:
        return isinstance(one, AllocationError) or (
            self._capacity.consumption(request, one) is not None
        )

    def _check_whole(self, request: ResolvedRequest, one: NodeDevicePool) -> None:
        if one.is_usable:
            return
        claim = next(c.claim for c in self._claims for r in c.requests if request in r)
        state = "being updated" if one.pool.is_incomplete else "invalid"
        raise AllocationError(
            f"claim {claim.key}, request {request.name}: asks for all devices,"
            f" but resource pool {'/'.join(one.pool.id)} is currently {state}"
        )

    def _consider(self, request: ResolvedRequest, one: PoolDevice, found: list[Candidate]) -> None:
        """Add the device `one` to `found` if it matches `request`.

        If a selector fails, its error is added to `found` instead.
        """
        try:
            if self._is_selectable(request, one):
                found.append(one)
        except AllocationError as cause:
            found.append(cause)

    def _is_selectable(self, request: ResolvedRequest, one: PoolDevice) -> bool:
        for selector in request.selectors:
            try:
                if not self._selectors.matches(selector.expression, one):
                    return False
            except CompileError as cause:
                raise AllocationError(f"{selector.origin}: CEL compile error: {cause}") from None
            except EvaluationError as cause:
                where = f"{selector.origin} on device {'/'.join(one.id)}"
                raise AllocationError(f"{where}: CEL runtime error: {cause}") from None
        return is_usable_on(one, self._node)


def _is_shared(one: PoolDevice) -> bool:
    return one.device.allow_multiple_allocations


def _unmatched(claim: ResolvedClaim, request: ResolvedRequest, one: PoolDevice) -> AllocationError:
    return AllocationError(
        f"claim {claim.claim.key}, request {request.name}: cannot add device {'/'.join(one.id)}"
        " because a claim constraint would not be satisfied"
    )


def is_repelled(device: Device, tolerations: Iterable[DeviceToleration]) -> bool:
    """Return True if a NoSchedule or NoExecute taint of the device is not tolerated."""
    wanted = tuple(tolerations)
    return any(
        taint.effect in _REPELLING and not any(tolerates(one, taint) for one in wanted)
        for taint in device.taints
    )


def _constraint_of(constraint: DeviceConstraint) -> Constraint:
    if constraint.match_attribute is not None:
        return AttributeMatch(constraint.requests, constraint.match_attribute)
    return DistinctAttribute(constraint.requests, constraint.distinct_attribute or "")


class SharedCapacity:
    """Tracks how much capacity of shared devices the current path of the search consumes.

    upstream: allocator_incubating.go: CmpRequestOverCapacity, deviceCapacityInUse
    """

    __slots__ = ("_allocating", "_ledger", "_shares")

    def __init__(self, ledger: DeviceLedger) -> None:
        """`ledger` records how much capacity the allocated claims consume."""
        self._ledger = ledger
        self._allocating: dict[DeviceId, dict[str, int]] = {}
        self._shares: dict[DeviceId, int] = {}

    def is_in_use(self, device: PoolDevice) -> bool:
        """Return whether the search path or an allocated claim has a share of the device."""
        return device.id in self._shares or self._ledger.consumed(device.id) is not None

    def consumption(self, request: ResolvedRequest, device: PoolDevice) -> Consumption | None:
        """Return, for each capacity of the device, the amount that the request consumes.

        Returns {} if the device cannot be shared and the request states no capacity. Returns None
        if the device lacks a requested capacity, forbids a requested amount, or has too little
        left.
        """
        wanted = request.spec.capacity
        if wanted is None and not _is_shared(device):
            return {}
        found = consumption_of(wanted, device.device)
        if found is None:
            return None
        allocated, allocating = self._ledger.consumed(device.id), self._allocating.get(device.id)
        return found if has_capacity(found, device.device, allocated, allocating) else None

    def consume(self, device: PoolDevice, consumption: Consumption) -> None:
        """Record that the search has taken a share of `device`; `release` reverts this call."""
        self._shares[device.id] = self._shares.get(device.id, 0) + 1
        self._add(device, consumption, 1)

    def release(self, device: PoolDevice, consumption: Consumption) -> None:
        """Stop counting a share that `consume` has counted, because the search has backtracked."""
        self._shares[device.id] -= 1
        self._add(device, consumption, -1)
        if not self._shares[device.id]:
            del self._shares[device.id], self._allocating[device.id]

    def _add(self, one: PoolDevice, consumption: Consumption, sign: int) -> None:
        amounts = self._allocating.setdefault(one.id, {})
        for name, amount in consumption.items():
            amounts[name] = amounts.get(name, 0) + sign * amount.nano


class AttributeMatch:
    """Requires that the devices of some requests of a claim have the same value of an attribute.

    `requests` are the names of these requests; () means all requests of the claim.
    """

    __slots__ = ("_attribute", "_count", "_requests", "_value")

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        """`attribute` is the attribute's name with its domain."""
        self._requests = requests
        self._attribute = attribute
        self._value: DeviceAttribute | None = None
        self._count = 0

    def add(self, request: ResolvedRequest, device: PoolDevice) -> bool:
        """Add the device and return True; return False if the device would violate the constraint.

        Does nothing and returns True if the constraint does not apply to `request`. `remove`
        reverts a call that returned True.
        """
        if not self._concerns(request):
            return True
        value = _attribute_of(device, self._attribute)
        if value is None or value == DeviceAttribute():
            return False
        if self._count and value != self._value:
            return False
        self._value = value
        self._count += 1
        return True

    def remove(self, request: ResolvedRequest, _one: PoolDevice) -> None:
        """Remove the last device added for `request`."""
        if self._concerns(request):
            self._count -= 1

    def _concerns(self, request: ResolvedRequest) -> bool:
        return not self._requests or request.is_named_in(self._requests)


class DistinctAttribute:
    """Requires that the devices of some requests of a claim have different values of an attribute.

    `requests` are the names of these requests; () means all requests of the claim.

    upstream: structured/internal/incubating/constraint.go: distinctAttributeConstraint
    """

    __slots__ = ("_attribute", "_requests", "_values")

    def __init__(self, requests: tuple[str, ...], attribute: str) -> None:
        """`attribute` is the attribute's name with its domain."""
        self._requests = requests
        self._attribute = attribute
        self._values: list[DeviceAttribute] = []

    def add(self, request: ResolvedRequest, device: PoolDevice) -> bool:
        """Add the device and return True; return False if the device would violate the constraint.

        Does nothing and returns True if the constraint does not apply to `request`. `remove`
        reverts a call that returned True.
        """
        if not self._concerns(request):
            return True
        value = _attribute_of(device, self._attribute)
        if value is None or value == DeviceAttribute() or value in self._values:
            return False
        self._values.append(value)
        return True

    def remove(self, request: ResolvedRequest, _one: PoolDevice) -> None:
        """Remove the last device added for `request`."""
        if self._concerns(request):
            self._values.pop()

    def _concerns(self, request: ResolvedRequest) -> bool:
        return not self._requests or request.is_named_in(self._requests)


Constraint = AttributeMatch | DistinctAttribute


def _attribute_of(one: PoolDevice, name: str) -> DeviceAttribute | None:
    """Return the device's value of attribute `name`; None if the device lacks the attribute.

    The device may list the attribute without the domain, if the domain in `name` is the name of the
    device's driver.
    """
    found = one.device.attributes.get(name)
    domain, _, own_name = name.partition("/")
    if found is None and domain == one.id[0]:
        return one.device.attributes.get(own_name)
    return found
