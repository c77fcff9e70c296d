"""ScaleHistory: earlier recommendations and changes of an autoscaler, and the limits they impose.

Stabilization: if spec.behavior is not set, the highest recommendation of the downscale
stabilization window (five minutes by default) applies. If spec.behavior is set, a scale-up uses the
lowest recommendation of the scale-up window. A scale-down uses the highest recommendation of the
scale-down window.

Policies: a policy of 4 Pods per 60 s allows at most 4 replicas more than there were 60 s ago. If
there are several policies, the largest (Max) or smallest (Min) change that they allow applies.
If spec.behavior is not set, one step can at most double the number of replicas. But a step may
always raise the number to 4.

upstream: pkg/controller/podautoscaler/horizontal.go:stabilizeRecommendation,
stabilizeRecommendationWithBehaviors, convertDesiredReplicasWithRules,
convertDesiredReplicasWithBehaviorRate, storeScaleEvent
"""

from __future__ import annotations

from math import ceil
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import HorizontalPodAutoscalerSpec, ScalingBehavior, ScalingRules
from fairlead.engine.core.instant import DurationNs, Instant, seconds

SCALE_UP_FACTOR: Final = 2
SCALE_UP_MINIMUM: Final = 4
READY: Final = ("ReadyForNewScale", "recommended size matches current size")
DOWN_STABILIZED: Final = (
    "ScaleDownStabilized",
    (
        "recent recommendations were higher than current one, applying the highest recent "
        "recommendation"
    ),
)
UP_STABILIZED: Final = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
WITHIN_RANGE: Final = ("DesiredWithinRange", "the desired count is within the acceptable range")
TOO_FAST_UP: Final = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
TOO_FAST_DOWN: Final = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)
TOO_MANY: Final = (
    "TooManyReplicas",
    "the desired replica count is more than the maximum replica count",
)
TOO_FEW: Final = (
    "TooFewReplicas",
    "the desired replica count is less than the minimum replica count",
)

ReasonMessage = tuple[str, str]  # reason, message


class NormalizedReplicas(Struct, frozen=True):
    """The number of replicas after stabilization and limits.

    `able` and `limit` are (reason, message) of the conditions AbleToScale and ScalingLimited.
    `is_limited` is set if the status of ScalingLimited is True.
    """

    replicas: int
    able: ReasonMessage
    is_limited: bool
    limit: ReasonMessage


class _ScaleEvent(Struct, frozen=True):
    change: int
    at: Instant


class ScaleHistory(Struct):
    """The earlier recommendations of an autoscaler and its changes of the number of replicas."""

    downscale_stabilization: DurationNs
    _recommendations: list[tuple[Instant, int]] = field(default_factory=list)
    _scale_ups: list[_ScaleEvent] = field(default_factory=list)
    _scale_downs: list[_ScaleEvent] = field(default_factory=list)

    def start(self, current: int, now: Instant) -> None:
        """Record `current` as the first recommendation if the history is empty."""
        if not self._recommendations:
            self._recommendations.append((now, current))

    def window(self, behavior: ScalingBehavior | None) -> DurationNs:
        """Return how long (ns) stabilization uses a recommendation after it was made."""
        if behavior is None:
            return self.downscale_stabilization
        return max(_window(behavior.scale_up, 0), self._down_window(behavior))

    def recommend(self, replicas: int, at: Instant) -> None:
        """Record the recommendation `replicas` of a sync at the time `at` that was skipped."""
        self._recommendations.append((at, replicas))

    def normalize(
        self, spec: HorizontalPodAutoscalerSpec, current: int, desired: int, now: Instant
    ) -> NormalizedReplicas:
        """Return the recommendation `desired` after stabilization and limits; record `desired`."""
        behavior = spec.behavior
        if behavior is None:
            cutoff = now - self.downscale_stabilization
            recent = [one for at, one in self._recommendations if at >= cutoff]
            stabilized, words = max([desired, *recent]), DOWN_STABILIZED
            replicas, limit = _limited(current, stabilized, spec)
        else:
            stabilized = self._stabilized(behavior, current, desired, now)
            words = UP_STABILIZED if desired >= current else DOWN_STABILIZED
            replicas, limit = self._rate_limited(behavior, spec, current, stabilized, now)
        self._remember(desired, behavior, now)
        able = READY if stabilized == desired else words
        return NormalizedReplicas(replicas, able, replicas != stabilized, limit)

    def record(self, behavior: ScalingBehavior | None, change: int, now: Instant) -> None:
        """Record that `change` was added to the number of replicas.

        If `behavior` is None, nothing is recorded, because only the policies in `behavior` use the
        recorded changes.
        """
        if behavior is None:
            return
        if change > 0:
            self._scale_ups = _with(self._scale_ups, behavior.scale_up, change, now)
        else:
            self._scale_downs = _with(self._scale_downs, behavior.scale_down, -change, now)

    # --- stabilization -------------------------------------------------------------------------

    def _down_window(self, behavior: ScalingBehavior) -> DurationNs:
        return _window(behavior.scale_down, self.downscale_stabilization)

    def _stabilized(
        self, behavior: ScalingBehavior, current: int, desired: int, now: Instant
    ) -> int:
        up_cutoff = now - _window(behavior.scale_up, 0)
        down_cutoff = now - self._down_window(behavior)
        lowest = min([desired, *(one for at, one in self._recommendations if at > up_cutoff)])
        highest = max([desired, *(one for at, one in self._recommendations if at > down_cutoff)])
        return min(max(current, lowest), highest)

    def _remember(self, desired: int, behavior: ScalingBehavior | None, now: Instant) -> None:
        cutoff = now - self.window(behavior)
        kept = [one for one in self._recommendations if one[0] >= cutoff]
        self._recommendations = [*kept, (now, desired)]

    # --- policies ------------------------------------------------------------------------------

    def _rate_limited(
        self,
        behavior: ScalingBehavior,
        spec: HorizontalPodAutoscalerSpec,
        current: int,
        desired: int,
        now: Instant,
    ) -> tuple[int, ReasonMessage]:
        if desired > current:
            limit = max(current, self._limit(behavior.scale_up, current, now, sign=1))
            words = TOO_FAST_UP if spec.max_replicas > limit else TOO_MANY
            most = min(spec.max_replicas, limit)
            if desired > most:
                return most, words
        elif desired < current:
            limit = min(current, self._limit(behavior.scale_down, current, now, sign=-1))
            words = TOO_FAST_DOWN if spec.min_replicas < limit else TOO_FEW
            least = max(spec.min_replicas, limit)
            if desired < least:
                return least, words
        return desired, WITHIN_RANGE

    def _limit(self, rules: ScalingRules, current: int, now: Instant, *, sign: int) -> int:
        """Return the highest number of replicas that `rules` allow; the lowest if `sign` is -1."""
        if rules.select_policy == "Disabled":
            return current
        takes_highest = (rules.select_policy == "Min") != (sign == 1)
        proposed = []
        for policy in rules.policies:
            cutoff = now - seconds(policy.period_seconds)
            before = current - _change(self._scale_ups, cutoff) + _change(self._scale_downs, cutoff)
            if policy.type == "Pods":
                proposed.append(before + sign * policy.value)
            elif sign == 1:  # rounded up, so that a small number can grow
                proposed.append(ceil(before * (1 + policy.value / 100)))
            else:
                proposed.append(int(before * (1 - policy.value / 100)))
        proposed = proposed or [current]
        return max(proposed) if takes_highest else min(proposed)


def _limited(
    current: int, desired: int, spec: HorizontalPodAutoscalerSpec
) -> tuple[int, ReasonMessage]:
    """Return the limited number of replicas, and the reason and message of ScalingLimited.

    `desired` is limited as for an autoscaler without spec.behavior. The limits are minReplicas,
    maxReplicas, and twice `current` (or 4 if that is more).
    """
    limit = max(SCALE_UP_FACTOR * current, SCALE_UP_MINIMUM)
    words = TOO_FAST_UP if spec.max_replicas > limit else TOO_MANY
    most = min(spec.max_replicas, limit)
    if desired < spec.min_replicas:
        return spec.min_replicas, TOO_FEW
    return (most, words) if desired > most else (desired, WITHIN_RANGE)


def _window(rules: ScalingRules, default: DurationNs) -> DurationNs:
    stated = rules.stabilization_window_seconds
    return default if stated is None else seconds(stated)


def _with(
    events: list[_ScaleEvent], rules: ScalingRules, change: int, now: Instant
) -> list[_ScaleEvent]:
    """Return the scale events `events` with a new one for `change`.

    An event is outdated if it is older than the longest period in `rules`. The new event replaces
    the last outdated event, if there is one. All other outdated events are kept. The reason is that
    the policies for the opposite direction also count these events, and may have longer periods.
    """
    # upstream: horizontal.go:storeScaleEvent, markScaleEventsOutdated
    longest = max((one.period_seconds for one in rules.policies), default=0)
    cutoff = now - seconds(longest)
    known = [*events]
    outdated = [index for index, one in enumerate(events) if one.at < cutoff]
    if outdated:
        known[outdated[-1]] = _ScaleEvent(change, now)
    else:
        known.append(_ScaleEvent(change, now))
    return known


def _change(events: list[_ScaleEvent], cutoff: Instant) -> int:
    return sum(one.change for one in events if one.at > cutoff)
