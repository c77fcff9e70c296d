"""The functions that every expression knows, by topic: each module's `FUNCTIONS`."""

from __future__ import annotations

from typing import Final

from fairlead.cel.library import ip, lists, quantity, regex, semver, standard, strings, url
from fairlead.cel.library.function import Function

FUNCTIONS: Final[tuple[Function, ...]] = (
    *standard.FUNCTIONS,
    *strings.FUNCTIONS,
    *lists.FUNCTIONS,
    *regex.FUNCTIONS,
    *quantity.FUNCTIONS,
    *semver.FUNCTIONS,
    *ip.FUNCTIONS,
    *url.FUNCTIONS,
)
