"""Building blocks for the options of all commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from cyclopts import Parameter, Token

Names = tuple[str, ...]

# 40 digits are enough for any seed; reading thousands of them takes long.
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")

FAIL_ON: Final = """\
Exit with status 3 if a displaced pod matches CONDITION, such as priority>=1000, namespace=store,
name=web-* or labels.app=web. The condition loop holds if pods are displaced repeatedly.
"""


def integer(_: type, tokens: Sequence[Token]) -> int:
    """Convert the value of an integer option; rejects 1.5 instead of rounding it, and 1_0."""
    text = tokens[0].value
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text!r} is not an integer")
    return int(text)


def repeatable(metavar: str, text: str, *, show: bool = True) -> Parameter:
    """Return an option that can be given several times."""
    return Parameter(help=text, metavar=metavar, negative=(), show_default=False, show=show)


def named(metavar: str, text: str) -> Parameter:
    """Return an option whose value is a name or a file."""
    return Parameter(help=text, metavar=metavar, show_default=False)
