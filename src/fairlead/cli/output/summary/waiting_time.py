"""Prints how long pods waited for a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console

from fairlead.api.text.count import counted
from fairlead.cli.output.console.screen import Rank, Section, rows_of
from fairlead.cli.output.console.terminal import print_item, print_line
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.autoscaling.waiting_time import (
    PodWait,
    WaitingTimes,
    waiting_times,
    waiting_times_by_workload,
)
from fairlead.whatif.outcome.run_outcome import RunOutcome

_SHOWN_MAX: Final = 5


def waiting_section(run: RunOutcome) -> Section:
    """Return the section on the waits of the pods of `run`.

    The section is empty if the waits are not worth a section (`RunOutcome.has_long_waits`).
    """

    def show(console: Console, count: int) -> None:
        print_line(console, "")
        print_waiting(console, run.waits, None, count)

    rows = len(waiting_times_by_workload(run.waits)) if run.has_long_waits else 0
    return Section("waits for a node", rows, show, Rank.CAUSES, most=_SHOWN_MAX)


def print_waiting(
    console: Console, waits: Sequence[PodWait], without: Sequence[PodWait] | None, count: int
) -> None:
    """Print how long pods waited for a node: all pods, then the pods of each workload.

    At most `count` workloads are printed. `waits` contains the waits of the run to print. If this
    run simulates a what-if change, `without` contains the waits of another run without the change;
    otherwise it is None.
    """
    found = waiting_times(waits)
    if found.bound or found.still_waiting:
        print_line(console, f"pods waited for a node: {_waiting(found)}")
    if without:
        print_line(console, f"without the change: {_waiting(waiting_times(without))}")
    workloads = waiting_times_by_workload(waits)
    shown = rows_of(workloads, count)
    for workload, one in shown:
        print_item(console, f"{workload}: {_waiting(one)}")
    hidden = len(workloads) - len(shown)
    if hidden > 0:
        print_item(console, f"… and {counted(hidden, 'more workload')}")


def _waiting(found: WaitingTimes) -> str:
    parts = []
    if found.bound == 1:
        parts.append(f"1 bound after {for_readers(found.longest)} ({found.longest_pod})")
    elif found.bound:
        median, p95, longest = map(for_readers, (found.median, found.p95, found.longest))
        parts.append(
            f"{found.bound:,} bound, median {median}, 95% within {p95}, "
            f"longest {longest} ({found.longest_pod})"
        )
    if found.still_waiting:
        parts.append(f"{found.still_waiting:,} still waiting")
    return ", ".join(parts)
