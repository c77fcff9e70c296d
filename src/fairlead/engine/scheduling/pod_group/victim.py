"""PreemptionVictim: a pod or a whole PodGroup that preemption for a group may remove.

If a PodGroup has disruptionMode PodGroup, its pods are one victim with the priority of the
PodGroup. Every other pod is a separate victim.
upstream: framework/preemption/types.go: newDomainForWorkloadPreemption
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import PodDisruptionBudget, PodGroup
from fairlead.engine.core.instant import Instant
from fairlead.engine.framework.preemption.disruption_budget import RemainingDisruptions
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_groups import PodGroupTable
from fairlead.engine.state.pod_info import PodInfo

WHOLE_GROUP: Final = "PodGroup"


class PreemptionVictim(Struct):
    """Pods, each with its node, that preemption removes all together or not at all."""

    priority: int
    pods: list[tuple[NodeInfo, PodInfo]] = field(default_factory=list)

    @property
    def start(self) -> Instant:
        """The time at which the first of the pods started."""
        return min(pod.start for _, pod in self.pods)

    @property
    def importance(self) -> tuple[int, int, int, Instant, str]:
        """A sort key that puts the most important victim first.

        A victim with a higher priority is more important. If the priorities are equal, a pod group
        is more important than a single pod. Further ties are decided by the number of pods of the
        group (larger first), then by the start time (earlier first), and last by the key
        (`namespace/name`) of the first pod.

        upstream: podgrouppreemption.go: moreImportantVictim, which does not define the order of
        ties
        """
        first = self.pods[0][1]
        in_group = first.pod.spec.scheduling_group is not None
        size = -len(self.pods) if in_group else 0
        return -self.priority, 0 if in_group else 1, size, self.start, first.key


def group_priority(group: PodGroup) -> int:
    """Return spec.priority of the group, 0 if it is not set (util.PodGroupPriority)."""
    return group.spec.priority or 0


def victims_below(
    priority: int, nodes: Iterable[NodeInfo], groups: PodGroupTable
) -> list[PreemptionVictim]:
    """Return the victims on `nodes` whose priority is lower than `priority`."""
    found: dict[str, PreemptionVictim] = {}
    for node in nodes:
        for pod in node.pods.values():
            group = groups.group_of(pod)
            if group is not None and group.spec.disruption_mode == WHOLE_GROUP:
                key, worth = f"group {group.key}", group_priority(group)
            else:
                key, worth = f"pod {pod.id}", pod.priority
            if worth < priority:
                found.setdefault(key, PreemptionVictim(worth)).pods.append((node, pod))
    return list(found.values())


def split_victims_by_budget(
    victims: Sequence[PreemptionVictim], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[PreemptionVictim], list[PreemptionVictim]]:
    """Split `victims` into (victims whose removal violates a budget, other victims).

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
