"""Disruption budgets in preemption: which victims they protect, and the order of reprieves.

A reprieve lets a possible victim stay on its node.

upstream: default_preemption.go: filterPodsWithPDBViolation, SelectVictimsOnNode
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from fairlead.api.objects import PodDisruptionBudget
from fairlead.api.selector import selector_matches
from fairlead.engine.state.pod_info import PodInfo

Victim = TypeVar("Victim")


def split_by_budget(
    pods: Sequence[PodInfo], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """Split `pods` into (pods whose removal violates a budget, other pods).

    `pods` are sorted by importance; both lists keep the order. The removal of a pod counts against
    all budgets that match the pod, even if the removal violates one of them.
    """
    namespaces = {pod.namespace for pod in pods}
    concerned = [budget for budget in budgets if budget.metadata.namespace in namespaces]
    if not concerned:
        return [], list(pods)
    allowed = [budget.status.disruptions_allowed for budget in concerned]
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        violates = False
        for i, budget in enumerate(concerned):
            if matches_budget(pod, budget):
                allowed[i] -= 1
                violates = violates or allowed[i] < 0
        (violating if violates else others).append(pod)
    return violating, others


def reprieve_in_order(
    violating: Sequence[Victim], others: Sequence[Victim], reprieve: Callable[[Victim], bool]
) -> tuple[list[Victim], list[Victim]]:
    """Try to reprieve the possible victims, one by one; return those that cannot be reprieved.

    `violating` are the possible victims whose removal violates a budget. They are tried before
    `others`. Both sequences are sorted by importance. The result has one list for each sequence.
    `reprieve` gives a victim its place back and returns True if the preemptor still fits then.
    Otherwise it changes nothing and returns False.
    """
    # upstream: default_preemption.go: SelectVictimsOnNode. The victims that violate a budget come
    # first, because they take the room that the others would need.
    return (
        [victim for victim in violating if not reprieve(victim)],
        [victim for victim in others if not reprieve(victim)],
    )


def matches_budget(pod: PodInfo, budget: PodDisruptionBudget) -> bool:
    """Return whether `budget` selects `pod` and has not yet recorded the eviction of `pod`.

    A pod without labels matches no budget, and a budget with an empty or absent selector matches no
    pod.
    """
    if not selects(budget, pod.namespace, pod.labels):
        return False
    return pod.pod.metadata.name not in budget.status.disrupted_pods


def selects(budget: PodDisruptionBudget, namespace: str, labels: Mapping[str, str]) -> bool:
    """Return whether `budget` selects pods in `namespace` with `labels`."""
    selector = budget.spec.selector
    if budget.metadata.namespace != namespace or not labels or selector is None:
        return False
    if not (selector.match_labels or selector.match_expressions):
        return False
    return selector_matches(selector, labels)
