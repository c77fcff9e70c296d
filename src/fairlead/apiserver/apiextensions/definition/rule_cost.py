"""Limits the estimated cost of a definition's CEL rules.

One limit applies to each rule, another to the total of all rules in a schema. The cost of a rule is
multiplied by the number of values on which it is evaluated.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/{validation,cel_validation}.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.meta.field import forbidden
from fairlead.cel.cost.estimate import ENDLESS
from fairlead.cel.cost.runtime_cost import CostBudget, OutOfBudgetError

RULE_COST_MAX: Final = 10_000_000
TOTAL_COST_MAX: Final = 100_000_000
CHARACTERS_MAX: Final = 200_000
_CHARACTERS_EACH: Final = 150
_REPORTED_MAX: Final = 4
_EXPENSIVE: Final = TOTAL_COST_MAX // 100
_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)"
)
_TOTAL: Final = "estimated rule & messageExpression cost total"


class ExpressionLengthBudget:
    """Limits the total length of a definition's expressions, because analyzing them takes time."""

    __slots__ = ("_budget",)

    def __init__(self) -> None:
        self._budget = CostBudget(CHARACTERS_MAX)

    def spend(self, field: str, expression: str) -> Iterator[Cause]:
        """Add the length of `expression` and a fixed overhead to the total length.

        Yield an error if the total length exceeds the limit. Upstream has no such limit.
        """
        try:
            self._budget.spend(len(expression) + _CHARACTERS_EACH)
        except OutOfBudgetError:
            yield forbidden(field, f"all rules may have {CHARACTERS_MAX} characters altogether")


class RuleCostTotal:
    """The total estimated cost of a schema's rules, and the most expensive of these rules."""

    __slots__ = ("_most_expensive", "_total", "length_budget")

    def __init__(self, length_budget: ExpressionLengthBudget | None = None) -> None:
        """`length_budget` is shared by all schemas of a definition. None creates a new budget."""
        self.length_budget = length_budget or ExpressionLengthBudget()
        self._total = 0
        self._most_expensive: list[tuple[int, str]] = []

    def charge(self, field: str, name: str, cost: int) -> Iterator[Cause]:
        """Add `cost`, the cost of the expression at `field`, to the total.

        Yield an error if `cost` alone exceeds the limit for one rule. `name` is the term for the
        expression in the error text: `rule` or `messageExpression`.
        """
        if cost > RULE_COST_MAX:
            yield forbidden(
                field, _over_budget_message(f"estimated {name} cost", cost, RULE_COST_MAX)
            )
        self._total = min(self._total + cost, ENDLESS)
        if cost >= _EXPENSIVE:
            self._most_expensive.append((cost, field))
            self._most_expensive = sorted(self._most_expensive, key=lambda row: -row[0])[
                :_REPORTED_MAX
            ]

    def total_causes(self, field: str) -> Iterator[Cause]:
        """Yield errors if the total cost of the schema at `field` exceeds the limit."""
        if self._total <= TOTAL_COST_MAX:
            return
        for _, expensive in self._most_expensive:
            message = f"contributed to {_TOTAL} exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden(expensive, message)
        name = f"x-kubernetes-validations {_TOTAL} for entire OpenAPIv3 schema"
        yield forbidden(field, _over_budget_message(name, self._total, TOTAL_COST_MAX))


def multiplied_cost(cost: int, count: int) -> int:
    """Return `cost` times `count`, but at most ENDLESS."""
    return min(cost * count, ENDLESS)


def inner_cardinality(raw: Json, cardinality: int | None) -> int | None:
    """Return the maximum number of values that a child schema of `raw` validates in one object.

    `cardinality` is the maximum number of values that `raw` itself validates. None means unbounded.
    """
    if cardinality is None:
        return None
    match raw.get("type"):
        case "object" if raw.get("additionalProperties") is not None:
            size_max = raw.get("maxProperties")
        case "array":
            size_max = raw.get("maxItems")
        case _:
            size_max = 1
    return None if size_max is None else multiplied_cost(cardinality, max(size_max, 0))


def _over_budget_message(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        factor_text = "more than 100x"
    elif factor < 1.5:
        factor_text = f"{factor:f}x"
    else:
        factor_text = f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {factor_text} {_ADVICE}"
