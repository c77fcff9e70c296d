"""preempt_for_group: finds victims to remove so that a whole PodGroup fits.

    1 remove all possible victims, which are the pods and groups of lower priority; if the
      preempting group does not fit then, preemption cannot help
    2 try to reprieve each possible victim: the victim stays if the preempting group still fits;
      first try the victims whose removal would violate a disruption budget, then the other victims,
      in both cases beginning with the most important victim
    3 the pods and groups that could not be reprieved are the victims

Preemption for one pod evaluates single nodes. The search for a group covers all nodes together. So
a victim group that runs on many nodes is removed from all of them or from none. The search calls no
extenders.
upstream: framework/preemption/podgrouppreemption.go: selectVictimsOnDomain
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.objects import PodDisruptionBudget, PodGroup
from fairlead.api.pods.facts import preempts_lower
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.status import Status, unresolvable, unschedulable
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.preemption.disruption_budget import (
    RemainingDisruptions,
    reprieve_in_order,
)
from fairlead.engine.scheduling.compose import BuiltProfile
from fairlead.engine.scheduling.extender.consultation import run_consultation
from fairlead.engine.scheduling.pod_group.placement import PodGroupMember, schedule_pod_group
from fairlead.engine.scheduling.preemption.eligibility import NEVER, WAITING
from fairlead.engine.scheduling.preemption.policy import is_preempted
from fairlead.engine.state.fork import Fork, fork
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_groups import PodGroupTable
from fairlead.engine.state.pod_info import PodInfo

_WHOLE_GROUP: Final = "PodGroup"


def preempt_for_group(
    built: BuiltProfile,
    group: PodGroup,
    members: Sequence[PodGroupMember],
    tie_break: TieBreak,
    started: Instant,
) -> tuple[PodInfo, ...] | Status:
    """Return the pods to remove, the least important last.

    `started` is the start of the group's cycle. Returns a status with the reason if the group may
    not preempt or if preemption does not help.
    """
    reason = _ineligibility(built, group, members)
    if reason:
        return unschedulable(reason)
    cluster = built.framework.cluster
    table = cluster.table
    victims = _victims_below(_group_priority(group), table.nodes(), cluster.pod_groups)
    if not victims:
        return unresolvable("No preemption victims found for incoming preemptor")
    victims.sort(key=lambda victim: victim.importance)
    silent = replace(built, extenders=())

    def verdict() -> Status:
        trial = schedule_pod_group(silent, members, tie_break, started, runs_post_filter=False)
        return run_consultation(trial).status

    with fork(table) as hypothesis:
        lost = _select(_Removal(hypothesis, table), victims, verdict, built)
    _note(table, victims)
    if isinstance(lost, Status):
        return lost
    return tuple(pod for victim in lost for _, pod in victim.pods)


def _ineligibility(built: BuiltProfile, group: PodGroup, members: Sequence[PodGroupMember]) -> str:
    """Return the reason for which the group may not preempt; "" if it may.

    upstream: preemptorEligibleToPreemptOthers
    """
    if not all(preempts_lower(member.pod.pod) for member in members):
        return NEVER
    cluster, priority = built.framework.cluster, _group_priority(group)
    named = {member.pod.pod.status.nominated_node_name: None for member in members}
    for node in map(cluster.table.find, filter(None, named)):
        for other in () if node is None else node.pods.values():
            its_group = cluster.pod_groups.group_of(other)
            worth = other.priority if its_group is None else _group_priority(its_group)
            if worth < priority and other.terminating and is_preempted(other):
                return WAITING
    return ""


class _Removal:
    """Removes victims from their nodes in a fork, and adds them back."""

    def __init__(self, hypothesis: Fork, table: NodeTable) -> None:
        self._hypothesis = hypothesis
        self._table = table

    def remove(self, victim: PreemptionVictim) -> None:
        for node, pod in victim.pods:
            self._hypothesis.remove_pod(node, pod)
        _note(self._table, (victim,))

    def add(self, victim: PreemptionVictim) -> None:
        for node, pod in victim.pods:
            self._hypothesis.add_pod(node, pod)
        _note(self._table, (victim,))


def _note(table: NodeTable, victims: Sequence[PreemptionVictim]) -> None:
    """Record in `table.pod_log` that the pods on the victims' nodes have changed.

    Cached verdicts on these nodes are then computed again. This call is necessary because the Fork
    that removes and adds the victims does not write to `pod_log`.
    """
    for row in {node.row: None for victim in victims for node, _ in victim.pods}:
        table.pod_log.append(row)


def _select(
    removal: _Removal,
    victims: Sequence[PreemptionVictim],
    verdict: Callable[[], Status],
    built: BuiltProfile,
) -> list[PreemptionVictim] | Status:
    """Return the `victims` that must be removed so that the group fits.

    Returns a status with the reason if the group does not fit even after the removal of all
    `victims`. `victims` and the returned list are sorted by importance. `verdict` tries to schedule
    the group while the removed victims are absent, and returns the status of this attempt.
    """
    for victim in victims:
        removal.remove(victim)
    status = verdict()
    if not status.is_success:
        return status

    def reprieve(victim: PreemptionVictim) -> bool:
        removal.add(victim)
        if verdict().is_success:
            return True
        removal.remove(victim)
        return False

    violating, others = _split_victims_by_budget(victims, built.framework.cluster.budgets())
    breached, lost = reprieve_in_order(violating, others, reprieve)
    return sorted(breached + lost, key=lambda victim: victim.importance)


class PreemptionVictim(Struct):
    """Pods, each with its node, that preemption removes all together or not at all.

    If a PodGroup has disruptionMode PodGroup, its pods are one victim with the priority of the
    PodGroup. Every other pod is a separate victim.
    upstream: framework/preemption/types.go: newDomainForWorkloadPreemption
    """

    priority: int
    pods: list[tuple[NodeInfo, PodInfo]] = field(default_factory=list)

    @property
    def start(self) -> Instant:
        """The time at which the first of `pods` started."""
        return min(pod.start for _, pod in self.pods)

    @property
    def importance(self) -> tuple[int, int, int, Instant, str]:
        """A sort key that puts the most important victim first.

        A victim with a higher priority is more important. If the priorities are equal, a pod group
        is more important than a single pod. Next, the group with more pods is more important, then
        the victim with the earlier start time. The key (`namespace/name`) of the first pod decides
        remaining ties.

        upstream: podgrouppreemption.go: moreImportantVictim (the order of ties is not defined
        there)
        """
        first = self.pods[0][1]
        in_group = first.pod.spec.scheduling_group is not None
        size = -len(self.pods) if in_group else 0
        return -self.priority, 0 if in_group else 1, size, self.start, first.key


def _group_priority(group: PodGroup) -> int:
    """Return spec.priority of the group, 0 if it is not set (util.PodGroupPriority)."""
    return group.spec.priority or 0


def _victims_below(
    priority: int, nodes: Iterable[NodeInfo], groups: PodGroupTable
) -> list[PreemptionVictim]:
    """Return the victims on `nodes` whose priority is lower than `priority`."""
    found: dict[str, PreemptionVictim] = {}
    for node in nodes:
        for pod in node.pods.values():
            group = groups.group_of(pod)
            if group is not None and group.spec.disruption_mode == _WHOLE_GROUP:
                key, worth = f"group {group.key}", _group_priority(group)
            else:
                key, worth = f"pod {pod.id}", pod.priority
            if worth < priority:
                found.setdefault(key, PreemptionVictim(worth)).pods.append((node, pod))
    return list(found.values())


def _split_victims_by_budget(
    victims: Sequence[PreemptionVictim], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[PreemptionVictim], list[PreemptionVictim]]:
    """Split `victims` into victims whose removal violates a budget, and other victims.

    Both lists keep the order of `victims`.

    upstream: framework/preemption/util.go: filterVictimsWithPDBViolation
    """
    remaining = RemainingDisruptions(budgets)
    violating: list[PreemptionVictim] = []
    others: list[PreemptionVictim] = []
    for victim in victims:
        violates = [remaining.charge(pod) for _, pod in victim.pods]  # a list: every pod counts
        (violating if any(violates) else others).append(victim)
    return violating, others
