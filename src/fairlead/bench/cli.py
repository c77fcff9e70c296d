"""`fairlead bench [WORKLOAD…]`: each workload in a process of its own, so that peaks are its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from fairlead.bench.measure import IncompleteRunError, measure
from fairlead.bench.workloads import WORKLOADS

Json = dict[str, Any]


def run(workloads: Sequence[str], output: Literal["text", "json"]) -> int:
    """Measure the named workloads (all if none are named) and print them.

    0 when all ran, 1 when one failed, 2 for an unknown name.
    """
    chosen = list(workloads) or list(WORKLOADS)
    unknown = [name for name in chosen if name not in WORKLOADS]
    if unknown:
        known = ", ".join(WORKLOADS)
        print(f"fairlead bench: no workload {unknown[0]!r}; known: {known}", file=sys.stderr)
        return 2
    console = Console(stderr=True)
    results: list[Json] = []
    failed = False
    for name in chosen:
        with console.status(f"measuring {name}"):
            result = _in_own_process(name)
        if isinstance(result, str):
            print(f"fairlead bench: {name}: {result}", file=sys.stderr)
            failed = True
        else:
            results.append(result)
    _show(results, output)
    return 1 if failed else 0


def _in_own_process(name: str) -> Json | str:
    """The measurement, or why there is none."""
    command = [sys.executable, "-m", "fairlead.bench.cli", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().rpartition("\n")[2] or f"exit status {done.returncode}"
    found: Json = json.loads(done.stdout)
    return found


def _show(results: list[Json], output: Literal["text", "json"]) -> None:
    if output == "json":
        print(json.dumps(results, indent=2))
        return
    table = Table(title="Engine only: no API server, no store; upstream's thresholds include both")
    table.add_column("workload", no_wrap=True)
    for heading in ("pods/s", "seconds", "peak MiB", "upstream threshold", "times"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(*_cells(result))
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _cells(result: Json) -> list[str]:
    threshold = result["upstream_threshold"]
    rate = result["pods_per_second"]
    return [
        result["workload"],
        f"{rate:,.0f}",
        f"{result['seconds']:.2f}",
        f"{result['peak_mib']:,.0f}",
        f"{threshold:,.0f}" if threshold else "-",
        f"{rate / threshold:.0f}x" if threshold else "-",
    ]


def _measure_here(name: str) -> int:
    try:
        print(json.dumps(asdict(measure(WORKLOADS[name]))))
    except IncompleteRunError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_measure_here(sys.argv[1]))
