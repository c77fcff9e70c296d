"""Measurement: the result of one run of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB_PER_MIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run; `peak_mib` is the process's peak resident size.

    `pods_per_second` counts bound pods, or evicted ones for outages. Only outages have
    `virtual_seconds_per_second`, simulated time per wall time.
    """

    workload: str
    pods_per_second: float
    seconds: float
    peak_mib: float
    upstream_threshold: float | None
    virtual_seconds_per_second: float | None = None


class IncompleteRunError(RuntimeError):
    """A run ended before every measured pod of the workload was bound."""
