"""`fairlead bench`: upstream's benchmark workloads by name, engine only."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter


def bench(
    *workloads: str,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Run kube-scheduler's own benchmark workloads (scheduler_perf) on the engine alone.

    Upstream's thresholds stand beside the figures; they include an API server and etcd, which
    Fairlead's do not.

    Try:

        fairlead bench

        fairlead bench SchedulingBasic/5000Nodes_10000Pods -o json

    Parameters
    ----------
    workloads
        Names of workloads; all when none is given.
    output
        text or json.
    """
    from fairlead.cli.benching import run_benchmarks

    return run_benchmarks(workloads, output)
