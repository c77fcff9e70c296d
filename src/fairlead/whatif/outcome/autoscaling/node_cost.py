"""The sentence about the cost of the autoscaled nodes, printed below the verdict of an answer."""

from __future__ import annotations

from fairlead.engine.core.float_sum import float_sum
from fairlead.whatif.outcome.autoscaling.node_group import (
    HOURS_PER_MONTH,
    AutoscalingOutcome,
)


def node_cost_sentence(
    changed: AutoscalingOutcome, without: AutoscalingOutcome | None, *, is_changed: bool
) -> str:
    """Return the monthly cost of the autoscaler's nodes at the end; "" if the cost is unknown.

    `changed` and `without` are the outcomes of the runs with and without the change. The sentence
    compares both runs. If both runs are the same, because nothing was to be changed (`is_changed`
    is False), the sentence compares the end with the dump instead.
    """
    if changed.cost_per_month is None or not changed.groups:
        return ""
    month = changed.cost_per_month
    estimated = "an estimated " if changed.is_cost_estimated else ""
    start = f"The autoscaled nodes cost {estimated}{month:,.0f} per month at the end"
    other, place = (
        (None if without is None else without.cost_per_month, "without the change")
        if is_changed
        else (_cost_in_dump(changed), "in the dump")
    )
    if other is None:
        return f"{start}."
    # The difference of the amounts that a reader sees, in this answer and in the totals.
    more = round(month) - round(other)
    if not more:
        return f"{start}, as {place}."
    return f"{start}, {abs(more):,} {'more' if more > 0 else 'less'} than {place}."


def _cost_in_dump(outcome: AutoscalingOutcome) -> float | None:
    """Return the monthly cost of the nodes at the start; None if a price is unknown."""
    moves = (*outcome.earlier, *outcome.transitions)
    prices = [(one.price, 1 if one.came else -1) for one in moves]
    if outcome.cost_per_hour is None or any(price is None for price, _ in prices):
        return None
    later = float_sum((price or 0.0) * sign for price, sign in prices)
    return (outcome.cost_per_hour - later) * HOURS_PER_MONTH
