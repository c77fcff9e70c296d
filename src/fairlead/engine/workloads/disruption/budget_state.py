"""NamespaceBudgets: the budgets of a namespace, the pods they select, and their status writes.

Each method that stores or removes a pod returns the states of the affected budgets.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from fairlead.api.objects import Pod, PodDisruptionBudget
from fairlead.api.pods.replicas import Replicas
from fairlead.api.selector import selector_matches
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.disruption.budget import DisruptionBudget, Member

Labels = dict[str, str]


class BudgetState(Struct):
    """A budget and its status writes."""

    budget: DisruptionBudget
    is_writing: bool = False
    # While a write is in flight, the status in `budget.view` is outdated. Changes then only set
    # this, and the status is recomputed when the outcome of the write arrives.
    is_dirty: bool = False
    is_written: bool = False  # whether the status was written or loaded
    # The expectedPods of the status at the start of the simulation; 0 if the budget was created, or
    # its spec was changed, after the start.
    expected: int = 0
    failure: str = ""  # the error text in the status that was written last, or ""
    warning: str = ""  # the reason of the last warning event about the budget's pods
    recheck_at: Instant | None = None
    refusals: int = 0  # the number of consecutive status writes that were refused

    def selects(self, labels: Labels) -> bool:
        """Return whether the budget selects pods with `labels`."""
        return selector_matches(self.budget.view.spec.selector, labels)


class _SelectedPod(Struct, frozen=True, gc=False):
    """A pod with the names of the budgets that select it.

    One instance may stand for several replicas.
    """

    labels: Labels
    member: Member
    budgets: tuple[str, ...]


class NamespaceBudgets(Struct):
    """The budgets and pods of one namespace, keyed by name."""

    states: dict[str, BudgetState] = field(default_factory=dict)
    _pods: dict[str, _SelectedPod] = field(default_factory=dict)
    _by_labels: dict[frozenset[tuple[str, str]], tuple[str, ...]] = field(default_factory=dict)

    def observe_pod(self, pod: Pod) -> list[BudgetState]:
        """Store the newest version of `pod`; return the states of budgets with changed counts."""
        meta = pod.metadata
        name, labels = meta.name, meta.labels
        known, member = self._pods.get(name), Member.of(pod)
        if known is None or (known.labels is not labels and known.labels != labels):
            changed, budgets = self._select(name, labels, known)
        elif known.member == member:
            return []
        else:
            changed, budgets = [], known.budgets
        self._pods[name] = _SelectedPod(labels, member, budgets)
        for one in budgets:
            state = self.states[one]
            if state.budget.put(name, member):
                changed.append(state)
        return changed

    def load_pods(self, replicas: Replicas) -> None:
        """Store pods of this namespace, with the same result as `observe_pod` for each of them."""
        names = replicas.names
        if not self._pods.keys().isdisjoint(names):
            for pod in replicas:
                self.observe_pod(pod)
            return
        labels, member = replicas[0].metadata.labels, Member.of(replicas[0])
        selected = _SelectedPod(labels, member, self._budgets_of(labels))
        self._pods |= dict.fromkeys(names, selected)
        for budget in selected.budgets:
            for name in names:
                self.states[budget].budget.put(name, member)

    def forget_pod(self, name: str) -> list[BudgetState]:
        """Remove the pod `name`; return the states of the budgets that selected it."""
        gone = self._pods.pop(name, None)
        budgets = gone.budgets if gone is not None else ()
        return [self.states[one] for one in budgets if self.states[one].budget.remove(name)]

    def observe_budget(self, view: PodDisruptionBudget) -> BudgetState:
        """Store the newest version of a budget; return its state.

        If the budget's spec, generation or uid changed, the budget's pods are selected and counted
        again.
        """
        name = view.metadata.name
        state = self.states.get(name)
        if state is None or _is_rewritten(state.budget.view, view):
            state = self.states[name] = BudgetState(DisruptionBudget(view))
            self._select_pods(name, state)
        state.budget.view = view
        return state

    def forget_budget(self, name: str) -> None:
        """Remove the budget `name`."""
        self.states.pop(name, None)
        self._by_labels.clear()
        for key, pod in self._pods.items():
            if name in pod.budgets:
                self._pods[key] = _with_budgets(pod, (one for one in pod.budgets if one != name))

    def _select(
        self, name: str, labels: Labels, known: _SelectedPod | None
    ) -> tuple[list[BudgetState], tuple[str, ...]]:
        """Find the budgets that select the pod `name` with its new `labels`.

        `known` is the pod as stored before, or None. The pod is removed from the budgets that no
        longer select it. The result is (states of the budgets that no longer select the pod, names
        of the budgets that select it).
        """
        budgets = self._budgets_of(labels)
        before = () if known is None else known.budgets
        left = [
            self.states[one]
            for one in before
            if one not in budgets and self.states[one].budget.remove(name)
        ]
        return left, budgets

    def _budgets_of(self, labels: Labels) -> tuple[str, ...]:
        """Return the names of the budgets that select pods with `labels`."""
        key = frozenset(labels.items())
        found = self._by_labels.get(key)
        if found is None:
            found = tuple(name for name, one in self.states.items() if one.selects(labels))
            self._by_labels[key] = found
        return found

    def _select_pods(self, budget_name: str, state: BudgetState) -> None:
        """Select the pods of a budget that is new or was rewritten (`_is_rewritten`)."""
        self._by_labels.clear()
        for name, pod in self._pods.items():
            budgets = [one for one in pod.budgets if one != budget_name]
            if state.selects(pod.labels):
                state.budget.put(name, pod.member)
                budgets.append(budget_name)
            self._pods[name] = _with_budgets(pod, budgets)


def _with_budgets(pod: _SelectedPod, budgets: Iterable[str]) -> _SelectedPod:
    return _SelectedPod(pod.labels, pod.member, tuple(budgets))


def _is_rewritten(before: PodDisruptionBudget, after: PodDisruptionBudget) -> bool:
    """Return whether the spec, generation or uid of a budget has changed."""
    return (
        before.spec != after.spec
        or before.metadata.generation != after.metadata.generation
        or before.metadata.uid != after.metadata.uid
    )
