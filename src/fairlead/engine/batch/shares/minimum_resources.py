"""What groups declare that they need at least (spec.minResources), for admission."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.state.resource_columns import ResourceColumns, allocatable_amount
from fairlead.engine.state.shape import Amounts


def needs_of(job: JobInfo, columns: ResourceColumns) -> Amounts:
    """By resource column, cpu in milli; empty for a group without minResources."""
    resources = job.group.min_resources if job.group is not None else None
    if resources is None:
        return ()
    return tuple((columns.column(name), allocatable_amount(name, resources)) for name in resources)


def outstanding(job: JobInfo, columns: ResourceColumns) -> Amounts:
    """What is still promised to the job: all of minResources if Inqueue, the rest if running."""
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
