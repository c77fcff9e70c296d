"""Sizes of the ReplicaSets of a Deployment in each step of a rolling update.

    total pods         ≤  replicas + maxSurge               (percentages rounded up)
    available pods     ≥  replicas - maxUnavailable         (percentages rounded down)

A step grows the new ReplicaSet. If the limits do not allow growth, the step shrinks old
ReplicaSets, unavailable pods first.

Example with replicas 4, maxSurge 1, maxUnavailable 1 (at most 5 pods, at least 3 available):

    old 4 (4 available)   new 0                     grow new to 1: 4 + 1 = 5 pods
    old 4 (4 available)   new 1 (0 available)       shrink old by 4 - 3 = 1
    old 3 (3 available)   new 1 (0 available)       grow new to 2: 3 + 2 = 5 pods; then wait
    old 3 (3 available)   new 2 (1 available)       shrink old by 4 - 3 = 1, and so on

When `replicas` changes during a rollout, all ReplicaSets are scaled in proportion to their sizes.
All functions are pure and return sizes by ReplicaSet key.

upstream: pkg/controller/deployment/rolling.go, sync.go:scale, util/deployment_util.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.objects import IntOrString, UpdateStrategy
from fairlead.engine.workloads.int_or_percent import IntOrPercentError, scaled

ROLLING_UPDATE: Final = "RollingUpdate"
RECREATE: Final = "Recreate"
SHARE_DEFAULT: Final = "25%"

Sizes = dict[str, int]


class ReplicaSetState(Struct, frozen=True, kw_only=True):
    """A ReplicaSet of a Deployment with its size (`replicas`) and its number of `available` pods.

    `age` is a sort key, smaller for older ReplicaSets. `desired` is the number of replicas that the
    Deployment had when this ReplicaSet was last scaled. `max_pods` is the Deployment's maximum
    number of pods at that time. `desired` and `max_pods` are None if unknown.
    """

    key: str
    replicas: int
    available: int
    age: tuple[str, str]
    desired: int | None = None
    max_pods: int | None = None


class Bounds(Struct, frozen=True):
    """The limits of a rolling update as numbers of pods: replicas, maxSurge and maxUnavailable."""

    replicas: int
    surge: int
    unavailable: int

    @classmethod
    def of(cls, strategy: UpdateStrategy, replicas: int) -> Bounds:
        """Return the limits that `strategy` sets for `replicas` pods.

        If maxSurge and maxUnavailable both round to 0, one pod may be unavailable. For strategies
        other than RollingUpdate, surge and unavailable are 0.
        """
        # upstream: deployment_util.go:ResolveFenceposts, MaxUnavailable, MaxSurge
        if strategy.type != ROLLING_UPDATE:
            return cls(replicas, 0, 0)
        rolling = strategy.rolling_update
        surge = _scaled(rolling.max_surge, replicas, up=True)
        unavailable = _scaled(rolling.max_unavailable, replicas, up=False)
        if not surge and not unavailable:
            unavailable = 1
        return cls(replicas, surge, min(unavailable, replicas))

    @property
    def max_pods(self) -> int:
        """Maximum number of pods during the update: replicas plus surge."""
        return self.replicas + self.surge

    @property
    def min_available(self) -> int:
        """Minimum number of available pods during the update."""
        return self.replicas - self.unavailable


def rolled(new: ReplicaSetState, old: Sequence[ReplicaSetState], bounds: Bounds) -> list[Sizes]:
    """Return one step of a rolling update: changes of size, to be applied one after the other."""
    # upstream: rolling.go:rolloutRolling
    size = grown(new.replicas, sum(one.replicas for one in (*old, new)), bounds)
    if size != new.replicas:
        return [{new.key: size}]
    return _shrunk(new, sorted(old, key=_age), bounds)


def grown(replicas: int, total: int, bounds: Bounds) -> int:
    """Return the size of the new ReplicaSet after the next step.

    `replicas` is the current size of the new ReplicaSet. `total` is the sum of the sizes of all
    ReplicaSets.
    """
    # upstream: deployment_util.go:NewRSNewReplicas, rolling.go:reconcileNewReplicaSet
    if replicas >= bounds.replicas:
        return bounds.replicas
    room = bounds.max_pods - total
    return replicas + max(0, min(room, bounds.replicas - replicas))


def recreated(
    new: ReplicaSetState | None, old: Sequence[ReplicaSetState], replicas: int, *, is_quiet: bool
) -> Sizes:
    """Return the new sizes of the ReplicaSets that one step of the Recreate strategy scales.

    First, the old ReplicaSets are scaled to 0. In a later step, the new ReplicaSet is scaled to
    `replicas`, if `is_quiet` is set (no old pods exist).
    """
    # upstream: recreate.go:rolloutRecreate
    gone = {one.key: 0 for one in old if one.replicas}
    if gone or not is_quiet or new is None or new.replicas == replicas:
        return gone
    return {new.key: replicas}


def is_scaling(parts: Sequence[ReplicaSetState], replicas: int) -> bool:
    """Return whether the replicas of the Deployment changed after its ReplicaSets were last scaled.

    `replicas` is the Deployment's current number of replicas. The field `desired` of a ReplicaSet
    in `parts` is the Deployment's number of replicas when the ReplicaSet was last scaled. Empty
    ReplicaSets are ignored.
    """
    # upstream: sync.go:isScalingEvent
    return any(
        one.desired is not None and one.desired != replicas for one in parts if one.replicas > 0
    )


def proportional(
    new: ReplicaSetState | None,
    old: Sequence[ReplicaSetState],
    bounds: Bounds,
    *,
    is_rolling: bool,
    reported: int,
) -> Sizes:
    """Return new sizes for the ReplicaSets after a change of the Deployment's replicas.

    `reported` is status.replicas of the Deployment. The change is divided among several ReplicaSets
    only if `is_rolling` is set (strategy RollingUpdate). If the change is divided, the result
    includes all active ReplicaSets, even a ReplicaSet whose size stays the same, because its
    annotation must get the new number of desired replicas.
    """
    # upstream: sync.go:scale
    only = _only_one(new, old)
    if only is not None:
        return {} if only.replicas == bounds.replicas else {only.key: bounds.replicas}
    if new is not None and _is_saturated(new, bounds.replicas):
        return {one.key: 0 for one in old if one.replicas}
    if not is_rolling:
        return {}
    return _shared_out(_active(new, old), bounds, reported)


def _shrunk(new: ReplicaSetState, old: Sequence[ReplicaSetState], bounds: Bounds) -> list[Sizes]:
    # upstream: rolling.go:reconcileOldReplicaSets
    total = sum(one.replicas for one in (*old, new))
    # Pods that may be deleted even if the new, not yet available pods never become available.
    # Without the last term, a new ReplicaSet whose pods all crash would let every old pod be
    # deleted.
    spare = total - bounds.min_available - (new.replicas - new.available)
    if spare <= 0:
        return []
    old = [one for one in old if one.replicas]
    if any(one.available > one.replicas for one in old):
        return []  # the status of a ReplicaSet is older than its size
    before = {one.key: one.replicas for one in old}
    healthy: Sizes = {}
    # Unavailable pods first (upstream: cleanupUnhealthyReplicas), because deleting them has no
    # cost.
    for one in old:
        unhealthy = min(spare, max(0, one.replicas - one.available))
        healthy[one.key] = one.replicas - unhealthy
        spare -= unhealthy
    spare = sum(one.available for one in (*old, new)) - bounds.min_available
    after: Sizes = {}
    # Then available pods, oldest ReplicaSet first (scaleDownOldReplicaSetsForRollingUpdate), as
    # long as min_available pods stay available.
    for one in old:
        taken = max(0, min(healthy[one.key], spare))
        after[one.key] = healthy[one.key] - taken
        spare -= taken
    steps = (_changed(before, healthy), _changed(healthy, after))
    return [step for step in steps if step]


def _changed(before: Sizes, after: Sizes) -> Sizes:
    return {key: size for key, size in after.items() if size != before[key]}


def _only_one(
    new: ReplicaSetState | None, old: Sequence[ReplicaSetState]
) -> ReplicaSetState | None:
    """Return the one ReplicaSet to scale, or None if several have replicas.

    The result is the only ReplicaSet with replicas. If no ReplicaSet has replicas, the result is
    `new` or, if `new` is None, the newest of `old`. Returns None if there are no ReplicaSets.
    """
    # upstream: deployment_util.go:FindActiveOrLatest
    active = _active(new, old)
    if len(active) > 1 or (new is None and not old):
        return None
    if active:
        return active[0]
    return max(old, key=_age) if new is None else new


def _active(new: ReplicaSetState | None, old: Sequence[ReplicaSetState]) -> list[ReplicaSetState]:
    parts = [*old, *([] if new is None else [new])]
    return [one for one in parts if one.replicas > 0]


def _is_saturated(new: ReplicaSetState, replicas: int) -> bool:
    # upstream: deployment_util.go:IsSaturated
    return new.replicas == new.desired == new.available == replicas


def _shared_out(parts: Sequence[ReplicaSetState], bounds: Bounds, reported: int) -> Sizes:
    """Return all new sizes; pods to add or remove are divided in proportion to the old sizes."""
    left = (bounds.max_pods if bounds.replicas else 0) - sum(one.replicas for one in parts)
    if not left or not parts:
        return {one.key: one.replicas for one in parts}
    # Example: replicas 10 -> 20 in a rollout with maxSurge 2, sizes old 8 and new 4. max_pods was
    # 12 and is 22. So old gets round(8 * 22 / 12) - 8 = 7, new gets min(round(4 * 22 / 12) - 4,
    # rest) = min(3, 3). The first ReplicaSet gets the pods that remain because of rounding. Order:
    # larger ReplicaSets first. Of equal size, the newer is first when growing, otherwise the older.
    ordered = sorted(parts, key=_age, reverse=left > 0)
    ordered.sort(key=lambda one: one.replicas, reverse=True)
    sizes = {one.key: one.replicas for one in ordered}
    for one in ordered:
        change = _fraction(one, bounds, reported)
        change = min(change, left) if left > 0 else max(change, left)
        sizes[one.key] += change
        left -= change
        if not left:
            return sizes
    first = ordered[0].key
    sizes[first] = max(0, sizes[first] + left)
    return sizes


def _fraction(one: ReplicaSetState, bounds: Bounds, reported: int) -> int:
    # upstream: deployment_util.go:getReplicaSetFraction; Go rounds halves away from zero
    if not bounds.replicas:
        return -one.replicas
    before = one.max_pods or reported
    if not before:
        return 0
    return (2 * one.replicas * bounds.max_pods + before) // (2 * before) - one.replicas


def _age(one: ReplicaSetState) -> tuple[str, str]:
    return one.age


def _scaled(value: IntOrString | None, replicas: int, *, up: bool) -> int:
    """Return the number of pods for the limit `value`, or 0 if it is invalid, as in upstream.

    A percentage of `replicas` is rounded up if `up` is set, else down.
    """
    try:
        return scaled(SHARE_DEFAULT if value is None else value, replicas, is_rounded_up=up)
    except IntOrPercentError:
        return 0
