"""DynamicResources: the plugin's arguments, extension points and QueueingHints.

The plugin's PostFilter runs before preemption. If PreFilter did not run, PostFilter fails with
upstream's error "not found". Preemption is then not attempted (dynamicresources.go: getStateData).

Fairlead differs from upstream 1.36 for a pod that has claims in its spec and also requests extended
resources. If the node lists all of these resources, upstream creates an empty claim for extended
resources (`SpecialClaim`) and then fails to bind the pod. Fairlead creates no such claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from fairlead.api.nodes.node_selector import node_selector_matches
from fairlead.api.objects import NodeSelector, ResourceClaim
from fairlead.api.text.field_problem import invalid
from fairlead.api.timestamp import parse_duration
from fairlead.engine.core.command import PatchStatus, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.diagnosis import Diagnosis
from fairlead.engine.framework.interface import (
    Normalization,
    PostFilterResult,
    Preparation,
    Rows,
    Verdicts,
)
from fairlead.engine.framework.runtime import Handle
from fairlead.engine.plugins.dynamic_resources.binding_conditions import (
    DeviceBindingFailedError,
    has_binding_conditions,
    has_timed_out,
    is_ready_for_binding,
)
from fairlead.engine.plugins.dynamic_resources.claim_binder import (
    ClaimBinder,
    Writes,
    claim_ref,
)
from fairlead.engine.plugins.dynamic_resources.claims_of_pod import (
    NOT_ON_THIS_NODE,
    ClaimError,
    can_be_reserved,
    claims_of,
    is_reserved_for,
)
from fairlead.engine.plugins.dynamic_resources.device_request import (
    ALTERNATIVES_MAX,
    AllocationError,
    refusal_of,
)
from fairlead.engine.plugins.dynamic_resources.extended_resource_claim import (
    STALE,
    ExtendedResourceRequests,
    SpecialClaim,
    creation_of,
    deletion_of,
    extended_requests,
    is_special_claim_of,
    named_in_api,
)
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_groups import group_key
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.related_objects import RelatedObjects

if TYPE_CHECKING:
    from fairlead.engine.plugins.dynamic_resources.allocator import (
        Allocations,
        Allocator,
        Demand,
    )


class DynamicResourcesArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The plugin's timeouts, as Go durations.

    `filter_timeout` has no effect, because allocation takes no virtual time.

    upstream: apis/config/types_pluginargs.go, validation/validation_pluginargs.go
    """

    filter_timeout: str | None = None
    binding_timeout: str | None = None

    def __post_init__(self) -> None:
        if _is_below("filterTimeout", self.filter_timeout, 0):
            problem = invalid(self.filter_timeout, "must be zero or positive")
            raise ValueError(f"filterTimeout: {problem}")
        if _is_below("bindingTimeout", self.binding_timeout, _ONE_SECOND):
            problem = invalid(self.binding_timeout, "must be at least 1 second")
            raise ValueError(f"bindingTimeout: {problem}")


NO_CLAIMS: Final = unschedulable("no new claims to deallocate")
DEALLOCATED: Final = unschedulable("deallocation of ResourceClaim completed")
DELETED: Final = unschedulable("deletion of ResourceClaim completed")
STILL_NOT: Final = unschedulable("still not schedulable")
IN_USE: Final = unresolvable("resourceclaim in use")
NOT_ON_NODE: Final = unresolvable(NOT_ON_THIS_NODE)
GONE: Final = "claim allocation not found for node"
TIMED_OUT: Final = "device binding timeout: context deadline exceeded"
BINDING_TIMEOUT: Final = seconds(600)
CHECK_EVERY: Final = seconds(5)
_WAIT: Final = Status(Code.WAIT)
_WRITTEN: Final = seconds(1)
_ONE_SECOND: Final = 1_000_000_000
EVENTS: Final = frozenset(
    {
        EventKind.NODE_ADD,
        EventKind.NODE_LABEL,
        EventKind.NODE_ALLOCATABLE,
        EventKind.RESOURCE_CLAIM_ADD,
        EventKind.RESOURCE_CLAIM_UPDATE,
        EventKind.RESOURCE_CLAIM_DELETE,
        EventKind.POD_CLAIM_MADE,
        EventKind.DEVICE_CLASS_ADD,
        EventKind.DEVICE_CLASS_UPDATE,
        EventKind.RESOURCE_SLICE_ADD,
        EventKind.RESOURCE_SLICE_UPDATE,
    }
)


class _PreFilterRan:
    """Marks in the CycleState that PreFilter has run."""


_PRE_FILTER_RAN: Final = _PreFilterRan()


class _Claims:
    """One pod's claims in one scheduling cycle.

    `all` are the claims of the pod's spec, and `pending` are those without an allocation.
    `extended` are the pod's extended resources, None if no DeviceClass is mapped to any of them. A
    special claim is the claim that the scheduler creates for a pod's extended resources. `stale` is
    the special claim of an earlier attempt. `demands` caches the results of `_demand`. `unready`
    are the claims whose binding conditions failed or timed out. `unavailable` are the claims that
    made Filter reject a node. `unready` and `unavailable` contain indexes into `all`. `shared` are
    the keys of the claims whose allocation another pod of the same PodGroup assumed. `all` contains
    these claims with that allocation.

    Reserve sets the other fields. `special` is the special claim for the chosen node. `placed` are
    the claims that Reserve allocated, including `special`. `assumed` are the allocations of
    `placed`, in the same order.
    """

    __slots__ = (
        "all",
        "assumed",
        "demands",
        "extended",
        "pending",
        "placed",
        "shared",
        "special",
        "stale",
        "unavailable",
        "unready",
    )

    def __init__(
        self,
        claims: tuple[ResourceClaim, ...],
        extended: ExtendedResourceRequests | None,
        stale: ResourceClaim | None,
    ) -> None:
        self.all = claims
        self.pending = [claim for claim in claims if claim.status.allocation is None]
        self.extended = extended
        self.stale = stale
        self.demands: dict[int, Demand | Status] = {}
        self.unavailable: dict[int, None] = {}
        self.unready: list[int] = []
        self.placed: tuple[ResourceClaim, ...] = ()
        self.shared: set[str] = set()
        self.special: SpecialClaim | None = None
        self.assumed: Allocations = ()

    def special_for(self, node: NodeInfo) -> SpecialClaim | Status | None:
        """Return the special claim that the pod needs on `node`; None if it needs none.

        A special claim is a ResourceClaim for the extended resources that devices provide. Returns
        the status STALE if a special claim of an earlier attempt exists. A status that `claim_for`
        returns is passed on.
        """
        if self.stale is not None:
            return STALE
        return None if self.extended is None else self.extended.claim_for(node)

    def selectors(self) -> list[tuple[int, NodeSelector]]:
        """Return (index in `all`, node selector) for each allocation that has a node selector."""
        return [
            (i, claim.status.allocation.node_selector)
            for i, claim in enumerate(self.all)
            if claim.status.allocation is not None
            and claim.status.allocation.node_selector is not None
        ]


class DynamicResources:
    """Allocates devices to the ResourceClaims of pods.

    Implements PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve and PreBind.
    """

    name = "DynamicResources"
    events = EVENTS
    normalization = Normalization.SCALED

    def __init__(self, handle: Handle, args: DynamicResourcesArgs | None = None) -> None:
        timeout = None if args is None else args.binding_timeout
        self._timeout = BINDING_TIMEOUT if timeout is None else parse_duration(timeout)
        self._cluster = handle.cluster
        self._related = handle.cluster.related
        self._ledger = handle.cluster.devices
        self._table = handle.cluster.table
        self._binder = ClaimBinder(handle.cluster)

    @cached_property
    def _allocator(self) -> Allocator:
        """The allocator. Its module is imported only when the first pod needs devices."""
        from fairlead.engine.plugins.dynamic_resources.allocator import Allocator  # noqa: PLC0415

        return Allocator(self._cluster)

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether `event` may make the pod schedulable."""
        return is_schedulable_after(pod, event, self._related)

    # --- Filter ----------------------------------------------------------------------------

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Reject the pod until all claims that it names exist and can be used."""
        if not pod.shape.spec.resource_claims:
            return None
        try:
            claims_of(pod.pod, self._related)
        except ClaimError as cause:
            return unresolvable(str(cause))
        return None

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Return SKIP if the pod needs no devices, or a rejection if a claim cannot be used."""
        state.write(_PRE_FILTER_RAN)
        extended = extended_requests(pod, self._table.resources, self._ledger.extended)
        if extended is None and not pod.shape.spec.resource_claims:
            return SKIP
        try:
            named = claims_of(pod.pod, self._related)
        except ClaimError as cause:
            return unresolvable(str(cause))
        if extended is None and not named:
            return SKIP
        claims = tuple(self._as_shared(pod, claim) for claim in named)
        stale = None if extended is None else self._special_claim(pod)
        for claim in (*claims, *([] if stale is None else [stale])):
            refusal = self._refusal(pod, claim, is_special=claim is stale)
            if refusal is not None:
                return refusal
        found = _Claims(claims, extended, stale)
        found.shared = {new.key for old, new in zip(named, claims, strict=True) if new is not old}
        found.unready = [i for i, claim in enumerate(claims) if self._cannot_bind(claim)]
        state.write(found)
        return None

    def _as_shared(self, pod: PodInfo, claim: ResourceClaim) -> ResourceClaim:
        """Return `claim` with the allocation that another pod of the same PodGroup assumed.

        Returns `claim` itself if there is no such allocation. The pods of a PodGroup are tried in
        one cycle, before the API shows their allocations.
        upstream: podGroupStateData, GetPendingAllocation
        """
        allocation = self._ledger.shared_allocation(claim, group_key(pod))
        if allocation is None:
            return claim
        return replace(claim, status=replace(claim.status, allocation=allocation))

    def _cannot_bind(self, claim: ResourceClaim) -> bool:
        """Return whether a device of `claim` reports a failed binding, or the binding timed out."""
        if not has_binding_conditions(claim):
            return False
        try:
            is_ready = is_ready_for_binding(claim)
        except DeviceBindingFailedError:
            return True
        return not is_ready and has_timed_out(claim, self._timeout, self._cluster.now)

    def _special_claim(self, pod: PodInfo) -> ResourceClaim | None:
        """Return the claim that an earlier attempt created for the pod's extended resources.

        Returns None if there is no such claim.

        upstream: findExtendedResourceClaim
        """
        key = self._ledger.special_claim_of(pod.uid)
        return None if key is None else self._related.get(ResourceClaim, key)

    def _refusal(self, pod: PodInfo, claim: ResourceClaim, *, is_special: bool) -> Status | None:
        if claim.status.allocation is None:
            if self._ledger.is_assumed(claim):
                return unresolvable(
                    f"resource claim {claim.key} is in the process of being allocated"
                )
            return None if is_special else refusal_of(claim, self._allocator.find_class)
        is_ours = is_reserved_for(claim, pod.pod, self._ledger)
        return None if is_ours or can_be_reserved(claim, self._ledger) else IN_USE

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject a node that cannot use the allocated devices, or has too few free devices."""
        claims = state.read(_Claims)
        special = claims.special_for(node)
        if isinstance(special, Status):
            return special
        if special is None and not claims.all:
            return None
        meta = node.node.metadata
        unavailable = [
            *claims.unready,
            *(
                i
                for i, selector in claims.selectors()
                if not node_selector_matches(selector, meta.labels, meta.name)
            ),
        ]
        if claims.pending or special is not None:
            found = self._allocate(claims, special, node)
            if isinstance(found, Status):
                return found
        if unavailable:
            claims.unavailable |= dict.fromkeys(unavailable)
            return NOT_ON_NODE
        return None

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        claims = state.read(_Claims)
        is_simple = claims.pending and claims.extended is None
        demand = self._demand(claims, None) if is_simple else None
        if demand is None or isinstance(demand, Status) or claims.selectors() or claims.unready:
            statuses: dict[Status, int] = {SUCCESS: 0}
            found = (self.filter(state, pod, table.at(row)) or SUCCESS for row in rows.tolist())
            codes = [statuses.setdefault(status, len(statuses)) for status in found]
            return Verdicts(np.array(codes, np.int32), list(statuses))
        return self._allocator.verdicts(demand, rows)

    def _demand(self, claims: _Claims, special: SpecialClaim | None) -> Demand | Status:
        """Return the resolved requests of the pending claims, or an error status.

        The status means that a claim is invalid. The result includes the requests of `special`, the
        claim for the extended resources that a node provides as devices. The result is cached by
        the identity of `special`. So nodes that need the same special claim must share one object.
        """
        found = claims.demands.get(id(special))
        if found is None:
            pending = _with_special(claims.pending, special)
            try:
                found = self._allocator.demand(pending)
            except AllocationError as cause:
                found = error(str(cause))
            claims.demands[id(special)] = found
        return found

    def _allocate(
        self, claims: _Claims, special: SpecialClaim | None, node: NodeInfo
    ) -> Allocations | Status:
        demand = self._demand(claims, special)
        return demand if isinstance(demand, Status) else self._allocator.allocate(demand, node)

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """Return commands that deallocate a claim whose allocation made Filter reject nodes.

        The claim must not be used by another pod. If there are several such claims, the first one
        is deallocated; upstream picks one at random. If there is no such claim, the commands delete
        the claim that an earlier attempt created for the pod's extended resources. If that claim
        does not exist either, there are no commands.
        """
        if state.find(_PreFilterRan) is None:
            return PostFilterResult(error("not found"))
        claims = state.find(_Claims)
        if claims is None:
            return PostFilterResult(NO_CLAIMS)
        for index in sorted(claims.unavailable):
            claim = claims.all[index]
            if claim.key not in claims.shared and all(
                one.uid == pod.uid for one in self._ledger.consumers(claim)
            ):
                nothing = {"allocation": None, "reservedFor": None, "devices": None}
                command = PatchStatus(claim_ref(claim), nothing, why="deallocated")
                return PostFilterResult(DEALLOCATED, commands=(command,))
        if claims.stale is not None:
            return PostFilterResult(DELETED, commands=deletion_of(claims.stale))
        return PostFilterResult(STILL_NOT)

    # --- Score -----------------------------------------------------------------------------

    def scores_alike(self, pod: PodInfo) -> bool:
        """Return True if the pod has no claims, because then all nodes get the same score."""
        return not pod.shape.spec.resource_claims

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the node's score; it is higher if earlier entries of firstAvailable are chosen.

        upstream: computeScore. If some claims are already allocated, upstream 1.36 reads the
        alternatives of the wrong claim. Fairlead does not.
        """
        claims = state.find(_Claims)
        if claims is None:
            return 0
        special = claims.special_for(node)
        assert not isinstance(special, Status)
        found = self._allocate(claims, special, node) if claims.pending else ()
        allocations = () if isinstance(found, Status) else found
        return sum(
            ALTERNATIVES_MAX - place
            for claim, allocation in zip(claims.pending, allocations, strict=False)
            for request in claim.spec.devices.requests
            for place, one in enumerate(request.first_available)
            if any(r.request == f"{request.name}/{one.name}" for r in allocation.devices.results)
        )

    # --- bindings --------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Allocate devices for the pod on `node`; record the allocations as assumed."""
        claims = state.find(_Claims)
        if claims is None:
            return None
        info = self._table.find(node)
        special = None if info is None else claims.special_for(info)
        if isinstance(special, Status):
            return special
        if not claims.pending and special is None:
            return None
        found = error(GONE) if info is None else self._allocate(claims, special, info)
        if isinstance(found, Status):
            return found
        pairs = zip(_with_special(claims.pending, special), found, strict=True)
        claims.assumed = tuple(
            self._allocator.with_share_ids(claim, allocation) for claim, allocation in pairs
        )
        claims.special = None if special is None else named_in_api(special, pod.pod)
        claims.placed = _with_special(claims.pending, claims.special)
        for claim, allocation in zip(claims.placed, claims.assumed, strict=True):
            self._ledger.assume(claim, allocation, group_key(pod))
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Revert the assumed allocations and reservations that the API does not show yet."""
        claims = state.find(_Claims)
        if claims is None:
            return
        for claim in claims.placed:
            self._ledger.revert(claim.key)
        claims.placed, claims.special, claims.assumed = (), None, ()
        for claim in claims.all:
            self._ledger.revert_reservation(claim.key, pod.uid)

    def release_commands(self, state: CycleState, pod: PodInfo, node: str) -> Writes:
        """Return the commands that remove the pod's reservations and delete its special claim.

        The special claim is the claim for the pod's extended resources.

        upstream: Unreserve, unreserveExtendedResourceClaim
        """
        claims = state.find(_Claims)
        if claims is None:
            return ()
        released = self._binder.releases(claims.all, pod)
        if claims.special is None:
            return released
        shown = self._related.get(ResourceClaim, claims.special.claim.key)
        return released if shown is None else (*released, *deletion_of(shown))

    def bound_claims(self, state: CycleState, pod: PodInfo) -> tuple[ResourceClaim, ...]:
        """Return the claims in the spec of `pod` as they will be once the pod is bound.

        Reserve must have succeeded. The special claim for extended resources is not returned.
        """
        claims = state.find(_Claims)
        if claims is None:
            return ()
        keys = (claim.key for claim in claims.placed)
        allocations = dict(zip(keys, claims.assumed, strict=True))
        return tuple(self._binder.bound(one, pod, allocations.get(one.key)) for one in claims.all)

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | Preparation | None:
        """Return the commands that write the pod's allocations and reservations.

        If devices have binding conditions, the pod waits until the conditions are True. Returns
        None if there is nothing to write and no binding condition. Returns an ERROR status if a
        claim was deleted or allocated elsewhere in the meantime.
        """
        claims = state.find(_Claims)
        if claims is None:
            return None
        placed, assumed = claims.placed, claims.assumed
        for claim in claims.all if claims.shared else ():
            # Any pod of a PodGroup may be the first to write the allocation of a shared claim.
            allocation = self._ledger.shared_allocation(claim, group_key(pod))
            if claim.key in claims.shared and allocation is not None:
                placed, assumed = (*placed, claim), (*assumed, allocation)
        commands = self._binder.commands(claims.all, placed, assumed, pod)
        if isinstance(commands, Status):
            return commands
        if claims.special is not None:
            now = self._cluster.now
            commands += creation_of(claims.special, claims.assumed[-1], pod.pod, now)
        if self._must_wait(claims):
            return Preparation(
                (*commands, _pending_event(pod, node)), CHECK_EVERY, self._timeout, TIMED_OUT
            )
        if any(has_binding_conditions(claim) for claim in claims.all):
            commands = (*commands, _pending_event(pod, node))
        return Preparation(commands, interval=0, timeout=_WRITTEN) if commands else None

    def _must_wait(self, claims: _Claims) -> bool:
        """Return whether the binding conditions of the claims must be checked in PreBind.

        The check is necessary if a binding condition is not True yet or has failed. The check is
        also necessary if a newly assumed allocation has binding conditions.
        """
        if any(r.binding_conditions for one in claims.assumed for r in one.devices.results):
            return True
        try:
            return any(
                has_binding_conditions(c) and not is_ready_for_binding(c) for c in claims.all
            )
        except DeviceBindingFailedError:
            return True

    def is_prepared(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Return None if all binding conditions are True, and WAIT if one is not True yet.

        Also returns WAIT if the API does not show an allocation yet. Returns an ERROR status if a
        failure condition is True or the timeout has expired.

        upstream: isPodReadyForBinding
        """
        claims = state.read(_Claims)
        if not self._must_wait(claims):
            return None
        pending = {claim.key for claim in claims.placed} | claims.shared
        for key in [claim.key for claim in _with_special(claims.all, claims.special)]:
            claim = self._related.get(ResourceClaim, key)
            if claim is None or (claim.status.allocation is None and key in pending):
                return _WAIT  # The API does not show the allocation yet.
            if not has_binding_conditions(claim):
                continue
            try:
                is_ready = is_ready_for_binding(claim)
            except DeviceBindingFailedError as cause:
                return error(str(cause))
            if not is_ready:
                is_late = has_timed_out(claim, self._timeout, self._cluster.now)
                why = f"device binding timeout: claim={claim.metadata.name}"
                return error(why) if is_late else _WAIT
        return None


def _with_special(
    claims: Sequence[ResourceClaim], special: SpecialClaim | None
) -> tuple[ResourceClaim, ...]:
    return (*claims,) if special is None else (*claims, special.claim)


def _pending_event(pod: PodInfo, node: str) -> RecordEvent:
    return RecordEvent(
        regarding=pod.ref,
        type="Normal",
        reason="BindingConditionsPending",
        action="Scheduling",
        note=f"waiting for binding conditions for device on node {node}",
        reporting_controller=pod.pod.spec.scheduler_name,
    )


def _is_below(field: str, given: str | None, least: int) -> bool:
    try:
        return given is not None and parse_duration(given) < least
    except ValueError as cause:
        raise ValueError(f"{field}: {invalid(given, str(cause))}") from None


def is_schedulable_after(pod: PodInfo, event: ClusterEvent, related: RelatedObjects) -> bool:
    """Return whether `event` may make `pod` schedulable.

    A claim can be used if `claims_of` raises no ClaimError for it. The result is True for the
    following events:
    - A claim of the pod was added, or its status changed, and all claims of the pod can be used.
    - Any claim was deallocated, and all claims of the pod can be used.
    - The claim that the scheduler created for the pod's extended resources was deleted.
    - The pod itself changed, and all its claims can be used.
    - The event concerns neither a claim nor a pod.
    """
    match event.old, event.new:
        case ResourceClaim() as gone, None:
            return is_special_claim_of(gone, pod.pod)
        case old, ResourceClaim() as claim:
            before = old if isinstance(old, ResourceClaim) else None
            return _is_woken_by_claim(pod, before, claim, related)
        case _, PodInfo() as changed:
            return changed.id == pod.id and _claims(changed, related) is not None
        case _:
            return True


def _claims(pod: PodInfo, related: RelatedObjects) -> tuple[ResourceClaim, ...] | None:
    try:
        return claims_of(pod.pod, related)
    except ClaimError:
        return None


def _is_woken_by_claim(
    pod: PodInfo, before: ResourceClaim | None, claim: ResourceClaim, related: RelatedObjects
) -> bool:
    own = _claims(pod, related)
    if own is None:
        return False
    if before is not None and before.status.allocation and not claim.status.allocation:
        return True
    if not any(one.metadata.uid == claim.metadata.uid for one in own):
        return False
    return before is None or before.status != claim.status
