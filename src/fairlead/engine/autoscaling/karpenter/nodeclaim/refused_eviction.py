"""RefusedEvictions: the evictions that are not repeated, because budgets would refuse them again.

Karpenter repeats a refused eviction with a backoff, until a budget allows it. The attempts between
two changes of the budget all fail. Drains therefore leave out a refused eviction until the pod, or
a budget that selects it, has changed.

upstream: pkg/controllers/node/termination/terminator/eviction.go
"""

from __future__ import annotations

from fairlead.api.objects import Pod, PodDisruptionBudget
from fairlead.api.selector import selector_matches
from fairlead.engine.core.command import ObjectRef


class RefusedEvictions:
    """The pods whose last eviction was refused, and whose budgets have not changed since."""

    def __init__(self) -> None:
        """Start without refused evictions."""
        self._pods: dict[str, dict[str, Pod]] = {}  # by namespace, then by key

    def add(self, pod: Pod) -> None:
        """Remember that the eviction of `pod` was refused."""
        self._pods.setdefault(pod.metadata.namespace, {})[pod.key] = pod

    def has(self, pod: ObjectRef) -> bool:
        """Return whether the eviction of `pod` would be refused again."""
        return pod.key in self._pods.get(pod.namespace, ())

    def forget(self, pod: Pod) -> bool:
        """Forget the refused eviction of `pod`, which has changed.

        Returns whether there was a refused eviction of `pod`.
        """
        return self._pods.get(pod.metadata.namespace, {}).pop(pod.key, None) is not None

    def release(self, *versions: PodDisruptionBudget) -> list[Pod]:
        """Forget the refused evictions of the pods that a budget selects; return these pods.

        `versions` are versions of the budget. The budget selects a pod if any of these versions
        does.
        """
        pods = self._pods.get(versions[0].metadata.namespace, {})
        found = [pod for pod in pods.values() if any(_selects(one, pod) for one in versions)]
        for pod in found:
            del pods[pod.key]
        return found


def _selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    return budget.metadata.namespace == pod.metadata.namespace and selector_matches(
        budget.spec.selector, pod.metadata.labels
    )
