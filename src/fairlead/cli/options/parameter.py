"""Functions that create the parameters of command-line options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from cyclopts import Parameter, Token

Names = tuple[str, ...]

# Enough digits for any seed. Parsing a number of thousands of digits would take long.
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_PERCENTAGE: Final = re.compile(r"[+-]?[0-9]{1,40}%")


def integer(_: type, tokens: Sequence[Token]) -> int:
    """Return the integer in `tokens`. Raises ValueError for texts such as 1.5 and 1_0."""
    text = tokens[0].value
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text!r} is not an integer")
    return int(text)


def number_or_percentage(_: type, tokens: Sequence[Token]) -> int | str:
    """Return an integer in `tokens` as a number, or a percentage as a text such as "5%".

    Raises ValueError for other texts.
    """
    text = tokens[0].value
    if _INTEGER.fullmatch(text):
        return int(text)
    if not _PERCENTAGE.fullmatch(text):
        raise ValueError(f"{text!r} is neither an integer nor a percentage such as 5%")
    return text


def repeatable(metavar: str, text: str, *, show: bool = True) -> Parameter:
    """Return a parameter for an option that can be repeated.

    The option's help is `text`, followed by "Can be repeated." `metavar` is the name of the
    option's value in the help. If `show` is False, the help does not list the option.
    """
    return Parameter(
        help=f"{text.rstrip()} Can be repeated.",
        metavar=metavar,
        negative=(),
        show_choices=False,
        show_default=False,
        show=show,
    )


def named(metavar: str, text: str) -> Parameter:
    """Return a parameter for an option with the help text `text`.

    `metavar` is the name of the option's value in the help.
    """
    return Parameter(help=text, metavar=metavar, show_default=False)
