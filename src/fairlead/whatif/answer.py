"""Answer: both runs of a what-if, and what differs."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.whatif.change import Change
from fairlead.whatif.difference import Difference
from fairlead.whatif.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`source` is the snapshot as the user named it."""

    source: str
    change: Change
    seed: int
    without: Outcome
    changed: Outcome
    difference: Difference
