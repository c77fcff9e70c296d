"""Candidate: a node that the pod would fit after preemption. CandidateRule: compares candidates."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from fairlead.engine.core.instant import Instant
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo


class Candidate(Struct, frozen=True):
    """A node on which the pod would fit if `victims` were removed.

    There is at least one victim. The victims are sorted by descending importance. Under the rules
    of kube-scheduler 1.19, victims whose removal violates a disruption budget come first.
    `pdb_violations` is the number of victims whose removal violates a budget.
    """

    node: NodeInfo
    victims: tuple[PodInfo, ...]
    pdb_violations: int

    @property
    def highest_priority(self) -> int:
        """The highest priority among the victims."""
        return max([victim.priority for victim in self.victims])

    @property
    def priority_sum(self) -> int:
        """The sum of (priority + 2^31) over the victims.

        The offset keeps terms from being negative. Thus an additional victim never lowers the sum,
        even if its priority is negative.
        """
        return sum([victim.priority + (1 << 31) for victim in self.victims])

    @property
    def start(self) -> Instant:
        """The earliest start time among the victims that have the highest priority."""
        highest = self.highest_priority
        return min([victim.start for victim in self.victims if victim.priority == highest])


class CandidateRule(Struct, frozen=True):
    """One of the rules that choose a candidate; they are applied in order.

    A rule keeps only the candidates with the lowest `cost`. The cost depends only on the candidate
    and is an integer of at most 64 bits. Users see the `name` of the rule that decided.
    """

    name: str
    cost: Callable[[Candidate], int]
