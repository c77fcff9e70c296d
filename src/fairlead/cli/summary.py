"""The compact summary of a what-if or a simulation, as text on a terminal.

Names and reasons come from users' dumps: they are shown as plain text, never as markup.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from rich.console import Console

from fairlead.api.timestamp import format_timestamp
from fairlead.cli.amount import amount_text, share_text
from fairlead.cli.gist import gist
from fairlead.cli.terminal import print_line, print_table, stdout_console
from fairlead.core.instant import Instant, seconds
from fairlead.whatif.answer import Answer
from fairlead.whatif.difference import Move, moved_on_the_way
from fairlead.whatif.duration import for_readers
from fairlead.whatif.experiment import Experiment
from fairlead.whatif.outcome import (
    Complaint,
    Evicted,
    Outcome,
    PdbBreach,
    PodEnd,
    Preempted,
    Skipped,
)

ROWS_MAX: Final = 6
NAMES_MAX: Final = 2


def print_answer(
    answer: Answer, forbidden: Sequence[PodEnd], console: Console | None = None
) -> None:
    """What the change does; `forbidden` are the displaced pods that --fail-on names."""
    console = console or stdout_console()
    changed, found = answer.changed, answer.difference
    print_line(
        console, f"What if: {' '.join(answer.change.words) or 'nothing changes'}", style="bold"
    )
    print_line(console, _setting(answer.source, answer.seed, changed))
    counts = {
        "placed": found.placed,
        "moved": found.moved,
        "preempted": found.preempted,
        "evicted": found.evicted,
        "pending": found.pending,
        "removed": found.removed,
        "PDBs breached": found.pdb_breaches,
    }
    if found.is_empty:
        print_line(console, "No difference.", style="bold")
    else:
        print_line(
            console, _counts({name: len(rows) for name, rows in counts.items()}), style="bold"
        )
    _preempted(console, found.preempted, changed.started_at)
    _evicted(console, found.evicted, changed.started_at)
    _moved(console, found.moved)
    _pending(console, "newly pending", found.pending)
    _placed(console, found.placed)
    _removed(console, found.removed)
    _breaches(console, found.pdb_breaches, changed.started_at)
    _skipped(console, changed.skipped, changed.started_at)
    _complaints(console, changed.complaints)
    _allocation(console, _rows_of_both(answer))
    print_line(console, _recovery(answer))
    if forbidden:
        print_line(
            console, f"Displaced in spite of --fail-on: {_names(forbidden)}", style="bold red"
        )


def print_simulation(
    experiment: Experiment, outcome: Outcome, console: Console | None = None
) -> None:
    """What came of a scenario."""
    console = console or stdout_console()
    start, moved = outcome.started_at, moved_on_the_way(outcome)
    pending, completed = outcome.pending(), [p for p in outcome.pods.values() if p.is_completed]
    print_line(console, experiment.title, style="bold")
    print_line(console, _setting(experiment.source, experiment.seed, outcome))
    counts = {
        "placed": len(outcome.placed()),
        "pending": len(pending),
        "completed": len(completed),
        "preempted": len(outcome.preempted),
        "evicted": len(outcome.evicted),
        "moved": len(moved),
        "PDBs breached": len(outcome.pdb_breaches),
    }
    print_line(console, _counts(counts), style="bold")
    _preempted(console, outcome.preempted, start)
    _evicted(console, outcome.evicted, start)
    _moved(console, moved)
    _pending(console, "pending", pending)
    _breaches(console, outcome.pdb_breaches, start)
    _skipped(console, outcome.skipped, start)
    _complaints(console, outcome.complaints)
    _allocation(
        console,
        [
            (one.resource, one.allocatable, one.requested_before, one.requested)
            for one in outcome.allocations
        ],
    )
    if not outcome.settled and experiment.duration is None:
        print_line(console, "The cluster had not settled when the time was over.", style="yellow")


# --- lines -------------------------------------------------------------------------------------


def _setting(source: str, seed: int, outcome: Outcome) -> str:
    parts = [
        source,
        f"{len(outcome.nodes):,} nodes",
        f"{len(outcome.pods):,} pods",
        f"{for_readers(seconds(outcome.virtual_seconds))} from {_time(outcome.started_at)}",
        f"seed {seed}",
        f"{outcome.choices_among_equals:,} choices among equals",
    ]
    return " · ".join(parts)


def _time(instant: Instant) -> str:
    return format_timestamp(instant)


def _counts(counts: dict[str, int]) -> str:
    return "   ".join(f"{name} {count:,}" for name, count in counts.items())


def _recovery(answer: Answer) -> str:
    found = answer.difference
    if found.recovered_after is not None:
        after = for_readers(found.recovered_after)
        return (
            f"Everything runs again after {after}."
            if found.recovered_after
            else "Nothing had to recover."
        )
    reasons = []
    if found.pending:
        reasons.append(f"{len(found.pending):,} more pods wait than would")
    if found.removed:
        reasons.append(f"{len(found.removed):,} are gone for good")
    return f"Not everything runs again: {', '.join(reasons) or 'the time is over'}."


def _names(pods: Sequence[PodEnd]) -> str:
    shown = ", ".join(pod.key for pod in pods[:NAMES_MAX])
    rest = len(pods) - NAMES_MAX
    return f"{shown} and {rest:,} more" if rest > 0 else shown


# --- tables ------------------------------------------------------------------------------------


def _table(
    console: Console,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Collection[str] = (),
) -> None:
    print_table(console, title, columns, rows, numbers=numbers, rows_max=ROWS_MAX)


def _after(start: Instant, at: Instant) -> str:
    return for_readers(at - start)


def _preempted(console: Console, rows: Sequence[Preempted], start: Instant) -> None:
    cells = [
        (
            _after(start, one.at),
            f"{one.pod.key} ({one.pod.priority})",
            one.node,
            f"{one.by} ({one.by_priority})",
            one.rule,
        )
        for one in rows
    ]
    columns = ("after", "pod (priority)", "from node", "by", "decided by")
    _table(console, f"preempted ({len(rows):,})", columns, cells, ("after",))


def _evicted(console: Console, rows: Sequence[Evicted], start: Instant) -> None:
    cells = [
        (_after(start, one.at), f"{one.pod.key} ({one.pod.priority})", one.node, one.why)
        for one in rows
    ]
    columns = ("after", "pod (priority)", "from node", "why")
    _table(console, f"evicted ({len(rows):,})", columns, cells, ("after",))


def _moved(console: Console, rows: Sequence[Move]) -> None:
    cells = [(move.pod.key, move.origin, move.target) for move in rows]
    _table(console, f"moved ({len(rows):,})", ("pod", "from", "to"), cells)


def _pending(console: Console, title: str, rows: Sequence[PodEnd]) -> None:
    """By what stands in the way, most frequent first; the full messages are in the result."""
    by_reason: dict[str, list[PodEnd]] = {}
    for pod in rows:
        by_reason.setdefault(gist(pod.reason), []).append(pod)
    reasons = sorted(by_reason, key=lambda reason: (-len(by_reason[reason]), reason))
    cells = [
        (f"{len(by_reason[reason]):,}", reason, _names(by_reason[reason])) for reason in reasons
    ]
    _table(console, f"{title} ({len(rows):,})", ("pods", "why", "which"), cells, ("pods",))


def _placed(console: Console, rows: Sequence[PodEnd]) -> None:
    cells = [(pod.key, pod.node) for pod in rows]
    _table(console, f"placed ({len(rows):,})", ("pod", "on node"), cells)


def _removed(console: Console, rows: Sequence[PodEnd]) -> None:
    cells = [(pod.key, pod.node) for pod in rows]
    _table(console, f"gone for good ({len(rows):,})", ("pod", "would be on node"), cells)


def _breaches(console: Console, rows: Sequence[PdbBreach], start: Instant) -> None:
    _table(
        console,
        f"disruption budgets breached ({len(rows):,})",
        ("after", "budget", "pod", "by"),
        [(_after(start, one.at), one.pdb, one.pod, one.by) for one in rows],
        numbers=("after",),
    )


def _skipped(console: Console, rows: Sequence[Skipped], start: Instant) -> None:
    _table(
        console,
        f"events without effect ({len(rows):,})",
        ("after", "event", "why"),
        [(_after(start, one.at), one.what, one.why) for one in rows],
        numbers=("after",),
    )


def _complaints(console: Console, rows: Sequence[Complaint]) -> None:
    cells = [(one.subject, one.message) for one in rows]
    _table(console, f"what could not be created ({len(rows):,})", ("for", "why"), cells)


def _rows_of_both(answer: Answer) -> list[tuple[str, int, int, int]]:
    before = {one.resource: one.requested for one in answer.without.allocations}
    return [
        (one.resource, one.allocatable, before.get(one.resource, 0), one.requested)
        for one in answer.changed.allocations
    ]


def _allocation(console: Console, rows: Sequence[tuple[str, int, int, int]]) -> None:
    """Resource, allocatable, requested before and after."""
    _table(
        console,
        "requested of what the nodes offer",
        ("resource", "allocatable", "before", "", "after", " "),
        [
            (
                resource, amount_text(resource, allocatable),
                amount_text(resource, before), share_text(before, allocatable),
                amount_text(resource, after), share_text(after, allocatable),
            )
            for resource, allocatable, before, after in rows
        ],
        numbers=("allocatable", "before", "", "after", " "),
    )  # fmt: skip
    console.print()
