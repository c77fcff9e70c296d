"""select_victims_on_node: the fewest, least important pods whose removal lets the pod in.

upstream: default_preemption.go: SelectVictimsOnNode
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.objects import PodDisruptionBudget
from fairlead.core.status import Status, unresolvable
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
    supposed = state.clone()
    with fork(framework.cluster.table) as hypothesis:
        for other in lower:
            hypothesis.remove_pod(node, other)
            framework.run_remove_pod(supposed, pod, other, node)
        status = framework.run_filters_with_nominated(supposed, pod, node)
        if status is not None:
            return status
        lower.sort(key=importance)
        violating, others = split_by_budget(lower, budgets)
        trial = _Reprieve(framework, supposed, pod, node, hypothesis)
        breached = [other for other in violating if not trial.reprieve(other)]
        lost = [other for other in others if not trial.reprieve(other)]
    return Candidate(node, tuple(sorted(breached + lost, key=importance)), len(breached))


class _Reprieve:
    """Lets pods back onto the node where the preemptor still fits beside them."""

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
        self._node = node
        self._hypothesis = hypothesis

    def reprieve(self, other: PodInfo) -> bool:
        """Whether `other` may stay."""
        framework, pod, node = self._framework, self._pod, self._node
        self._hypothesis.add_pod(node, other)
        framework.run_add_pod(self._state, pod, other, node)
        if framework.run_filters_with_nominated(self._state, pod, node) is None:
            return True
        self._hypothesis.remove_pod(node, other)
        framework.run_remove_pod(self._state, pod, other, node)
        return False
