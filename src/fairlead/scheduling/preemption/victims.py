"""select_victims_on_node: the fewest, least important pods whose removal lets the pod in.

upstream: default_preemption.go: SelectVictimsOnNode
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.objects import PodDisruptionBudget
from fairlead.core.status import Status, error, unresolvable
from fairlead.framework.cycle_state import CycleState
from fairlead.framework.runtime import Framework
from fairlead.scheduling.preemption.candidate import Candidate, importance
from fairlead.scheduling.preemption.disruption_budget import split_by_budget
from fairlead.state.fork import Fork, fork
from fairlead.state.node_info import NodeInfo
from fairlead.state.pod_info import PodInfo

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")


def select_victims_on_node(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    node: NodeInfo,
    budgets: Sequence[PodDisruptionBudget],
) -> Candidate | Status:
    """The candidate that `node` makes, or why it makes none.

    All pods of lower priority are supposed gone; if the pod then fits they are let back one by
    one, those whose loss would breach a budget first, the more important first, as long as the
    pod still fits. Who could not come back is a victim.
    """
    lower = [other for other in node.pods.values() if other.priority < pod.priority]
    if not lower:
        return NO_VICTIMS
    lower.sort(key=importance)
    try:
        with fork(framework.cluster.table) as hypothesis:
            trial = _Trial(framework, state.clone(), pod, node, hypothesis)
            return _select(trial, lower, budgets)
    except _PluginFailedError as failure:
        return failure.status


def _select(
    trial: _Trial, lower: Sequence[PodInfo], budgets: Sequence[PodDisruptionBudget]
) -> Candidate | Status:
    for other in lower:
        trial.remove(other)
    status = trial.verdict()
    if status is not None:
        return status
    violating, others = split_by_budget(lower, budgets)
    breached = [other for other in violating if not trial.reprieve(other)]
    lost = [other for other in others if not trial.reprieve(other)]
    if not breached and not lost:
        # Only a plugin that contradicts itself gets here (preemption.go: DryRunPreemption).
        return error(f'expected at least one victim pod on node "{trial.node.name}"')
    return Candidate(trial.node, tuple(sorted(breached + lost, key=importance)), len(breached))


class _PluginFailedError(Exception):
    """What a plugin keeps about the cluster could not be kept true; ends the dry run."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class _Trial:
    """The node as it is supposed to be, and what the plugins say about the preemptor on it."""

    def __init__(
        self,
        framework: Framework,
        state: CycleState,
        pod: PodInfo,
        node: NodeInfo,
        hypothesis: Fork,
    ) -> None:
        self._framework = framework
        self._state = state
        self._pod = pod
        self.node = node
        self._hypothesis = hypothesis

    def verdict(self) -> Status | None:
        """Whether the preemptor fits now."""
        return self._framework.run_filters_with_nominated(self._state, self._pod, self.node)

    def reprieve(self, other: PodInfo) -> bool:
        """Whether `other` may stay."""
        self.add(other)
        if self.verdict() is None:
            return True
        self.remove(other)
        return False

    def add(self, other: PodInfo) -> None:
        """Let `other` come back; undone by `remove`."""
        self._hypothesis.add_pod(self.node, other)
        _demand(self._framework.run_add_pod(self._state, self._pod, other, self.node))

    def remove(self, other: PodInfo) -> None:
        """Suppose `other` gone."""
        self._hypothesis.remove_pod(self.node, other)
        _demand(self._framework.run_remove_pod(self._state, self._pod, other, self.node))


def _demand(failure: Status | None) -> None:
    if failure is not None:
        raise _PluginFailedError(failure)
