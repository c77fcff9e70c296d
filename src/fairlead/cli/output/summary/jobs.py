"""The sections about queues and about waiting groups in a summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from rich.console import Console

from fairlead.api.text.count import counted
from fairlead.cli.output.console.amount import amount_text
from fairlead.cli.output.console.screen import Rank, Section, rows_of
from fairlead.cli.output.console.terminal import print_table
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import QueueAllocation
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.deserved_amount import deserved_amounts
from fairlead.whatif.outcome.jobs import JobsOutcome
from fairlead.whatif.outcome.scheduling_message import short_reason

if TYPE_CHECKING:
    from fairlead.engine.batch.explanation.explanation import GroupExplanation

QUEUES_MAX: Final = 20
GROUPS_MAX: Final = 6
UNKNOWN: Final = "unknown"


def queues(jobs: JobsOutcome, without: JobsOutcome | None = None) -> Section:
    """Return the section with the deserved and allocated resources of each queue.

    `without` is the outcome without the change. If `without` is given, the section also shows each
    queue's allocated resources and share in `without`. If the weight or the deserved resources
    differ, both values are shown (`before → after`). The queues that the change affects come first.
    """
    names = sorted({q.queue for each in (jobs, without) if each is not None for q in each.queues})
    if without is not None:
        names.sort(key=lambda name: _has_same_amounts(jobs.queue(name), without.queue(name)))
    rows = [_queue_row(name, jobs, without) for name in names]
    before = () if without is None else ("allocated before", "share before")
    columns = ("queue", "weight", "deserved", *before, "allocated", "share", "requested")
    numbers = ("weight", "share before", "share")

    def show(console: Console, count: int) -> None:
        shown = len(rows_of(rows, count))
        print_table(console, "queues", columns, rows, numbers=numbers, rows_max=shown)

    return Section("queues", len(rows), show, Rank.CAUSES, most=QUEUES_MAX)


def _queue_row(name: str, jobs: JobsOutcome, without: JobsOutcome | None) -> tuple[str, ...]:
    after, before = jobs.queue(name), without.queue(name) if without is not None else None
    known = after or before
    assert known is not None
    earlier: tuple[str, ...] = ()
    if without is not None:
        earlier = (_allocated(before), _share(before))
    return (
        name,
        _changed(str(before.weight) if before is not None else "", str(known.weight)),
        _changed(_deserved(before), _deserved(known)),
        *earlier,
        _allocated(after),
        _share(after),
        amounts_text(after.request) if after is not None else "",
    )


def _has_same_amounts(one: QueueAllocation | None, other: QueueAllocation | None) -> bool:
    """Return whether two states of a queue are equal, apart from the time of the session."""
    return one is not None and other is not None and one == replace(other, at=one.at)


def _changed(before: str, after: str) -> str:
    """Return `before → after`; if `before` is "" or equal to `after`, return `after`."""
    return after if before in {"", after} else f"{before} → {after}"


def _deserved(queue: QueueAllocation | None) -> str:
    return "" if queue is None else amounts_text(deserved_amounts(queue.deserved))


def _allocated(queue: QueueAllocation | None) -> str:
    return "" if queue is None else amounts_text(queue.allocated)


def _share(queue: QueueAllocation | None) -> str:
    return "" if queue is None else f"{queue.share:.2f}"


def amounts_text(amounts: Mapping[str, float]) -> str:
    """Return a text such as `4 cpu, 8.0Gi memory`, without amounts of 0.

    A resource name is shortened to the part after its last `/`. If all amounts are 0, the text is
    `nothing`.
    """
    parts = (
        f"{amount_text(resource, amount)} {resource.rpartition('/')[2]}"
        for resource, amount in amounts.items()
        if amount
    )
    return ", ".join(parts) or "nothing"


def waiting_groups(
    jobs: JobsOutcome,
    start: Instant,
    without: JobsOutcome | None = None,
    *,
    has_start_times: bool = False,
) -> Section:
    """Return the section with the reason why each group waits, and when it may start.

    `without` is the outcome of the run without the change; None if there is no such run. Groups
    that wait because of the change come first: in `without`, they do not wait, or have more running
    members than in `jobs`. The expected start of a group is shown as a duration, counted from
    `start`. If `has_start_times` is True, the expected starts are left out, because another section
    has the simulated start times.
    """
    estimate = () if has_start_times else ("may start after",)
    columns = ("group", "queue", "ready", "because", *estimate)
    harmed = _harmed(jobs, without)
    others = [group for group in jobs.waiting if group not in harmed]
    rows = [_group_row(group, start)[: len(columns)] for group in (*harmed, *others)]
    facts = [f"{jobs.waiting_count:,}"]
    if harmed:
        facts.append(f"{len(harmed):,} because of the change")
    if len(rows) < jobs.waiting_count:
        facts.append(f"the first {len(rows):,} listed")
    title = f"waiting groups ({', '.join(facts)})"

    def show(console: Console, count: int) -> None:
        print_table(console, title, columns, rows, rows_max=len(rows_of(rows, count)))

    what = counted(jobs.waiting_count, "waiting group")
    return Section(what, len(rows), show, Rank.PROBLEMS, most=GROUPS_MAX)


def _harmed(jobs: JobsOutcome, without: JobsOutcome | None) -> list[GroupExplanation]:
    """Return the waiting groups that the change harmed; `without` is the run without the change.

    In `without`, such a group does not wait, or has more running members than in `jobs`. Return []
    if `without` is None or lists only some of its waiting groups.
    """
    if without is None or len(without.waiting) < without.waiting_count:
        return []
    ready = {group.group: group.ready for group in without.waiting}
    return [
        group
        for group in jobs.waiting
        if group.group not in ready or group.ready < ready[group.group]
    ]


def _group_row(group: GroupExplanation, start: Instant) -> tuple[str, ...]:
    begins = group.starts_at
    return (
        group.title,
        group.queue_name,
        f"{group.ready} of {group.min_member}",
        short_reason(group.summary) if group.summary else str(group.obstacle),
        UNKNOWN if begins is None else for_readers(begins - start),
    )
