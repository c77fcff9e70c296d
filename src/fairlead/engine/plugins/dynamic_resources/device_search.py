"""DeviceSearch: finds devices for all claims of a pod on one node.

A depth-first search over claims, requests and devices, in this order. It tries combinations of
devices for each request until all requests of all claims are satisfied; the first solution counts.
Devices of one request are interchangeable, so combinations in ascending order suffice: the first of
them is also the first of upstream's permutations.

Example: a claim has requests r1 (count 2) and r2 (count 1); the candidates of both are a, b, c, and
a constraint wants r1 and r2 to have the same `numa` attribute, which is 0 for a and 1 for b and c.

    r1: a          taken
    r1: a, b       rejected by the constraint; so is a, c: `a` is given back
    r1: b, c       taken
    r2:            a violates the constraint, b and c are taken: no candidate left, c is given back
    r1: b          no candidate after c: `b` is given back, then nothing is left: no solution

Invariant: `_results`, `_taking` and the constraints contain exactly the devices on the current path
of the search; `_take` and `_give_back` are each other's inverse.

upstream: structured/internal/stable/allocator_stable.go: allocateOne, allocateDevice, isSelectable
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import Final

from fairlead.api.objects import Device, Node
from fairlead.engine.plugins.dynamic_resources.device_request import (
    ALL,
    DEVICES_MAX,
    AllocationError,
    ClaimWishes,
    ResolvedRequest,
)
from fairlead.engine.plugins.dynamic_resources.device_selectors import (
    CompileError,
    DeviceSelectors,
    EvaluationError,
)
from fairlead.engine.plugins.dynamic_resources.device_traits import AttributeMatch, is_repelled
from fairlead.engine.state.devices.device_allocations import DeviceLedger
from fairlead.engine.state.devices.device_pools import (
    DeviceId,
    NodePool,
    PoolDevice,
    device_reaches,
)

# Far more than real claims need; upstream stops after ten seconds.
STEPS_MAX: Final = 20_000

COUNTERS: Final = "devices with shared counters are left aside, Fairlead does not have them yet"
SHARED: Final = "devices for several claims are left aside, Fairlead does not have them yet"
CONDITIONS: Final = (
    "devices with binding conditions are left aside, Fairlead does not have them yet"
)

Taken = tuple[ResolvedRequest, PoolDevice]
Candidate = PoolDevice | AllocationError


class SearchTooLongError(Exception):
    """The search found no solution within STEPS_MAX steps."""


class _Outcome(Enum):
    """TOO_MANY: no combination can help, because a claim would exceed DEVICES_MAX."""

    DONE = auto()
    NONE = auto()
    TOO_MANY = auto()


class DeviceSearch:
    """One search. `left_aside` has the reasons for which unsupported devices were skipped."""

    def __init__(
        self,
        claims: Sequence[ClaimWishes],
        pools: Sequence[NodePool],
        node: Node,
        ledger: DeviceLedger,
        selectors: DeviceSelectors,
    ) -> None:
        """Search for `claims` on `node`, which can use the devices of `pools`."""
        self._claims = claims
        self._pools = pools
        self._node = node
        self._ledger = ledger
        self._selectors = selectors
        self._results: list[list[Taken]] = [[] for _ in claims]
        self._taking: dict[DeviceId, list[int]] = {}  # indexes of the claims that take the device
        self._candidates: dict[ResolvedRequest, list[Candidate]] = {}
        self._constraints = [
            [AttributeMatch(c.requests, c.match_attribute or "") for c in claim.constraints]
            for claim in claims
        ]
        self._steps = 0
        self.left_aside: dict[str, None] = {}

    def run(self) -> list[list[Taken]] | None:
        """Return the devices of each claim, or None if there is no solution.

        Raises AllocationError and SearchTooLongError.
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
        """Whether the requests with a plain count need more devices than all their candidates.

        A shortcut for full nodes, where the search would try all combinations in vain. It is only a
        necessary condition for success, so it never rejects a solvable case.
        """
        simple = [
            wishes[0]
            for claim in self._claims
            for wishes in claim.requests
            if wishes[0].place is None
            and wishes[0].spec.allocation_mode != ALL
            and not wishes[0].spec.admin_access
        ]
        free = [one for wish in simple for one in self._free(wish)]
        if any(isinstance(one, AllocationError) for one in free):
            return False
        there = {one.id for one in free if isinstance(one, PoolDevice)}
        return sum(wish.spec.count for wish in simple) > len(there)

    # --- claims and requests ---------------------------------------------------------------

    def _claim(self, at: int) -> _Outcome:
        return _Outcome.DONE if at == len(self._claims) else self._request(at, 0)

    def _request(self, at: int, index: int) -> _Outcome:
        """Satisfy the requests of claim `at` from `index` on, and then all later claims."""
        requests = self._claims[at].requests
        if index == len(requests):
            outcome = self._claim(at + 1)
            return _Outcome.NONE if outcome is _Outcome.TOO_MANY else outcome
        wishes = requests[index]
        if wishes[0].place is None:
            return self._pick(at, index, wishes[0], 0, 0)
        outcomes: dict[_Outcome, None] = {}
        for wish in wishes:
            outcome = self._pick(at, index, wish, 0, 0)
            if outcome is _Outcome.DONE:
                return outcome
            outcomes[outcome] = None
        return _Outcome.NONE if _Outcome.NONE in outcomes else _Outcome.TOO_MANY

    def _count(self, wish: ResolvedRequest) -> int:
        is_all = wish.spec.allocation_mode == ALL
        return len(self._all(wish)) if is_all else wish.spec.count

    # --- devices ---------------------------------------------------------------------------

    def _pick(
        self, at: int, index: int, wish: ResolvedRequest, picked: int, start: int
    ) -> _Outcome:
        """Pick the remaining devices of `wish` from candidate `start` on, then continue.

        `picked` of its devices are on the path already. Candidates before `start` were tried in
        this position, so a combination is never tried twice.
        """
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise SearchTooLongError
        wanted = self._count(wish)
        if picked == wanted and (wanted or wish.spec.allocation_mode != ALL):
            return self._request(at, index + 1)
        if len(self._results[at]) + wanted - picked > DEVICES_MAX:
            return _Outcome.TOO_MANY
        for position, one in self._openings(wish, wanted - picked, start):
            if not self._take(at, wish, one):
                continue
            outcome = self._pick(at, index, wish, picked + 1, position + 1)
            if outcome is _Outcome.DONE:
                return outcome
            self._give_back(at, wish, one)
            if outcome is _Outcome.TOO_MANY:
                return outcome
        return _Outcome.NONE

    def _openings(
        self, wish: ResolvedRequest, lacking: int, start: int
    ) -> Iterator[tuple[int, PoolDevice]]:
        """The candidates from `start` on that may be picked next; none if too few are left.

        With allocationMode All there is only one combination, so only the next candidate counts. A
        broken selector must raise its error when the search reaches it, so the candidates are not
        pruned if there is one.
        """
        is_all = wish.spec.allocation_mode == ALL
        candidates = self._all(wish) if is_all else self._free(wish)
        stop = min(start + 1, len(candidates)) if is_all else len(candidates)
        left = candidates[start:]
        if len(left) < lacking and not any(isinstance(one, AllocationError) for one in left):
            return
        for position in range(start, stop):
            one = candidates[position]
            if isinstance(one, AllocationError):
                raise one
            yield position, one

    def _take(self, at: int, wish: ResolvedRequest, one: PoolDevice) -> bool:
        """Add the device to the path if that is allowed; undone by `_give_back`."""
        if self._is_taken(at, wish, one) or not self._is_simple(one.device):
            return False
        if is_repelled(one.device, wish.spec.tolerations):
            return False
        added: list[AttributeMatch] = []
        for constraint in self._constraints[at]:
            if not constraint.add(wish, one):
                for other in added:
                    other.remove(wish)
                if wish.spec.allocation_mode == ALL:
                    raise _unmatched(self._claims[at], wish, one)
                return False
            added.append(constraint)
        self._taking.setdefault(one.id, []).append(at)
        self._results[at].append((wish, one))
        return True

    def _give_back(self, at: int, wish: ResolvedRequest, one: PoolDevice) -> None:
        for constraint in self._constraints[at]:
            constraint.remove(wish)
        self._taking[one.id].remove(at)
        self._results[at].pop()

    def _is_taken(self, at: int, wish: ResolvedRequest, one: PoolDevice) -> bool:
        """With adminAccess a device may be in use, but not twice in the same claim."""
        taking = self._taking.get(one.id, ())
        if wish.spec.admin_access:
            return at in taking
        return bool(taking) or self._ledger.is_taken(one.id)

    def _is_simple(self, device: Device) -> bool:
        if device.consumes_counters:
            self.left_aside[COUNTERS] = None
        elif device.allow_multiple_allocations:
            self.left_aside[SHARED] = None
        return not device.consumes_counters and not device.allow_multiple_allocations

    # --- candidates ------------------------------------------------------------------------

    def _free(self, wish: ResolvedRequest) -> list[Candidate]:
        """The available devices that match, from complete and valid pools."""
        found = self._candidates.get(wish)
        if found is None:
            is_taken = self._ledger.is_taken
            devices = (
                device
                for one in self._pools
                if one.pool.is_usable
                for device in one.devices
                if wish.spec.admin_access or not is_taken(device.id)
            )
            found = self._candidates[wish] = []
            for device in devices:
                self._consider(wish, device, found)
        return found

    def _all(self, wish: ResolvedRequest) -> list[Candidate]:
        """Every device that matches, in use or not; requires that all pools are complete."""
        found = self._candidates.get(wish)
        if found is None:
            found = self._candidates[wish] = []
            for one in self._pools:
                self._check_whole(wish, one)
                for device in one.devices:
                    self._consider(wish, device, found)
            broken = next((c for c in found if isinstance(c, AllocationError)), None)
            if broken is not None:
                raise broken
        return found

    def _check_whole(self, wish: ResolvedRequest, one: NodePool) -> None:
        if one.pool.is_usable:
            return
        claim = next(c.claim for c in self._claims for r in c.requests if wish in r)
        state = "being updated" if one.pool.is_incomplete else "invalid"
        raise AllocationError(
            f"claim {claim.key}, request {wish.name}: asks for all devices,"
            f" but resource pool {'/'.join(one.pool.id)} is currently {state}"
        )

    def _consider(self, wish: ResolvedRequest, one: PoolDevice, found: list[Candidate]) -> None:
        """Add the device to `found` if it matches, or the error of a broken selector."""
        try:
            if self._is_selectable(wish, one):
                found.append(one)
        except AllocationError as cause:
            found.append(cause)

    def _is_selectable(self, wish: ResolvedRequest, one: PoolDevice) -> bool:
        if one.device.binding_conditions:
            self.left_aside[CONDITIONS] = None
            return False
        for selector in wish.selectors:
            try:
                if not self._selectors.matches(selector.expression, one):
                    return False
            except CompileError as cause:
                raise AllocationError(f"{selector.origin}: CEL compile error: {cause}") from None
            except EvaluationError as cause:
                where = f"{selector.origin} on device {'/'.join(one.id)}"
                raise AllocationError(f"{where}: CEL runtime error: {cause}") from None
        return device_reaches(one, self._node)


def _unmatched(claim: ClaimWishes, wish: ResolvedRequest, one: PoolDevice) -> AllocationError:
    return AllocationError(
        f"claim {claim.claim.key}, request {wish.name}: cannot add device {'/'.join(one.id)}"
        " because a claim constraint would not be satisfied"
    )
