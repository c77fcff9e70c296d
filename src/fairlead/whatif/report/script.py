"""Joins the page's JavaScript modules into the one script of the report.

Modules inside a page cannot import each other. So they are concatenated in the order of `MODULES`,
without `import` lines and `export` keywords. Each module imports only from earlier modules. Each
name is declared by only one module.
"""

from __future__ import annotations

import re
from collections.abc import Callable

MODULES = (
    "format.js",
    "dom.js",
    "data.js",
    "palette.js",
    "theme.js",
    "print.js",
    "address.js",
    "time.js",
    "story.js",
    "summary.js",
    "timeline_series.js",
    "timeline_chart.js",
    "timeline_readout.js",
    "timeline.js",
    "node_layout.js",
    "node_state.js",
    "node_detail.js",
    "node_canvas.js",
    "nodes.js",
    "table.js",
    "tabs.js",
    "verdict.js",
    "steps_chart.js",
    "outage_charts.js",
    "outage.js",
    "changes.js",
    "autoscaling.js",
    "queues.js",
    "pending.js",
    "report.js",
    "main.js",
)

IMPORT = re.compile(r"^import \{[^}]*\} from \"\./(?P<module>\w+\.js)\";\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function |const |class )", re.MULTILINE)


# The script of a page with several answers side by side, each with its report.
COMPARISON_MODULES = (*(name for name in MODULES if name != "main.js"), "comparison.js")

_REPORT_ONLY = ("verdict.js", "autoscaling.js", "queues.js", "report.js", "main.js")
LIVE_MODULES = ("live_server.js", "live_controls.js", "live_status.js", "dashboard.js")
DASHBOARD_MODULES = (*(name for name in MODULES if name not in _REPORT_ONLY), *LIVE_MODULES)


def joined_modules(asset: Callable[[str], str], modules: tuple[str, ...] = MODULES) -> str:
    """Return `modules` as one script; `asset` returns the text of a file under `static/`."""
    return "\n".join(f"// {name}\n{inlined(asset(name))}" for name in modules)


def inlined(module: str) -> str:
    """Return `module`, the text of a module, without import lines and export keywords."""
    return EXPORT.sub("", IMPORT.sub("", module))
