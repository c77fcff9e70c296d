"""CEL selectors of devices.

upstream: dynamic-resource-allocation/cel/compile.go:CompileCELExpression,
pkg/apis/resource/validation/validation.go:validateCELSelector
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.validation.meta.field import Causes, forbidden, invalid, required
from fairlead.apiserver.validation.meta.format import too_long, too_many
from fairlead.cel.cost.expression_estimate import estimated_cost
from fairlead.cel.device import device_size, read_selector
from fairlead.cel.error import ExpressionError

LENGTH_MAX: Final = 10 * 1024
SELECTORS_MAX: Final = 32
EXPRESSIONS_CACHED_MAX: Final = 1_024
COST_MAX: Final = 1_000_000


def check_selectors(field: str, selectors: list[Json]) -> Causes:
    """The device selectors of a request or class."""
    for index, selector in enumerate(selectors):
        where = f"{field}[{index}].cel"
        if selector.get("cel") is None:
            yield required(where)
            continue
        yield from _check_expression(f"{where}.expression", selector["cel"].get("expression", ""))
    if len(selectors) > SELECTORS_MAX:
        yield too_many(field, len(selectors), SELECTORS_MAX)


def _check_expression(field: str, expression: str) -> Causes:
    if len(expression.encode()) > LENGTH_MAX:
        yield too_long(field, LENGTH_MAX)
        return
    problem, cost = _judged(expression)
    if problem:
        yield invalid(field, expression, problem)
    elif cost > COST_MAX:
        yield forbidden(field, "too complex, exceeds cost limit")


@lru_cache(maxsize=EXPRESSIONS_CACHED_MAX)
def _judged(expression: str) -> tuple[str, int]:
    """Why an expression does not compile, or its estimated cost."""
    try:
        asked = read_selector(expression)
    except ExpressionError as cause:
        return cause.whole, 0
    if asked.type_.name not in ("bool", "any"):
        return f"must evaluate to bool or the unknown type, not {asked.type_.full_name}", 0
    return "", estimated_cost(asked, device_size).high
