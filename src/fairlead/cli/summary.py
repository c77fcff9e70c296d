"""The compact summary of a what-if or a simulation, as text on a terminal.

Names and reasons come from users' dumps: they are shown as plain text, never as markup.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from fairlead.api.timestamp import format_timestamp
from fairlead.cli.jobs_summary import print_queues, print_waiting_groups
from fairlead.cli.outage_summary import print_drain_turns, print_outage
from fairlead.cli.summary_table import (
    names_of,
    print_allocation,
    print_breaches,
    print_complaints,
    print_evicted,
    print_moved,
    print_pending,
    print_placed,
    print_preempted,
    print_recurrences,
    print_removed,
    print_skipped,
    print_undrained,
)
from fairlead.cli.terminal import print_line, stdout_console
from fairlead.engine.core.instant import seconds
from fairlead.whatif.answer import Answer
from fairlead.whatif.difference import Difference, moved_on_the_way
from fairlead.whatif.duration import for_readers
from fairlead.whatif.experiment import Experiment
from fairlead.whatif.outage_result import outage_of_answer
from fairlead.whatif.outcome import Outcome, PodEnd


def print_answer(
    answer: Answer, forbidden: Sequence[PodEnd], console: Console | None = None
) -> None:
    """What the change does; `forbidden` are the displaced pods that --fail-on names."""
    console = console or stdout_console()
    changed, found = answer.changed, answer.difference
    print_line(console, answer.change.title, "bold")
    print_line(console, _setting(answer.source, answer.seed, changed))
    print_line(console, _counts_of_difference(found), "bold")
    if outage_of_answer(answer) is not None:
        print_outage(console, changed)
    print_drain_turns(console, changed.drains, changed.started_at)
    print_preempted(console, found.preempted, changed.started_at)
    print_evicted(console, found.evicted, changed.started_at)
    print_moved(console, found.moved)
    print_pending(console, "newly pending", found.pending)
    print_placed(console, found.placed)
    print_removed(console, found.removed)
    print_breaches(console, found.pdb_breaches, changed.started_at)
    print_undrained(console, changed.undrained)
    print_skipped(console, changed.skipped, changed.started_at)
    print_complaints(console, changed.complaints)
    print_recurrences(console, changed.recurrences, changed.started_at)
    print_waiting_groups(console, changed.jobs, changed.started_at)
    print_queues(console, changed.jobs, answer.without.jobs)
    print_allocation(console, _rows_of_both(answer))
    print_line(console, _recovery(answer))
    if forbidden:
        print_line(
            console, f"Displaced in spite of --fail-on: {names_of(forbidden)}", style="bold red"
        )


def print_simulation(
    experiment: Experiment, outcome: Outcome, console: Console | None = None
) -> None:
    """What came of a scenario."""
    console = console or stdout_console()
    start, moved = outcome.started_at, moved_on_the_way(outcome)
    print_line(console, experiment.title, "bold")
    print_line(console, _setting(experiment.source, experiment.seed, outcome))
    print_line(console, _counts_of_outcome(outcome, len(moved)), "bold")
    print_outage(console, outcome)
    print_drain_turns(console, outcome.drains, start)
    print_preempted(console, outcome.preempted, start)
    print_evicted(console, outcome.evicted, start)
    print_moved(console, moved)
    print_pending(console, "pending", outcome.pending())
    print_breaches(console, outcome.pdb_breaches, start)
    print_undrained(console, outcome.undrained)
    print_skipped(console, outcome.skipped, start)
    print_complaints(console, outcome.complaints)
    print_recurrences(console, outcome.recurrences, start)
    print_waiting_groups(console, outcome.jobs, start)
    print_queues(console, outcome.jobs)
    print_allocation(console, _rows_of(outcome))
    if not outcome.settled and experiment.duration is None:
        print_line(console, "The cluster had not settled when the time was over.", style="yellow")


# --- lines -------------------------------------------------------------------------------------


def _setting(source: str, seed: int, outcome: Outcome) -> str:
    span = for_readers(seconds(outcome.virtual_seconds))
    parts = [
        source,
        f"{len(outcome.nodes):,} nodes",
        f"{len(outcome.pods):,} pods",
        f"{span} from {format_timestamp(outcome.started_at)}",
        f"seed {seed}",
        f"{outcome.choices_among_equals:,} choices among equals",
    ]
    return " · ".join(parts)


def _counts_of_difference(found: Difference) -> str:
    if found.is_empty:
        return "No difference."
    counts = {
        "newly placed": len(found.placed),
        "moved": len(found.moved),
        "preempted": len(found.preempted),
        "evicted": len(found.evicted),
        "newly pending": len(found.pending),
        "removed": len(found.removed),
        "PDBs breached": len(found.pdb_breaches),
    }
    if not any(counts.values()):
        return f"Difference: nobody left a node   pods on nodes that went quiet {found.quiet:,}"
    return f"Difference: {_in_line(counts)}"


def _counts_of_outcome(outcome: Outcome, moved: int) -> str:
    counts = {
        "placed": len(outcome.placed()),
        "pending": len(outcome.pending()),
        "completed": sum(pod.is_completed for pod in outcome.pods.values()),
        "preempted": len(outcome.preempted),
        "evicted": len(outcome.evicted),
        "moved": moved,
        "PDBs breached": len(outcome.pdb_breaches),
    }
    return _in_line(counts)


def _in_line(counts: dict[str, int]) -> str:
    return "   ".join(f"{name} {count:,}" for name, count in counts.items())


def _recovery(answer: Answer) -> str:
    found = answer.difference
    if found.recovered_after == 0:
        return "Nothing had to recover."
    if found.recovered_after is not None:
        return f"Everything runs again after {for_readers(found.recovered_after)}."
    reasons = []
    if found.pending:
        reasons.append(f"{len(found.pending):,} more pods wait than would")
    if found.removed:
        reasons.append(f"{len(found.removed):,} are gone for good")
    if not reasons and answer.changed.outage is not None:
        reasons.append(f"{len(answer.changed.outage.lost):,} are not back")
    return f"Not everything runs again: {', '.join(reasons) or 'the time is over'}."


def _rows_of_both(answer: Answer) -> list[tuple[str, int, int, int]]:
    before = {one.resource: one.requested for one in answer.without.allocations}
    return [
        (one.resource, one.allocatable, before.get(one.resource, 0), one.requested)
        for one in answer.changed.allocations
    ]


def _rows_of(outcome: Outcome) -> list[tuple[str, int, int, int]]:
    return [
        (one.resource, one.allocatable, one.requested_before, one.requested)
        for one in outcome.allocations
    ]
