"""The conditions of NodeClaims that disruption reads: Consolidatable and Drifted.

upstream: pkg/controllers/nodeclaim/disruption/{controller,consolidation,drift}.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from fairlead.api.objects import PodCondition
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, format_timestamp, parse_timestamp
from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.engine.autoscaling.karpenter.apis import (
    CONSOLIDATABLE,
    DRIFTED,
    INITIALIZED_CONDITION,
    LAUNCHED,
    NodeClaim,
    NodePool,
    duration_or_never,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import InstanceType
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.labels import (
    CAPACITY_TYPE,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
    ON_DEMAND,
    RESERVATION_ID_SUFFIX,
    RESERVED,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import (
    LabelRequirement,
    requirement,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import (
    Requirements,
    combined,
    label_requirements,
)
from fairlead.engine.core.instant import DurationNs, Instant

DRIFT_PERIOD_NS: Final[DurationNs] = 300 * NANOSECONDS_PER_SECOND
_TYPE_CHECK_AGE_NS: Final[DurationNs] = 3_600 * NANOSECONDS_PER_SECOND
_TYPE_CHECKS_MAX: Final = 1 << 14
_TYPE_CHECK_CACHED_NS: Final[DurationNs] = 1_800 * NANOSECONDS_PER_SECOND

TypesOfPool = Callable[[NodePool], InstanceTypeTable]
CloudDrift = Callable[[NodeClaim], str]


class ClaimConditions:
    """Computes the Consolidatable and Drifted conditions of NodeClaims.

    A NodeClaim has drifted, for example, if the provider no longer offers its instance type. If a
    check finds that the provider offers the type, this check is not repeated for half an hour.
    """

    def __init__(self, types_of: TypesOfPool, cloud_drift: CloudDrift) -> None:
        """`types_of` returns the instance types of a NodePool.

        `cloud_drift` returns the provider's reason for the drift of a NodeClaim, or "".
        """
        self._types_of = types_of
        self._cloud_drift = cloud_drift
        self._found_until: dict[str, Instant] = {}
        self._requirements: dict[str, tuple[NodePool, Requirements]] = {}
        self._matching: dict[str, tuple[Mapping[str, str], NodePool, bool]] = {}

    def updated(
        self, claim: NodeClaim, pool: NodePool | None, now: Instant
    ) -> tuple[NodeClaim, DurationNs | None]:
        """Return the NodeClaim with its current conditions, and the ns until the next check.

        The number of ns is None if no check is needed. A NodeClaim that is being deleted, or whose
        NodePool was deleted, is returned unchanged.
        """
        if claim.metadata.deletion_timestamp or pool is None:
            return claim, None
        claim, drift_requeue = self._with_drift(claim, pool, now)
        claim, requeue = _with_consolidatable(claim, pool, now)
        due = [one for one in (drift_requeue, requeue) if one is not None]
        return claim, min(due, default=None)

    def consolidatable_in(
        self, claim: NodeClaim, pool: NodePool | None, now: Instant
    ) -> DurationNs | None:
        """Return the ns until the NodeClaim becomes Consolidatable.

        Returns None if the NodeClaim already is Consolidatable, is not initialized, or never
        becomes Consolidatable.
        """
        return None if pool is None else _with_consolidatable(claim, pool, now)[1]

    def type_check_at(self, claim: NodeClaim) -> Instant:
        """Return the time from which drift checks also consider the NodeClaim's instance type."""
        return parse_timestamp(claim.metadata.creation_timestamp) + _TYPE_CHECK_AGE_NS + 1

    def _with_drift(
        self, claim: NodeClaim, pool: NodePool, now: Instant
    ) -> tuple[NodeClaim, DurationNs | None]:
        if not claim.is_true(LAUNCHED):
            return without_condition(claim, DRIFTED), None
        reason = self._drift_reason(claim, pool, now)
        if not reason:
            return without_condition(claim, DRIFTED), DRIFT_PERIOD_NS
        return with_condition(claim, DRIFTED, reason, now), DRIFT_PERIOD_NS

    def _drift_reason(self, claim: NodeClaim, pool: NodePool, now: Instant) -> str:
        """Return upstream's reason for the NodeClaim's drift; "" if it has not drifted."""
        # upstream: drift.go:isDrifted
        if _has_other_hash(claim, pool):
            return "NodePoolDrifted"
        if not self._matches(claim, pool):
            return "RequirementsDrifted"
        if self._is_type_gone(claim, pool, now):
            return "InstanceTypeNotFound"
        return self._cloud_drift(claim)

    def _matches(self, claim: NodeClaim, pool: NodePool) -> bool:
        """Return whether the NodeClaim's labels meet the pool's requirements."""
        labels = claim.metadata.labels
        known = self._matching.get(claim.name)
        if known is None or known[0] is not labels or known[1] is not pool:
            if len(self._matching) >= _TYPE_CHECKS_MAX:
                self._matching.clear()
            is_match = label_requirements(labels).compatible(self._template_requirements(pool))
            known = self._matching[claim.name] = labels, pool, is_match
        return known[2]

    def _template_requirements(self, pool: NodePool) -> Requirements:
        """Return the requirements of the pool's template, cached until the pool changes."""
        known = self._requirements.get(pool.name)
        if known is None or known[0] is not pool:
            requirements = combined(
                requirement(one.key, one.operator, one.values)
                for one in pool.spec.template.spec.requirements
            )
            known = self._requirements[pool.name] = pool, requirements
        return known[1]

    def _is_type_gone(self, claim: NodeClaim, pool: NodePool, now: Instant) -> bool:
        """Return whether the provider no longer offers the NodeClaim's instance type.

        The result is False if the NodeClaim is at most one hour old.
        """
        # upstream: drift.go:instanceTypeNotFound
        age = now - parse_timestamp(claim.metadata.creation_timestamp)
        uid = claim.metadata.uid or claim.name
        if age <= _TYPE_CHECK_AGE_NS or self._found_until.get(uid, now) > now:
            return False
        table = self._types_of(pool)
        index = table.index.get(claim.metadata.labels.get(INSTANCE_TYPE, ""))
        labels = label_requirements(claim.metadata.labels)
        if index is None or not is_offered(table.types[index], labels, table.well_known):
            return True
        if len(self._found_until) >= _TYPE_CHECKS_MAX:
            self._found_until = {one: end for one, end in self._found_until.items() if end > now}
        self._found_until[uid] = now + _TYPE_CHECK_CACHED_NS
        return False


def is_offered(
    instance_type: InstanceType, labels: Requirements, well_known: frozenset[str]
) -> bool:
    """Return whether the type has an offering, available or not, that matches `labels`.

    `labels` are those of a NodeClaim. If their capacity type is `reserved`, the offerings of other
    reservations match too, and so do on-demand offerings.
    """
    required = labels
    if CAPACITY_TYPE in labels and labels.get(CAPACITY_TYPE).has(RESERVED):
        either = LabelRequirement(CAPACITY_TYPE, values=frozenset((RESERVED, ON_DEMAND)))
        kept = (one for one in labels if not one.key.endswith(RESERVATION_ID_SUFFIX))
        required = Requirements({one.key: one for one in kept}).replaced(either)
    return bool(instance_type.compatible_offerings(required, well_known))


def _has_other_hash(claim: NodeClaim, pool: NodePool) -> bool:
    """Return whether the NodeClaim and its pool have different hashes of the same hash version."""
    mine, theirs = pool.metadata.annotations, claim.metadata.annotations
    keys = (NODE_POOL_HASH, NODE_POOL_HASH_VERSION)
    if any(key not in annotations for annotations in (mine, theirs) for key in keys):
        return False
    if mine[NODE_POOL_HASH_VERSION] != theirs[NODE_POOL_HASH_VERSION]:
        return False
    return mine[NODE_POOL_HASH] != theirs[NODE_POOL_HASH]


def _with_consolidatable(
    claim: NodeClaim, pool: NodePool, now: Instant
) -> tuple[NodeClaim, DurationNs | None]:
    """Return the NodeClaim with its Consolidatable condition, and the ns until the condition holds.

    An initialized NodeClaim is Consolidatable if its last pod event is at least `consolidateAfter`
    ago. If there was no pod event, the time of the NodeClaim's initialization is used instead. The
    number of ns is None if the NodeClaim already is Consolidatable, is not initialized, or never
    becomes Consolidatable. NodeClaims of static pools are returned unchanged.
    """
    if pool.is_static:
        return claim, None
    after = duration_or_never(pool.spec.disruption.consolidate_after)
    initialized = claim.condition(INITIALIZED_CONDITION)
    if after is None or initialized is None or initialized.status != "True":
        return without_condition(claim, CONSOLIDATABLE), None
    since = claim.status.last_pod_event_time or initialized.last_transition_time
    left = (parse_timestamp(since) if since else now) + after - now
    if left > 0:
        return without_condition(claim, CONSOLIDATABLE), left
    return with_condition(claim, CONSOLIDATABLE, CONSOLIDATABLE, now), None


def with_condition(claim: NodeClaim, kind: str, reason: str, now: Instant) -> NodeClaim:
    """Return the NodeClaim with the condition `kind` set to True, for `reason`.

    The condition's time changes only if its status changes.
    """
    old = claim.condition(kind)
    if old is not None and old.status == "True":
        if old.reason == reason:
            return claim
        stamp = old.last_transition_time
    else:
        stamp = format_timestamp(now)
    one = PodCondition(
        type=kind, status="True", reason=reason, message="", last_transition_time=stamp
    )
    others = tuple(c for c in claim.status.conditions if c.type != kind)
    return replace(claim, status=replace(claim.status, conditions=(*others, one)))


def without_condition(claim: NodeClaim, kind: str) -> NodeClaim:
    """Return the NodeClaim without the condition `kind`."""
    if claim.condition(kind) is None:
        return claim
    kept = tuple(one for one in claim.status.conditions if one.type != kind)
    return replace(claim, status=replace(claim.status, conditions=kept))
