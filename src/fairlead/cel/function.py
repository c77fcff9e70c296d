"""Function: what a function of the language takes, gives and does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

Value = dict[str, Any]

TEXT: Final = "string"
WHOLE: Final = "int"
REAL: Final = "double"
TRUTH: Final = "bool"
ANY: Final = "dyn"
LIST: Final = "list"
VALUE: Final = "value"
MAP: Final = "map"


@dataclass(frozen=True, slots=True)
class Function:
    """One overload; `does` raises ValueError where there is no answer."""

    name: str
    result: str
    taken: tuple[str, ...]
    does: Callable[..., Any]
    is_member: bool = False


def free(name: str, result: str, taken: tuple[str, ...], does: Callable[..., Any]) -> Function:
    """`name(taken…)`."""
    return Function(name, result, taken, does)


def member(name: str, result: str, taken: tuple[str, ...], does: Callable[..., Any]) -> Function:
    """`taken[0].name(taken[1:]…)`."""
    return Function(name, result, taken, does, is_member=True)


def is_readable(read: Callable[[str], object]) -> Callable[[str], bool]:
    """Whether `read` makes something of a text."""

    def answer(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return answer


def of(value: Value, key: str, sort: str) -> Any:
    """What a value of this sort holds. Raises ValueError for another sort."""
    if key not in value:
        raise ValueError(f"no such overload: not {sort}")
    return value[key]
