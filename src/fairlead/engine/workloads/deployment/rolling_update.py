"""Rolling updates: how many replicas each ReplicaSet of a Deployment has next.

    no more pods than    replicas + maxSurge               (percentages rounded up)
    no fewer available   replicas - maxUnavailable         (percentages rounded down)

The new ReplicaSet grows first; when it cannot, old ones shrink, unhealthy pods first. A change of
`replicas` in the middle is shared out in proportion. All functions are pure: they say sizes by
key, only of those that change.

upstream: pkg/controller/deployment/rolling.go, sync.go:scale, util/deployment_util.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.api.objects import IntOrString, UpdateStrategy
from fairlead.engine.workloads.disruption.budget import BudgetError, scaled

ROLLING_UPDATE: Final = "RollingUpdate"
RECREATE: Final = "Recreate"
SHARE_DEFAULT: Final = "25%"

Sizes = dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A ReplicaSet of a Deployment: `replicas` asked for, `available` there.

    `age` orders by creation. `desired` and `most` are what the Deployment wanted and allowed in
    all when this one was scaled last, None where that is not known.
    """

    key: str
    replicas: int
    available: int
    age: tuple[str, str]
    desired: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a rollout may stray from `replicas`."""

    replicas: int
    surge: int
    unavailable: int

    @classmethod
    def of(cls, strategy: UpdateStrategy, replicas: int) -> Bounds:
        """What `strategy` allows; where both bounds come out at 0, one may be missing."""
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
    def most(self) -> int:
        """No more pods than this."""
        return self.replicas + self.surge

    @property
    def least(self) -> int:
        """No fewer available pods than this."""
        return self.replicas - self.unavailable


def rolled(new: Part, old: Sequence[Part], bounds: Bounds) -> list[Sizes]:
    """One step of a rolling update, as sizes to ask for one after the other."""
    # upstream: rolling.go:rolloutRolling
    size = grown(new.replicas, sum(one.replicas for one in (*old, new)), bounds)
    if size != new.replicas:
        return [{new.key: size}]
    return _shrunk(new, sorted(old, key=_age), bounds)


def grown(replicas: int, total: int, bounds: Bounds) -> int:
    """The size of the new ReplicaSet, `replicas` now, when all of them have `total`."""
    # upstream: deployment_util.go:NewRSNewReplicas, rolling.go:reconcileNewReplicaSet
    if replicas >= bounds.replicas:
        return bounds.replicas
    room = bounds.most - total
    return replicas + max(0, min(room, bounds.replicas - replicas))


def recreated(new: Part | None, old: Sequence[Part], replicas: int, *, is_quiet: bool) -> Sizes:
    """One step of a Recreate: old ones to nothing, and when all is quiet the new one to all."""
    # upstream: recreate.go:rolloutRecreate
    gone = {one.key: 0 for one in old if one.replicas}
    if gone or not is_quiet or new is None or new.replicas == replicas:
        return gone
    return {new.key: replicas}


def is_scaling(parts: Sequence[Part], replicas: int) -> bool:
    """Whether somebody changed the Deployment's size since these were scaled."""
    # upstream: sync.go:isScalingEvent
    return any(
        one.desired is not None and one.desired != replicas for one in parts if one.replicas > 0
    )


def proportional(
    new: Part | None, old: Sequence[Part], bounds: Bounds, *, is_rolling: bool, reported: int
) -> Sizes:
    """The sizes after a change of `replicas`; `reported` is how many the status counts.

    Those that share it are all there, also where their size stays: they learn of the new whole.
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


def _shrunk(new: Part, old: Sequence[Part], bounds: Bounds) -> list[Sizes]:
    # upstream: rolling.go:reconcileOldReplicaSets
    total = sum(one.replicas for one in (*old, new))
    spare = total - bounds.least - (new.replicas - new.available)
    if spare <= 0:
        return []
    old = [one for one in old if one.replicas]
    if any(one.available > one.replicas for one in old):
        return []  # what is known of its pods is older than its size
    before = {one.key: one.replicas for one in old}
    healthy: Sizes = {}
    for one in old:  # cleanupUnhealthyReplicas
        unhealthy = min(spare, max(0, one.replicas - one.available))
        healthy[one.key] = one.replicas - unhealthy
        spare -= unhealthy
    spare = sum(one.available for one in (*old, new)) - bounds.least
    after: Sizes = {}
    for one in old:  # scaleDownOldReplicaSetsForRollingUpdate
        taken = max(0, min(healthy[one.key], spare))
        after[one.key] = healthy[one.key] - taken
        spare -= taken
    steps = (_changed(before, healthy), _changed(healthy, after))
    return [step for step in steps if step]


def _changed(before: Sizes, after: Sizes) -> Sizes:
    return {key: size for key, size in after.items() if size != before[key]}


def _only_one(new: Part | None, old: Sequence[Part]) -> Part | None:
    """The one that takes all of a scaling, None where it is shared."""
    # upstream: deployment_util.go:FindActiveOrLatest
    active = _active(new, old)
    if len(active) > 1 or (new is None and not old):
        return None
    if active:
        return active[0]
    return max(old, key=_age) if new is None else new


def _active(new: Part | None, old: Sequence[Part]) -> list[Part]:
    parts = [*old, *([] if new is None else [new])]
    return [one for one in parts if one.replicas > 0]


def _is_saturated(new: Part, replicas: int) -> bool:
    # upstream: deployment_util.go:IsSaturated
    return new.replicas == new.desired == new.available == replicas


def _shared_out(parts: Sequence[Part], bounds: Bounds, reported: int) -> Sizes:
    """Every part's size when what is to be added or taken is shared out in proportion."""
    left = (bounds.most if bounds.replicas else 0) - sum(one.replicas for one in parts)
    if not left:
        return {one.key: one.replicas for one in parts}
    # The larger first; among equals the newer when growing, the older when shrinking.
    ordered = sorted(parts, key=_age, reverse=left > 0)
    ordered.sort(key=lambda one: one.replicas, reverse=True)
    sizes = {one.key: one.replicas for one in ordered}
    for one in ordered:
        share = _fraction(one, bounds, reported)
        share = min(share, left) if left > 0 else max(share, left)
        sizes[one.key] += share
        left -= share
        if not left:
            return sizes
    first = ordered[0].key
    sizes[first] = max(0, sizes[first] + left)
    return sizes


def _fraction(one: Part, bounds: Bounds, reported: int) -> int:
    # upstream: deployment_util.go:getReplicaSetFraction; Go rounds halves away from zero
    if not bounds.replicas:
        return -one.replicas
    before = one.most or reported
    if not before:
        return 0
    return (2 * one.replicas * bounds.most + before) // (2 * before) - one.replicas


def _age(one: Part) -> tuple[str, str]:
    return one.age


def _scaled(value: IntOrString | None, replicas: int, *, up: bool) -> int:
    """A bound as a number of pods; one that makes no sense counts as 0, as upstream has it."""
    try:
        return scaled(SHARE_DEFAULT if value is None else value, replicas, is_rounded_up=up)
    except BudgetError:
        return 0
