"""RemainingBudgets: the disruptions that PodDisruptionBudgets still allow in this loop.

upstream: core/scaledown/pdb/basic.go
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.api.objects import Pod, PodDisruptionBudget
from fairlead.api.selector import selector_matches


class RemainingBudgets:
    """The allowed disruptions of each budget. `subtract` lowers them, even below 0."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget] = ()) -> None:
        """Start with the allowed disruptions in the status of `budgets`."""
        self._budgets = list(budgets)
        self._allowed = [budget.status.disruptions_allowed for budget in self._budgets]

    def matching(self, pod: Pod) -> list[int]:
        """Return the indexes of the budgets that select `pod`.

        An empty selector selects all pods.
        """
        return [
            index
            for index, budget in enumerate(self._budgets)
            if budget.metadata.namespace == pod.metadata.namespace
            and budget.spec.selector is not None
            and selector_matches(budget.spec.selector, pod.metadata.labels)
        ]

    def allows(self, pod: Pod) -> bool:
        """Return whether every budget that selects `pod` still allows a disruption."""
        return all(self._allowed[index] >= 1 for index in self.matching(pod))

    def is_risky(self, pods: Sequence[Pod]) -> bool:
        """Return whether a disruption of all `pods` together would exceed a budget."""
        counts: dict[int, int] = {}
        for pod in pods:
            for index in self.matching(pod):
                counts[index] = counts.get(index, 0) + 1
        return any(count > self._allowed[index] for index, count in counts.items())

    def subtract(self, pods: Iterable[Pod]) -> None:
        """Subtract one disruption for each of `pods` from every budget that selects the pod."""
        for pod in pods:
            for index in self.matching(pod):
                self._allowed[index] -= 1
