"""Reason: why a search keeps nodes, in upstream's words."""

from __future__ import annotations

from msgspec import Struct

from fairlead.engine.autoscaling.karpenter.disruption.candidate import DisruptionCandidate


class SchedulingErrors(Struct, frozen=True):
    """The reason to keep `candidates`: not all their pods would be scheduled.

    `first` is upstream's text with only the error at which the simulation stopped.
    `Simulator.text_of` simulates again to find the other errors.
    """

    candidates: tuple[DisruptionCandidate, ...]
    first: str


Reason = str | SchedulingErrors
