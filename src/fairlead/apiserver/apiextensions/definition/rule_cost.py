"""What the rules of a definition may cost, and when that is too much.

Each may cost so much, for as many values as a request may hold of its type, and all of them
together. What bounds the cost are bounds on lists, maps and texts.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/{validation,cel_validation}.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.meta.field import forbidden
from fairlead.cel.cost.estimate import ENDLESS

RULE_COST_MAX: Final = 10_000_000
TOTAL_COST_MAX: Final = 100_000_000
CHARACTERS_MAX: Final = 200_000
_CHARACTERS_EACH: Final = 150
_NAMED_MAX: Final = 4
_MUCH: Final = TOTAL_COST_MAX // 100
_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)"
)
_TOTAL: Final = "estimated rule & messageExpression cost total"


class Reading:
    """How much of the expressions of a definition has been read: that takes time as well."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        """Nothing has been read."""
        self._left = CHARACTERS_MAX

    def take(self, field: str, expression: str) -> Iterator[Cause]:
        """Read one more, if it is not too much; upstream has no such bound."""
        self._left -= len(expression) + _CHARACTERS_EACH
        if self._left < 0:
            yield forbidden(field, f"all rules may have {CHARACTERS_MAX} characters altogether")


class Bill:
    """What all rules of a schema cost so far; they are read together with those of others."""

    __slots__ = ("_most", "_total", "reading")

    def __init__(self, reading: Reading | None = None) -> None:
        """Nothing has been charged."""
        self.reading = reading or Reading()
        self._total = 0
        self._most: list[tuple[int, str]] = []

    def charge(self, field: str, name: str, cost: int) -> Iterator[Cause]:
        """Add the cost of the expression at `field`, which may be too much by itself."""
        if cost > RULE_COST_MAX:
            yield forbidden(field, _beyond(f"estimated {name} cost", cost, RULE_COST_MAX))
        self._total = min(self._total + cost, ENDLESS)
        if cost >= _MUCH:
            self._most.append((cost, field))
            self._most = sorted(self._most, key=lambda row: -row[0])[:_NAMED_MAX]

    def too_much(self, field: str) -> Iterator[Cause]:
        """What is wrong with the whole, which stands at `field`."""
        if self._total <= TOTAL_COST_MAX:
            return
        for _, expensive in self._most:
            why = f"contributed to {_TOTAL} exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden(expensive, why)
        name = f"x-kubernetes-validations {_TOTAL} for entire OpenAPIv3 schema"
        yield forbidden(field, _beyond(name, self._total, TOTAL_COST_MAX))


def repeated(cost: int, times: int) -> int:
    """The cost of an expression that is asked so often."""
    return min(cost * times, ENDLESS)


def inner_cardinality(raw: Json, cardinality: int | None) -> int | None:
    """How many values there may be below one of `cardinality`; None where nothing bounds them."""
    if cardinality is None:
        return None
    match raw.get("type"):
        case "object" if raw.get("additionalProperties") is not None:
            most = raw.get("maxProperties")
        case "array":
            most = raw.get("maxItems")
        case _:
            most = 1
    return None if most is None else repeated(cardinality, max(most, 0))


def _beyond(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    elif factor < 1.5:
        shown = f"{factor:f}x"
    else:
        shown = f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {shown} {_ADVICE}"
