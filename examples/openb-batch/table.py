"""Compare results of `fairlead simulate -o json`: what gangs got out of each, and the shares."""

from __future__ import annotations

import json
import sys
from pathlib import Path

RESOURCE = "openb/gpu-milli"
MILLI = 1000


def row(path: Path) -> list[str]:
    """One line of the table."""
    result = json.loads(path.read_text())
    gangs = result["gangs"]
    whole = next(one for one in result["allocation"] if one["resource"] == RESOURCE)
    shares = {
        queue["queue"]: queue["allocated"].get(RESOURCE, 0) / whole["allocatable"]
        for queue in result["queues"]
    }
    return [
        path.stem.removeprefix("openb-batch-"),
        f"{gangs['finished']:,} of {gangs['gangs']:,}",
        f"{gangs['broken']:,}",
        f"{gangs['lost_hours'].get(RESOURCE, 0) / MILLI:,.0f}",
        f"{gangs['incomplete_hours'].get(RESOURCE, 0) / MILLI:,.0f}",
        " : ".join(f"{100 * share:.0f}%" for share in shares.values()) or "no queues",
    ]


def main() -> None:
    """Print a table of the files named on the command line."""
    heads = [
        "policy",
        "jobs finished",
        "gangs broken",
        "GPU hours lost to preemption",
        "GPU hours held by incomplete gangs",
        "shares at the end",
    ]
    rows = [heads, *(row(Path(name)) for name in sys.argv[1:])]
    widths = [max(len(line[at]) for line in rows) for at in range(len(heads))]
    for line in rows:
        cells = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


if __name__ == "__main__":
    main()
