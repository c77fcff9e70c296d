"""Lists, and what regular expressions find in texts.

upstream: apiserver/pkg/cel/library/{lists,regex}.go
"""

from __future__ import annotations

from itertools import islice, pairwise
from typing import Any, Final

from fairlead.api.text.pattern import compiled_pattern
from fairlead.cel.function import ANY, LIST, TEXT, TRUTH, WHOLE, Function, member
from fairlead.cel.problem import pattern_problem


def _found(text: str, expression: str) -> str:
    """The first match, "" where there is none."""
    matched = _compiled(expression).search(text)
    return str(matched[0]) if matched else ""


def _all_found(text: str, expression: str, limit: int = -1) -> list[str]:
    """As many matches as `limit` says, all where it is negative."""
    matches = _compiled(expression).finditer(text)
    return [one[0] for one in islice(matches, limit if limit >= 0 else None)]


def _compiled(expression: str) -> Any:
    try:
        return compiled_pattern(expression)
    except ValueError as cause:
        raise ValueError(f"Illegal regex: {pattern_problem(str(cause))}") from None


def _is_sorted(items: list[Any]) -> bool:
    return all(one <= following for one, following in pairwise(items))


def _some(items: list[Any], name: str) -> list[Any]:
    if not items:
        raise ValueError(f"{name} called on empty list")
    return items


FUNCTIONS: Final[tuple[Function, ...]] = (
    member("find", TEXT, (TEXT, TEXT), _found),
    member("findAll", LIST, (TEXT, TEXT), _all_found),
    member("findAll", LIST, (TEXT, TEXT, WHOLE), _all_found),
    member("isSorted", TRUTH, (LIST,), _is_sorted),
    member("sum", ANY, (LIST,), sum),
    member("min", ANY, (LIST,), lambda items: min(_some(items, "min"))),
    member("max", ANY, (LIST,), lambda items: max(_some(items, "max"))),
)
