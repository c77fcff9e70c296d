"""Sections of a summary: nodes that fail, and nodes that are drained one after another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rich.console import Console
from rich.text import Text

from fairlead.api.text.count import counted, counted_of
from fairlead.api.text.name_list import listed
from fairlead.cli.output.console.fitted_table import TableColumn
from fairlead.cli.output.console.screen import Rank, Section, table_section
from fairlead.cli.output.console.sparkline import WIDTH, StepFunction, axis, sparkline
from fairlead.cli.output.console.terminal import print_line
from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.zones.zone_state import ZoneState
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.outage import (
    DrainProgress,
    LostPod,
    Misconception,
    NodeHistory,
    NodeState,
    OutageOutcome,
    ZoneChange,
    nodes_by_state,
    zone_phrase,
    zone_title,
)
from fairlead.whatif.outcome.rate_line import RateLine, rate_lines
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.outcome.scheduling_message import short_reason

ROWS_MAX: Final = 6
NAMES_MAX: Final = 2
WIDTH_MIN: Final = 20  # A narrower sparkline shows too little.
_LABEL: Final = 20
_COUNT: Final = 8
_SEVERAL_FAILURES: Final = (
    "For a node with several failures, BACK is its last return. All other times are those of one "
    "failure: the first with evictions, or else the first that was noticed."
)
_REPEATED: Final = "Pods that were on several failed nodes in turn count for each of these nodes."


def outage_sections(outcome: RunOutcome, outage: OutageOutcome) -> Iterator[Section]:
    """Yield the sections about an outage, the course of events first."""
    start = outcome.started_at
    taintings = list(_taintings(outage, start))

    def show_events(console: Console, count: int) -> None:
        console.print()
        print_line(console, _headline(outage), "bold")
        if unnoticed := sum(one.is_unnoticed for one in outage.nodes):
            print_line(console, _unnoticed(unnoticed, len(outage.nodes)))
        for line in taintings[: count - 1]:
            print_line(console, line)
        print_line(console, f"{_evictions(outage, start)}{_recovery(outage, start)}")
        if outage.has_repeated_pods:
            print_line(console, _REPEATED)

    rows = 1 + len(taintings)
    tainted = {name for line in rate_lines(outage) for name in line.nodes}
    # If nodes were not tainted, the first line says why: the eviction rate did not allow it.
    least = min(rows, 2) if len(tainted) < len({one.node for one in outage.nodes}) else 1
    yield Section(
        "course of the outage",
        rows,
        show_events,
        Rank.PROBLEMS,
        least=least,
        most=rows,
        is_urgent=True,
    )
    has_chart = outcome.ended_at > start
    yield Section(
        "charts",
        has_chart,
        lambda console, _: _print_sparklines(console, outcome, outage),
        Rank.MOVES,
    )
    yield _zones(outage, start)
    yield _nodes(outage.nodes, start)
    yield _lost(outage.lost)
    yield Section(
        "common misconceptions",
        len(outage.misconceptions),
        lambda console, count: _print_misconceptions(console, outage.misconceptions[:count]),
        Rank.EXPLANATIONS,
        least=len(outage.misconceptions),
        most=len(outage.misconceptions),
    )


def known_outage(nodes: Sequence[str]) -> Section:
    """Return a one-line section about `nodes`; if there are none, the section is empty.

    The nodes are out of service even in the run without the what-if change.
    """
    names = listed(nodes, NAMES_MAX)
    verb = "is" if len(nodes) == 1 else "are"

    def show(console: Console, count: int) -> None:
        del count
        console.print()
        print_line(console, f"Without the change, too, {names} {verb} not in service.")

    return Section("nodes out of service", min(len(nodes), 1), show, Rank.ADVICE)


def rolling_drains(rows: Sequence[DrainProgress], start: Instant) -> Section:
    """Return the section with the times of each node's drain, and the causes of blocked drains."""
    cells = [
        (
            one.node,
            _after(start, one.begun_at),
            _after(start, one.empty_at),
            _after(start, one.back_at),
            "; ".join(one.held_up_by[:NAMES_MAX]),
        )
        for one in sorted(rows, key=lambda one: not one.held_up_by)
    ]
    done = sum(one.back_at is not None for one in rows)
    columns = (
        TableColumn(f"ROLLING DRAIN ({counted_of(done, len(rows), 'node')} back)", is_name=True),
        TableColumn("BEGUN", is_number=True),
        TableColumn("EMPTY", is_number=True),
        TableColumn("BACK", is_number=True),
        TableColumn("HELD UP BY"),
    )
    return table_section(
        "nodes of the rolling drain", columns, cells, Rank.CAUSES, most=ROWS_MAX * 2
    )


# --- lines -------------------------------------------------------------------------------------


def _headline(found: OutageOutcome) -> str:
    them, theirs = ("it", "the node") if len(found.nodes) == 1 else ("them", "their nodes")
    failures = sum(one.failures for one in found.nodes)
    times = f" {failures:,} times" if failures > len(found.nodes) else ""
    parts = [
        f"{counted(len(found.nodes), 'node')} failed{times}",
        f"with {counted(found.concerned, 'pod')} on {them}",
        f"{found.evicted:,} evicted",
        f"{found.replaced:,} back as {'a new pod' if found.replaced == 1 else 'new pods'}",
        f"{found.back_with_node:,} back with {theirs}",
        f"{len(found.not_back):,} not back",
    ]
    if unneeded := len(found.lost) - len(found.not_back):
        parts.append(f"{unneeded:,} no longer needed")
    if found.preempted:
        parts.append(f"{counted(len(found.preempted), 'other pod')} preempted to make room")
    return ", ".join(parts)


def _unnoticed(nodes: int, failed: int) -> str:
    """Return the line about failed nodes that returned before the failure was noticed.

    `nodes` is the number of these nodes, and `failed` is the number of all failed nodes.
    """
    if failed == 1:
        return (
            "The control plane did not notice the failure: the node and its pods counted as Ready "
            "in the meantime."
        )
    return (
        f"The control plane did not notice the failures of {nodes:,} of {failed:,} nodes. Such a "
        "node and its pods counted as Ready in the meantime."
    )


def _taintings(found: OutageOutcome, start: Instant) -> Iterator[str]:
    """Yield a line for each zone: how many nodes were tainted, and in how much time.

    The line also states how many taints the eviction rate allows in that time.
    """
    for line in rate_lines(found):
        where = zone_phrase(line.zone)
        span = _span(start, line.first, line.last)
        yield (
            f"In {where}, {_tainted(len(line.nodes), line.count)} {span}; "
            f"the eviction rate allows {counted(line.allowed, 'taint')} in that time."
            f"{_slowdown(found, line)}"
        )


def _slowdown(found: OutageOutcome, line: RateLine) -> str:
    """Return why the eviction rate was low at the last taint of `line`; "" if it was normal."""
    changes = (one for one in found.zones if one.zone == line.zone and one.at <= line.last)
    last = max(changes, key=lambda one: one.at, default=None)
    if last is None or last.state != ZoneState.PARTIAL_DISRUPTION:
        return ""
    return (
        f" The rate is {last.rate:g} nodes/s, because {last.unready:,} of the {last.size:,} nodes "
        f"of the zone are not ready ({last.state})."
    )


def _tainted(nodes: int, taints: int) -> str:
    """Return `3 nodes tainted`, or `3 nodes tainted 5 times` if `taints` differs from `nodes`."""
    words = f"{counted(nodes, 'node')} tainted"
    return words if taints == nodes else f"{words} {taints:,} times"


def _evictions(found: OutageOutcome, start: Instant) -> str:
    if found.first_eviction_at is None or found.last_eviction_at is None:
        return "No pods were evicted because of taints."  # A drain may have evicted some.
    return f"Evicted {_span(start, found.first_eviction_at, found.last_eviction_at)}."


def _recovery(found: OutageOutcome, start: Instant) -> str:
    """Return a space and a sentence that says when the pods of failed nodes were back.

    Returns "" if the failed nodes had no pods.
    """
    if not found.concerned:
        return ""
    if found.first_back_at is None or found.last_back_at is None:
        return " None of the pods of failed nodes is back."
    return f" Back {_span(start, found.first_back_at, found.last_back_at)}."


def _span(start: Instant, first: Instant, last: Instant) -> str:
    if first == last:
        return f"at {_after(start, first)}"
    return f"from {_after(start, first)} to {_after(start, last)}"


def _print_sparklines(console: Console, outcome: RunOutcome, found: OutageOutcome) -> None:
    start, end = outcome.started_at, outcome.ended_at
    if end <= start:
        return
    width = min(WIDTH, max(console.width - _LABEL - _COUNT, WIDTH_MIN))
    console.print()
    console.print(Text(f"{'':<{_LABEL + width}} MOST"))
    for label, steps in _measures(found):
        highest = max(steps.values, default=0)
        if highest:
            line = f"{label:<{_LABEL}}{sparkline(steps, start, end, width)} {highest:,}"
            print_line(console, line)
    console.print(Text(f"{'':<{_LABEL}}{axis(start, end, width)}", style="dim"))


def _measures(found: OutageOutcome) -> list[tuple[str, StepFunction]]:
    samples = found.pod_samples
    instants = [one.at for one in samples]
    return [
        ("nodes not ready", node_steps(found, (NodeState.UNREADY, NodeState.TAINTED))),
        ("nodes tainted", node_steps(found, (NodeState.TAINTED,))),
        ("pods down", StepFunction(instants, [one.down for one in samples])),
        ("pods evicted", StepFunction(instants, [one.evicted for one in samples])),
        ("pods waiting", StepFunction(instants, [one.waiting for one in samples])),
        ("pods back", StepFunction(instants, [one.back for one in samples])),
    ]


def node_steps(outage: OutageOutcome, states: Sequence[NodeState]) -> StepFunction:
    """Return how many nodes of all zones are in one of `states`, as a step function."""
    counts = {
        at: sum(by_state[state] for state in states)
        for at, by_state in nodes_by_state(outage.node_samples)
    }
    return StepFunction(list(counts), list(counts.values()))


# --- tables ------------------------------------------------------------------------------------


def _zones(found: OutageOutcome, start: Instant) -> Section:
    """Return the section with the states and eviction rates of the zones with failed nodes.

    A row shows a period in which the zone's state, size and rate stay the same. The row contains
    the smallest and the greatest number of nodes that were not ready at one time in this period.
    """
    cells = [
        (
            zone_title(first.zone),
            _after(start, first.at),
            first.state or "gone",
            f"{_range([one.unready for one in (first, *others)])} of {first.size:,}",
            f"{first.rate:g} nodes/s",
        )
        for first, *others in _zone_states(found)
    ]
    columns = (
        TableColumn("ZONE OF FAILED NODES", is_name=True),
        TableColumn("AFTER", is_number=True),
        TableColumn("STATE"),
        TableColumn("NOT READY", is_number=True),
        TableColumn("EVICTIONS AT"),
    )
    return table_section("states of zones", columns, cells, Rank.PROGRESS)


def _zone_states(found: OutageOutcome) -> list[list[ZoneChange]]:
    """Return the changes of the zones with failed nodes, as one list for each zone and period.

    In a period, the zone's state, size and rate stay the same. The lists are sorted by the time of
    their first change.
    """
    zones = {one.zone for one in found.nodes}
    states: list[list[ZoneChange]] = []
    last: dict[str, list[ZoneChange]] = {}
    for one in found.zones:
        state = last.get(one.zone)
        if state is not None and _state_of(state[0]) == _state_of(one):
            state.append(one)
        elif one.zone in zones:
            last[one.zone] = [one]
            states.append(last[one.zone])
    return states


def _state_of(one: ZoneChange) -> tuple[str, int, float]:
    return one.state, one.size, one.rate


def _range(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _nodes(rows: Sequence[NodeHistory], start: Instant) -> Section:
    cells = [
        (
            one.node,
            zone_title(one.zone),
            f"{one.failures:,}" if one.failures > 1 else "",
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
        TableColumn(f"FAILED NODES ({len(rows):,})", is_name=True),
        TableColumn("ZONE", rank=2, is_name=True),
        TableColumn("FAILURES", is_number=True),
        TableColumn("FAILED", rank=1, is_number=True),
        TableColumn("NOT READY", is_number=True),
        TableColumn("TAINTED", is_number=True),
        TableColumn("EVICTING", rank=3, is_number=True),
        TableColumn("BACK", is_number=True),
        TableColumn("PODS", is_number=True),
        TableColumn("EVICTED", is_number=True),
    )
    section = table_section(counted(len(rows), "failed node"), columns, cells, Rank.PROGRESS)
    if all(one.failures == 1 for one in rows):
        return section

    def show(console: Console, count: int) -> None:
        section.show(console, count)
        print_line(console, _SEVERAL_FAILURES, "dim")

    return replace(section, show=show)


def _lost(rows: Sequence[LostPod]) -> Section:
    """Return the section of lost pods, grouped by reason, with the most frequent reason first."""
    by_reason: dict[str, list[LostPod]] = defaultdict(list)
    for one in rows:
        by_reason[short_reason(one.why)].append(one)
    reasons = sorted(by_reason, key=lambda why: (-len(by_reason[why]), why))
    cells = [(f"{len(by_reason[why]):,}", _names(by_reason[why]), why) for why in reasons]
    lost = sum(one.cause.is_loss for one in rows)
    needless = f", NO LONGER NEEDED ({len(rows) - lost:,})" if lost < len(rows) else ""
    columns = (
        TableColumn("PODS", is_number=True),
        TableColumn(f"NOT BACK ({lost:,}){needless}", is_name=True),
        TableColumn("WHY"),
    )
    return table_section(f"{counted(len(rows), 'pod')} not back", columns, cells, Rank.CAUSES)


def _names(rows: Sequence[LostPod]) -> str:
    rest = len(rows) - 1
    return f"{rows[0].pod} and {rest:,} more" if rest else rows[0].pod


def _print_misconceptions(console: Console, misconceptions: Sequence[Misconception]) -> None:
    console.print()
    print_line(console, "common misconceptions, checked against this run", "bold")
    for one in misconceptions:
        print_line(console, f"“{one.belief}”", "italic")
        print_line(console, f"   {one.fact}")


def _after(start: Instant, at: Instant | None) -> str:
    return "" if at is None else for_readers(at - start)
