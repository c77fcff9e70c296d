"""PodBudgets: the PodDisruptionBudgets that prevent the eviction of a pod.

upstream: pkg/utils/pdb/pdb.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fairlead.api.objects import Pod, PodDisruptionBudget
from fairlead.api.pods.facts import condition
from fairlead.api.selector import selector_matches
from fairlead.engine.autoscaling.karpenter.pod import is_evictable
from fairlead.engine.core.instant import Instant


class PodBudgets:
    """The budgets of all namespaces, in the order of their names."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        """Store the budgets; their status states how many disruptions they allow."""
        self._by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        for one in sorted(budgets, key=lambda one: one.key):
            self._by_namespace.setdefault(one.metadata.namespace, []).append(one)

    def _matching(self, pod: Pod) -> list[PodDisruptionBudget]:
        mine = self._by_namespace.get(pod.metadata.namespace)
        if not mine:
            return []
        return [one for one in mine if selector_matches(one.spec.selector, pod.metadata.labels)]

    def blocking(self, pod: Pod, now: Instant) -> str | None:
        """Return upstream's text about the budgets that block the eviction, None if none does."""
        # upstream: pdb.go:CanEvictPods
        return self._blocking(pod, _allows_none, now)

    def is_fully_blocked(self, pod: Pod, now: Instant) -> bool:
        """Return whether the budgets never allow a disruption of the pod, with any status."""
        # upstream: pdb.go:IsFullyBlocked
        return self._blocking(pod, _never_allows_any, now) is not None

    def _blocking(
        self, pod: Pod, blocks: Callable[[PodDisruptionBudget], bool], now: Instant
    ) -> str | None:
        # upstream: pdb.go:isEvictable
        if not self._by_namespace or not is_evictable(pod, now):
            return None
        matching = self._matching(pod)
        if len(matching) > 1:
            keys = " ".join(one.key for one in matching)
            return f"eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{keys}])"
        for one in matching:
            if _always_allows_unhealthy(one) and _is_not_ready(pod):
                return None
            if blocks(one):
                return f"pdb prevents pod evictions (PodDisruptionBudget=[{one.key}])"
        return None


def _allows_none(budget: PodDisruptionBudget) -> bool:
    return budget.status.disruptions_allowed == 0


def _never_allows_any(budget: PodDisruptionBudget) -> bool:
    spec = budget.spec
    return str(spec.max_unavailable) in ("0", "0%") or spec.min_available == "100%"


def _always_allows_unhealthy(budget: PodDisruptionBudget) -> bool:
    return budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"


def _is_not_ready(pod: Pod) -> bool:
    found = condition(pod, "Ready")
    return found is not None and found.status == "False"
