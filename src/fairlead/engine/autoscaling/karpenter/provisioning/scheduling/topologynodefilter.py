"""TopologyNodeFilter: which nodes a topology spread constraint counts.

The constraint's nodeAffinityPolicy and nodeTaintsPolicy decide this.

upstream: pkg/controllers/provisioning/scheduling/topologynodefilter.go
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from fairlead.api.nodes.node_selector import required_node_affinity
from fairlead.api.objects import Pod, Taint, Toleration, TopologySpreadConstraint
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import (
    Requirements,
    label_requirements,
    term_requirements,
)
from fairlead.engine.autoscaling.karpenter.scheduling.taints import untolerated

HONOR = "Honor"


@dataclass(frozen=True, slots=True, eq=False)
class TopologyNodeFilter:
    """Decides which nodes a topology spread constraint of a pod counts.

    `alternatives` contains the pod's nodeSelector, combined with each term of the pod's required
    node affinity. If `honors_affinity` is set and there are alternatives, a node must meet one of
    the alternatives. If `honors_taints` is set, `tolerations` must tolerate the taints of the node.
    """

    alternatives: tuple[Requirements, ...] = ()
    honors_taints: bool = False
    honors_affinity: bool = False
    tolerations: tuple[Toleration, ...] = ()
    matches_all: bool = field(init=False)  # whether every node counts
    identity: Hashable = field(init=False)

    def __post_init__(self) -> None:
        """Compute `matches_all` and `identity`.

        `identity` imitates upstream's hash. For each of `alternatives`, it has an entry with the
        label keys and their minValues. The allowed values are left out. As in the hash, two equal
        entries cancel each other out, and so do two equal `tolerations`.
        """
        trivial = not self.alternatives or any(not len(one) for one in self.alternatives)
        matches_all = not self.honors_taints and (not self.honors_affinity or trivial)
        alternatives = elements_of_odd_count(
            frozenset((one.key, one.min_values) for one in requirements)
            for requirements in self.alternatives
        )
        identity = (
            alternatives,
            self.honors_taints,
            self.honors_affinity,
            elements_of_odd_count(self.tolerations),
        )
        object.__setattr__(self, "matches_all", matches_all)
        object.__setattr__(self, "identity", identity)

    def matches(self, taints: Sequence[Taint], requirements: Requirements) -> bool:
        """Return whether the constraint counts a node.

        `taints` are the node's taints; `requirements` describe its labels.
        """
        if self.honors_affinity and self.alternatives:
            one_of = self.alternatives
            if not any(requirements.compatible(alternative) for alternative in one_of):
                return False
        return not self.honors_taints or untolerated(taints, self.tolerations) is None


def node_filter(pod: Pod, constraint: TopologySpreadConstraint) -> TopologyNodeFilter:
    """Return the filter that decides which nodes `constraint`, a constraint of `pod`, counts."""
    selector = label_requirements(pod.spec.node_selector)
    required = required_node_affinity(pod.spec)
    alternatives: tuple[Requirements, ...] = (selector,)
    if required is not None:
        alternatives = tuple(
            selector.with_added(term_requirements(term)) for term in required.node_selector_terms
        )
    return TopologyNodeFilter(
        alternatives,
        constraint.node_taints_policy == HONOR,
        constraint.node_affinity_policy in (None, HONOR),
        pod.spec.tolerations,
    )


def elements_of_odd_count(elements: Iterable[Hashable]) -> frozenset[Hashable]:
    """Return the elements that occur an odd number of times."""
    given = tuple(elements)
    if len(given) < 2:
        return frozenset(given)
    return frozenset(one for one, count in Counter(given).items() if count % 2)


EVERY_NODE = TopologyNodeFilter()
