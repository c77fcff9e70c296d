"""Errors of expressions and of their evaluation, in cel-go's words.

upstream: cel-go's common/{error,errors}.go, common/types/err.go, cel/program.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

PROBLEMS_MAX: Final = 100
# upstream: cel-go's cel/program.go, interpreter/runtimecost.go
CALL_LIMIT: Final = "operation cancelled: actual cost limit exceeded"
NO_OVERLOAD: Final = "no such overload"


class ExpressionError(ValueError):
    """Raised if an expression does not compile; the message is the compiler's output.

    `stage` is the name of the step that failed.
    """

    stage = "compilation"

    @property
    def whole(self) -> str:
        """The name of the step that failed, and the compiler's output."""
        return f"{self.stage} failed: {self}"


class ConstantError(ExpressionError):
    """Raised if an expression has a constant that cannot be converted, such as `int('x')`."""

    stage = "program instantiation"


class CelError(Exception):
    """An error value of the language; `&&`, `||`, `all` and `exists` may absorb it."""

    def __init__(self, message: str) -> None:
        """Store `message`, which the API server prints."""
        super().__init__(message)
        self.message = message


class CostLimitError(Exception):
    """An evaluation exceeded the cost limit; no operator of the language absorbs this error."""


def no_overload() -> CelError:
    """Return the error for calling a function or operator with unsupported types."""
    return CelError(NO_OVERLOAD)


def no_such_key(key: Any) -> CelError:
    """Return the error for reading a key that is not in the map."""
    is_word = key is None or isinstance(key, bool)
    shown = {True: "true", False: "false", None: "null"}.get(key) if is_word else key
    return CelError(f"no such key: {shown}")


def shown_problems(expression: str, problems: Sequence[tuple[int, str]]) -> str:
    """Return `problems`, each (position in characters, text), as the compiler prints them."""
    shown = [_shown(expression, place, text) for place, text in problems[:PROBLEMS_MAX]]
    if len(problems) > PROBLEMS_MAX:
        shown.append(f"{len(problems) - PROBLEMS_MAX} more errors were truncated")
    return "\n".join(shown)


def _shown(expression: str, place: int, text: str) -> str:
    """Return three lines: the message `text`, the line of `expression` with the error, and a mark.

    The mark is below the character with the index `place` in `expression`. Dots fill the line
    before the mark. Below a character of more than one byte, the dot or the mark is a full-width
    character.
    """
    before = expression[:place].split("\n")
    column, line = len(before[-1]), expression.split("\n")[len(before) - 1].replace("\t", " ")
    wide = [len(one.encode()) > 1 for one in line[: column + 1]]
    dots = "".join("\uff0e" if one else "." for one in wide[:column])
    mark = "\uff3e" if wide[column:] == [True] else "^"
    return f"ERROR: <input>:{len(before)}:{column + 1}: {text}\n | {line}\n | {dots}{mark}"
