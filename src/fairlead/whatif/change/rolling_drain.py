"""Validates the settings of a rolling drain.

The number of nodes to drain at a time can be a percentage of the nodes to drain. The number is
rounded down, but is at least 1, like maxUnavailable of a Deployment.

upstream: pkg/controller/deployment/util/deployment_util.go: ResolveFenceposts
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.text.integer import parse_int64
from fairlead.engine.core.instant import DurationNs
from fairlead.engine.workloads.drain.rolling_drain import RollingDrainOptions
from fairlead.engine.workloads.int_or_percent import scaled
from fairlead.whatif.input.error import InputError, one_line

UNAVAILABLE_MAX: Final = 1_000_000
_PERCENTAGE: Final = re.compile(r"([0-9]{1,40})%")
_SELECTION_MAX: Final = 200  # characters


def rolling_drain(
    source: str,
    unavailable: int | str,
    total: int,
    down: DurationNs,
    selection: str,
    *,
    field: str = "",
) -> RollingDrainOptions:
    """Return the settings of a rolling drain of `total` nodes, at most `unavailable` at a time.

    `unavailable` is a number or a percentage (`nodes_at_once`). Each node is out of service for the
    duration `down`. `selection` is the text that selects the nodes. Nodes with equal settings
    belong to the same drain, so this text is one of the settings. Raises InputError if
    `unavailable` is not allowed. The message names `source` (an option or file) and `field` (a
    field of that file).
    """
    require_pace(source, unavailable, field)
    at_once = nodes_at_once(unavailable, total)
    return RollingDrainOptions(at_once, down, one_line(selection, _SELECTION_MAX))


def nodes_at_once(unavailable: int | str, total: int) -> int:
    """Return `unavailable`; if it is a percentage, return this part of `total`, but at least 1.

    The part is rounded down. `unavailable` is a value that `require_pace` allows.
    """
    if isinstance(unavailable, int):
        return unavailable
    return max(scaled(unavailable, total, is_rounded_up=False), 1)


def require_pace(source: str, unavailable: int | str | None, field: str = "") -> None:
    """Raise InputError if `unavailable` is set, but is not an allowed number or percentage.

    The numbers from 1 to UNAVAILABLE_MAX and the percentages from "1%" to "100%" are allowed. None
    means that `unavailable` is not set.
    """
    match unavailable:
        case None:
            return
        case int():
            is_allowed, allowed = 1 <= unavailable <= UNAVAILABLE_MAX, f"1 to {UNAVAILABLE_MAX}"
        case str():
            percentage = _PERCENTAGE.fullmatch(unavailable)
            if percentage is None:
                problem = f"{unavailable!r} is neither an integer nor a percentage such as 5%"
                if parse_int64(unavailable) is not None:  # from a script; options are converted
                    problem = f"{unavailable!r} is text, not an integer"
                raise InputError(source, problem, field=field)
            is_allowed, allowed = 1 <= int(percentage[1]) <= 100, "1% to 100%"
    if not is_allowed:
        raise InputError(source, f"{unavailable} is not from {allowed}", field=field)
