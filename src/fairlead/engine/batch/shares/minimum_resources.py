"""What groups say they need at least (spec.minResources), for those who let them in."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.state.resource_columns import ResourceColumns, allocatable_amount
from fairlead.engine.state.shape import Amounts


def needs_of(job: JobInfo, columns: ResourceColumns) -> Amounts:
    """By resource column, cpu in milli; nothing for a group that says nothing."""
    resources = job.group.min_resources if job.group is not None else None
    if resources is None:
        return ()
    return tuple((columns.column(name), allocatable_amount(name, resources)) for name in resources)


def outstanding(job: JobInfo, columns: ResourceColumns) -> Amounts:
    """What room is kept for: all that an Inqueue job needs, of a running one what it lacks."""
    needs = needs_of(job, columns)
    if job.is_inqueue:
        return needs
    if job.group is None or job.group.status.phase != "Running" or not job.is_ready:
        return ()
    return tuple(
        (c, amount - _held(job.held, c)) for c, amount in needs if amount > _held(job.held, c)
    )


def _held(held: Sequence[int], column: int) -> int:
    return held[column] if column < len(held) else 0
