"""The functions that every expression can call; each module lists its functions in `FUNCTIONS`."""

from __future__ import annotations

from typing import Final

from fairlead.cel.function import Function
from fairlead.cel.library import ip, lists, quantity, regex, semver, standard, strings, url

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
