"""`fairlead bench`: runs kube-scheduler's benchmark workloads, and Fairlead's own workloads."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from fairlead.api.json import Json
from fairlead.cli.options.parameter import OUTPUT
from fairlead.cli.output.console.fitted_table import FittedTable, TableColumn
from fairlead.cli.output.console.terminal import print_line, stderr_console, stdout_console
from fairlead.whatif.input.error import InputError

if TYPE_CHECKING:
    from rich.console import Console

TITLE: Final = "Upstream's workloads, engine only; the thresholds include an API server and etcd"
# {heading: rank}; on a narrow terminal, the columns with the highest ranks are left out.
_COLUMNS: Final = {
    "pods/s": 0, "seconds": 4, "CPU s": 5, "first ms": 6, "p99 ms": 3, "peak MiB": 7, "growth": 8,
    "upstream": 2, "times": 1, "virtual s/s": 1,
}  # fmt: skip
_OF_CYCLES: Final = ("first_cycle_ms", "p99_cycle_ms")
# Low, so that a part of a name, such as the part before the slash, gets a suggestion.
NEAREST_CUTOFF: Final = 0.4


def bench(
    *workloads: str,
    output: Annotated[
        Literal["text", "json"], Parameter(name=["--output", "-o"], group=OUTPUT)
    ] = "text",
    baseline: Annotated[Path | None, Parameter(name="--baseline")] = None,
) -> int:
    """Run kube-scheduler's own benchmark workloads (scheduler_perf) on Fairlead's scheduler.

    The command prints a table with one row for each workload. If upstream requires a minimum of
    pods per second for a workload, the row also shows this minimum as the threshold. Upstream's
    thresholds are for a scheduler with an API server and etcd; Fairlead's figures are for the
    scheduler alone.

    The other workloads do not come from upstream. Batch workloads run Fairlead's batch scheduler.
    Their threshold is the rate at which kube-batch itself placed pods, without an API server.
    Outage workloads simulate one day of a cluster with three zones, of which one is down for an
    hour. These workloads count the evicted pods. WhatIf workloads run `fairlead whatif` on a
    generated dump; the time to parse the dump is included. ClusterAutoscaler and Karpenter
    workloads measure a single decision, or simulate a day in which a cluster grows and shrinks.

    The column "first ms" shows the CPU time of the first scheduling cycle or batch session. The
    column "p99 ms" shows the 99th percentile of the CPU times of all later measured cycles or
    sessions.

    Try:

        fairlead bench
        fairlead bench SchedulingBasic/5000Nodes_10000Pods -o json
        fairlead bench Outage/5000Nodes_24h
        fairlead bench --baseline benchmarks/releases/0.3.0.json

    Parameters
    ----------
    workloads
        Names of the workloads to run. By default, the command runs all workloads except a few that
        take long, such as PreemptionFull/5000Nodes_150000Pods. If a name is unknown, the command
        prints the names of all workloads.
    output
        Format of the result.
    baseline
        The JSON output of an earlier run on the same machine. If a workload needs over 15% more CPU
        time or memory than in that run, the command prints the name of the workload and exits with
        status 1.
    """
    from fairlead.bench.baseline import regressions
    from fairlead.bench.suite import DEFAULT_NAMES, NAMES, WorkloadFailedError, measure_apart

    earlier = _read_baseline(baseline) if baseline is not None else {}
    chosen = list(workloads) or list(DEFAULT_NAMES)
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        hint = _known(unknown[0], NAMES)
        print(f"fairlead: no workload {unknown[0]!r}; {hint}", file=sys.stderr)
        return 2
    console, results, failed = stderr_console(), [], False
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
        print_results(stdout_console(), results)
    worse = regressions(results, earlier)
    for regression in worse:
        print(f"fairlead: {regression}", file=sys.stderr)
    return 1 if failed or worse else 0


def _read_baseline(path: Path) -> dict[str, Json]:
    """Return the results that `fairlead bench -o json` wrote to `path`; the keys are workloads.

    Raises InputError.
    """
    from fairlead.bench.baseline import is_result

    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as cause:
        raise InputError(str(path), cause.strerror or str(cause)) from None
    except ValueError as cause:
        raise InputError(str(path), f"not JSON: {cause}") from None
    if not isinstance(found, list) or not all(is_result(one) for one in found):
        raise InputError(str(path), "not the output of fairlead bench -o json")
    return {one["workload"]: one for one in found}


def _known(unknown: str, names: Sequence[str]) -> str:
    """Return a text that suggests the name closest to `unknown`, and lists all `names`."""
    nearest = difflib.get_close_matches(unknown, names, n=1, cutoff=NEAREST_CUTOFF)
    hint = f"did you mean {nearest[0]}? " if nearest else ""
    return f"{hint}known: {', '.join(names)}"


def print_results(console: Console, results: Sequence[Json]) -> None:
    """Print the table of the results; columns that do not fit, or are empty, are left out."""
    print_line(console, TITLE)
    columns = [TableColumn("workload", is_name=True)]
    columns += [TableColumn(one, rank=rank, is_number=True) for one, rank in _COLUMNS.items()]
    FittedTable(columns, [_cells(result) for result in results]).print(console)


def _cells(result: Json) -> list[str]:
    threshold = result["upstream_threshold"]
    rate, pace = result["pods_per_second"], result["virtual_seconds_per_second"]
    return [
        result["workload"],
        f"{rate:,.0f}",
        f"{result['seconds']:.2f}",
        f"{result['cpu_seconds']:.2f}" if result["cpu_seconds"] else "",
        *(f"{result[one]:,.1f}" if result[one] else "" for one in _OF_CYCLES),
        f"{result['peak_mib']:,.0f}",
        "" if result["growth_mib"] is None else f"{result['growth_mib']:,.0f}",
        f"{threshold:,.0f}" if threshold else "",
        f"{rate / threshold:.0f}x" if threshold else "",
        f"{pace:,.0f}" if pace else "",
    ]
