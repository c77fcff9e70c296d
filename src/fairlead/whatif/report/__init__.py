"""The self-contained HTML report of a simulation or a what-if: one file, no network.

`write_report(path, data)` is the entrance; `ReportData` says what `data` holds.

Law: the page shows what it is given and decides nothing; names in it come from cluster dumps and
are treated as hostile text, in Python and in the page's own script.
"""

from __future__ import annotations

from fairlead.whatif.report.data import (
    Eviction,
    Moved,
    Node,
    PdbBreach,
    PendingPod,
    Pod,
    Preemption,
    PriorityName,
    ReportData,
    Resource,
    Series,
    Summary,
    Timeline,
)
from fairlead.whatif.report.write import render_report, write_report

__all__ = [
    "Eviction",
    "Moved",
    "Node",
    "PdbBreach",
    "PendingPod",
    "Pod",
    "Preemption",
    "PriorityName",
    "ReportData",
    "Resource",
    "Series",
    "Summary",
    "Timeline",
    "render_report",
    "write_report",
]
