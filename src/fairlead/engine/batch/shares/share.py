"""Computes dominant shares, and reads the minResources of groups for the action `enqueue`."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.nodes.room import Room
from fairlead.engine.batch.rules import BatchRules
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.resource_columns import ResourceColumns, allocatable_amount
from fairlead.engine.state.shape import Amounts

Total = tuple[tuple[int, int], ...]


def share(held: float, whole: float) -> float:
    """Return `held` ÷ `whole` (helpers.go: Share).

    If both amounts are 0, the result is 0. If only `whole` is 0, the result is 1.
    """
    if whole:
        return held / whole
    return 1.0 if held else 0.0


def dominant_share(held: Sequence[int], total: Total) -> float:
    """Return the largest fraction `held` ÷ `total` over the columns of `total`.

    Columns that `held` lacks count as 0.
    """
    highest, known = 0.0, len(held)
    for column, whole in total:
        if column < known and held[column]:
            highest = max(highest, share(held[column], whole))
    return highest


def cluster_total(room: Room, rules: BatchRules) -> Total:
    """Return the total capacity of the session's nodes as pairs (column, amount).

    Resources that the rules do not count are left out. Resources that no node offers are left out,
    too, except cpu and memory.
    """
    table = room.table
    counted = table.alive & ~room.is_left_out
    sums = table.allocatable[:, counted].sum(axis=1).tolist()
    names = table.resources.names
    return tuple(
        (column, whole)
        for column, whole in enumerate(sums)
        if names[column] not in rules.uncounted and (whole or _is_offered(table, names[column]))
    )


def _is_offered(table: NodeTable, name: str) -> bool:
    if name in ("cpu", "memory"):
        return True
    return any(name in node.node.status.allocatable for node in table.nodes())


def needs_of(job: JobInfo, columns: ResourceColumns) -> Amounts:
    """Return the minResources of the job's group as pairs (column, amount).

    cpu is in millicores.
    """
    resources = job.group.min_resources if job.group is not None else None
    if resources is None:
        return ()
    return tuple((columns.column(name), allocatable_amount(name, resources)) for name in resources)


def outstanding(job: JobInfo, columns: ResourceColumns) -> Amounts:
    """Return the part of minResources in the PodGroup of `job` that is still reserved for `job`.

    In the phase Inqueue, all of minResources is reserved. In the phase Running, the amounts that
    the job does not hold yet are reserved if the minimum number of members have a node. Without
    this condition, the amounts of members that have ended would be reserved again. In all other
    cases, the result is ().

    upstream: volcano: pkg/scheduler/plugins/proportion/proportion.go: OnSessionOpen
    """
    needs = needs_of(job, columns)
    if job.is_inqueue:
        return needs
    if job.group is None or job.group.status.phase != "Running":
        return ()
    if job.allocated_count < job.min_available:
        return ()
    return tuple(
        (c, amount - _held(job.held, c)) for c, amount in needs if amount > _held(job.held, c)
    )


def _held(held: Sequence[int], column: int) -> int:
    return held[column] if column < len(held) else 0
