"""`fairlead bench`: upstream's benchmark workloads by name, and simulated days with an outage."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter


def bench(
    *workloads: str,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Run kube-scheduler's own benchmark workloads (scheduler_perf) on the engine alone.

    Upstream's thresholds stand beside the figures; they include an API server and etcd, which
    Fairlead's do not. The Outage workloads simulate a day in which one of three zones is dark for
    an hour, from the store to the kubelets, and count the pods that are evicted.

    Try:

        fairlead bench

        fairlead bench SchedulingBasic/5000Nodes_10000Pods -o json

        fairlead bench Outage/5000Nodes_24h

    Parameters
    ----------
    workloads
        Names of workloads; all when none is given.
    output
        text or json.
    """
    from fairlead.cli.benching import run_benchmarks

    return run_benchmarks(workloads, output)
