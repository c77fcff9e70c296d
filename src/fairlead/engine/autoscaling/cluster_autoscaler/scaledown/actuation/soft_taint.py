"""Decides which soft taints to add to nodes and remove from nodes; each loop writes only a few.

The soft taint DeletionCandidate marks a node as unneeded. To write the taint, upstream first uses
the version of the node that it read at the start of the loop. If the loop has tainted the node for
deletion since then, that version is out of date and the write conflicts. Upstream then sleeps 0.75
s before it retries. The sleep also delays the later writes of the loop. After
--max-bulk-soft-taint-time, no further write starts.

upstream: core/scaledown/actuation/softtaint.go, utils/taints/taints.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from msgspec import Struct

from fairlead.api.nodes.autoscaler_taint import DELETION_CANDIDATE, TO_BE_DELETED
from fairlead.api.objects import Node
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.taint import has_taint
from fairlead.engine.core.instant import DurationNs, seconds

CONFLICT_SLEEP: Final[DurationNs] = seconds(0.75)


class SoftTaintWrite(Struct, frozen=True):
    """A write of a node's soft taint, `delay` ns after the loop's start.

    If `add` is set, the taint is added, otherwise removed.
    """

    name: str
    add: bool
    delay: DurationNs


def soft_taint_writes(
    nodes: Iterable[Node],
    unneeded: Collection[str],
    written: Collection[str],
    options: AutoscalingOptions,
) -> list[SoftTaintWrite]:
    """Return the soft taint writes of one loop, in order: taints to remove, then taints to add.

    `nodes` are the nodes of autoscaled groups. `unneeded` are the names of the unneeded nodes.
    `written` are the names of the nodes that the loop has just tainted for deletion. `options`
    limit the number of writes and the time that the loop sleeps after conflicts.
    """
    nodes = [node for node in nodes if not has_taint(node, TO_BE_DELETED)]
    found: list[SoftTaintWrite] = []
    slept: DurationNs = 0
    for node, add in _wanted(nodes, unneeded):
        if len(found) >= options.max_bulk_soft_taint_count:
            break
        if slept >= options.max_bulk_soft_taint_time:
            break
        if node.metadata.name in written:
            slept += CONFLICT_SLEEP
        found.append(SoftTaintWrite(node.metadata.name, add, slept))
    return found


def _wanted(nodes: Iterable[Node], unneeded: Collection[str]) -> Iterator[tuple[Node, bool]]:
    nodes = list(nodes)
    for node in nodes:
        if node.metadata.name not in unneeded and has_taint(node, DELETION_CANDIDATE):
            yield node, False
    for node in nodes:
        if node.metadata.name in unneeded and not has_taint(node, DELETION_CANDIDATE):
            yield node, True
