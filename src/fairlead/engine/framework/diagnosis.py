"""Diagnosis: the reasons why no node fits a pod, and the message for users.

upstream: pkg/scheduler/framework/types.go: Diagnosis, FitError.Error
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from fairlead.engine.core.status import Code, Status, unresolvable
from fairlead.engine.framework.code_counts import CodeCounts
from fairlead.engine.state.node_table import NodeTable

NO_NODES: Final = "no nodes available to schedule pods"
GROUP_UNSCHEDULABLE: Final = "pod group is unschedulable"
_HISTOGRAMS_MAX: Final = 256
_RESTRICTED_BY: Final = "node(s) didn't satisfy plugin(s) {plugins}"


class Diagnosis(Struct, frozen=True, dict=True):
    """The verdict on every node in a failed scheduling cycle.

    `rows[i]` is the row of a node: its index in the node table. The verdict on this node is
    `statuses[codes[i]]`.
    """

    table: NodeTable
    rows: npt.NDArray[np.int64]  # node rows, ascending
    codes: npt.NDArray[np.int32]  # a negative code means that there is no verdict
    statuses: Sequence[Status]
    # The plugins whose PreFilter allows only certain nodes. These plugins excluded the nodes
    # without a verdict and the nodes that are not in `rows`.
    restricting: tuple[str, ...] = ()
    # If the pod was rejected as a whole, the verdict on every node.
    pre_filter: Status | None = None
    # `("Extender",)` if extenders removed nodes, otherwise (). Needed because the statuses of
    # extenders name no plugin.
    extender_rejectors: tuple[str, ...] = ()
    # If `statuses` is the list of a ShapePlan, the CodeCounts of that plan.
    code_counts: CodeCounts | None = None

    def counts(self) -> Iterator[tuple[Status, int]]:
        """Yield (verdict, number of nodes) for each distinct rejection."""
        return iter(self._counts)

    @cached_property  # used for the text of the event and for the list of plugins
    def _counts(self) -> list[tuple[Status, int]]:
        if self.pre_filter is not None:
            return [(self.pre_filter, self.table.count)]
        counts = self.code_counts or CodeCounts(self.statuses)
        tally = counts.tally(self.rows, self.codes)
        found = [(self.statuses[code], count) for code, count in tally]
        if self.restricting:
            rest = self.table.count - int(np.count_nonzero(self.codes >= 0))
            if rest:
                found.append((restricted_by(self.restricting), rest))
        return found

    def status_of(self, row: int) -> Status:
        """Return the verdict on the node at `row`."""
        if self.pre_filter is not None:
            return self.pre_filter
        at = int(np.searchsorted(self.rows, row))
        if at < len(self.rows) and self.rows[at] == row and self.codes[at] >= 0:
            return self.statuses[int(self.codes[at])]
        return restricted_by(self.restricting)

    def rows_with(self, code: Code) -> npt.NDArray[np.int64]:
        """Return the rows of nodes whose verdict has `code`, ascending."""
        if self.pre_filter is not None:
            alive = np.flatnonzero(self.table.alive)
            return alive if self.pre_filter.code is code else alive[:0]
        counts = self.code_counts or CodeCounts(self.statuses)
        return counts.rows_with(self.rows, self.codes, code)

    def rows_rejected_by(self, plugins: Container[str]) -> npt.NDArray[np.int64]:
        """Return the rows of nodes whose verdict comes from one of `plugins`, ascending."""
        if self.pre_filter is not None:
            alive = np.flatnonzero(self.table.alive)
            return alive if self.pre_filter.plugin in plugins else alive[:0]
        is_theirs = np.array([status.plugin in plugins for status in self.statuses], np.bool_)
        return self.rows[is_theirs[self.codes] & (self.codes > 0)]

    def plugins(self) -> tuple[str, ...]:
        """Return the names of the plugins that rejected or excluded a node."""
        rejecting = {status.plugin for status, _ in self.counts() if status.plugin}
        return tuple(sorted(rejecting | {*self.restricting, *self.extender_rejectors}))


def restricted_by(plugins: Sequence[str]) -> Status:
    """Return the verdict on nodes that `plugins` excluded in PreFilter (schedule_one.go)."""
    return unresolvable(_RESTRICTED_BY.format(plugins=f"[{' '.join(plugins)}]"))


def fit_error(diagnosis: Diagnosis, post_filter_message: str) -> str:
    """Return the text of the FailedScheduling event.

    `post_filter_message` is appended if the cluster has nodes. Reasons with their node counts are
    sorted as strings, so "10 x" comes before "2 y". A node with several reasons is counted for each
    of them.
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


def histogram(counts: Iterable[tuple[Status, int]]) -> str:
    """Return the counted reasons as text, such as ` 2 Insufficient cpu, 3 Too many pods.`.

    Returns "" if `counts` is empty.
    """
    return _histogram(tuple([(status.reasons, nodes) for status, nodes in counts]))


@lru_cache(maxsize=_HISTOGRAMS_MAX)  # the failures of equal pods have equal texts
def _histogram(counts: tuple[tuple[tuple[str, ...], int], ...]) -> str:
    tally: dict[str, int] = {}
    for reasons, nodes in counts:
        for reason in reasons:
            tally[reason] = tally.get(reason, 0) + nodes
    entries = sorted(f"{nodes} {reason}" for reason, nodes in tally.items())
    return f" {', '.join(entries)}." if entries else ""
