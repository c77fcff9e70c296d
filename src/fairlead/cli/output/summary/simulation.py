"""Prints the summary of a simulation as text.

Names and reasons come from users' dumps and are printed as plain text, never as markup.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from fairlead.api.text.count import counted
from fairlead.api.timestamp import format_timestamp
from fairlead.cli.output.console.finding import print_findings
from fairlead.cli.output.console.screen import Section
from fairlead.cli.output.console.terminal import print_facts, print_line, stdout_console
from fairlead.cli.output.summary.autoscaling import autoscaling, pod_autoscalers
from fairlead.cli.output.summary.jobs import queues, waiting_groups
from fairlead.cli.output.summary.outage import outage_sections, rolling_drains
from fairlead.cli.output.summary.pod import deleted_claims
from fairlead.cli.output.summary.table import (
    print_allocation,
    print_breaches,
    print_errors,
    print_evicted,
    print_moved,
    print_pending,
    print_preempted,
    print_recurrences,
    print_skipped,
    print_undrained,
)
from fairlead.cli.output.summary.waiting_time import waiting_section
from fairlead.engine.core.instant import seconds
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.assessment.run_verdict import run_verdict
from fairlead.whatif.outcome.comparison.difference import moves_within
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.run.experiment import Experiment


def print_simulation(
    experiment: Experiment, outcome: RunOutcome, console: Console | None = None
) -> None:
    """Print the outcome of a scenario as text, on standard output by default."""
    console = console or stdout_console()
    start, moved = outcome.started_at, moves_within(outcome)
    print_line(console, experiment.title, "bold")
    print_findings(console, run_verdict(outcome).findings)
    facts = _run_facts(experiment.source, experiment.seed, outcome, experiment.scheduler_words)
    print_facts(console, facts)
    if experiment.followed.words:
        print_line(console, experiment.followed.words)
    print_facts(console, _counts_of_outcome(outcome, len(moved)), "bold", separator="   ")
    if outcome.outage is not None:
        _print_sections(console, outage_sections(outcome, outcome.outage))
    _print_sections(console, [rolling_drains(outcome.drains, start)])
    print_preempted(console, outcome.preempted, start)
    print_evicted(console, outcome.evicted, start)
    print_moved(console, moved)
    print_pending(console, "pending", outcome.pending)
    print_breaches(console, outcome.pdb_breaches, start)
    print_undrained(console, outcome.undrained)
    _print_sections(console, [deleted_claims(outcome.deleted_claims)])
    print_skipped(console, outcome.skipped, start)
    print_errors(console, outcome.errors)
    print_recurrences(console, outcome.recurrences, start)
    batch = (waiting_groups(outcome.jobs, start), queues(outcome.jobs))
    scaled = (pod_autoscalers(outcome), *autoscaling(outcome))
    _print_sections(console, (waiting_section(outcome), *batch, *scaled))
    print_allocation(console, _rows_of(outcome))
    for note in filter(None, (*outcome.notes, outcome.unfinished_deletions)):
        print_line(console, f"Note: {note}", style="yellow")
    unsettled = outcome.unsettled("duration")
    if experiment.duration is None and unsettled:
        print_line(console, unsettled, style="yellow")


def _print_sections(console: Console, sections: Iterable[Section]) -> None:
    for one in sections:
        if one.rows:
            one.show(console, min(one.rows, one.most))


# --- lines -------------------------------------------------------------------------------------


def _run_facts(source: str, seed: int, outcome: RunOutcome, scheduler: str) -> list[str]:
    span = for_readers(seconds(outcome.virtual_seconds))
    return [
        source,
        counted(len(outcome.nodes), "node"),
        counted(len(outcome.pods), "pod"),
        f"{span} from {format_timestamp(outcome.started_at)}",
        f"seed {seed}",
        *filter(None, [scheduler]),
        counted(outcome.choices_among_equals, "tie broken at random", "ties broken at random"),
    ]


def _counts_of_outcome(outcome: RunOutcome, moved: int) -> list[str]:
    counts = {
        "placed": len(outcome.placed),
        "pending": len(outcome.pending),
        "completed": len(outcome.completed),
        "preempted": len(outcome.preempted),
        "evicted": len(outcome.evicted),
        "moved": moved,
        "PDBs breached": len(outcome.pdb_breaches),
    }
    return [f"{name} {count:,}" for name, count in counts.items()]


def _rows_of(outcome: RunOutcome) -> list[tuple[str, tuple[int, int], tuple[int, int]]]:
    return [
        (
            one.resource,
            (one.requested_before, one.allocatable_before),
            (one.requested, one.allocatable),
        )
        for one in outcome.allocations
    ]
