"""Guard: which budgets of a namespace guard which of its pods, and what is written of each budget.

Every method that learns something gives back the ledgers of the budgets it changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fairlead.api.objects import Pod, PodDisruptionBudget
from fairlead.api.selector import selector_matches
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.disruption.budget import Budget, Member

Labels = dict[str, str]


@dataclass(slots=True)
class Ledger:
    """A budget and what is written of it; `expected` is what its loaded status said, or 0.

    While a write is under way the view is behind it, so what happens meanwhile only makes the
    budget `is_dirty`, and it is worked out again when the write is answered. (Upstream's work
    queue gives the same: one worker per budget, and another turn for what came in between.)
    `failure` is why it could not be worked out, as far as that is written, `doubt` the reason of
    what was told last of its pods.
    """

    budget: Budget
    is_writing: bool = False
    is_dirty: bool = False
    is_observed: bool = False
    expected: int = 0
    failure: str = ""
    doubt: str = ""
    recheck_at: Instant | None = None

    def guards(self, labels: Labels) -> bool:
        """Whether the budget selects pods with `labels`."""
        return selector_matches(self.budget.view.spec.selector, labels)


@dataclass(slots=True)
class _Guarded:
    """A pod as far as budgets care, with the names of those that guard it."""

    labels: Labels
    member: Member
    budgets: tuple[str, ...]


@dataclass(slots=True)
class NamespaceGuard:
    """The budgets and pods of one namespace, by name."""

    ledgers: dict[str, Ledger] = field(default_factory=dict)
    _pods: dict[str, _Guarded] = field(default_factory=dict)
    _by_labels: dict[tuple[tuple[str, str], ...], tuple[str, ...]] = field(default_factory=dict)

    def see_pod(self, pod: Pod) -> list[Ledger]:
        """Take the newest version of `pod`."""
        return list(self._see_pod(pod))

    def forget_pod(self, name: str) -> list[Ledger]:
        """The pod `name` is gone."""
        gone = self._pods.pop(name, None)
        budgets = gone.budgets if gone is not None else ()
        return [self.ledgers[one] for one in budgets if self.ledgers[one].budget.remove(name)]

    def see_budget(self, view: PodDisruptionBudget) -> Ledger:
        """Take the newest version of a budget; one that was rewritten starts anew."""
        name = view.metadata.name
        ledger = self.ledgers.get(name)
        if ledger is None or _is_rewritten(ledger.budget.view, view):
            ledger = self.ledgers[name] = Ledger(Budget(view))
            self._recruit(name, ledger)
        ledger.budget.view = view
        return ledger

    def forget_budget(self, name: str) -> None:
        """The budget `name` is gone."""
        self.ledgers.pop(name, None)
        self._by_labels.clear()
        for pod in self._pods.values():
            pod.budgets = tuple(one for one in pod.budgets if one != name)

    def _see_pod(self, pod: Pod) -> Iterator[Ledger]:
        name, labels = pod.metadata.name, pod.metadata.labels
        known = self._pods.get(name)
        budgets = known.budgets if known is not None else ()
        if known is None or known.labels != labels:
            before, budgets = budgets, self._guards_of(labels)
            for one in before:
                if one not in budgets and self.ledgers[one].budget.remove(name):
                    yield self.ledgers[one]
        member = Member.of(pod)
        self._pods[name] = _Guarded(labels, member, budgets)
        for one in budgets:
            if self.ledgers[one].budget.put(name, member):
                yield self.ledgers[one]

    def _guards_of(self, labels: Labels) -> tuple[str, ...]:
        """The budgets that guard pods with `labels`; replicas share them, so they share this."""
        key = tuple(sorted(labels.items()))
        found = self._by_labels.get(key)
        if found is None:
            found = tuple(name for name, one in self.ledgers.items() if one.guards(labels))
            self._by_labels[key] = found
        return found

    def _recruit(self, budget_name: str, ledger: Ledger) -> None:
        """Let a new budget, or one with another selector, find its pods."""
        self._by_labels.clear()
        for name, pod in self._pods.items():
            pod.budgets = tuple(one for one in pod.budgets if one != budget_name)
            if ledger.guards(pod.labels):
                ledger.budget.put(name, pod.member)
                pod.budgets += (budget_name,)


def _is_rewritten(before: PodDisruptionBudget, after: PodDisruptionBudget) -> bool:
    """Whether more than the status has changed: all is to be counted, and told, anew."""
    return (
        before.spec != after.spec
        or before.metadata.generation != after.metadata.generation
        or before.metadata.uid != after.metadata.uid
    )
