"""Prints the tables of a summary. Each table shows the first entries of a list in the result."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from rich.console import Console

from fairlead.cli.output.console.amount import amount_text, percent_text
from fairlead.cli.output.console.terminal import print_table
from fairlead.engine.core.instant import Instant
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.comparison.difference import Move
from fairlead.whatif.outcome.run_outcome import (
    Evicted,
    ObjectError,
    PdbBreach,
    PodEnd,
    Preempted,
    Recurrence,
    Skipped,
    Undrained,
)
from fairlead.whatif.outcome.scheduling_message import short_reason

ROWS_MAX: Final = 6
NAMES_MAX: Final = 2


def names_of(pods: Sequence[PodEnd]) -> str:
    """Return the first few names of `pods`, and the number of further names."""
    shown = ", ".join(pod.key for pod in pods[:NAMES_MAX])
    rest = len(pods) - NAMES_MAX
    return f"{shown} and {rest:,} more" if rest > 0 else shown


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


def print_preempted(console: Console, rows: Sequence[Preempted], start: Instant) -> None:
    """Print preempted pods with their node, their preemptor, and the rule that chose this node.

    Times are counted from `start`.
    """
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


def print_evicted(console: Console, rows: Sequence[Evicted], start: Instant) -> None:
    """Print the pods that a controller evicted, and how long after `start` each was evicted."""
    cells = [
        (_after(start, one.at), f"{one.pod.key} ({one.pod.priority})", one.node, one.reason)
        for one in rows
    ]
    columns = ("after", "pod (priority)", "from node", "why")
    _table(console, f"evicted ({len(rows):,})", columns, cells, ("after",))


def print_moved(console: Console, rows: Sequence[Move]) -> None:
    """Print the displaced pods that are on another node at the end."""
    cells = [(move.pod.key, move.origin, move.target) for move in rows]
    _table(console, f"moved ({len(rows):,})", ("pod", "from", "to"), cells)


def print_pending(console: Console, title: str, rows: Sequence[PodEnd]) -> None:
    """Print pending pods grouped by reason, the most frequent first, without the full messages."""
    by_reason: dict[str, list[PodEnd]] = {}
    for pod in rows:
        by_reason.setdefault(short_reason(pod.reason), []).append(pod)
    reasons = sorted(by_reason, key=lambda reason: (-len(by_reason[reason]), reason))
    cells = [
        (f"{len(by_reason[reason]):,}", reason, names_of(by_reason[reason])) for reason in reasons
    ]
    _table(console, f"{title} ({len(rows):,})", ("pods", "why", "which"), cells, ("pods",))


def print_breaches(console: Console, rows: Sequence[PdbBreach], start: Instant) -> None:
    """Print each displacement of a pod whose disruption budget allowed no disruption.

    Times are counted from `start`.
    """
    _table(
        console,
        f"disruption budgets breached ({len(rows):,})",
        ("after", "budget", "pod", "by"),
        [(_after(start, one.at), one.pdb, one.pod, one.by) for one in rows],
        numbers=("after",),
    )


def print_undrained(console: Console, rows: Sequence[Undrained]) -> None:
    """Print the pods that a drain did not remove, with the reasons."""
    cells = [(one.pod.key, one.pod.node, one.why) for one in rows]
    _table(console, f"not drained ({len(rows):,})", ("pod", "on node", "why"), cells)


def print_skipped(console: Console, rows: Sequence[Skipped], start: Instant) -> None:
    """Print the scripted events that had no effect, and how long after `start` each happened."""
    _table(
        console,
        f"events without effect ({len(rows):,})",
        ("after", "event", "why"),
        [(_after(start, one.at), one.what, one.why) for one in rows],
        numbers=("after",),
    )


def print_errors(console: Console, rows: Sequence[ObjectError]) -> None:
    """Print the objects that could not be created, and failures of users' plugins."""
    cells = [(one.subject, f"{one.missing:,}" if one.missing else "", one.message) for one in rows]
    columns = ("object", "pods missing", "message")
    _table(console, f"errors ({len(rows):,})", columns, cells, numbers=("pods missing",))


def print_recurrences(console: Console, rows: Sequence[Recurrence], start: Instant) -> None:
    """Print displacement cycles, starving workloads, and nominations that had no effect.

    Times are counted from `start`.
    """
    _table(
        console,
        f"repeatedly displaced ({len(rows):,})",
        ("after", "what"),
        [(_after(start, one.at), one.message) for one in rows],
        numbers=("after",),
    )


def print_allocation(
    console: Console, rows: Sequence[tuple[str, tuple[int, int], tuple[int, int]]]
) -> None:
    """Print the requested and the allocatable amount of each resource, before and after a run.

    A row is (resource, amounts before, amounts after), where the amounts are (requested,
    allocatable).
    """
    _table(
        console,
        "requested / allocatable on all nodes",
        ("resource", "before", "", "after", " "),
        [(resource, *_shares(resource, *before), *_shares(resource, *after))
         for resource, before, after in rows],
        numbers=("before", "", "after", " "),
    )  # fmt: skip
    console.print()


def _shares(resource: str, requested: int, allocatable: int) -> tuple[str, str]:
    """Return two texts: the amounts as `REQUESTED / ALLOCATABLE`, and the share in percent."""
    amounts = (amount_text(resource, amount) for amount in (requested, allocatable))
    return " / ".join(amounts), percent_text(requested, allocatable)
