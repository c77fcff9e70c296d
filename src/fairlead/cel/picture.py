"""Problems of an expression as its compiler tells them, with a picture of each place.

upstream: cel-go's common/{error,errors}.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

PROBLEMS_MAX: Final = 100


def shown(expression: str, problems: Sequence[tuple[int, str]]) -> str:
    """Problems as the compiler tells them, with a picture of each place."""
    told = [_shown(expression, place, text) for place, text in problems[:PROBLEMS_MAX]]
    if len(problems) > PROBLEMS_MAX:
        told.append(f"{len(problems) - PROBLEMS_MAX} more errors were truncated")
    return "\n".join(told)


def _shown(expression: str, place: int, text: str) -> str:
    before = expression[:place].split("\n")
    column, line = len(before[-1]), expression.split("\n")[len(before) - 1].replace("\t", " ")
    wide = [len(one.encode()) > 1 for one in line[: column + 1]]
    dots = "".join("\uff0e" if one else "." for one in wide[:column])
    mark = "\uff3e" if wide[column:] == [True] else "^"
    return f"ERROR: <input>:{len(before)}:{column + 1}: {text}\n | {line}\n | {dots}{mark}"
