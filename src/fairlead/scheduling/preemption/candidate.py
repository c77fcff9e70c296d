"""Candidate: a node on which the pod would fit if the victims were gone."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.core.instant import Instant
from fairlead.state.node_info import NodeInfo
from fairlead.state.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class Candidate:
    """`victims` by descending importance, never empty."""

    node: NodeInfo
    victims: tuple[PodInfo, ...]
    pdb_violations: int

    @property
    def highest_priority(self) -> int:
        """The priority of the most important victim."""
        return self.victims[0].priority

    @property
    def priority_sum(self) -> int:
        """The sum over victims of priority + 2^31, so that fewer victims win among equals."""
        return sum(victim.priority + (1 << 31) for victim in self.victims)

    @property
    def start(self) -> Instant:
        """The earliest start among the victims of the highest priority."""
        highest = self.highest_priority
        return min(victim.start for victim in self.victims if victim.priority == highest)


def importance(pod: PodInfo) -> tuple[int, Instant, str]:
    """Sort key, most important first: higher priority, then started earlier, then by name.

    upstream: pkg/scheduler/util/utils.go: MoreImportantPod, which leaves ties open.
    """
    return (-pod.priority, pod.start, pod.key)
