"""CostBudget: limits the work that one request may cause.

Some checks have a cost that is a product of several sizes in a request, each of which is within its
own limit: a schema with thousands of alternatives on each of thousands of items, a long pattern on
a long text. Such a check spends from a budget and stops when it is used up. What a unit is depends
on the budget.

upstream: none; there is one for CEL only, apiserver/pkg/apis/cel/config.go:RuntimeCELCostBudget
"""

from __future__ import annotations


class CostBudgetExceededError(Exception):
    """The budget is used up."""


class CostBudget:
    """A number of units that can be spent."""

    __slots__ = ("_left",)

    def __init__(self, units: int) -> None:
        """`units` is the limit."""
        self._left = units

    def spend(self, units: int) -> bool:
        """Spends units. Whether they were within the budget."""
        self._left -= units
        return self._left >= 0

    def charge(self, units: int) -> None:
        """Spends units. Raises CostBudgetExceededError unless they are within the budget."""
        if not self.spend(units):
            raise CostBudgetExceededError
