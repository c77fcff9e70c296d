"""The self-contained HTML report of a simulation or a what-if: one file, no network access.

`render_report(data)` returns the page, and `encode_report(data)` returns the content of its file.
`ReportData` describes `data`.

The page only displays data. Names come from cluster dumps and are treated as hostile text, in
Python and in the page's script.
"""

from __future__ import annotations

from fairlead.whatif.report.data import ReportData
from fairlead.whatif.report.write import encode_report, render_report

__all__ = ["ReportData", "encode_report", "render_report"]
