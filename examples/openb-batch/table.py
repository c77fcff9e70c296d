"""Compares results of `fairlead simulate -o json`: the gangs and GPU hours under each policy.

    table.py OUT.html RESULT.json ...

Prints a table, and writes it as a page with a link to the report of each policy. The report of
`NAME.json` is `NAME.html`.
"""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fairlead.whatif.report.write import render_static_page

RESOURCE = "openb/gpu-milli"
MILLI = 1000
QUEUE = "production"
PREFIX = "openb-batch-"
HEADS = [
    "policy",
    f"{QUEUE} started",
    "waits (median)",
    "waits (90%)",
    "all finished",
    "GPU hours lost",
    "GPU hours held by incomplete gangs",
]
STYLE = """
h2 { margin-bottom: 10px; }
a { color: var(--accent); }
td svg { display: block; width: 100%; min-width: 70px; height: 6px; margin-top: 3px; }
td svg rect { fill: var(--fill); }
td.number { vertical-align: top; }
"""

Result = dict[str, Any]
Cell = tuple[str, float | None]  # a text, and the value of its bar


def waits(result: Result, queue: str) -> Result:
    """Return the waiting times of the gangs of `queue`."""
    return next(one for one in result["gangs"]["waits"] if one["queue"] == queue)


def minutes(seconds: float | None) -> str:
    """Return a duration such as `7 min`; "never" for None, a gang that never started."""
    if seconds is None:
        return "never"
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def gpu_hours(result: Result, name: str) -> float:
    """Return an amount of GPU hours of all gangs, such as `lost_hours`."""
    return float(result["gangs"][name].get(RESOURCE, 0)) / MILLI


def started(result: Result, queue: str) -> list[Cell]:
    """Return how many gangs of `queue` started, and how long half and 90 % of them waited."""
    found = waits(result, queue)
    return [
        (f"{found['started']:,} of {found['gangs']:,}", found["started"] / found["gangs"]),
        (minutes(found["median_s"]), found["median_s"]),
        (minutes(found["p90_s"]), found["p90_s"]),
    ]


def row(result: Result) -> list[Cell]:
    """Return the cells of the row of a policy, without its name."""
    gangs = result["gangs"]
    hours = [gpu_hours(result, name) for name in ("lost_hours", "incomplete_hours")]
    return [
        *started(result, QUEUE),
        (f"{gangs['finished']:,} of {gangs['gangs']:,}", gangs["finished"] / gangs["gangs"]),
        *((f"{amount:,.0f}", amount) for amount in hours),
    ]


def conclusion(results: dict[str, Result]) -> list[str]:
    """Return the best or worst policy for each purpose, as sentences."""

    def wait(policy: str) -> float:
        found = waits(results[policy], QUEUE)["median_s"]
        return float("inf") if found is None else float(found)

    def most(figure: Callable[[Result], float]) -> str:
        return max(results, key=lambda policy: figure(results[policy]))

    quickest = min(results, key=wait)
    idle = most(lambda result: gpu_hours(result, "incomplete_hours"))
    lost = most(lambda result: gpu_hours(result, "lost_hours"))
    finished = {policy: int(result["gangs"]["finished"]) for policy, result in results.items()}
    highest = max(finished.values())
    best = " and ".join(policy for policy, count in finished.items() if count == highest)
    start, waste = minutes(wait(quickest)), gpu_hours(results[idle], "incomplete_hours")
    lost_hours = gpu_hours(results[lost], "lost_hours")
    return [
        f"{QUEUE} gets its share soonest under {quickest}: half of its gangs start within {start}.",
        f"That costs {lost_hours:,.0f} GPU hours of work that {lost} preempts, in whole gangs.",
        f"{idle} lets {waste:,.0f} GPU hours pass in gangs that wait for their other members.",
        f"Most gangs ({highest:,}) finish under {best}, if nothing else counts.",
    ]


def text_table(results: dict[str, Result]) -> str:
    """Return the table as text."""
    rows = [HEADS]
    rows += [[policy, *(text for text, _ in row(one))] for policy, one in results.items()]
    widths = [max(len(line[at]) for line in rows) for at in range(len(HEADS))]
    cells = ([text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in rows)
    return "".join("  ".join(line).rstrip() + "\n" for line in cells)


def page(results: dict[str, Result]) -> str:
    """Return the page: the conclusion, the table of all gangs, and a table of the queues."""
    first, *others = conclusion(results)
    queues = [one["queue"] for one in next(iter(results.values()))["gangs"]["waits"]]
    heads = ["queue", "policy", "gangs started", "waits (median)", "waits (90%)"]
    by_queue = [
        (f"<td>{html.escape(queue)}</td><td>{html.escape(policy)}</td>", started(result, queue))
        for queue in queues
        for policy, result in results.items()
    ]
    by_policy = [(f"<td>{link(policy)}</td>", row(result)) for policy, result in results.items()]
    return render_static_page(
        "Three queues of gangs under three policies",
        STYLE,
        (
            f'<p class="lead">{html.escape(first)}</p>',
            *(f'<p class="facts">{html.escape(one)}</p>' for one in others),
            "<section><h2>Policies</h2>",
            html_table(HEADS, by_policy),
            '<p class="note">The name of a policy opens its report.</p></section>',
            f"<section><h2>Queues</h2>{html_table(heads, by_queue)}",
            '<p class="note">A wait is <em>never</em> if fewer gangs started.</p></section>',
        ),
    )


def link(policy: str) -> str:
    """Return a link to the report of `policy`."""
    name = html.escape(policy)
    return f'<a href="{PREFIX}{name}.html">{name}</a>'


def html_table(heads: list[str], rows: Iterable[tuple[str, list[Cell]]]) -> str:
    """Return a table; each of `rows` has its first cells as HTML, and the other cells with bars.

    The longest bar of a column has the width of the column.
    """
    rows = list(rows)
    columns = zip(*(cells for _, cells in rows), strict=True)
    highest = [max((value or 0 for _, value in column), default=0) for column in columns]
    names = len(heads) - len(highest)
    head = "".join(
        f"<th{'' if at < names else ' class=number'}>{html.escape(text)}</th>"
        for at, text in enumerate(heads)
    )
    lines = [
        first + "".join(html_cell(*cell, most) for cell, most in zip(cells, highest, strict=True))
        for first, cells in rows
    ]
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def html_cell(text: str, value: float | None, highest: float) -> str:
    """Return a cell with `text` and a bar."""
    width = 100 * value / highest if value and highest else 0
    bar = f'<rect width="{width:.1f}" height="6"></rect>'
    box = f'<svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">{bar}</svg>'
    return f'<td class="number">{html.escape(text)}{box}</td>'


def main(out: str, *files: str) -> None:
    """Print the table of the results in `files` with a conclusion; write the page to `out`."""
    paths = map(Path, files)
    results = {path.stem.removeprefix(PREFIX): json.loads(path.read_text()) for path in paths}
    Path(out).write_text(page(results), encoding="utf-8")
    lines = "".join(f"{one}\n" for one in conclusion(results))
    sys.stdout.write(f"{text_table(results)}\n{lines}")


if __name__ == "__main__":
    main(*sys.argv[1:])
