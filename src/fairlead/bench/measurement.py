"""Measurement: the result of one run of a benchmark."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

KIB_PER_MIB: Final = 1024


class Measurement(Struct, frozen=True):
    """The result of one run of a benchmark.

    The fields `growth_mib`, `first_cycle_ms` and `p99_cycle_ms` are None for Outage, WhatIf and
    autoscaling workloads.
    """

    workload: str
    # Counts evicted pods for Outage workloads, all pods of the cluster for WhatIf and autoscaling
    # workloads, and bound pods for all other workloads.
    pods_per_second: float
    seconds: float  # wall-clock time of the measured part
    peak_mib: float  # the peak resident set size of the process
    # The rate in pods/s that upstream requires or, for Batch workloads, that kube-batch reaches;
    # None if there is no such rate.
    upstream_threshold: float | None
    # The ratio of simulated to real time, for workloads that simulate a day.
    virtual_seconds_per_second: float | None = None
    cpu_seconds: float | None = None  # CPU time of the measured part
    growth_mib: float | None = None  # the part of `peak_mib` that the measured pods added
    # The CPU time of the first scheduling cycle or batch session.
    first_cycle_ms: float | None = None
    # The 99th percentile of the CPU times of all later measured cycles or sessions.
    p99_cycle_ms: float | None = None


class IncompleteRunError(RuntimeError):
    """Raised if a run did not do the work to be measured, such as binding every measured pod."""
