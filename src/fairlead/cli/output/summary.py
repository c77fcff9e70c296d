"""Prints the summary of a what-if or a simulation as text.

Names and reasons come from users' dumps and are printed as plain text, never as markup.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from fairlead.api.timestamp import format_timestamp
from fairlead.cli.output.jobs_summary import print_queues, print_waiting_groups
from fairlead.cli.output.outage_summary import print_outage, print_rolling_drains
from fairlead.cli.output.summary_table import (
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
    print_updated,
)
from fairlead.cli.output.terminal import print_line, stdout_console
from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.difference import Difference, moves_within
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome
from fairlead.whatif.question import WhatIfAnswer
from fairlead.whatif.run.experiment import Experiment


def print_answer(
    answer: WhatIfAnswer, forbidden: Sequence[PodEnd], console: Console | None = None
) -> None:
    """Print the effect of the change; `forbidden` are displaced pods matching --fail-on."""
    console = console or stdout_console()
    changed, found = answer.changed, answer.difference
    print_line(console, answer.change.title, "bold")
    print_line(console, _run_line(answer.source, answer.seed, changed))
    if answer.releases.words:
        print_line(console, answer.releases.words)
    print_line(console, _counts_of_difference(found), "bold")
    if answer.outage is not None:
        print_outage(console, changed)
    print_rolling_drains(console, changed.drains, changed.started_at)
    print_preempted(console, found.preempted, changed.started_at)
    print_evicted(console, found.evicted, changed.started_at)
    print_moved(console, found.moved)
    print_pending(console, "newly pending", found.pending)
    print_placed(console, found.placed)
    print_updated(console, found.updated)
    print_removed(console, "gone for good", found.gone)
    print_removed(console, "removed", found.removed)
    print_breaches(console, found.pdb_breaches, changed.started_at)
    print_undrained(console, changed.undrained)
    print_skipped(console, changed.skipped, changed.started_at)
    print_complaints(console, changed.complaints)
    print_recurrences(console, changed.recurrences, changed.started_at)
    print_waiting_groups(console, changed.jobs, changed.started_at)
    print_queues(console, changed.jobs, answer.without.jobs)
    print_allocation(console, _rows_of_both(answer))
    print_line(console, _recovery(answer))
    _print_notes(console, changed)
    _print_unsettled(console, changed)
    if forbidden:
        print_line(
            console, f"Displaced pods matching --fail-on: {names_of(forbidden)}", style="bold red"
        )


def print_simulation(
    experiment: Experiment, outcome: RunOutcome, console: Console | None = None
) -> None:
    """Print the outcome of a scenario."""
    console = console or stdout_console()
    start, moved = outcome.started_at, moves_within(outcome)
    print_line(console, experiment.title, "bold")
    print_line(console, _run_line(experiment.source, experiment.seed, outcome))
    if experiment.releases.words:
        print_line(console, experiment.releases.words)
    print_line(console, _counts_of_outcome(outcome, len(moved)), "bold")
    print_outage(console, outcome)
    print_rolling_drains(console, outcome.drains, start)
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
    _print_notes(console, outcome)
    if experiment.duration is None:
        _print_unsettled(console, outcome)


def _print_unsettled(console: Console, outcome: RunOutcome) -> None:
    if not outcome.settled:
        text = "The cluster had not settled when the run ended (--horizon); changes continue."
        print_line(console, text, style="yellow")


def _print_notes(console: Console, outcome: RunOutcome) -> None:
    for note in outcome.notes:
        print_line(console, f"Note: {note}", style="yellow")


# --- lines -------------------------------------------------------------------------------------


def _run_line(source: str, seed: int, outcome: RunOutcome) -> str:
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
        "updated": len(found.updated),
        "gone for good": len(found.gone),
        "removed": len(found.removed),
        "PDBs breached": len(found.pdb_breaches),
    }
    if any(counts.values()):
        return f"Difference: {_in_line(counts)}"
    if found.quiet:
        return f"Difference: no pods moved   pods on failed nodes {found.quiet:,}"
    return f"Difference: no pods moved   requested amounts changed: {', '.join(found.reallocated)}"


def _counts_of_outcome(outcome: RunOutcome, moved: int) -> str:
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


def _recovery(answer: WhatIfAnswer) -> str:
    found = answer.difference
    if found.recovered_after == 0:
        return "Nothing had to recover."
    if found.recovered_after is not None:
        return f"All pods run again after {for_readers(found.recovered_after)}."
    reasons = []
    if found.pending:
        more = len(found.pending)
        stay = "pod stays" if more == 1 else "pods stay"
        reasons.append(f"{more:,} more {stay} Pending than without the change")
    if found.gone:
        reasons.append(f"{len(found.gone):,} are gone for good")
    if not reasons and answer.changed.outage is not None:
        reasons.append(f"{len(answer.changed.outage.lost):,} are not back")
    return f"Not all pods run again: {', '.join(reasons) or 'the run ended first'}."


def _rows_of_both(answer: WhatIfAnswer) -> list[tuple[str, int, int, int]]:
    before = {one.resource: one.requested for one in answer.without.allocations}
    return [
        (one.resource, one.allocatable, before.get(one.resource, 0), one.requested)
        for one in answer.changed.allocations
    ]


def _rows_of(outcome: RunOutcome) -> list[tuple[str, int, int, int]]:
    return [
        (one.resource, one.allocatable, one.requested_before, one.requested)
        for one in outcome.allocations
    ]
