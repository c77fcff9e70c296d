"""Compares results of `fairlead simulate -o json`: the gangs and GPU hours under each policy."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RESOURCE = "openb/gpu-milli"
MILLI = 1000
QUEUE = "production"

Result = dict[str, Any]


def waits(result: Result, queue: str) -> Result:
    """Return the waiting times of the gangs of `queue`."""
    return next(one for one in result["gangs"]["waits"] if one["queue"] == queue)


def minutes(seconds: float | None) -> str:
    """Return a duration such as `7 min`; "never" for None, a gang that never started."""
    return "never" if seconds is None else f"{seconds / 60:.0f} min"


def row(policy: str, result: Result) -> list[str]:
    """Return the cells of the row of `policy`."""
    gangs = result["gangs"]
    waiting = waits(result, QUEUE)
    return [
        policy,
        f"{waiting['started']:,} of {waiting['gangs']:,}",
        minutes(waiting["median_s"]),
        minutes(waiting["p90_s"]),
        f"{gangs['finished']:,} of {gangs['gangs']:,}",
        f"{gangs['lost_hours'].get(RESOURCE, 0) / MILLI:,.0f}",
        f"{gangs['incomplete_hours'].get(RESOURCE, 0) / MILLI:,.0f}",
    ]


def conclusion(results: dict[str, Result]) -> str:
    """Return the best or worst policy for each purpose, as text."""

    def wait(policy: str) -> float:
        found = waits(results[policy], QUEUE)["median_s"]
        return float("inf") if found is None else float(found)

    def figure(policy: str, name: str) -> float:
        return float(results[policy]["gangs"][name].get(RESOURCE, 0)) / MILLI

    quickest = min(results, key=wait)
    idle = max(results, key=lambda policy: figure(policy, "incomplete_hours"))
    lost = max(results, key=lambda policy: figure(policy, "lost_hours"))
    finished = {policy: int(result["gangs"]["finished"]) for policy, result in results.items()}
    most = max(finished.values())
    best = " and ".join(policy for policy, count in finished.items() if count == most)
    start, waste = minutes(wait(quickest)), figure(idle, "incomplete_hours")
    return f"""\
{QUEUE} gets its share soonest under {quickest}: half of its gangs start within {start}.
That costs {figure(lost, "lost_hours"):,.0f} GPU hours of work that {lost} preempts, in whole gangs.
{idle} lets {waste:,.0f} GPU hours pass in gangs that wait for their other members.
Most gangs ({most:,}) finish under {best}, if nothing else counts."""


def main() -> None:
    """Print a table of the files that the command line names, and a conclusion."""
    heads = [
        "policy",
        f"{QUEUE} started",
        "waits (median)",
        "waits (90%)",
        "all finished",
        "GPU hours lost",
        "GPU hours held by incomplete gangs",
    ]
    paths = map(Path, sys.argv[1:])
    results = {
        path.stem.removeprefix("openb-batch-"): json.loads(path.read_text()) for path in paths
    }
    rows = [heads, *(row(policy, result) for policy, result in results.items())]
    widths = [max(len(line[at]) for line in rows) for at in range(len(heads))]
    for line in rows:
        cells = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
    sys.stdout.write(f"\n{conclusion(results)}\n")


if __name__ == "__main__":
    main()
