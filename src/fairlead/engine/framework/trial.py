"""Trial: would the pod fit, if those left and these came?

    with handle.trial(state, pod) as trial:
        trial.remove(other, node)
        trial.verdict(target)       # None where the pod would fit now
                                    # leaving takes everything back

A trial moves pods on any number of nodes. The plugins' PreFilter findings follow (AddPod,
RemovePod), so that a verdict on one node knows of the pods that left another.
upstream: the way default_preemption.go: SelectVictimsOnNode asks the framework
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
    """What a trial needs of the framework."""

    def run_filters_with_nominated(
        self, state: CycleState, pod: PodInfo, node: NodeInfo
    ) -> Status | None:
        """The first rejection of `pod` on `node`, None where it fits."""
        ...

    def run_add_pod(
        self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Tell the findings in `state` of `added`; the status of a plugin that failed."""
        ...

    def run_remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Tell the findings in `state` that `removed` left."""
        ...


class Trial:
    """Made by `handle.trial`; see the module's docstring.

    Raises PluginFault where a plugin cannot keep its findings true: no verdict would mean anything
    any more. A plugin need not catch it.
    """

    def __init__(
        self, asking: TrialFilters, state: CycleState, pod: PodInfo, hypothesis: Fork
    ) -> None:
        """`state` is the trial's own."""
        self._asking = asking
        self._state = state
        self._pod = pod
        self._hypothesis = hypothesis

    def add(self, other: PodInfo, node: NodeInfo) -> None:
        """Suppose `other` were on `node`."""
        self._hypothesis.add_pod(node, other)
        _demand(self._asking.run_add_pod(self._state, self._pod, other, node))

    def remove(self, other: PodInfo, node: NodeInfo) -> None:
        """Suppose `other` gone from `node`, where it is."""
        self._hypothesis.remove_pod(node, other)
        _demand(self._asking.run_remove_pod(self._state, self._pod, other, node))

    def verdict(self, node: NodeInfo) -> Status | None:
        """Why the pod does not fit `node` as things are supposed to be; None where it does."""
        return self._asking.run_filters_with_nominated(self._state, self._pod, node)


def _demand(failure: Status | None) -> None:
    if failure is not None:
        raise PluginFault(failure.plugin, failure.message)


@contextmanager
def trial(
    asking: TrialFilters, table: NodeTable, state: CycleState, pod: PodInfo
) -> Iterator[Trial]:
    """A trial that starts from `state`, which stays as it is, and ends with the block."""
    with fork(table) as hypothesis:
        yield Trial(asking, state.clone(), pod, hypothesis)
