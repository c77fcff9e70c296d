"""Measurement: the result of one run of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB_PER_MIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of one run; `peak_mib` is the process's peak resident set size.

    `pods_per_second` counts bound pods, or evicted pods for Outage workloads. Only these have
    `virtual_seconds_per_second`, simulated seconds per wall-clock second.
    """

    workload: str
    pods_per_second: float
    seconds: float
    peak_mib: float
    upstream_threshold: float | None
    virtual_seconds_per_second: float | None = None


class IncompleteRunError(RuntimeError):
    """A run ended before every measured pod of the workload was bound."""
