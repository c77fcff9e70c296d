"""Computes the number of replicas that brings the average usage of a resource to its target.

    ratio = usage / target; no change while the ratio is within the tolerance around 1
    replicas = ceil(ratio x counted pods)

Missing and unready pods are then added with an assumed usage that makes the change smaller. The
replicas do not change if these pods would turn a scale-up into a scale-down, or the other way
round.

Example: target 50 %, 2 counted pods that use 90 % of their requests, 1 pod that is not ready, 3
replicas. The ratio is 1.8. If the third pod counts with usage 0, the usage is 60 % and the ratio is
1.2. The proposal is ceil(1.2 x 3) = 4 replicas.

upstream: pkg/controller/podautoscaler/replica_calculator.go:GetResourceReplicas,
calcPlainMetricReplicas; metrics/utilization.go
"""

from __future__ import annotations

from math import ceil
from typing import Final

from msgspec import Struct

from fairlead.engine.workloads.horizontal_pod_autoscaler.pod_group import MetricError, PodGroups

NO_READY_PODS: Final = "did not receive metrics for targeted pods (pods might be unready)"
NO_MATCH: Final = "no metrics returned matched known pods"


class Tolerances(Struct, frozen=True):
    """How far the ratio of usage to target may differ from 1 without a change of the replicas."""

    scale_down: float
    scale_up: float

    def contain(self, ratio: float) -> bool:
        """Return whether `ratio` is within the tolerances."""
        return (1.0 - self.scale_down) <= ratio <= (1.0 + self.scale_up)


class Proposal(Struct, frozen=True):
    """The number of replicas that a metric proposes, and the current values for the status.

    `average` is the usage per pod in thousandths. `utilization` is the usage as a percentage of the
    requests, or None if the target is an amount.
    """

    replicas: int
    average: int
    utilization: int | None = None


def utilization_proposal(
    groups: PodGroups, usage: int, target: int, tolerances: Tolerances, current: int
) -> Proposal:
    """Return the proposal for a target that is a percentage of the requests.

    `usage` is the usage of the counted pods (see `pod_group`), in thousandths of the resource's
    unit, such as millicores. `target` is the percentage. `current` is the current number of
    replicas. Raises MetricError if no pod is counted, or if requests are unknown or 0.
    """
    counted = groups.counted
    if not counted.pods:
        raise MetricError(NO_READY_PODS)
    if groups.request_problem:
        raise MetricError(groups.request_problem)
    utilization = _utilization(usage, counted.requests)
    ratio = utilization / target
    if _counts_all(groups, ratio):
        replicas = current if tolerances.contain(ratio) else ceil(ratio * counted.pods)
    else:
        # For a scale-down, a missing pod counts as if it used 100 % of its requests, or the
        # target percentage if that is higher.
        fallback = max(100, target)
        missing = sum(requests * fallback // 100 for requests in groups.missing_requests)
        whole = _with_uncounted(groups, usage, ratio, missing)
        new_ratio = _utilization(whole.usage, whole.requests) / target
        replicas = _agreed(ratio, new_ratio, whole.pods, tolerances, current)
    return Proposal(replicas, usage // counted.pods, utilization)


def average_proposal(
    groups: PodGroups, usage: int, target: int, tolerances: Tolerances, current: int
) -> Proposal:
    """Return the proposal for a target that is an amount per pod.

    `usage` is the usage of the counted pods (see `pod_group`), and `target` is the amount per pod.
    Both are in thousandths. `current` is the current number of replicas. Raises MetricError if no
    pod is counted.
    """
    counted = groups.counted
    if not counted.pods:
        raise MetricError(NO_READY_PODS)
    average = usage // counted.pods
    ratio = average / target
    if _counts_all(groups, ratio):
        replicas = current if tolerances.contain(ratio) else ceil(ratio * counted.pods)
    else:
        missing = target * len(groups.missing_requests)
        whole = _with_uncounted(groups, usage, ratio, missing)
        new_ratio = whole.usage // whole.pods / target
        replicas = _agreed(ratio, new_ratio, whole.pods, tolerances, current)
    return Proposal(replicas, average)


def _utilization(usage: int, requests: int) -> int:
    if not requests:
        raise MetricError(NO_MATCH)
    return usage * 100 // requests


def _counts_unready(groups: PodGroups, ratio: float) -> bool:
    return groups.unready.pods > 0 and ratio > 1.0


def _counts_all(groups: PodGroups, ratio: float) -> bool:
    """Return whether neither the missing nor the unready pods affect the proposal."""
    return not groups.missing_requests and not _counts_unready(groups, ratio)


class _Sample(Struct):
    """The total usage and requests of some pods, in thousandths, and the number of these pods."""

    usage: int
    requests: int
    pods: int


def _with_uncounted(groups: PodGroups, usage: int, ratio: float, missing_usage: int) -> _Sample:
    """Return the totals over the counted pods and over some of the other pods.

    `usage` is the usage of the counted pods. `ratio` is the ratio of this usage to the target. It
    determines which other pods are added (the module `pod_group` explains the groups of pods):

        below 1 (scale-down)   the missing pods, assumed to use `missing_usage` in total
        1                      no pods
        above 1 (scale-up)     the missing and the unready pods, assumed to use nothing
    """
    whole = _Sample(usage, groups.counted.requests, groups.counted.pods)
    if groups.missing_requests and ratio != 1.0:
        whole.usage += missing_usage if ratio < 1.0 else 0
        whole.requests += sum(groups.missing_requests)
        whole.pods += len(groups.missing_requests)
    if _counts_unready(groups, ratio):
        whole.requests += groups.unready.requests
        whole.pods += groups.unready.pods
    return whole


def _agreed(ratio: float, new_ratio: float, pods: int, tolerances: Tolerances, current: int) -> int:
    """Return the number of replicas that `new_ratio` proposes.

    `ratio` is usage ÷ target of the counted pods (see `pod_group`). `new_ratio` is usage ÷ target
    of the counted pods and the pods that `_with_uncounted` adds. `pods` is the number of all these
    pods. Returns `current` if `new_ratio` is within the tolerances. Also returns `current` if the
    two ratios and the proposed number contradict each other: one of these three indicates a
    scale-up, and another one indicates a scale-down.
    """
    if tolerances.contain(new_ratio) or ratio < 1.0 < new_ratio or new_ratio < 1.0 < ratio:
        return current
    replicas = ceil(new_ratio * pods)
    if (new_ratio < 1.0 and replicas > current) or (new_ratio > 1.0 and replicas < current):
        return current
    return replicas
