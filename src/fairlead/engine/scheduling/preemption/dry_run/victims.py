"""select_victims_on_node: finds the pods to remove from a node so that the preemptor fits.

upstream: default_preemption.go: SelectVictimsOnNode
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter, ge, sub
from typing import Final

from fairlead.api.objects import PodDisruptionBudget
from fairlead.engine.core.status import Status, error, unresolvable
from fairlead.engine.framework.candidate import Candidate
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.fault import PluginFault
from fairlead.engine.framework.preemption.disruption_budget import (
    reprieve_in_order,
    split_by_budget,
)
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.framework.trial import Trial
from fairlead.engine.plugins.node_resources.fit import NodeResourcesFit
from fairlead.engine.scheduling.preemption.importance import importance
from fairlead.engine.scheduling.preemption.policy import PreemptionPolicy
from fairlead.engine.state.loaded_pods import PlacedPod, Representatives
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

NO_VICTIMS: Final = unresolvable("No preemption victims found for incoming pod")
UPSTREAM: Final = PreemptionPolicy()
_START: Final = attrgetter("start")
_PRIORITY: Final = attrgetter("priority")


def select_victims_on_node(
    framework: Framework,
    state: CycleState,
    pod: PodInfo,
    node: NodeInfo,
    budgets: Sequence[PodDisruptionBudget],
    policy: PreemptionPolicy = UPSTREAM,
) -> Candidate | Status:
    """Return the preemption candidate for `node`, or a status that says why there is none.

    1. Remove all pods that may be victims. If the preemptor does not fit then, the node is no
       candidate.
    2. Try to reprieve the pods one by one. A pod stays if the preemptor still fits beside it. First
       try the pods whose removal would violate a disruption budget, then the other pods. In each
       group, try the most important pod first.
    3. The pods that could not be reprieved are the victims.

    Example: the preemptor needs 3 cores, and the node has 4. The node runs three pods: A (priority
    9, 1 core), B (priority 5, 1 core, protected by a budget) and C (priority 1, 2 cores). Without
    these pods, the preemptor fits. B is tried first and stays (3 + 1 <= 4). Then neither A nor C
    fits: the victims are A and C.
    """
    lower = policy.victims_among(node.pods.values(), pod)
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

    def reprieve(other: PodInfo) -> bool:
        trial.add(other, node)
        if trial.verdict(node) is None:
            return True
        trial.remove(other, node)
        return False

    breached, lost = reprieve_in_order(violating, others, reprieve)
    return _candidate(node, breached, lost, policy)


def select_victims_by_resources(  # noqa: PLR0913, PLR0917 - what a dry run depends on
    fit: NodeResourcesFit,
    pod: PodInfo,
    node: NodeInfo,
    loaded: Representatives,
    rivals: Iterable[PodInfo],
    budgets: Sequence[PodDisruptionBudget],
    policy: PreemptionPolicy = UPSTREAM,
) -> Candidate | Status:
    """Return the result of `select_victims_on_node`, computed without a trial.

    All Filters except `fit` must accept the node or be skipped. So the only effect of removing a
    pod is that its resources become free. `rivals` are the competing pods that are nominated to the
    node. The rivals count as placed pods. A trial also checks whether the preemptor fits on the
    node without the rivals. Here, this check is not needed, because a preemptor that fits beside
    the rivals also fits without them.

    `loaded` describes pods that were loaded in bulk and do not have a PodInfo yet. Usually,
    PodInfos are made for all pods of lower priority. But only the victims get PodInfos if the
    policy is the default, there are no budgets, and all pods of lower priority need equal
    resources.

    Invariant: `spare[i]` is the free amount of the i-th requested resource if the preemptor, the
    rivals and all reprieved pods are on the node. `places` is the number of further pods that the
    node would accept.
    """
    lower: Sequence[PlacedPod]
    if policy.eligibility:
        lower = policy.victims_among(node.pods.values(), pod)
    else:
        priority = pod.priority
        lower = [one for one in loaded.facts_of(node.stored_pods) if one.priority < priority]
    if not lower:
        return NO_VICTIMS
    numbers: dict[Shape, int] = {}
    for other in lower:
        numbers[other.shape] = numbers.get(other.shape, 0) + 1
    awaited = [rival for rival in rivals if rival.id not in node.pods]
    columns, spare = fit.spare_after(numbers, awaited, pod, node)
    places = node.allowed_pods - (len(node.pods) - len(lower)) - len(awaited) - 1
    if places < 0 or min(spare, default=0) < 0:
        return fit.rejection_after(columns, spare, pod, node, crowded=places < 0)
    if not budgets and policy.order is importance:
        sizes = {shape.amounts_of(columns) for shape in numbers}
        if len(sizes) == 1:
            return _select_among_equals(node, lower, spare, places, sizes.pop())
    ordered = sorted([node.pods[one.id] for one in lower], key=policy.order)
    violating, others = split_by_budget(ordered, budgets)
    too_large: set[int] = set()  # these shapes cannot fit later: `spare` only shrinks

    def reprieve(other: PodInfo) -> bool:
        nonlocal spare, places
        if not places or other.shape.id in too_large:
            return False
        taken = other.shape.amounts_of(columns)
        if all(map(ge, spare, taken)):
            spare, places = list(map(sub, spare, taken)), places - 1
            return True
        too_large.add(other.shape.id)
        return False

    breached, lost = reprieve_in_order(violating, others, reprieve)
    return _candidate(node, breached, lost, policy)


def _candidate(
    node: NodeInfo, breached: list[PodInfo], others: list[PodInfo], policy: PreemptionPolicy
) -> Candidate | Status:
    """Return a candidate: `node`, with the victims in `breached` and in `others`.

    The removal of each pod in `breached` violates a disruption budget. Returns an error if there is
    no victim.
    """
    if not breached and not others:
        return _no_victim(node)
    return Candidate(node, policy.arranged(breached + others), len(breached))


def _select_among_equals(
    node: NodeInfo,
    lower: Sequence[PlacedPod],
    spare: Sequence[int],
    places: int,
    size: Sequence[int],
) -> Candidate | Status:
    """Return the dry run's result for `node`, given that all pods in `lower` need equal resources.

    `lower` are the pods that may be removed; no disruption budget protects them. `size` are the
    amounts of the resources that one of these pods needs. Beside the preemptor, the node has the
    amounts `spare` and room for `places` pods. These limits determine how many of the `lower` pods
    can stay. The most important pods stay, and the other pods are the victims.
    """
    stay = min(
        [places, *(free // amount for free, amount in zip(spare, size, strict=True) if amount)]
    )
    if stay >= len(lower):
        return _no_victim(node)
    victims = _least_important(lower, len(lower) - stay)
    return Candidate(node, tuple([node.pods[victim.id] for victim in victims]), 0)


def _least_important(among: Sequence[PlacedPod], number: int) -> list[PlacedPod]:
    """Return the `number` least important pods in `among`, by descending importance."""
    pods = sorted(among, key=_START)
    pods.sort(key=_PRIORITY, reverse=True)  # keeps the order of pods with equal priority
    first = len(pods) - number
    limit = pods[first]
    tied = first
    while (
        tied and pods[tied - 1].priority == limit.priority and pods[tied - 1].start == limit.start
    ):
        tied -= 1
    return sorted(pods[tied:], key=importance)[first - tied :]


def _no_victim(node: NodeInfo) -> Status:
    """Return the error for a dry run in which the pod fits `node` although no pod is removed.

    A user sees this error only if a plugin contradicts itself (preemption.go: DryRunPreemption).
    """
    return error(f'expected at least one victim pod on node "{node.name}"')
