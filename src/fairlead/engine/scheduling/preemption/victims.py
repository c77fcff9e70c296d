"""select_victims_on_node: the fewest, least important pods whose removal lets the pod in.

upstream: default_preemption.go: SelectVictimsOnNode
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.objects import PodDisruptionBudget
from fairlead.engine.core.status import Status, error, unresolvable
from fairlead.engine.framework.candidate import Candidate
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.fault import PluginFault
from fairlead.engine.framework.preemption.disruption_budget import split_by_budget
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.framework.trial import Trial
from fairlead.engine.scheduling.preemption.policy import PreemptionPolicy
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")
UPSTREAM: Final = PreemptionPolicy()


def select_victims_on_node(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    node: NodeInfo,
    budgets: Sequence[PodDisruptionBudget],
    policy: PreemptionPolicy = UPSTREAM,
) -> Candidate | Status:
    """The candidate that `node` makes, or why it makes none.

    All pods that may be victims are supposed gone; if the pod then fits they are let back one by
    one, those whose loss would breach a budget first, the more important first, as long as the
    pod still fits. Who could not come back is a victim.
    """
    lower = [other for other in node.pods.values() if policy.may_preempt(pod, other)]
    if not lower:
        return NO_VICTIMS
    lower.sort(key=policy.order)
    try:
        with framework.trial(state, pod) as trial:
            return _select(trial, node, lower, budgets, policy)
    except PluginFault as fault:
        return error(str(fault)).by(fault.plugin)


def _select(
    trial: Trial,
    node: NodeInfo,
    lower: Sequence[PodInfo],
    budgets: Sequence[PodDisruptionBudget],
    policy: PreemptionPolicy,
) -> Candidate | Status:
    for other in lower:
        trial.remove(other, node)
    status = trial.verdict(node)
    if status is not None:
        return status
    violating, others = split_by_budget(lower, budgets)
    breached = [other for other in violating if not _reprieve(trial, other, node)]
    lost = [other for other in others if not _reprieve(trial, other, node)]
    if not breached and not lost:
        # Only a plugin that contradicts itself gets here (preemption.go: DryRunPreemption).
        return error(f'expected at least one victim pod on node "{node.name}"')
    return Candidate(node, tuple(sorted(breached + lost, key=policy.order)), len(breached))


def _reprieve(trial: Trial, other: PodInfo, node: NodeInfo) -> bool:
    """Let `other` come back, if the preemptor still fits beside it."""
    trial.add(other, node)
    if trial.verdict(node) is None:
        return True
    trial.remove(other, node)
    return False
