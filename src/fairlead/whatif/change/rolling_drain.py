"""Validates the settings of a rolling drain."""

from __future__ import annotations

from typing import Final

from fairlead.engine.core.instant import DurationNs
from fairlead.engine.workloads.drain.rolling_drain import RollingDrainOptions
from fairlead.whatif.input.error import InputError, one_line

UNAVAILABLE_MAX: Final = 1_000_000
_SELECTION_MAX: Final = 200  # characters


def rolling_drain(
    source: str, unavailable: int, down: DurationNs, selection: str, *, field: str = ""
) -> RollingDrainOptions:
    """Return the settings of a rolling drain of at most `unavailable` nodes at a time.

    Each node is out of service for the duration `down`. `selection` is the text that selects the
    nodes. The settings contain it to tell drains apart: nodes with equal settings belong to the
    same drain. Raises InputError if `unavailable` is not allowed; the message names `source` (an
    option or file) and `field` (a field of that file).
    """
    require_pace(source, unavailable, field)
    return RollingDrainOptions(unavailable, down, one_line(selection, _SELECTION_MAX))


def require_pace(source: str, unavailable: int | None, field: str = "") -> None:
    """Raise InputError if `unavailable` is neither None nor an allowed number of nodes."""
    if unavailable is not None and not 1 <= unavailable <= UNAVAILABLE_MAX:
        raise InputError(source, f"{unavailable} is not from 1 to {UNAVAILABLE_MAX}", field=field)
