"""Comparing what a command printed, line by line.

A line with a placeholder has another width, and so may have the columns above and below it: then
runs of blanks count as one.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from itertools import zip_longest
from typing import Any, Final

from fairlead.conformance.api.agreement import Agreement
from fairlead.conformance.api.placeholder import Bindings, has_placeholder
from fairlead.conformance.comparison import ABSENT, Difference

_BLANKS: Final = re.compile(r" {2,}|\t+ *")


def difference(recorded: str, found: str, bindings: Bindings, called: str) -> Difference | None:
    """The first line that differs; `called` is which output it is.

    One object as JSON is compared as what it is.
    """
    objects = _object(recorded), _object(found)
    if objects[0] is not None and objects[1] is not None:
        return Agreement(bindings).difference(*objects, called)
    if has_placeholder(recorded):
        recorded, found = _BLANKS.sub(" ", recorded), _BLANKS.sub(" ", found)
    pairs = zip_longest(recorded.splitlines(), found.splitlines(), fillvalue=ABSENT)
    for number, (expected, shown) in enumerate(pairs, 1):
        if not bindings.matches(expected.rstrip(), shown.rstrip()):
            return Difference(f"{called} line {number}", expected, shown)
    return None


def _object(text: str) -> dict[str, Any] | None:
    with suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict):
            return found
    return None
