"""DisruptionBudget: a PodDisruptionBudget with counts of its pods, updated incrementally.

    expected   if minAvailable is a number: the number of matching pods
               otherwise: the sum of the scales of the pods' controllers, each counted once
    desired    minAvailable, or expected - maxUnavailable; percentages are rounded up
    healthy    number of pods that are ready, not terminating, and not about to be evicted
    allowed    healthy - desired, at least 0; always 0 if expected is 0

Example: maxUnavailable 25%, a Deployment with 10 replicas, 9 pods ready. Then expected = 10,
desired = 10 - ceil(2.5) = 7, and healthy = 9. So 2 disruptions are allowed.

upstream: pkg/controller/disruption/disruption.go:trySync, getExpectedPodCount, countHealthyPods,
buildDisruptedPodMap, updatePdbStatus
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import OwnerReference, Pod, PodDisruptionBudget
from fairlead.api.pods.facts import controller_of, is_terminating
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.workloads.int_or_percent import scaled
from fairlead.engine.workloads.pod_control.scale_down import is_ready

# A granted eviction expires if the pod is not terminating after this time.
DELETION_TIMEOUT: Final[DurationNs] = seconds(120)


class BudgetError(ValueError):
    """Raised if the status of a budget cannot be computed; upstream then allows no disruptions."""


class Member(Struct, frozen=True, gc=False):
    """A pod that a budget selects: its controller, and whether it is terminating or healthy."""

    owner: OwnerReference | None
    is_leaving: bool
    is_healthy: bool

    @classmethod
    def of(cls, pod: Pod) -> Member:
        """Return the member for `pod`."""
        is_leaving = is_terminating(pod)
        return cls(controller_of(pod.metadata), is_leaving, not is_leaving and is_ready(pod))


class BudgetStatus(Struct, frozen=True):
    """The computed status of a budget.

    `disrupted_pods` maps the name of each pod with a granted eviction to the time of the grant.
    """

    expected_pods: int
    desired_healthy: int
    current_healthy: int
    disrupted_pods: dict[str, str]

    @property
    def disruptions_allowed(self) -> int:
        """Number of healthy pods that may be evicted now."""
        # If no pods are expected, the first pods must not be evicted before they are counted.
        return max(0, self.current_healthy - self.desired_healthy) if self.expected_pods else 0

    def is_written_in(self, budget: PodDisruptionBudget) -> bool:
        """Return whether `budget.status` already equals this status, for the current generation.

        The eviction API refuses evictions while the status belongs to an older generation.
        """
        status = budget.status
        return (
            status.observed_generation >= budget.metadata.generation
            and status.expected_pods == self.expected_pods
            and status.desired_healthy == self.desired_healthy
            and status.current_healthy == self.current_healthy
            and status.disruptions_allowed == self.disruptions_allowed
            and status.disrupted_pods == self.disrupted_pods
        )


class DisruptionBudget(Struct):
    """A budget with the pods that it selects (`members`, by name).

    `owners` counts the members of each controller. `healthy` is the number of healthy members.
    """

    view: PodDisruptionBudget
    members: dict[str, Member] = field(default_factory=dict)
    owners: dict[OwnerReference, int] = field(default_factory=dict)
    healthy: int = 0

    def put(self, name: str, member: Member) -> bool:
        """Store `member` as the pod `name`; return whether the counts may have changed."""
        before = self.members.get(name)
        if before == member:
            return False
        if before is not None and before.owner == member.owner:  # nearly always
            self.members[name] = member
            self.healthy += member.is_healthy - before.is_healthy
            return True
        self.remove(name)
        self.members[name] = member
        self.healthy += member.is_healthy
        if member.owner is not None:
            self.owners[member.owner] = self.owners.get(member.owner, 0) + 1
        return True

    def remove(self, name: str) -> bool:
        """Remove the pod `name`; return whether the budget selected it."""
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
        """Whether the number of expected pods depends on the scales of controllers."""
        spec = self.view.spec
        return spec.max_unavailable is not None or isinstance(spec.min_available, str)

    def status(self, scale: int, now: Instant) -> BudgetStatus:
        """Return the status at `now`.

        `scale` is the sum of the controllers' scales. `scale` is ignored if the property
        `needs_scale` is False.

        Raises IntOrPercentError if the limit of the budget is neither a number nor a percentage.
        """
        expected = scale if self.needs_scale else len(self.members)
        spec = self.view.spec
        if spec.max_unavailable is None and spec.min_available is None:
            expected = 0
        disrupted = self._disrupted(now)
        return BudgetStatus(
            expected_pods=expected,
            desired_healthy=desired_healthy(self.view, expected),
            current_healthy=self._healthy_now(disrupted, now),
            disrupted_pods=disrupted,
        )

    def next_recheck(self, now: Instant) -> Instant | None:
        """Return the time at which the next granted eviction expires.

        Returns None if every granted eviction has begun or has expired.
        """
        stamps = self._disrupted(now).values()
        if not stamps:
            return None
        return min(parse_timestamp(one) + DELETION_TIMEOUT for one in stamps)

    def _disrupted(self, now: Instant) -> dict[str, str]:
        """Return the pods whose eviction was granted, but has neither begun nor timed out.

        The result maps pod names to the timestamps at which the evictions were granted.
        """
        if not self.view.status.disrupted_pods:
            return {}
        return {
            name: stamp
            for name, stamp in self.view.status.disrupted_pods.items()
            if (member := self.members.get(name)) is not None
            and not member.is_leaving
            and parse_timestamp(stamp) + DELETION_TIMEOUT >= now
        }

    def _healthy_now(self, disrupted: Mapping[str, str], now: Instant) -> int:
        if not disrupted:
            return self.healthy
        about_to_go = sum(
            self.members[name].is_healthy and parse_timestamp(stamp) + DELETION_TIMEOUT > now
            for name, stamp in disrupted.items()
        )
        return self.healthy - about_to_go


def desired_healthy(budget: PodDisruptionBudget, expected: int) -> int:
    """Return the number of healthy pods that `budget` requires.

    `expected` is the number of expected pods (status.expectedPods).

    Raises IntOrPercentError if the limit of `budget` is neither a number nor a percentage.
    """
    spec = budget.spec
    if spec.max_unavailable is not None:
        return max(0, expected - scaled(spec.max_unavailable, expected))
    if spec.min_available is not None:
        return scaled(spec.min_available, expected)
    return 0
