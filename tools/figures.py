"""Draws the figures in docs/images/explanation from simulations: pods on nodes over time.

    python tools/figures.py [FOLDER]

Each figure shows a scenario of docs/explanation/scenarios. The figure has rows for each node, and
for the pending pods. A bar in a row is a pod; the bar of a preempted or evicted pod is pale while
the pod terminates. tests/test_figures.py compares the files with the output of this tool.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Final

from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

DOCS: Final = Path(__file__).parent.parent / "docs"
FOLDER: Final = DOCS / "images" / "explanation"
FIGURES: Final = ("preemption", "gangs", "node-lifecycle")

WIDTH: Final = 860
LEFT: Final = 84
RIGHT: Final = 16
TOP: Final = 44
LABEL_ROW: Final = 14
CHARACTER: Final = 6.6  # the width of most characters in this font
ROW: Final = 22
BAR: Final = 18
GAP: Final = 14
TICKS_MAX: Final = 9
TICK_STEPS_S: Final = (30, 60, 120, 300, 600, 1800, 3600)
COLOURS: Final = 4
PENDING: Final = "pending"
# The colours of Okabe and Ito; a dark colour scheme has lighter colours.
STYLE: Final = """
text{font:12px system-ui,sans-serif;fill:#1b1f24}.soft{fill:#59616b}.end{text-anchor:end}
.node{font-weight:600}.grid{stroke:#e3e3de}.back{fill:#f4f4f1}.down{fill:#d9d9d4}
.mark{stroke:#a34a00;stroke-dasharray:3 3}.what{fill:#a34a00}
.c0{fill:#56b4e9}.c1{fill:#e69f00}.c2{fill:#2bb78d}.c3{fill:#cc79a7}.bar{fill:#1b1f24}
.leaving{opacity:.45}.waiting{fill:none;stroke:#59616b;stroke-dasharray:4 3}
@media(prefers-color-scheme:dark){svg{background:#1b1f23}text{fill:#e8eaec}.soft{fill:#a3abb4}
.grid{stroke:#2d3339}.back{fill:#22272c}.down{fill:#3a4148}.mark{stroke:#f0a35c}.what{fill:#f0a35c}
.waiting{stroke:#a3abb4}.bar{fill:#10131a}}
"""


@dataclass(frozen=True, slots=True)
class Stay:
    """A pod on `place` (a node, or PENDING) from `begin` to `end`.

    A preempted or evicted pod terminates from `leaves` on; for another pod, `leaves` is None.
    """

    place: str
    pod: str
    priority: int
    begin: Instant
    end: Instant
    leaves: Instant | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """An event at an instant, and the text of its label."""

    at: Instant
    text: str


def main(folder: Path = FOLDER) -> None:
    """Draw all figures into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FIGURES:
        (folder / f"{name}.svg").write_text(figure(name))


def figure(name: str) -> str:
    """Return the figure of the scenario `name` as SVG."""
    path = str(DOCS / "explanation" / "scenarios" / f"{name}.yaml")
    scenario = read_scenario(path)
    experiment = experiment_of(path, scenario)
    outcome = run_experiment(experiment).outcome
    stays = [*_stays(outcome), *_waits(outcome)]
    return _svg(scenario.title or name, outcome, stays, list(_marks(outcome)))


# --- what happened -------------------------------------------------------------------------------


def _stays(outcome: RunOutcome) -> Iterator[Stay]:
    """Yield a Stay for each pod on a node, including pods that left their node before the end."""
    history = outcome.cluster_history
    assert history is not None
    displaced = {one.pod.key: one.at for one in (*outcome.preempted, *outcome.evicted)}
    open_stays = {
        (node.name, pod.key): _stay(node.name, pod, outcome)
        for node in outcome.nodes
        for pod in node.pods
    }
    for change in reversed(history.placements):
        key = change.node, change.pod.key
        if change.is_arrival:
            yield replace(open_stays.pop(key), begin=change.at)
            continue
        leaves = displaced.get(change.pod.key)
        stay = replace(_stay(change.node, change.pod, outcome), end=change.at)
        open_stays[key] = replace(stay, leaves=leaves if _within(leaves, stay) else None)
    yield from open_stays.values()


def _stay(node: str, pod: PodEnd, outcome: RunOutcome) -> Stay:
    return Stay(node, pod.name, pod.priority, outcome.started_at, outcome.ended_at)


def _within(instant: Instant | None, stay: Stay) -> bool:
    return instant is not None and stay.begin <= instant <= stay.end


def _waits(outcome: RunOutcome) -> Iterator[Stay]:
    for wait in outcome.waits:
        end = outcome.ended_at if wait.until is None else wait.until
        if end > wait.since:
            yield Stay(PENDING, wait.pod.partition("/")[2], 0, wait.since, end)


def _marks(outcome: RunOutcome) -> Iterator[Mark]:
    for preempted in outcome.preempted:
        yield Mark(preempted.at, f"{_short(preempted.by.partition('/')[2])} preempts")
    for node in outcome.outage.nodes if outcome.outage is not None else ():
        yield Mark(node.quiet_at, "fails")
        if node.tainted_at is not None:
            yield Mark(node.tainted_at, "not ready, tainted")
        if node.first_eviction_at is not None:
            yield Mark(node.first_eviction_at, "evicts")
        if node.back_at is not None:
            yield Mark(node.back_at, "is back")


# --- how it looks --------------------------------------------------------------------------------


def _svg(title: str, outcome: RunOutcome, stays: list[Stay], marks: list[Mark]) -> str:
    places = [*([PENDING] if any(one.place == PENDING for one in stays) else []),
              *(node.name for node in outcome.nodes)]  # fmt: skip
    backs: list[str] = []
    parts: list[str] = []
    lines = sorted(_x(one.at, outcome) for one in marks)
    y = TOP
    for place in places:
        rows = _rows(one for one in stays if one.place == place)
        height = ROW * max(1, len(rows))
        backs.append(_rect("back", LEFT, y, WIDTH - LEFT - RIGHT, height))
        backs += _outages(place, outcome, y, height)
        parts.append(_text(8, y + 15, place, "node"))
        for number, row in enumerate(rows):
            parts += [_bar(stay, outcome, y + number * ROW, lines) for stay in row]
        y += height + GAP
    parts += _labelled(marks, outcome, y)
    height = y + 14
    lasted = for_readers(outcome.ended_at - outcome.started_at)
    about = f"Pods on {len(outcome.nodes)} nodes over {lasted}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">'
        f"<title>{escape(title)}</title><desc>{escape(about)}</desc><style>{STYLE}</style>\n"
        + "\n".join((*backs, *_ticks(outcome, y), *parts))
        + "\n</svg>\n"
    )


def _rows(stays: Iterable[Stay]) -> list[list[Stay]]:
    """Return rows of `stays`; each stay is in the first row that is free when the stay begins."""
    rows: list[list[Stay]] = []
    for stay in sorted(stays, key=lambda one: (one.begin, one.pod)):
        row = next((row for row in rows if row[-1].end <= stay.begin), None)
        if row is None:
            rows.append([stay])
        else:
            row.append(stay)
    return rows


def _bar(stay: Stay, outcome: RunOutcome, y: int, lines: Sequence[float]) -> str:
    """Return the bar of `stay`; `lines` are the positions of the marks' lines."""
    begin, end = _x(stay.begin, outcome), _x(stay.end, outcome)
    kind = "waiting" if stay.place == PENDING else f"c{_colour(stay, outcome)}"
    solid_end = end if stay.leaves is None else _x(stay.leaves, outcome)
    parts = [_rect(kind, begin, y + 2, max(1.5, solid_end - begin), BAR)]
    if stay.leaves is not None:
        parts.append(_rect(f"{kind} leaving", solid_end, y + 2, max(0.0, end - solid_end), BAR))
    label = _short(stay.pod)
    if end - begin > CHARACTER * len(label) + 8:
        x = _label_x(label, begin, end, lines)
        parts.append(_text(x, y + 15, label, "" if kind == "waiting" else "bar"))
    about = f"{stay.pod}: {_clock(stay.begin, outcome)} to {_clock(stay.end, outcome)}"
    return f"<g><title>{escape(about)}</title>{''.join(parts)}</g>"


def _label_x(label: str, begin: float, end: float, lines: Sequence[float]) -> float:
    """Return the position of `label` in a bar: the first one at which no mark's line crosses it.

    If there is none, the label is at the beginning of the bar.
    """
    width = CHARACTER * len(label) + 3
    for x in (begin, *(line for line in lines if begin < line < end)):
        after = x + width + 5
        if after <= end and not any(x < line < after for line in lines):
            return x + 5
    return begin + 5


def _colour(stay: Stay, outcome: RunOutcome) -> int:
    """Return the number of the colour for the pod's workload, below COLOURS."""
    pods = outcome.cluster_history.placements if outcome.cluster_history else ()
    names = sorted({_workload(one.pod.name) for one in pods})
    return names.index(_workload(stay.pod)) % COLOURS


def _workload(pod: str) -> str:
    return pod.split("-", maxsplit=1)[0]


def _short(pod: str) -> str:
    """Return a pod's name without its template hash: web-7d9f5c6b8-x2x4z becomes web-x2x4z."""
    parts = pod.split("-")
    return f"{parts[0]}-{parts[-1]}" if len(parts) > 2 else pod


def _outages(place: str, outcome: RunOutcome, y: int, height: int) -> list[str]:
    found = [] if outcome.outage is None else outcome.outage.nodes
    parts = []
    for node in found:
        if node.node == place:
            begin = _x(node.quiet_at, outcome)
            end = _x(node.back_at or outcome.ended_at, outcome)
            parts.append(_rect("down", begin, y, end - begin, height))
    return parts


def _labelled(marks: Iterable[Mark], outcome: RunOutcome, bottom: int) -> Iterator[str]:
    """Yield a line and a label for each mark, the last one first.

    A label that would reach the next mark is placed one row above the next label. The line of the
    next mark then does not cross it.
    """
    free, y = float(WIDTH), TOP - 8
    for mark in sorted(marks, key=lambda one: one.at, reverse=True):
        x, text = _x(mark.at, outcome), f"{mark.text} {_clock(mark.at, outcome)}"
        y = TOP - 8 if x + CHARACTER * len(text) + 8 < free else y - LABEL_ROW
        free = x
        yield f'<path class="mark" d="M{x:.1f} {y + 3}V{bottom - GAP + 4}"/>'
        yield _text(x + 3, y, text, "what")


def _ticks(outcome: RunOutcome, bottom: int) -> list[str]:
    whole_s = to_seconds(outcome.ended_at - outcome.started_at)
    step = next((one for one in TICK_STEPS_S if whole_s / one <= TICKS_MAX), TICK_STEPS_S[-1])
    parts = []
    for number in range(int(whole_s // step) + 1):
        x = LEFT + number * step / whole_s * (WIDTH - LEFT - RIGHT)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{bottom - GAP + 4}"/>')
        label = f"{number * step // 60}:{number * step % 60:02}"
        is_last = x > WIDTH - RIGHT - CHARACTER * len(label)
        parts.append(_text(x, bottom + 8, label, "soft end" if is_last else "soft"))
    return parts


def _x(at: Instant, outcome: RunOutcome) -> float:
    share = (at - outcome.started_at) / (outcome.ended_at - outcome.started_at)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _clock(at: Instant, outcome: RunOutcome) -> str:
    whole = int(to_seconds(at - outcome.started_at))
    return f"{whole // 60}:{whole % 60:02}"


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    size = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}"'
    return f'<rect class="{kind}" {size} rx="3"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y}">{escape(text)}</text>'


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
