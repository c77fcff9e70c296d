"""Trial: checks whether a pod would fit if some pods were removed and others added.

    with handle.trial(state, pod) as trial:
        trial.remove(other, node)
        trial.verdict(target)       # None if the pod would fit now
                                    # leaving the block reverts everything

A trial updates the plugins' PreFilter data (AddPod, RemovePod). So a verdict on one node takes into
account the pods removed from another node.
upstream: default_preemption.go: SelectVictimsOnNode
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from fairlead.engine.core.status import Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.fault import PluginFault
from fairlead.engine.state.fork import Fork, fork
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo


class TrialFilters(Protocol):
    """The methods of the framework that a trial calls."""

    def run_filters_with_nominated(
        self, state: CycleState, pod: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Run the Filters on `node`, both with and without the pods nominated to the node.

        Returns the first rejection; None if `pod` fits in both cases.
        """
        ...

    def run_add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Add `added` to the PreFilter data in `state`; return an error if a plugin failed."""
        ...

    def run_remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Remove `removed` from the PreFilter data in `state`; return an error if that fails."""
        ...


class Trial:
    """Moves pods hypothetically and runs the Filters; `handle.trial` creates a Trial.

    `add` and `remove` raise PluginFault if a plugin cannot update its PreFilter data. A plugin that
    runs a trial need not catch PluginFault.
    """

    def __init__(
        self, filters: TrialFilters, state: CycleState, pod: PodInfo, hypothesis: Fork
    ) -> None:
        """`state` is a copy that the trial may change."""
        self._filters = filters
        self._state = state
        self._pod = pod
        self._hypothesis = hypothesis

    def add(self, other: PodInfo, node: NodeInfo) -> None:
        """Assume that `other` is on `node`."""
        self._hypothesis.add_pod(node, other)
        _demand(self._filters.run_add_pod(self._state, self._pod, other, node))

    def remove(self, other: PodInfo, node: NodeInfo) -> None:
        """Assume that `other` is no longer on `node`."""
        self._hypothesis.remove_pod(node, other)
        _demand(self._filters.run_remove_pod(self._state, self._pod, other, node))

    def verdict(self, node: NodeInfo) -> Status | None:
        """Return the status that rejects the trial's pod on `node`; None if the pod fits.

        All calls of `add` and `remove` are taken into account.
        """
        return self._filters.run_filters_with_nominated(self._state, self._pod, node)


def _demand(failure: Status | None) -> None:
    if failure is not None:
        raise PluginFault(failure.plugin, failure.message)


@contextmanager
def trial(
    filters: TrialFilters, table: NodeTable, state: CycleState, pod: PodInfo
) -> Iterator[Trial]:
    """Yield a trial with a copy of `state`. After the `with` block, `table` is as before."""
    with fork(table) as hypothesis:
        yield Trial(filters, state.clone(), pod, hypothesis)
