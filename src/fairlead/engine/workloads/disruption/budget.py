"""Budget: what a PodDisruptionBudget says and the pods it guards, counted as they change.

    expected   minAvailable as a number: the pods that match
               otherwise: what their controllers are scaled to, each controller once
    desired    minAvailable, or expected - maxUnavailable; percentages are rounded up
    healthy    ready, not terminating, and not about to be evicted
    allowed    healthy - desired, but 0 while nothing is expected

upstream: pkg/controller/disruption/disruption.go:trySync, getExpectedPodCount, countHealthyPods,
buildDisruptedPodMap, updatePdbStatus
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from fairlead.api.objects import OwnerReference, Pod, PodDisruptionBudget
from fairlead.api.pods.facts import controller_of, is_terminating
from fairlead.api.text.integer import capped_integer
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.workloads.pod_control.scale_down import is_ready

# An eviction that has not begun after this long is taken for abandoned.
DELETION_TIMEOUT: Final[DurationNs] = seconds(120)

# Of a percentage; an amount has no more bits.
PERCENT_MAX: Final = 2**31 - 1
_PERCENT: Final = re.compile(r"([0-9]+)%")


class BudgetError(ValueError):
    """A budget that cannot be worked out; upstream then allows no disruption at all."""


@dataclass(frozen=True, slots=True)
class Member:
    """What a guarded pod adds to the counts."""

    owner: OwnerReference | None
    is_leaving: bool
    is_healthy: bool

    @classmethod
    def of(cls, pod: Pod) -> Member:
        """What `pod` adds."""
        is_leaving = is_terminating(pod)
        return cls(controller_of(pod.metadata), is_leaving, is_ready(pod) and not is_leaving)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the status of a budget should say."""

    expected_pods: int
    desired_healthy: int
    current_healthy: int
    disrupted_pods: dict[str, str]

    @property
    def disruptions_allowed(self) -> int:
        """How many healthy pods may be evicted now."""
        # A budget that matches nothing yet must not let the first pods go unguarded.
        return max(0, self.current_healthy - self.desired_healthy) if self.expected_pods else 0

    def is_written_in(self, budget: PodDisruptionBudget) -> bool:
        """Whether the status of `budget` says all this already."""
        status = budget.status
        return (
            status.expected_pods == self.expected_pods
            and status.desired_healthy == self.desired_healthy
            and status.current_healthy == self.current_healthy
            and status.disruptions_allowed == self.disruptions_allowed
            and status.disrupted_pods == self.disrupted_pods
        )


@dataclass(slots=True)
class Budget:
    """A budget and its members by pod name; `owners` counts the members of each controller."""

    view: PodDisruptionBudget
    members: dict[str, Member] = field(default_factory=dict)
    owners: dict[OwnerReference, int] = field(default_factory=dict)
    healthy: int = 0

    def put(self, name: str, member: Member) -> bool:
        """The pod `name` is a member now; whether that changes anything."""
        before = self.members.get(name)
        if before == member:
            return False
        self.remove(name)
        self.members[name] = member
        self.healthy += member.is_healthy
        if member.owner is not None:
            self.owners[member.owner] = self.owners.get(member.owner, 0) + 1
        return True

    def remove(self, name: str) -> bool:
        """The pod `name` is no member any more; whether it was one."""
        member = self.members.pop(name, None)
        if member is None:
            return False
        self.healthy -= member.is_healthy
        if member.owner is not None:
            self.owners[member.owner] -= 1
            if not self.owners[member.owner]:
                del self.owners[member.owner]
        return True

    @property
    def needs_scale(self) -> bool:
        """Whether what is expected depends on the controllers of the pods."""
        spec = self.view.spec
        return spec.max_unavailable is not None or isinstance(spec.min_available, str)

    def standing(self, scale: int, now: Instant) -> Standing:
        """Where the budget stands; `scale` is the sum of its controllers' scales if it needs it.

        Raises BudgetError for percentages that are none.
        """
        expected = scale if self.needs_scale else len(self.members)
        if self.view.spec.max_unavailable is None and self.view.spec.min_available is None:
            expected = 0
        disrupted = self._disrupted(now)
        return Standing(
            expected_pods=expected,
            desired_healthy=desired_healthy(self.view, expected),
            current_healthy=self._healthy_now(now),
            disrupted_pods=disrupted,
        )

    def next_recheck(self, now: Instant) -> Instant | None:
        """When the first eviction under way is given up, None when there is none."""
        stamps = self._disrupted(now).values()
        return min((parse_timestamp(one) + DELETION_TIMEOUT for one in stamps), default=None)

    def _disrupted(self, now: Instant) -> dict[str, str]:
        """The evictions that have not begun: of members still there and not for too long."""
        return {
            name: stamp
            for name, stamp in self.view.status.disrupted_pods.items()
            if (member := self.members.get(name)) is not None
            and not member.is_leaving
            and parse_timestamp(stamp) + DELETION_TIMEOUT >= now
        }

    def _healthy_now(self, now: Instant) -> int:
        about_to_go = sum(
            self.members[name].is_healthy and parse_timestamp(stamp) + DELETION_TIMEOUT > now
            for name, stamp in self._disrupted(now).items()
        )
        return self.healthy - about_to_go


def desired_healthy(budget: PodDisruptionBudget, expected: int) -> int:
    """How many healthy pods `budget` demands. Raises BudgetError."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        return max(0, expected - scaled(spec.max_unavailable, expected))
    if spec.min_available is not None:
        return scaled(spec.min_available, expected)
    return 0


def scaled(value: int | str, total: int, *, is_rounded_up: bool = True) -> int:
    """`value` itself, or that percentage of `total`, rounded. Raises BudgetError."""
    # upstream: apimachinery/pkg/util/intstr/intstr.go:GetScaledValueFromIntOrPercent
    if isinstance(value, int):
        return value
    percent = _PERCENT.fullmatch(value)
    if percent is None:
        raise BudgetError("invalid value for IntOrString: invalid type: string is not a percentage")
    share = capped_integer(percent[1], PERCENT_MAX) * total
    return -(-share // 100) if is_rounded_up else share // 100
