"""Next steps against the breach of a budget: more replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.text.name_list import listed
from fairlead.whatif.next_steps.more_replicas import replicas_step, with_replicas
from fairlead.whatif.next_steps.step_context import StepContext
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.budget import BudgetOutcome, BudgetResult
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect

# A step suggests at most 2 new replicas for each present replica, and at most this number in all.
# For a workload with more than 20 replicas, the maximum is half of the present number instead.
_FEW: Final = 10


def add_replicas(context: StepContext) -> Iterator[NextStep]:
    """Yield a what-if with more replicas, which may prevent the breach of a budget.

    The what-if is about the first breached budget for which more replicas can help. If nodes fail,
    a note names the breached budgets for which no number of replicas helps.
    """
    effect = context.answer.effect
    hopeless: list[str] = []
    possible: list[tuple[BudgetOutcome, WorkloadEffect, int]] = []
    for budget in effect.budgets:
        covered = [one for one in effect.workloads if budget.pdb in dict(one.budgets)]
        if budget.state is BudgetResult.BREACHED and covered:
            count = _lacking_replicas(budget, covered[0].readiness.wanted, effect)
            if count is None:
                hopeless.append(f"{budget.pdb} ({budget.rule})")
            elif count <= _growth_max(covered[0]) and context.can_scale(covered[0]):
                possible.append((budget, covered[0], count))
    if hopeless and effect.changed.outage is not None:
        budgets = "the budget allows" if len(hopeless) == 1 else "these budgets allow"
        context.notes.append(
            "More replicas, spread evenly over the nodes, would not prevent the breach of "
            f"{listed(hopeless)}: more of them would fail than {budgets}."
        )
    for budget, one, count in possible[:1]:  # trying a step takes another run
        yield from _unbreached(budget, one, count, context)


def _growth_max(one: WorkloadEffect) -> int:
    """Return the maximum number of replicas that a suggestion may add to the workload `one`."""
    wanted = one.readiness.wanted
    return max(min(2 * wanted, _FEW), wanted // 2)


def _lacking_replicas(budget: BudgetOutcome, wanted: int, effect: Effect) -> int | None:
    """Return how many more replicas prevent the breach of `budget`; None if no number can.

    `wanted` is the present number of replicas. If the rule of `budget` is a number, the new
    replicas are assumed to be lost in the same proportion as the present replicas. If the rule is a
    percentage, the new replicas are assumed to be lost in the proportion in which nodes fail.

        half of 8 replicas fail, minAvailable 6        4, because half of 12 is 6
        half of 8 replicas fail, maxUnavailable 2      None, because at least 4 fail
        half of the nodes fail, minAvailable 75%       None
        2 of 4 replicas and a tenth of the nodes fail, minAvailable 70%
                                                       4, because 2.4 of 8 fail, which is 30%
    """
    outage = effect.changed.outage
    kind, _, amount = budget.rule.partition(" ")
    if budget.is_min_number:
        missing = max(1, budget.needed - budget.lowest_healthy)
        if outage is None or not budget.lowest_healthy:
            return missing
        return max(missing, -(-budget.needed * wanted // budget.lowest_healthy) - wanted)
    if not amount.endswith("%"):
        return None
    percent = int(amount.removesuffix("%"))
    allowed = 100 - percent if kind == "minAvailable" else percent
    nodes, failed = len(effect.without.nodes), 0 if outage is None else len(outage.nodes)
    gain = allowed * nodes - 100 * failed  # of each new replica
    if gain <= 0:
        return None
    lost = wanted - budget.lowest_healthy
    return max(1, -(-(100 * lost - allowed * wanted) * nodes // gain))


def _unbreached(
    budget: BudgetOutcome, one: WorkloadEffect, count: int, context: StepContext
) -> Iterator[NextStep]:
    """Yield a what-if with `count` more replicas of the workload `one`, if it helps.

    The replicas help if they avoid the breach of `budget` and do not increase the number of pending
    pods.
    """
    tried = with_replicas(one, count, context)
    if tried is None or len(tried.difference.pending) > len(context.answer.difference.pending):
        return
    if not any(each.pdb == budget.pdb and each.breaches for each in tried.budgets):
        yield replicas_step(one, count, context)
