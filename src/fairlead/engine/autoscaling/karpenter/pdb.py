"""PodBudgets: finds the PodDisruptionBudgets that prevent the eviction of a pod.

upstream: pkg/utils/pdb/pdb.go
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from fairlead.api.objects import Pod, PodDisruptionBudget
from fairlead.api.pods.facts import condition
from fairlead.api.selector import selector_matches
from fairlead.engine.autoscaling.karpenter.pod import is_evictable
from fairlead.engine.core.instant import Instant


class PodBudgets:
    """The PodDisruptionBudgets of all namespaces, sorted by name."""

    def __init__(
        self, budgets: Iterable[PodDisruptionBudget], before: PodBudgets | None = None
    ) -> None:
        """Store `budgets`; each must have the number of allowed disruptions in its status.

        `before` is an earlier PodBudgets. Its cached matches are used again for each namespace in
        which the selectors of the budgets have not changed.
        """
        self._by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        for one in sorted(budgets, key=lambda one: one.key):
            self._by_namespace.setdefault(one.metadata.namespace, []).append(one)
        # The positions of the budgets that select a pod, by its namespace and labels.
        self._selecting: dict[str, dict[Hashable, tuple[int, ...]]] = {}
        for namespace, mine in self._by_namespace.items():
            known = None if before is None else before.selecting(namespace, mine)
            self._selecting[namespace] = {} if known is None else known

    def selecting(
        self, namespace: str, budgets: Sequence[PodDisruptionBudget]
    ) -> dict[Hashable, tuple[int, ...]] | None:
        """Return the cached {labels of a pod: indexes of the budgets that select the pod}.

        Returns None if the selectors of `budgets` differ from those of the stored budgets of
        `namespace`.
        """
        mine = self._by_namespace.get(namespace, ())
        if len(mine) == len(budgets) and all(
            one.spec.selector == other.spec.selector
            for one, other in zip(mine, budgets, strict=True)
        ):
            return self._selecting[namespace]
        return None

    def _matching(self, pod: Pod) -> list[PodDisruptionBudget]:
        mine = self._by_namespace.get(pod.metadata.namespace)
        if not mine:
            return []
        labels = pod.metadata.labels
        selecting, shape = self._selecting[pod.metadata.namespace], frozenset(labels.items())
        found = selecting.get(shape)
        if found is None:
            found = selecting[shape] = tuple(
                number
                for number, one in enumerate(mine)
                if selector_matches(one.spec.selector, labels)
            )
        return [mine[number] for number in found]

    def blocking(self, pod: Pod, now: Instant) -> str | None:
        """Return upstream's text about the budgets that block the eviction.

        Returns None if no budget blocks the eviction.
        """
        # upstream: pdb.go:CanEvictPods
        return self._blocking(pod, _allows_none, now)

    def is_fully_blocked(self, pod: Pod, now: Instant) -> bool:
        """Return whether the specs of the pod's budgets rule out any eviction of the pod.

        Returns True if several budgets select the pod, because the eviction API refuses such pods.
        Returns False if a drain would not evict the pod, because then its budgets do not matter.
        """
        # upstream: pdb.go:IsFullyBlocked
        return self._blocking(pod, _never_allows_any, now) is not None

    def _blocking(
        self, pod: Pod, blocks: Callable[[PodDisruptionBudget], bool], now: Instant
    ) -> str | None:
        # upstream: pdb.go:isEvictable
        matching = self._matching(pod)
        if not matching or (len(matching) == 1 and not blocks(matching[0])):
            return None
        if not is_evictable(pod, now):
            return None
        if len(matching) > 1:
            keys = " ".join(one.key for one in matching)
            return f"eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{keys}])"
        if matching[0].spec.unhealthy_pod_eviction_policy == "AlwaysAllow" and _is_not_ready(pod):
            return None
        return f"pdb prevents pod evictions (PodDisruptionBudget=[{matching[0].key}])"


def _allows_none(budget: PodDisruptionBudget) -> bool:
    return budget.status.disruptions_allowed == 0


def _never_allows_any(budget: PodDisruptionBudget) -> bool:
    spec = budget.spec
    return str(spec.max_unavailable) in ("0", "0%") or spec.min_available == "100%"


def _is_not_ready(pod: Pod) -> bool:
    found = condition(pod, "Ready")
    return found is not None and found.status == "False"
