"""Shortens FailedScheduling messages to their reasons, without counts of nodes."""

from __future__ import annotations

import re
from typing import Final

NOT_TRIED: Final = "not tried yet"

_AVAILABLE: Final = re.compile(r"0/[0-9]+ nodes are available: ")
_COUNT: Final = re.compile(r"[0-9]+ ")
# Each reason begins with a count. The reason of 1.19 for a taint contains a comma.
_BETWEEN: Final = re.compile(r", (?=[0-9]+ )")
_NEVER: Final = "preemptionPolicy=Never"


def short_reason(message: str) -> str:
    """Return the reasons in a FailedScheduling message.

    Example: `0/9 nodes are available: 2 A, 7 B. preemption: …` becomes `A, B`. Equal causes give
    equal texts, even if the counts differ. "preemptionPolicy is Never" is added for pods with this
    policy. An empty message becomes "not tried yet"; other messages are returned unchanged.
    """
    if not message:
        return NOT_TRIED
    found = _AVAILABLE.match(message)
    if found is None:
        return message
    reasons, _, rest = message[found.end() :].partition(". ")
    each_reason = _BETWEEN.split(reasons.removesuffix("."))
    causes = {_COUNT.sub("", each, count=1) for each in each_reason}
    shortened = ", ".join(sorted(causes))
    return f"{shortened}; preemptionPolicy is Never" if _NEVER in rest else shortened
