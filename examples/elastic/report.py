"""Compares results of `fairlead simulate -o json` in one report: nodes, cost and waiting times.

    report.py OUT.html NAME=RESULT.json ...

The nodes of the database are left out, because they are the same in all runs. In a run without an
autoscaler, the number of other nodes is constant.
"""

from __future__ import annotations

import html
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Result = dict[str, Any]
Steps = list[tuple[float, float]]  # (hour, value from that hour on)

HOURS = 24
BASE_NODES = 3  # the nodes of the database
NODE_MILLI = 3920  # allocatable CPU of a generated node
NODE_PRICE = 0.20  # the price of a generated node, per hour
DAYS = 30  # so many days like this one
COLORS = ("--first", "--second", "--third")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 1080, 260, 52, 16, 12, 40


@dataclass
class Day:
    """A run: its nodes, cost per hour (`rate`) and replicas over the day, and waiting times."""

    name: str
    nodes: Steps
    rate: Steps
    replicas: Steps
    waiting: Result

    @property
    def node_hours(self) -> float:
        """The node hours of the day."""
        return integral(self.nodes)

    @property
    def cost(self) -> float:
        """The cost of the nodes for the day."""
        return integral(self.rate)


def read_day(name: str, result: Result) -> Day:
    """Return the curves of `result`, the JSON of the run `name`."""
    replicas = replica_steps(result["pod_autoscalers"])
    autoscaling = result.get("autoscaling")
    if autoscaling is None:
        cpu = next(one for one in result["allocation"] if one["resource"] == "cpu")
        count = cpu["allocatable"] // NODE_MILLI - BASE_NODES
        nodes: Steps = [(0, count)]
        return Day(name, nodes, [(0, count * NODE_PRICE)], replicas, result["waiting_times"])
    nodes, rate = node_steps(autoscaling)
    return Day(name, nodes, rate, replicas, result["waiting_times"])


def node_steps(autoscaling: Result) -> tuple[Steps, Steps]:
    """Return (number of nodes, cost per hour) over the day, from the autoscaler's actions."""
    groups = autoscaling["groups"]
    prices = {
        one["group"]: one["cost"] / one["node_hours"] if one["node_hours"] else 0 for one in groups
    }
    count = sum(one["nodes_before"] for one in groups)
    rate = sum(one["nodes_before"] * prices[one["group"]] for one in groups)
    nodes: Steps = [(0, count)]
    rates: Steps = [(0, rate)]
    for one in sorted(autoscaling["nodes"], key=lambda each: each["at_s"]):
        sign = 1 if one["event"] == "added" else -1
        count, rate = count + sign, rate + sign * prices[one["group"]]
        nodes.append((one["at_s"] / 3600, count))
        rates.append((one["at_s"] / 3600, rate))
    return nodes, rates


def replica_steps(autoscalers: list[Result]) -> Steps:
    """Return the total number of replicas that all `autoscalers` request, over the day."""
    total = sum(one["replicas_before"] for one in autoscalers)
    steps: Steps = [(0, total)]
    changes = [change for one in autoscalers for change in one["changes"]]
    for change in sorted(changes, key=lambda each: each["at_s"]):
        total += change["to"] - change["from"]
        steps.append((change["at_s"] / 3600, total))
    return steps


def integral(steps: Steps) -> float:
    """Return the integral of `steps` over the day, in units of the value times hours."""
    ends = [*(hour for hour, _ in steps[1:]), HOURS]
    return sum(value * (end - hour) for (hour, value), end in zip(steps, ends, strict=True))


def accumulated(steps: Steps) -> Steps:
    """Return the points of the integral of `steps` up to each hour; it is linear between points."""
    points: Steps = [(0, 0)]
    ends = [*(hour for hour, _ in steps[1:]), HOURS]
    for (hour, value), end in zip(steps, ends, strict=True):
        points.append((end, points[-1][1] + value * (end - hour)))
    return points


# --- charts --------------------------------------------------------------------------------------


def chart(title: str, note: str, lines: list[tuple[str, Steps]], *, stepped: bool = True) -> str:
    """Return a chart of `lines`, which are pairs of CSS colour and points, as HTML."""
    top = max(value for _, points in lines for _, value in points)
    step = tick_step(top)
    highest = step * -(-top // step) or step
    x_of, y_of = scales(highest)
    grid = "".join(
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(tick):.1f}" y2="{y_of(tick):.1f}"/>'
        f'<text x="{LEFT - 8}" y="{y_of(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for tick in (step * number for number in range(round(highest / step) + 1))
    )
    hours = "".join(
        f'<text class="{"minor" if hour % 6 else "major"}" x="{x_of(hour):.1f}" y="{HEIGHT - 8}"'
        f' text-anchor="middle">{hour}:00</text>'
        for hour in range(0, HOURS + 1, 3)
    )
    drawn = "".join(
        f'<path d="{path(points, x_of, y_of, stepped=stepped)}" style="stroke: var({color})"/>'
        for color, points in lines
    )
    return (
        f"<section><h2>{title}</h2><p>{note}</p>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
        f'<g class="grid">{grid}{hours}</g><g class="lines">{drawn}</g></svg></section>'
    )


def scales(highest: float) -> tuple[Any, Any]:
    """Return the functions that map hours and values to coordinates of the chart."""
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    return (
        lambda hour: LEFT + width * hour / HOURS,
        lambda value: TOP + height * (1 - value / highest),
    )


def path(points: Steps, x_of: Any, y_of: Any, *, stepped: bool) -> str:
    """Return the SVG path through `points`, with horizontal and vertical lines if `stepped`."""
    hour, value = points[0]
    parts = [f"M{x_of(hour):.1f},{y_of(value):.1f}"]
    for hour, value in points[1:]:
        if stepped:
            parts.append(f"H{x_of(hour):.1f}V{y_of(value):.1f}")
        else:
            parts.append(f"L{x_of(hour):.1f},{y_of(value):.1f}")
    return "".join(parts) + (f"H{x_of(HOURS):.1f}" if stepped else "")


def tick_step(top: float) -> float:
    """Return a round distance of grid lines, of which at most five are needed up to `top`."""
    for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500):
        if top / step <= 5:
            return step
    return 1000


# --- table ---------------------------------------------------------------------------------------


def rows(days: list[Day]) -> list[list[str]]:
    """Return the rows of the table; the first row contains the headings."""
    head = ["", "nodes", "node hours", "cost of the day", f"{DAYS} such days", "pods placed",
            "median wait", "95% within", "longest wait"]  # fmt: skip
    return [head, *(row(day, days[0]) for day in days)]


def row(day: Day, first: Day) -> list[str]:
    """Return the cells of the run `day`; savings are relative to the run `first`."""
    counts = [value for _, value in day.nodes]
    nodes = f"{min(counts):g}–{max(counts):g}" if len(counts) > 1 else f"{counts[0]:g}"
    saved = 1 - day.cost / first.cost
    cost = f"${day.cost:.2f}" + (f" (-{saved:.0%})" if saved > 0 else "")
    waiting = day.waiting
    still = waiting["still_waiting"]
    placed = f"{waiting['bound']:,}" + (f", {still:,} not" if still else "")
    times = (duration(waiting[key]) for key in ("median_s", "p95_s", "longest_s"))
    days = f"${day.cost * DAYS:,.0f}"
    return [day.name, nodes, f"{day.node_hours:.0f}", cost, days, placed, *times]


def duration(seconds: float) -> str:
    """Return a duration as text with at most two units."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def text_table(table: list[list[str]]) -> str:
    """Return `table` as text with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in table
    )


def html_table(table: list[list[str]]) -> str:
    """Return `table` as HTML, with a coloured mark before each name."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table[0])
    lines = []
    for color, (name, *cells) in zip(COLORS, table[1:], strict=False):
        mark = f'<i style="background: var({color})"></i>'
        data = "".join(
            f'<td data-label="{html.escape(label)}">{html.escape(cell)}</td>'
            for label, cell in zip(table[0][1:], cells, strict=True)
        )
        lines.append(f"<tr><th>{mark}{html.escape(name)}</th>{data}</tr>")
    return f'<div class="table"><table><tr>{head}</tr>{"".join(lines)}</table></div>'


STYLE = """
:root { color-scheme: light dark; --page: light-dark(#f6f6f3, #14171a);
  --card: light-dark(#fff, #1b1f23); --ink: light-dark(#1b1f24, #e8eaec);
  --ink-2: light-dark(#59616b, #a3abb4); --line: light-dark(#e3e3de, #2d3339);
  --first: light-dark(#8a8f96, #9aa1a9); --second: light-dark(#0072b2, #4aa3df);
  --third: light-dark(#d55e00, #f2813a); --load: light-dark(#009e73, #35c49a);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif;
  font-variant-numeric: tabular-nums; }
body { margin: 0 auto; padding: 28px 28px 48px; max-width: 1120px; background: var(--page);
  color: var(--ink); }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 6px; }
h2 { font-size: 16px; margin: 0; }
p { margin: 2px 0 10px; color: var(--ink-2); max-width: 86ch; }
section, .table { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 16px 18px; margin-top: 18px; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: 7px 10px; white-space: nowrap; font-weight: 400; }
th:first-child { text-align: left; font-weight: 600; padding-left: 0; }
tr:first-child th { color: var(--ink-2); font-size: 12px; }
tr + tr > * { border-top: 1px solid var(--line); }
i { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 8px; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
.grid line { stroke: var(--line); }
.grid text { fill: var(--ink-2); font-size: 12px; }
.lines path { fill: none; stroke-width: 2; stroke-linejoin: round;
  vector-effect: non-scaling-stroke; }
/* The table has no room in a narrow window: each run becomes a list, every value after its heading.
   The charts shrink with the window, so their texts grow, and every second hour is left out. */
@media (max-width: 1040px) {
  .grid text { font-size: 16px; }
  table, tbody { display: block; }
  tr:first-child { display: none; }
  tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 6px 20px;
    padding: 10px 0; }
  tr + tr + tr { border-top: 1px solid var(--line); }
  tr > th:first-child { grid-column: 1 / -1; }
  tr > th, tr > td { padding: 0; text-align: left; border: 0 !important; white-space: normal; }
  td::before { content: attr(data-label); display: block; color: var(--ink-2); font-size: 12px; }
}
@media (max-width: 760px) {
  body { padding: 20px 14px 32px; }
  .grid text { font-size: 23px; }
  .grid .minor { display: none; }
}
@media (max-width: 560px) {
  .grid text { font-size: 32px; }
}
"""


def page(days: list[Day]) -> str:
    """Return the report as HTML."""
    lines = list(zip(COLORS, days, strict=False))
    charts = [
        chart("Nodes", "without the three nodes of the database",
              [(color, day.nodes) for color, day in lines]),
        chart("Cost per hour", "in dollars",
              [(color, day.rate) for color, day in lines]),
        chart("Cost so far", "in dollars",
              [(color, accumulated(day.rate)) for color, day in lines], stepped=False),
        chart("Replicas", "that the five HorizontalPodAutoscalers want, following the load",
              [("--load", days[-1].replicas)]),
    ]  # fmt: skip
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>A day of an elastic cluster – Fairlead</title>
<style>{STYLE}</style>
<h1>A day of an elastic cluster</h1>
<p>The same shop, the same traffic, three ways to run it: on fixed nodes, with Cluster Autoscaler,
with Karpenter. HorizontalPodAutoscalers follow the load in all three. A sale between 19:00 and
20:30 comes on top of the daily curve.</p>
{html_table(rows(days))}
{"".join(charts)}
</html>
"""


def main(out: str, *named: str) -> None:
    """Write the report to `out`, and print its table; each of `named` is NAME=RESULT.json."""
    days = []
    for one in named:
        name, _, file = one.partition("=")
        days.append(read_day(name, json.loads(Path(file).read_text(encoding="utf-8"))))
    Path(out).write_text(page(days), encoding="utf-8")
    sys.stdout.write(text_table(rows(days)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
