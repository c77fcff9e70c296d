"""Measurement: the result of one run of a benchmark."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

KIB_PER_MIB: Final = 1024


class Measurement(Struct, frozen=True):
    """The result of one run of a benchmark.

    `pods_per_second` counts evicted pods for Outage workloads. It counts all pods of the cluster
    for WhatIf and autoscaling workloads, and bound pods for all other workloads.
    `upstream_threshold` is the rate in pods/s that upstream requires or, for Batch workloads, that
    kube-batch reaches; None if there is no such rate. `seconds` and `cpu_seconds` are wall-clock
    and CPU time of the measured part. `peak_mib` is the peak resident set size of the process.
    `virtual_seconds_per_second` is the ratio of simulated to real time, for workloads that simulate
    a day.

    `growth_mib` is the part of `peak_mib` that the measured pods added. `first_cycle_ms` is the CPU
    time of the first scheduling cycle or batch session. `p99_cycle_ms` is the 99th percentile of
    the CPU times of all later measured cycles or sessions. These three fields are None for Outage,
    WhatIf and autoscaling workloads.
    """

    workload: str
    pods_per_second: float
    seconds: float
    peak_mib: float
    upstream_threshold: float | None
    virtual_seconds_per_second: float | None = None
    cpu_seconds: float | None = None
    growth_mib: float | None = None
    first_cycle_ms: float | None = None
    p99_cycle_ms: float | None = None


class IncompleteRunError(RuntimeError):
    """Raised if a run did not do the work to be measured, such as binding every measured pod."""
