"""Disruption budgets in preemption: which victims they protect, and the order of reprieves.

A reprieve lets a possible victim stay on its node.

upstream: default_preemption.go: filterPodsWithPDBViolation, SelectVictimsOnNode
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from fairlead.api.objects import PodDisruptionBudget
from fairlead.engine.state.disruption_budgets import DisruptionBudgets
from fairlead.engine.state.pod_info import PodInfo

Victim = TypeVar("Victim")


def split_by_budget(
    pods: Sequence[PodInfo], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """Split `pods` into pods whose removal violates a budget, and other pods.

    `pods` are sorted by importance, and both lists keep the order. The removal of a pod counts
    against all budgets that match the pod, even against a budget that it violates.
    """
    remaining = RemainingDisruptions(budgets)
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        (violating if remaining.charge(pod) else others).append(pod)
    return violating, others


class RemainingDisruptions:
    """The disruptions that each budget still allows, while pods are removed one after another."""

    def __init__(self, budgets: Sequence[PodDisruptionBudget]) -> None:
        """Start with the number of allowed disruptions in the status of each of `budgets`."""
        if not isinstance(budgets, DisruptionBudgets):
            budgets = DisruptionBudgets(budgets)
        self._budgets = budgets
        self._left: dict[str, int] = {}

    def charge(self, pod: PodInfo) -> bool:
        """Count the removal of `pod` against its budgets; return whether it violates a budget.

        The removal does not count against a budget that has already recorded the eviction of `pod`.
        """
        violates = False
        for budget in self._budgets.selecting(pod):
            status, key = budget.status, budget.key
            if pod.pod.metadata.name in status.disrupted_pods:
                continue
            left = self._left[key] = self._left.get(key, status.disruptions_allowed) - 1
            violates = violates or left < 0
        return violates


def reprieve_in_order(
    violating: Sequence[Victim], others: Sequence[Victim], reprieve: Callable[[Victim], bool]
) -> tuple[list[Victim], list[Victim]]:
    """Try to reprieve the possible victims, one by one; return those that cannot be reprieved.

    `violating` are the possible victims whose removal violates a budget. These victims are tried
    before `others`. `violating` and `others` are sorted by importance. The result is one list for
    `violating` and one for `others`. If the preemptor still fits beside a victim, `reprieve` gives
    the victim its place back and returns True. Otherwise `reprieve` changes nothing and returns
    False.
    """
    # upstream: default_preemption.go: SelectVictimsOnNode. The pods whose removal violates a budget
    # are tried first: they may stay even if the others then find no room.
    return (
        [victim for victim in violating if not reprieve(victim)],
        [victim for victim in others if not reprieve(victim)],
    )
