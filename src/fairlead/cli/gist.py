"""The gist of a FailedScheduling message: what stands in the way, without how often."""

from __future__ import annotations

import re
from typing import Final

NOT_TRIED: Final = "not tried yet"

_AVAILABLE: Final = re.compile(r"0/[0-9]+ nodes are available: ")
_COUNT: Final = re.compile(r"[0-9]+ ")
_NEVER: Final = "preemptionPolicy=Never"


def gist(message: str) -> str:
    """`0/9 nodes are available: 2 A, 7 B. preemption: …` becomes `A, B`, equal for equal causes.

    Whether the pod may preempt at all is kept; other messages stay as they are.
    """
    if not message:
        return NOT_TRIED
    found = _AVAILABLE.match(message)
    if found is None:
        return message
    reasons, _, rest = message[found.end() :].partition(". ")
    causes = {_COUNT.sub("", each, count=1) for each in reasons.removesuffix(".").split(", ")}
    gisted = ", ".join(sorted(causes))
    return f"{gisted}; may not preempt" if _NEVER in rest else gisted
