"""How many nodes a rolling drain takes at a time, and for how long, checked."""

from __future__ import annotations

from typing import Final

from fairlead.engine.core.instant import DurationNs
from fairlead.engine.workloads.drain.rolling_drain import Turns
from fairlead.whatif.input_error import InputError, one_line

AT_ONCE_MAX: Final = 1_000_000
_WHICH_MAX: Final = 200  # characters


def turns_of(source: str, at_once: int, away: DurationNs, which: str, *, field: str = "") -> Turns:
    """The turns of nodes that `which` names. Raises InputError in the name of `source`."""
    if not 1 <= at_once <= AT_ONCE_MAX:
        raise InputError(source, f"{at_once} is not from 1 to {AT_ONCE_MAX}", field=field)
    return Turns(at_once, away, one_line(which, _WHICH_MAX))
