"""Turns what a report says about queues into the compact value that the page embeds."""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.whatif.report.data import QueueData
from fairlead.whatif.report.outage_pack import thinned
from fairlead.whatif.report.table_pack import figures

QUEUES_MAX = 7  # more lines than there are colours cannot be told apart


def packed_queues(queues: QueueData | None) -> Json | None:
    """`queues` with no more samples than a screen can show; None stays None."""
    if queues is None:
        return None
    lines = queues["lines"][:QUEUES_MAX]
    counts = {f"held {n}": line["held"] for n, line in enumerate(lines)}
    counts |= {f"deserved {n}": line["deserved"] for n, line in enumerate(lines)}
    kept = thinned({"t_s": queues["t_s"], "counts": counts})
    return {
        "resource": queues["resource"],
        "left_out": len(queues["lines"]) - len(lines),
        "t_s": kept["t_s"],
        "lines": [
            {
                "queue": line["queue"],
                "weight": line["weight"],
                "held": kept["counts"][f"held {n}"],
                "deserved": kept["counts"][f"deserved {n}"],
            }
            for n, line in enumerate(lines)
        ],
        "gangs": figures(queues.get("gangs")),
    }
