"""What came of nodes that went quiet, as text: when what happened, and what did not come back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from fairlead.cli.gist import gist
from fairlead.cli.strip import WIDTH, Steps, axis, strip
from fairlead.cli.terminal import print_line, print_table
from fairlead.engine.core.instant import Instant
from fairlead.whatif.duration import for_readers
from fairlead.whatif.outage_outcome import (
    DrainTurn,
    Lost,
    NodeState,
    NodeStory,
    OutageOutcome,
    nodes_by_state,
    zone_phrase,
    zone_title,
)
from fairlead.whatif.outcome import Outcome
from fairlead.whatif.rate_line import rate_lines

ROWS_MAX: Final = 6
NAMES_MAX: Final = 2
WIDTH_MIN: Final = 20  # narrower than that shows nothing
_LABEL: Final = 20
_COUNT: Final = 8


def print_outage(console: Console, outcome: Outcome) -> None:
    """All of it; nothing where no node went quiet."""
    found = outcome.outage
    if found is None:
        return
    start = outcome.started_at
    console.print()
    print_line(console, _headline(found), "bold")
    for line in _turns(found, start):
        print_line(console, line)
    print_line(console, _evictions(found, start))
    print_line(console, _recovery(found, start))
    _print_strips(console, outcome, found)
    _print_zones(console, found, start)
    _print_lost(console, found.lost)
    _print_beliefs(console, found)


def print_drain_turns(console: Console, rows: Sequence[DrainTurn], start: Instant) -> None:
    """Which node was drained when, and what holds up the drain under way."""
    cells = [
        (
            one.node,
            _after(start, one.begun_at),
            _after(start, one.empty_at),
            _after(start, one.back_at),
            "; ".join(one.held_up_by[:NAMES_MAX]),
        )
        for one in rows
    ]
    done = sum(one.back_at is not None for one in rows)
    print_table(
        console,
        f"drained in turn ({done:,} of {len(rows):,} are back)",
        ("node", "begun", "empty", "back", "held up by"),
        cells,
        numbers=("begun", "empty", "back"),
        rows_max=ROWS_MAX * 2,
    )


# --- lines -------------------------------------------------------------------------------------


def _headline(found: OutageOutcome) -> str:
    parts = [
        f"{_counted(len(found.nodes), 'node')} went quiet",
        f"with {_counted(found.concerned, 'pod')} on {'it' if len(found.nodes) == 1 else 'them'}",
        f"{found.evicted:,} evicted",
        f"{found.replaced:,} back as new pods",
        f"{found.back_with_node:,} back with their nodes",
        f"{len(found.lost):,} not back",
    ]
    if found.preempted:
        parts.append(f"{_counted(len(found.preempted), 'other')} preempted for them")
    return ", ".join(parts)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _turns(found: OutageOutcome, start: Instant) -> Iterator[str]:
    """How fast each zone's nodes were tainted, beside how fast they might have been."""
    for line in rate_lines(found):
        where = zone_phrase(line.zone)
        span = _span(start, line.first, line.last)
        yield (
            f"In {where}, {_tainted(len(line.nodes), line.count)} {span}; "
            f"the rate allows {line.allowed:,} in that time."
        )


def _tainted(nodes: int, turns: int) -> str:
    """A node that comes and goes has several turns."""
    counted = f"{_counted(nodes, 'node')} tainted"
    return counted if turns == nodes else f"{counted} {turns:,} times"


def _evictions(found: OutageOutcome, start: Instant) -> str:
    if found.first_eviction_at is None or found.last_eviction_at is None:
        return "Nobody was evicted."
    return f"Evicted {_span(start, found.first_eviction_at, found.last_eviction_at)}."


def _recovery(found: OutageOutcome, start: Instant) -> str:
    if found.first_back_at is None or found.last_back_at is None:
        return "None of them is back."
    return f"Back {_span(start, found.first_back_at, found.last_back_at)}."


def _span(start: Instant, first: Instant, last: Instant) -> str:
    if first == last:
        return f"at {_after(start, first)}"
    return f"from {_after(start, first)} to {_after(start, last)}"


def _print_strips(console: Console, outcome: Outcome, found: OutageOutcome) -> None:
    start, end = outcome.started_at, outcome.ended_at
    if end <= start:
        return
    width = min(WIDTH, max(console.width - _LABEL - _COUNT, WIDTH_MIN))
    console.print()
    for label, steps in _measures(found):
        highest = max(steps.values, default=0)
        if highest:
            line = f"{label:<{_LABEL}}{strip(steps, start, end, width)} {highest:,}"
            print_line(console, line)
    console.print(Text(f"{'':<{_LABEL}}{axis(start, end, width)}", style="dim"))


def _measures(found: OutageOutcome) -> list[tuple[str, Steps]]:
    samples = found.pod_samples
    instants = [one.at for one in samples]
    return [
        ("nodes not ready", node_steps(found, (NodeState.UNREADY, NodeState.TAINTED))),
        ("nodes tainted", node_steps(found, (NodeState.TAINTED,))),
        ("pods down", Steps(instants, [one.down for one in samples])),
        ("pods evicted", Steps(instants, [one.evicted for one in samples])),
        ("pods waiting", Steps(instants, [one.waiting for one in samples])),
        ("pods back", Steps(instants, [one.back for one in samples])),
    ]


def node_steps(found: OutageOutcome, states: Sequence[NodeState]) -> Steps:
    """How many nodes of all zones are in one of `states`, over time."""
    counts = {
        at: sum(by_state[state] for state in states)
        for at, by_state in nodes_by_state(found.node_samples)
    }
    return Steps(list(counts), list(counts.values()))


# --- tables ------------------------------------------------------------------------------------


def _print_zones(console: Console, found: OutageOutcome, start: Instant) -> None:
    """What the controller thought of each zone that had trouble, and the rate it allowed."""
    troubled = {one.zone for one in found.nodes}
    cells = [
        (
            _after(start, one.at),
            zone_title(one.zone),
            one.state or "gone",
            f"{one.unready:,} of {one.size:,}",
            f"{one.rate:g} nodes/s",
        )
        for one in found.zones
        if one.zone in troubled
    ]
    print_table(
        console,
        "zones, as the node controller saw them",
        ("after", "zone", "state", "not ready", "evictions at"),
        cells,
        numbers=("after",),
        rows_max=ROWS_MAX,
    )
    _print_nodes(console, found.nodes, start)


def _print_nodes(console: Console, rows: Sequence[NodeStory], start: Instant) -> None:
    cells = [
        (
            one.node,
            zone_title(one.zone),
            _after(start, one.quiet_at),
            _after(start, one.unready_at),
            _after(start, one.tainted_at),
            _after(start, one.first_eviction_at),
            _after(start, one.back_at),
            f"{one.pods:,}",
            f"{one.evicted:,}",
        )
        for one in rows
    ]
    columns = (
        "node",
        "zone",
        "quiet",
        "not ready",
        "tainted",
        "evicting",
        "back",
        "pods",
        "evicted",
    )
    title = f"nodes that went quiet ({len(rows):,})"
    print_table(console, title, columns, cells, numbers=columns[2:], rows_max=ROWS_MAX)


def _print_lost(console: Console, rows: Sequence[Lost]) -> None:
    """By reason, most frequent first."""
    by_reason: dict[str, list[Lost]] = defaultdict(list)
    for one in rows:
        by_reason[gist(one.why)].append(one)
    reasons = sorted(by_reason, key=lambda why: (-len(by_reason[why]), why))
    cells = [(f"{len(by_reason[why]):,}", why, _names(by_reason[why])) for why in reasons]
    print_table(
        console,
        f"not back ({len(rows):,})",
        ("pods", "why", "which"),
        cells,
        numbers=("pods",),
        rows_max=ROWS_MAX,
    )


def _names(rows: Sequence[Lost]) -> str:
    shown = ", ".join(one.pod for one in rows[:NAMES_MAX])
    rest = len(rows) - NAMES_MAX
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def _print_beliefs(console: Console, found: OutageOutcome) -> None:
    if not found.beliefs:
        return
    console.print()
    print_line(console, "what is commonly believed, and what the code does", "bold")
    for one in found.beliefs:
        print_line(console, f"“{one.belief}”", "italic")
        print_line(console, f"   {one.fact}")


def _after(start: Instant, at: Instant | None) -> str:
    return "" if at is None else for_readers(at - start)
