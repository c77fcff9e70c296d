"""The report of a sweep, without JavaScript: the verdict, histograms of measures, and all cases."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Final

from fairlead.api.json import Json
from fairlead.api.text.count import counted
from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.report.write import render_static_page
from fairlead.whatif.result.table import cell_text
from fairlead.whatif.sweep.measure import BY_NAME, Number

CASES_MAX: Final = 2_000
_WIDTH, _HEIGHT, _BINS = 320, 44, 32
_STYLE: Final = """
h2 { margin-bottom: 10px; }
tr.worst td { background: var(--accent-soft); }
svg { display: block; min-width: 200px; border-bottom: 1px solid var(--control); }
svg rect { fill: var(--fill); }
svg line { stroke: var(--over); stroke-width: 1.5; }
svg line.median { stroke: var(--ink-2); stroke-dasharray: 3 3; }
a { color: var(--accent); }
table + .note { margin-top: 8px; }
/* In a narrow window, the name, the histogram and the worst case have lines of their own. */
@media (max-width: 760px) {
  .measures, .measures :is(thead, tbody) { display: block; }
  .measures tr { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); }
  .measures tr > * { padding-inline: 6px; border: 0; }
  .measures tbody tr { border-top: 1px solid var(--line); }
  .measures td:first-child { font-weight: 600; }
  .measures td:is(:nth-child(1), :nth-child(6), :nth-child(7)) { grid-column: 1 / -1; }
  .measures th:is(:nth-child(1), :nth-child(6), :nth-child(7)) { display: none; }
  .measures td:empty { display: none; }
  .measures td:nth-child(7)::before { content: "most with "; color: var(--ink-2); }
  .measures svg { width: 100%; max-width: 320px; }
}
"""


def render_sweep(answer: Json, worst_report: str) -> str:
    """Return the page for a sweep's answer; `worst_report` is the file of the worst case's report.

    `answer` is the JSON of a SweepResult (docs/sweep.md).
    """
    cases, worst = answer["cases"], answer["worst"]["case"]
    words = f"the worst case ({worst})" if _differing(cases) else f"case {worst}"
    link = f'<a href="{html.escape(worst_report)}">report of {words}</a>'
    parameters = "; ".join(
        f"{name}: {counted(len(values), 'value')}" for name, values in answer["parameters"].items()
    )
    return render_static_page(
        f"Sweep of {answer['source']}",
        _STYLE,
        (
            f'<p class="lead">{html.escape(answer["verdict"])}</p>',
            *(f"<p>{html.escape(one)}</p>" for one in answer.get("findings", ())),
            f'<p class="facts">{html.escape(parameters)} · {link}</p>',
            *(f'<p class="note">Note: {html.escape(one)}</p>' for one in answer.get("notes", ())),
            "<section><h2>Distribution over the cases</h2>",
            _distributions(answer["measures"], cases),
            "</section>\n<section><h2>Cases</h2>",
            _cases(cases, list(answer["parameters"]), worst, worst_report),
            "</section>",
        ),
    )


def _distributions(measures: Sequence[Json], cases: Sequence[Json]) -> str:
    rows = []
    for one in measures:
        name = one["measure"]
        values = [row[name] for row in cases if row[name] is not None]
        numbers = [_amount(name, one[key]) for key in ("least", "median", "p95", "most")]
        cells = [f"<td>{html.escape(one['meaning'].removesuffix(' (s)'))}</td>"]
        cells += [f'<td class="number">{html.escape(number)}</td>' for number in numbers]
        cells.append(f"<td>{_histogram(one, values, len(cases))}</td>")
        cells.append(f"<td>{html.escape(one['worst'])}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = (
        '<tr><th>measure</th><th class="number">least</th><th class="number">median</th>'
        '<th class="number">95%</th><th class="number">most</th>'
        "<th>cases by value (dashed: median; line: 95%)</th><th>case with the most</th></tr>"
    )
    return f'<table class="measures">\n{_table_parts(head, rows)}\n</table>'


def _histogram(one: Json, values: Sequence[Number], cases: int) -> str:
    """Return a histogram of the measure `one` as HTML.

    `values` has one value for each case that has the measure. `cases` is the number of all cases.
    The histogram has `_BINS` bars of equal width.
    """
    least, most = one["least"], one["most"]
    if least == most:
        some = "all cases" if len(values) == cases else f"{len(values):,} of {cases:,} cases"
        return f"the same in {some}"
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, int((value - least) / (most - least) * _BINS))] += 1
    tallest, step = max(counts), _WIDTH / _BINS
    bars = (
        f'<rect x="{at * step + 1:.1f}" y="{_HEIGHT - count / tallest * _HEIGHT:.1f}" '
        f'width="{step - 2:.1f}" height="{max(1.0, count / tallest * _HEIGHT):.1f}"></rect>'
        for at, count in enumerate(counts)
        if count
    )
    marks = "".join(
        f'<line class="{key}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_HEIGHT}"></line>'
        for key in ("median", "p95")
        for x in [(one[key] - least) / (most - least) * _WIDTH]
    )
    label = html.escape(f"{len(values)} cases from {least} to {most}, median {one['median']}")
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}">{"".join(bars)}{marks}</svg>'
    )


def _cases(cases: Sequence[Json], parameters: Sequence[str], worst: int, worst_report: str) -> str:
    """Return the table of the cases, with the measures whose values differ between cases.

    The text output shows the same measures. A measure that only some cases have is included, too,
    even if its value is 0 in all of them.
    """
    differing = _differing(cases)
    head = "".join(
        (
            '<th class="number">case</th>',
            *(f"<th>{html.escape(name)}</th>" for name in parameters),
            *(f'<th class="number">{html.escape(BY_NAME[n].heading)}</th>' for n in differing),
        )
    )
    rows = [_case(one, parameters, differing, worst, worst_report) for one in cases[:CASES_MAX]]
    more = len(cases) - CASES_MAX
    rest = f"<p>and {more:,} more in cases.csv</p>" if more > 0 else ""
    if len(cases) > 1 and not differing:
        rest = f'<p class="note">All measures have the same values in all cases.</p>{rest}'
    return f"<table>\n{_table_parts(f'<tr>{head}</tr>', rows)}\n</table>{rest}"


def _differing(cases: Sequence[Json]) -> list[str]:
    """Return the names of the measures whose values differ between cases."""
    return [name for name in BY_NAME if len({row[name] for row in cases}) > 1]


def _table_parts(head: str, rows: Iterable[str]) -> str:
    """Return the rows of a table as HTML; a browser prints `head` on each page of the table."""
    return "\n".join(("<thead>", head, "</thead>", "<tbody>", *rows, "</tbody>"))


def _case(
    one: Json, parameters: Iterable[str], differing: Sequence[str], worst: int, worst_report: str
) -> str:
    number = str(one["case"])
    if one["case"] == worst:
        number = f'<a href="{html.escape(worst_report)}">{number}</a>'
    cells = [f'<td class="number">{number}</td>']
    cells += [f"<td>{html.escape(one[name])}</td>" for name in parameters]
    cells += [f'<td class="number">{html.escape(_amount(n, one[n]))}</td>' for n in differing]
    kind = ' class="worst"' if one["case"] == worst and differing else ""
    return f"<tr{kind}>{''.join(cells)}</tr>"


def _amount(measure: str, value: Number | None) -> str:
    if value is not None and BY_NAME[measure].is_duration:
        return for_readers(seconds(value))
    return cell_text(value)
