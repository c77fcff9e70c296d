"""Measurement: the result of one run of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

KIB_PER_MIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of one run; `peak_mib` is the process's peak resident set size.

    `pods_per_second` counts bound pods, evicted pods for Outage workloads, and the pods of the
    cluster for WhatIf and autoscaling workloads. `seconds` and `cpu_seconds` are wall-clock and CPU
    time of the measured part. `growth_mib` is how much of the peak came with the measured pods,
    only for workloads that build a cluster before. Only workloads that simulate a day have
    `virtual_seconds_per_second`, simulated seconds per wall-clock second.
    """

    workload: str
    pods_per_second: float
    seconds: float
    peak_mib: float
    upstream_threshold: float | None
    virtual_seconds_per_second: float | None = None
    cpu_seconds: float | None = None
    growth_mib: float | None = None


class IncompleteRunError(RuntimeError):
    """A run ended without the work that it was to measure, such as binding every measured pod."""
