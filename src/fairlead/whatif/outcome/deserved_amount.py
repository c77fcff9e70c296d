"""Rounds the amounts that a queue deserves, for texts and results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.whatif.outcome.run_outcome import unit_of

if TYPE_CHECKING:
    from fairlead.engine.batch.queue_usage import QueueUsage


def deserved_amounts(deserved: Mapping[str, float]) -> dict[str, float]:
    """Return the amounts in `deserved`, rounded as they are shown to users.

    CPU (in millicores) and sizes (in bytes) are rounded to integers, and counts to thousandths. For
    example, a queue with two fifths of the weight deserves 9.6 of 24 GPUs.
    """
    return {name: _rounded(name, amount) for name, amount in deserved.items()}


def borrowed_amounts(usage: QueueUsage) -> dict[str, float]:
    """Return the amounts by which a queue exceeds what it deserves, rounded as shown to users.

    The result contains only resources of which the queue holds more than it deserves.
    """
    return {
        name: _rounded(name, usage.allocated[name] - deserved)
        for name, deserved in deserved_amounts(usage.deserved).items()
        if usage.allocated[name] > deserved
    }


def _rounded(name: str, amount: float) -> float:
    rounded = round(amount, 0 if unit_of(name) else 3)
    return int(rounded) if rounded == int(rounded) else rounded
