"""`fairlead bench`: runs upstream's benchmark workloads by name, and simulated outages."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from fairlead.api.json import Json

TITLE: Final = "Upstream's workloads, engine only; the thresholds include an API server and etcd"
WIDTH: Final = 120
NEAREST_CUTOFF: Final = 0.4  # part of a name is enough, such as the part before the slash


def bench(
    *workloads: str,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Run kube-scheduler's own benchmark workloads (scheduler_perf) on Fairlead's scheduler alone.

    The table shows upstream's thresholds for comparison. They include an API server and etcd;
    Fairlead's figures do not. The Outage workloads simulate a day in which one of three zones is
    down for an hour, with API objects, controllers and kubelets, and count the evicted pods. The
    WhatIf workloads ask `fairlead whatif` about a generated dump, parsing included. The
    ClusterAutoscaler and Karpenter workloads measure single decisions, and a day of an elastic
    cluster.

    Try:

        fairlead bench

        fairlead bench SchedulingBasic/5000Nodes_10000Pods -o json

        fairlead bench Outage/5000Nodes_24h

    Parameters
    ----------
    workloads
        Workloads to run (default: all).
    output
        text or json.
    """
    from fairlead.bench.suite import NAMES, WorkloadFailedError, measure_apart

    chosen = list(workloads) or list(NAMES)
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        hint = _known(unknown[0], NAMES)
        print(f"fairlead: no workload {unknown[0]!r}; {hint}", file=sys.stderr)
        return 2
    console, results, failed = Console(stderr=True), [], False
    for number, name in enumerate(chosen, 1):
        with console.status(f"{number}/{len(chosen)} {name}"):
            try:
                results.append(measure_apart(name))
            except WorkloadFailedError as problem:
                print(f"fairlead: {name}: {problem}", file=sys.stderr)
                failed = True
    if output == "json":
        print(json.dumps(results, indent=2))
    else:
        Console(width=None if sys.stdout.isatty() else WIDTH).print(_table(results))
    return 1 if failed else 0


def _known(given: str, names: Sequence[str]) -> str:
    """Return a text with all `names`, and the one nearest to `given` as a suggestion."""
    nearest = difflib.get_close_matches(given, names, n=1, cutoff=NEAREST_CUTOFF)
    hint = f"did you mean {nearest[0]}? " if nearest else ""
    return f"{hint}known: {', '.join(names)}"


def _table(results: Sequence[Json]) -> Table:
    table = Table(title=TITLE)
    table.add_column("workload", overflow="fold")
    headings = ("pods/s", "seconds", "CPU s", "peak MiB", "upstream", "times", "virtual s/s")
    for heading in headings:
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(*_cells(result))
    return table


def _cells(result: Json) -> list[str]:
    threshold = result["upstream_threshold"]
    rate, pace = result["pods_per_second"], result["virtual_seconds_per_second"]
    return [
        result["workload"],
        f"{rate:,.0f}",
        f"{result['seconds']:.2f}",
        f"{result['cpu_seconds']:.2f}" if result["cpu_seconds"] else "-",
        f"{result['peak_mib']:,.0f}",
        f"{threshold:,.0f}" if threshold else "-",
        f"{rate / threshold:.0f}x" if threshold else "-",
        f"{pace:,.0f}" if pace else "-",
    ]
