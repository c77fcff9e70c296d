"""Comparing what a command printed, line by line.

A line with a placeholder has another width, and so may have the columns above and below it: then
runs of blanks count as one.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Final

from fairlead.conformance.api.placeholder import Bindings, has_placeholder
from fairlead.conformance.comparison import ABSENT, Difference

_BLANKS: Final = re.compile(r" {2,}|\t+ *")


def difference(recorded: str, found: str, bindings: Bindings, called: str) -> Difference | None:
    """The first line that differs; `called` is which output it is."""
    if has_placeholder(recorded):
        recorded, found = _BLANKS.sub(" ", recorded), _BLANKS.sub(" ", found)
    pairs = zip_longest(recorded.splitlines(), found.splitlines(), fillvalue=ABSENT)
    for number, (expected, shown) in enumerate(pairs, 1):
        if not bindings.matches(expected.rstrip(), shown.rstrip()):
            return Difference(f"{called} line {number}", expected, shown)
    return None
