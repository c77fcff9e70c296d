"""Rounds the amounts that a queue deserves, for texts and results."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.whatif.outcome.run_outcome import unit_of


def deserved_amounts(deserved: Mapping[str, float]) -> dict[str, float]:
    """Return the amounts in `deserved`, rounded as they are shown to users.

    CPU (in millicores) and sizes (in bytes) are rounded to integers, and counts to thousandths. For
    example, a queue with two fifths of the weight deserves 9.6 of 24 GPUs.
    """
    return {name: _rounded(amount, 0 if unit_of(name) else 3) for name, amount in deserved.items()}


def _rounded(amount: float, digits: int) -> float:
    rounded = round(amount, digits)
    return int(rounded) if rounded == int(rounded) else rounded
