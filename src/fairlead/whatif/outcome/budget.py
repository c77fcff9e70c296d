"""BudgetOutcome: whether a budget was kept, delayed or blocked evictions, or was breached."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from fairlead.whatif.outcome.run_outcome import BudgetHistory, PdbBreach, RunOutcome


class BudgetResult(StrEnum):
    """The worst that happened to a budget."""

    HELD = "held"
    DELAYED = "delayed"
    BLOCKS = "blocks"
    BREACHED = "breached"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetOutcome:
    """The effect of a change on one budget.

    The counts are of covered pods: `displaced` were preempted or evicted, `delayed` were evicted
    after a refusal, `blocked` could not be evicted at all, `breaches` were displaced in violation
    of the budget.
    """

    pdb: str
    rule: str
    allowed: int
    needed: int
    lowest_healthy: int
    displaced: int
    delayed: int
    blocked: int
    breaches: int

    @property
    def state(self) -> BudgetResult:
        """The worst state that applies."""
        if self.breaches:
            return BudgetResult.BREACHED
        if self.blocked:
            return BudgetResult.BLOCKS
        return BudgetResult.DELAYED if self.delayed else BudgetResult.HELD

    @property
    def words(self) -> str:
        """The state with its number of pods: `blocks 3 pods`."""
        match self.state:
            case BudgetResult.BREACHED:
                return f"breached by {_pods(self.breaches)}"
            case BudgetResult.BLOCKS:
                return f"blocks {_pods(self.blocked)}"
            case BudgetResult.DELAYED:
                return f"held, delayed {_pods(self.delayed)}"
            case _:
                return "held"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count:,} pods"


def budget_outcomes(
    without: RunOutcome, changed: RunOutcome, breaches: Collection[PdbBreach]
) -> list[BudgetOutcome]:
    """Return the budgets whose pods the change displaced or could not evict, worst first.

    `breaches` are the violations that only the change causes.
    """
    known = {history.pdb: history for history in without.budgets}
    undrained = {one.pod.key for one in changed.undrained}
    found = [
        _outcome(history, undrained, sum(one.pdb == history.pdb for one in breaches))
        for history in changed.budgets
        if history != known.get(history.pdb)
    ]
    worst = list(BudgetResult)
    return sorted(found, key=lambda one: (-worst.index(one.state), -one.breaches, one.pdb))


def _outcome(history: BudgetHistory, undrained: set[str], breaches: int) -> BudgetOutcome:
    refused, displaced = set(history.refused), set(history.displaced)
    return BudgetOutcome(
        pdb=history.pdb,
        rule=history.rule,
        allowed=history.allowed,
        needed=history.needed,
        lowest_healthy=history.lowest_healthy,
        displaced=len(displaced),
        delayed=len(refused & displaced),
        blocked=len(refused & undrained),
        breaches=breaches,
    )
