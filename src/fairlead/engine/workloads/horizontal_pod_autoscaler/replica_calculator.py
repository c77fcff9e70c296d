"""How many replicas bring the average usage of a resource to its target.

    ratio = usage / target; no change while it is within the tolerance of 1
    replicas = ceil(ratio x counted pods)

If pods are missing or not ready, they are added with the usage that makes the change smaller, and
the result counts only if it points in the same direction.

Example: target 50 %, 2 counted pods that use 90 % of their requests, 1 pod that is not ready, 3
replicas. The ratio is 1.8. With the third pod at 0 the usage is 60 %, the ratio 1.2; ceil(1.2 x 3)
= 4 replicas.

upstream: pkg/controller/podautoscaler/replica_calculator.go:GetResourceReplicas,
calcPlainMetricReplicas; metrics/utilization.go
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final

from fairlead.engine.workloads.horizontal_pod_autoscaler.pod_group import MetricError, PodGroups

NO_READY_PODS: Final = "did not receive metrics for targeted pods (pods might be unready)"
NO_MATCH: Final = "no metrics returned matched known pods"


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far the ratio may be from 1 without a change, as fractions."""

    scale_down: float
    scale_up: float

    def contain(self, ratio: float) -> bool:
        """Return whether `ratio` is within the tolerances."""
        return (1.0 - self.scale_down) <= ratio <= (1.0 + self.scale_up)


@dataclass(frozen=True, slots=True)
class Proposal:
    """The replicas that a metric proposes, and the current values for the status.

    `average` is the usage per pod in thousandths, `utilization` a percentage of the requests (None
    for a target that is an amount).
    """

    replicas: int
    average: int
    utilization: int | None = None


@dataclass(frozen=True, slots=True)
class _Sample:
    """The usage of some pods, their requests and their number."""

    usage: int
    requests: int
    pods: int


def utilization_proposal(
    groups: PodGroups, usage: int, target: int, tolerances: Tolerances, current: int
) -> Proposal:
    """Return the proposal for a target in percent of the requests.

    `usage` is that of the counted pods in thousandths, `current` the present number of replicas.
    Raises MetricError.
    """
    if not groups.counted.pods:
        raise MetricError(NO_READY_PODS)
    if groups.request_problem:
        raise MetricError(groups.request_problem)

    def ratio_of(sample: _Sample) -> float:
        return _utilization(sample) / target

    sample = _Sample(usage, groups.counted.requests, groups.counted.pods)
    # A missing pod counts with its requests, or with the target if that is higher.
    fallback = max(100, target)
    missing = sum(requests * fallback // 100 for requests in groups.missing_requests)
    replicas = _replicas(groups, sample, ratio_of, missing, tolerances, current)
    return Proposal(replicas, usage // sample.pods, _utilization(sample))


def average_proposal(
    groups: PodGroups, usage: int, target: int, tolerances: Tolerances, current: int
) -> Proposal:
    """Return the proposal for a target that is an amount per pod, in thousandths.

    See `utilization_proposal`. Raises MetricError.
    """
    if not groups.counted.pods:
        raise MetricError(NO_READY_PODS)

    def ratio_of(sample: _Sample) -> float:
        return sample.usage // sample.pods / target

    sample = _Sample(usage, groups.counted.requests, groups.counted.pods)
    missing = target * len(groups.missing_requests)
    replicas = _replicas(groups, sample, ratio_of, missing, tolerances, current)
    return Proposal(replicas, usage // sample.pods)


def _utilization(sample: _Sample) -> int:
    if not sample.requests:
        raise MetricError(NO_MATCH)
    return sample.usage * 100 // sample.requests


def _replicas(
    groups: PodGroups,
    sample: _Sample,
    ratio_of: Callable[[_Sample], float],
    missing_usage: int,
    tolerances: Tolerances,
    current: int,
) -> int:
    """Return the replicas; on a scale-down, missing pods count with `missing_usage`."""
    ratio = ratio_of(sample)
    counts_unready = groups.unready.pods > 0 and ratio > 1.0
    if not counts_unready and not groups.missing_requests:
        return current if tolerances.contain(ratio) else ceil(ratio * sample.pods)
    usage, requests, pods = sample.usage, sample.requests, sample.pods
    if groups.missing_requests and ratio != 1.0:
        usage += missing_usage if ratio < 1.0 else 0
        requests += sum(groups.missing_requests)
        pods += len(groups.missing_requests)
    if counts_unready:
        requests += groups.unready.requests
        pods += groups.unready.pods
    new_ratio = ratio_of(_Sample(usage, requests, pods))
    if tolerances.contain(new_ratio) or ratio < 1.0 < new_ratio or new_ratio < 1.0 < ratio:
        return current  # the change would be too small, or point in the other direction
    replicas = ceil(new_ratio * pods)
    if (new_ratio < 1.0 and replicas > current) or (new_ratio > 1.0 and replicas < current):
        return current
    return replicas
