"""Functions that create the parameters of command-line options, and the groups of options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from cyclopts import Group, Parameter, Token

Names = tuple[str, ...]

# The groups in the order in which the help prints them. Options of a command that are in none of
# these groups come first, in the group Parameters.
CHANGE: Final = Group("Change", sort_key=0)
FAILURE: Final = Group("Failing nodes", sort_key=1)
COMPARISON: Final = Group("Several answers", sort_key=2)
SIMULATION: Final = Group("Simulation", sort_key=3)
AUTOSCALING: Final = Group("Autoscaling", sort_key=4)
SHADOW: Final = Group(
    "Shadow",
    help=(
        "Compare Fairlead's decisions with the decisions of the cluster's own schedulers, and "
        "write nothing to the cluster. The other options of this group need --shadow."
    ),
    sort_key=5,
)
CLUSTER: Final = Group("Cluster", sort_key=6)
SCHEDULER: Final = Group("Scheduler", sort_key=7)
KUBERNETES: Final = Group("Kubernetes version", sort_key=8)
# `options.controller` has two such groups, whose texts differ.
CONTROLLERS_SORT_KEY: Final = 9
OUTPUT: Final = Group("Output", sort_key=10)
# For a single option of another group than the other options beside it.
IN_AUTOSCALING: Final = Parameter(group=AUTOSCALING)
IN_SCHEDULER: Final = Parameter(group=SCHEDULER)

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

    The help of the option is `text` and the sentence "Can be repeated". In the help, the value of
    the option is called `metavar`. If `show` is False, the help does not list the option.
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
