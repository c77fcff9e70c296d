"""Diagnosis: why no node fits, and the text that users read about it.

upstream: pkg/scheduler/framework/types.go: Diagnosis, FitError.Error
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.core.status import Code, Status, unresolvable
from fairlead.state.node_table import NodeTable

NO_NODES: Final = "no nodes available to schedule pods"
_RESTRICTED_BY: Final = "node(s) didn't satisfy plugin(s) {plugins}"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The verdict of a failed cycle on every node.

    `codes[i]` indexes `statuses` for the node in row `rows[i]`; `overrides` names the rows whose
    verdict is another one because of nominated pods. Rows of the table that are in neither were
    excluded by name (`excluded`). `pre_filter` is set when the pod was rejected as a whole, and
    then stands for every node.
    """

    table: NodeTable
    rows: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    statuses: Sequence[Status]
    overrides: Mapping[int, Status] = field(default_factory=dict)
    excluded: Status | None = None
    pre_filter: Status | None = None

    def counts(self) -> Iterator[tuple[Status, int]]:
        """Each distinct verdict with the number of nodes that have it."""
        if self.pre_filter is not None:
            yield self.pre_filter, self.table.count
            return
        tally = np.bincount(self.codes[self.codes > 0], minlength=len(self.statuses))
        for row, status in self.overrides.items():
            code = int(self.codes[self.position(row)])
            if code > 0:
                tally[code] -= 1
            yield status, 1
        for code in np.flatnonzero(tally):
            yield self.statuses[code], int(tally[code])
        if self.excluded is not None:
            rest = self.table.count - int(np.count_nonzero(self.codes >= 0))
            if rest:
                yield self.excluded, rest

    def position(self, row: int) -> int:
        """Where `row` stands in `rows`."""
        return int(np.searchsorted(self.rows, row))

    def status_of(self, row: int) -> Status:
        """The verdict on the node in `row`."""
        if self.pre_filter is not None:
            return self.pre_filter
        if row in self.overrides:
            return self.overrides[row]
        at = self.position(row)
        if at < len(self.rows) and self.rows[at] == row:
            return self.statuses[self.codes[at]]
        assert self.excluded is not None
        return self.excluded

    def rows_with(self, code: Code) -> list[int]:
        """The rows whose verdict has `code`, ascending."""
        if self.pre_filter is not None:
            alive = np.flatnonzero(self.table.alive)
            return alive.tolist() if self.pre_filter.code is code else []
        wanted = np.array([status.code is code for status in self.statuses], np.bool_)
        hit = wanted[self.codes] & (self.codes > 0)
        for row, status in self.overrides.items():
            hit[self.position(row)] = status.code is code
        rows: list[int] = self.rows[hit].tolist()
        return rows

    def plugins(self) -> tuple[str, ...]:
        """The plugins that rejected a node, by name."""
        return tuple(sorted({status.plugin for status, _ in self.counts() if status.plugin}))


def restricted_by(plugins: Sequence[str]) -> Status:
    """The verdict on nodes that a PreFilter excluded by name (schedule_one.go)."""
    return unresolvable(_RESTRICTED_BY.format(plugins=f"[{' '.join(plugins)}]"))


def fit_error(diagnosis: Diagnosis, post_filter_message: str) -> str:
    """The FailedScheduling text.

    Counted reasons are sorted as strings, so "10 x" comes before "2 y"; a node that fails for
    several reasons counts in each.
    """
    nodes = diagnosis.table.count
    if not nodes:
        return NO_NODES
    text = f"0/{nodes} nodes are available:"
    if diagnosis.pre_filter is not None:
        text += f" {diagnosis.pre_filter.message}."
    else:
        text += histogram(diagnosis.counts())
    return f"{text} {post_filter_message}" if post_filter_message else text


def histogram(counts: Iterator[tuple[Status, int]]) -> str:
    """` 2 Insufficient cpu, 3 Too many pods.`, or "" when nothing is counted."""
    tally: dict[str, int] = {}
    for status, nodes in counts:
        for reason in status.reasons:
            tally[reason] = tally.get(reason, 0) + nodes
    entries = sorted(f"{nodes} {reason}" for reason, nodes in tally.items())
    return f" {', '.join(entries)}." if entries else ""
