"""Combines template, style, script and data into the one file of a report.

The page's Content-Security-Policy allows exactly the inline scripts and the inline style, by hash,
and no network request. Data is embedded as JSON with every "<" and ">" escaped. So no name in the
data can end the script element. The script inserts names only as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template
from typing import Final

from fairlead.api.json import Json
from fairlead.whatif.report.data import ReportData
from fairlead.whatif.report.page_data import packed
from fairlead.whatif.report.script import (
    COMPARISON_MODULES,
    DASHBOARD_MODULES,
    MODULES,
    joined_modules,
)

STYLES = ("vendor/uPlot.min.css", "base.css", "verdict.css", "summary.css", "timeline.css",
          "nodes.css", "tables.css", "outage.css", "autoscaling.css", "queues.css")  # fmt: skip


COMPARISON_STYLES = (*STYLES, "comparison.css")
LIVE_STYLES = (*STYLES, "live.css")
_STATIC_STYLE: Final = """
main { max-width: 1100px; margin: 0 auto; padding: 28px 20px 60px; }
.lead { font-size: 17px; margin: 10px 0 6px; max-width: 80ch; }
.facts { color: var(--ink-2); }
section { margin-top: 34px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; background: var(--card); }
th, td { padding: 7px 10px; border-bottom: 1px solid var(--line); text-align: left; }
th { color: var(--ink-2); font-weight: 600; font-size: 12px; }
td.number, th.number { text-align: right; white-space: nowrap; }
@media print {
  main { margin: 0; padding: 0; }
  section { overflow: visible; }
  table { font-size: 11px; }
  th, td { padding: 5px 4px; overflow-wrap: anywhere; }
  th, th.number { font-size: 11px; white-space: normal; overflow-wrap: normal; }
}
"""


def render_report(data: ReportData) -> str:
    """Return the report's HTML; equal data leads to equal text."""
    return _page(page_title(data), packed(data), STYLES, MODULES)


def encode_report(data: ReportData) -> bytes:
    """Return the report as the content of a file.

    The report shows the command-line arguments. Bytes of the arguments that are not UTF-8 become
    "?".
    """
    return render_report(data).encode("utf-8", "replace")


def render_comparison(comparison: Json, reports: Sequence[ReportData]) -> str:
    """Return the HTML of a comparison; `reports` are the reports of its alternatives, in order.

    `comparison` is the result of `comparison_data`.
    """
    title = page_title({"kind": "whatif", "title": "Comparison"})
    page = {**comparison, "reports": [packed(one) for one in reports]}
    return _page(title, page, COMPARISON_STYLES, COMPARISON_MODULES)


def _page(title: str, data: Json, styles: tuple[str, ...], modules: tuple[str, ...]) -> str:
    style, chart, script = page_style(styles), chart_library(), joined_modules(asset, modules)
    return Template(asset("template.html")).substitute(
        policy=content_security_policy(style, (chart, script)),
        title=title,
        style=style,
        chart_library=chart,
        script=script,
        data=embedded_json(data),
    )


def render_dashboard(title: str, *, has_controls: bool) -> str:
    """Return the HTML of a dashboard, which gets its data from the server that serves it.

    If `has_controls` is set, users can control the clock and change nodes.
    """
    style, chart = page_style(LIVE_STYLES), chart_library()
    script = joined_modules(asset, DASHBOARD_MODULES)
    policy = content_security_policy(style, (chart, script))
    return Template(asset("template.html")).substitute(
        policy=f"{policy}; connect-src 'self'",
        title=page_title({"kind": "live", "title": title}),
        style=style,
        chart_library=chart,
        script=script,
        data=embedded_json({"title": title, "has_controls": has_controls}),
    )


def render_static_page(title: str, style: str, body: Iterable[str]) -> str:
    """Return a page with the title `title`, without script, in the colours of the other reports.

    `body` is the HTML below the title. `style` is the CSS of this page. In the page, `style` comes
    after the CSS that all static pages share.
    """
    style = f"{asset('base.css')}{_STATIC_STYLE}{style}"
    policy = html.escape(content_security_policy(style, ()))
    shown = html.escape(title)
    return "\n".join(
        (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="generator" content="fairlead">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<link rel="icon" href="data:,">',
            f"<title>{shown} – Fairlead</title>\n<style>{style}</style>\n</head>\n<body>\n<main>",
            f"<h1>{shown}</h1>",
            *body,
            "</main>\n</body>\n</html>\n",
        )
    )


def asset(name: str) -> str:
    """Return the text of a file under `static/`."""
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def page_style(styles: tuple[str, ...] = STYLES) -> str:
    """Return the text of the files `styles` in this order; later files override earlier ones."""
    return "\n".join(asset(name) for name in styles)


def chart_library() -> str:
    """Return uPlot with its licence, which every copy must include."""
    return f"/*\n{asset('vendor/LICENSE.uPlot')}\n*/\n{asset('vendor/uPlot.iife.min.js')}"


def page_title(data: ReportData) -> str:
    """Return the document title as HTML text; unpaired surrogates become "?"."""
    encodable = str(data["title"]).encode("utf-8", "replace").decode("utf-8")
    return html.escape(f"{encodable} – Fairlead")


def embedded_json(page: Json) -> str:
    """Return `page` as JSON that is safe inside a script element: ASCII without "<" or ">"."""
    text = json.dumps(page, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def content_security_policy(style: str, scripts: tuple[str, ...]) -> str:
    """Return a Content-Security-Policy that allows only `style`, `scripts` and `data:` images."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(source_hash(script) for script in scripts)}",
            f"style-src {source_hash(style)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def source_hash(text: str) -> str:
    """Return the hash by which a CSP allows an inline script or style with this text."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
