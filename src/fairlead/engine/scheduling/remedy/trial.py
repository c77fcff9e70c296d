"""Runs the filters on one node with some changes applied, and reverts the changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fairlead.engine.core.status import Status
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, Stimulus
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.diagnosis import restricted_by
from fairlead.engine.framework.interface import PreFilterResult
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.scheduling.remedy.change import RemedyChange
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo


@contextmanager
def with_changes(cluster: Cluster, changes: Sequence[RemedyChange]) -> Iterator[None]:
    """Apply changes of nodes and deletions of pods; the end of the `with` block reverts them."""
    undo: list[Stimulus] = []
    try:
        for change in changes:
            if change.node is not None:
                known = cluster.table.find(change.node.metadata.name)
                assert known is not None
                undo.append(ObjectChanged(known.node))
                cluster.apply(ObjectChanged(change.node))
            for other in change.without:
                undo.append(ObjectChanged(other.pod))
                cluster.apply(ObjectDeleted(other.pod))
        yield
    finally:
        for stimulus in reversed(undo):
            cluster.apply(stimulus)


def as_changed(cluster: Cluster, pod: PodInfo, changes: Sequence[RemedyChange]) -> PodInfo:
    """Return `pod` as it is after `changes`.

    The last change that contains a changed pod determines the result. If no change contains one,
    `pod` itself is returned.
    """
    for change in changes:
        if change.pod is not None:
            pod = PodInfo(change.pod, cluster.shapes.shape_of(change.pod))
    return pod


def verdict_after(
    framework: Framework, pod: PodInfo, node: str, changes: Sequence[RemedyChange]
) -> Status | None:
    """Return the status that rejects `pod` on `node` after `changes`; None if the pod fits."""
    with with_changes(framework.cluster, changes):
        return _verdict(framework, as_changed(framework.cluster, pod, changes), node)


def _verdict(framework: Framework, pod: PodInfo, name: str) -> Status | None:
    framework.cluster.table.widen()
    node = framework.cluster.table.find(name)
    assert node is not None
    state = CycleState()
    for plugin in framework.pre_filters:
        answer = framework.run_pre_filter(state, pod, plugin)
        if isinstance(answer, Status):
            return answer
        names = answer.node_names if isinstance(answer, PreFilterResult) else None
        if names is not None and name not in names:
            return restricted_by([plugin.name]).by(plugin.name)
    return framework.run_filters_with_nominated(state, pod, node)
