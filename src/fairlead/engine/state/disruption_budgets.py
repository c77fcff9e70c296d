"""DisruptionBudgets: the PodDisruptionBudgets of the cluster, and which of them select a pod.

Preemption asks for the budgets of each possible victim on each node. So a selector is evaluated
only once for each class of pods (`PodClass`). All results are dropped when a budget is added or
removed, or gets a different selector. The results are kept when only the status of a budget
changes. The status changes often: whenever a pod of the budget becomes ready or unready.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, overload

from fairlead.api.objects import PodDisruptionBudget
from fairlead.api.selector import selector_matches
from fairlead.engine.state.change_log import ChangeLog
from fairlead.engine.state.pod_class import PodClass
from fairlead.engine.state.pod_info import PodInfo

_CLASSES_MAX: Final = 16_384  # classes of pods that are gone are dropped when there are more


class DisruptionBudgets(Sequence[PodDisruptionBudget]):
    """The budgets, sorted by `namespace/name`.

    Three facts about a budget matter for preemption: its selector, the number of allowed
    disruptions, and the recorded evictions. `limit_log` records the key of a budget whose allowed
    disruptions or recorded evictions change while its selector stays the same. `selection_version`
    increases when a budget is added or removed, or gets a different selector.
    """

    def __init__(self, budgets: Iterable[PodDisruptionBudget] = ()) -> None:
        """Start with `budgets`."""
        self._by_key = {one.key: one for one in budgets}
        self._sorted: list[PodDisruptionBudget] | None = None
        self._in_namespace: dict[str, list[str]] | None = None
        self._selecting: dict[PodClass, tuple[str, ...]] = {}  # keys of budgets
        self.limit_log: ChangeLog[str] = ChangeLog()
        self.selection_version = 0

    @property
    def version(self) -> int:
        """A number that increases with each change that matters for preemption."""
        return self.selection_version + self.limit_log.position

    def put(self, budget: PodDisruptionBudget) -> PodDisruptionBudget | None:
        """Store a new or changed budget; return its previous version, None if it is new."""
        before = self._by_key.get(budget.key)
        self._by_key[budget.key] = budget
        self._sorted = None
        if before is None or before.spec.selector != budget.spec.selector:
            self._forget_selection()
        elif _limits(before) != _limits(budget):
            self.limit_log.append(budget.key)
        return before

    def remove(self, key: str) -> PodDisruptionBudget | None:
        """Remove the budget `namespace/name`; return its last version, None if it is unknown."""
        before = self._by_key.pop(key, None)
        if before is not None:
            self._sorted = None
            self._forget_selection()
        return before

    def _forget_selection(self) -> None:
        self._in_namespace = None
        self._selecting.clear()
        self.selection_version += 1

    # --- the sequence ----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._by_key)

    @overload
    def __getitem__(self, index: int) -> PodDisruptionBudget: ...

    @overload
    def __getitem__(self, index: slice) -> list[PodDisruptionBudget]: ...

    def __getitem__(self, index: int | slice) -> PodDisruptionBudget | list[PodDisruptionBudget]:
        if self._sorted is None:
            self._sorted = [self._by_key[key] for key in sorted(self._by_key)]
        return self._sorted[index]

    # --- selection -------------------------------------------------------------------------

    def selecting(self, pod: PodInfo) -> list[PodDisruptionBudget]:
        """Return the budgets whose selector matches `pod`."""
        if pod.pod_class is not None:
            return self.selecting_class(pod.pod_class)
        return [self._by_key[key] for key in self._search(pod.namespace, pod.labels)]

    def selecting_class(self, pods: PodClass) -> list[PodDisruptionBudget]:
        """Return the budgets whose selector matches `pods`."""
        keys = self._selecting.get(pods)
        if keys is None:
            if len(self._selecting) >= _CLASSES_MAX:
                self._selecting.clear()
            keys = self._selecting[pods] = self._search(pods.namespace, pods.labels)
        return [self._by_key[key] for key in keys]

    def _search(self, namespace: str, labels: Mapping[str, str]) -> tuple[str, ...]:
        if self._in_namespace is None:
            self._in_namespace = {}
            for key, budget in self._by_key.items():
                self._in_namespace.setdefault(budget.metadata.namespace, []).append(key)
        keys = self._in_namespace.get(namespace, ())
        return tuple(key for key in keys if _selects(self._by_key[key], labels))


def _limits(budget: PodDisruptionBudget) -> tuple[object, ...]:
    return budget.status.disruptions_allowed, budget.status.disrupted_pods


def _selects(budget: PodDisruptionBudget, labels: Mapping[str, str]) -> bool:
    """Return whether `budget` selects pods of its namespace with `labels`.

    A pod without labels matches no budget. A budget with an empty or absent selector matches no
    pod.
    """
    selector = budget.spec.selector
    if not labels or selector is None:
        return False
    if not (selector.match_labels or selector.match_expressions):
        return False
    return selector_matches(selector, labels)
