"""Measuring benchmark workloads and showing the figures beside upstream's."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.table import Table

from fairlead.api.json import Json
from fairlead.bench.suite import NAMES, WorkloadFailedError, measure_apart

TITLE = "Upstream's workloads: engine only, no API server, no store; its thresholds include both"
WIDTH = 120
NEAREST_CUTOFF = 0.4  # half of a name, such as the part before the slash, is near enough


def run_benchmarks(workloads: Sequence[str], output: Literal["text", "json"]) -> int:
    """Measure the named workloads (all if none are named) and print them.

    0 when all ran, 1 when one failed, 2 for an unknown name.
    """
    chosen = list(workloads) or list(NAMES)
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        print(f"fairlead: no workload {unknown[0]!r}; {_known(unknown[0])}", file=sys.stderr)
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


def _known(given: str) -> str:
    """All names, the nearest first."""
    nearest = difflib.get_close_matches(given, NAMES, n=1, cutoff=NEAREST_CUTOFF)
    hint = f"did you mean {nearest[0]}? " if nearest else ""
    return f"{hint}known: {', '.join(NAMES)}"


def _table(results: Sequence[Json]) -> Table:
    table = Table(title=TITLE)
    table.add_column("workload", overflow="fold")
    for heading in ("pods/s", "seconds", "peak MiB", "upstream", "times", "virtual s/s"):
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
        f"{result['peak_mib']:,.0f}",
        f"{threshold:,.0f}" if threshold else "-",
        f"{rate / threshold:.0f}x" if threshold else "-",
        f"{pace:,.0f}" if pace else "-",
    ]
