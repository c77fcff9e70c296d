"""Prints what an autoscaler did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from rich.console import Console

from fairlead.cli.output.terminal import print_line
from fairlead.engine.core.instant import Instant
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.node_group import HOURS_PER_MONTH, AutoscalingOutcome, GroupOutcome

_SHOWN_MAX: Final = 10


def print_autoscaling(
    console: Console,
    outcome: AutoscalingOutcome | None,
    start: Instant,
    without: AutoscalingOutcome | None = None,
) -> None:
    """Print the nodes by group in both runs, and what limited the autoscaler."""
    if outcome is None:
        return
    print_line(console, "")
    print_line(console, f"nodes by {outcome.autoscaler}: {_totals(outcome)}", "bold")
    print_line(console, _spent(outcome))
    if without is not None:
        print_line(console, f"without the change: {_totals(without)}; {_spent(without)}")
    for group in outcome.groups:
        print_line(console, _group_line(outcome, group, start))
    _print_reasons(console, "pods that trigger no scale-up", outcome.waiting)
    _print_reasons(console, "nodes that are not removed", outcome.staying)


def _totals(outcome: AutoscalingOutcome) -> str:
    line = (
        f"{outcome.added:,} added, {outcome.removed:,} removed, {outcome.nodes_after:,} at the end"
    )
    cost = outcome.cost_per_hour
    if cost is not None:
        line += f", then {cost:,.2f} per hour, {cost * HOURS_PER_MONTH:,.0f} per month"
    return line


def _spent(outcome: AutoscalingOutcome) -> str:
    line = f"{outcome.node_hours:,.1f} node hours in the run"
    return line if outcome.cost is None else f"{line}, for {outcome.cost:,.2f}"


def _group_line(outcome: AutoscalingOutcome, group: GroupOutcome, start: Instant) -> str:
    own = [one for one in outcome.transitions if one.group == group.group]
    line = f"- {group.group}: {group.before:,} → {group.after:,} nodes"
    if group.maximum is not None:
        line += f" ({group.minimum:,} to {group.maximum:,})"
    for came, word in ((True, "added"), (False, "removed")):
        times = [one.at for one in own if one.came is came]
        if times:
            first, last = for_readers(times[0] - start), for_readers(times[-1] - start)
            span = first if first == last else f"{first} to {last}"
            line += f", {len(times):,} {word} after {span}"
            reasons = Counter(one.reason for one in own if one.came is came and one.reason)
            if reasons:
                line += f" ({', '.join(sorted(reasons))})"
    return line


def _print_reasons(console: Console, title: str, reasons: Mapping[str, str]) -> None:
    if not reasons:
        return
    print_line(console, f"{title}: {len(reasons):,}")
    counts = Counter(reasons.values())
    for why, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:_SHOWN_MAX]:
        first = next(name for name, reason in reasons.items() if reason == why)
        others = f" and {count - 1:,} more" if count > 1 else ""
        print_line(console, f"- {first}{others}: {why}")
    hidden = len(counts) - _SHOWN_MAX
    if hidden > 0:
        print_line(console, f"- … and {hidden:,} more reasons")
