"""Which nodes count for a topology spread constraint: affinity and taint policies.

upstream: pkg/controllers/provisioning/scheduling/topologynodefilter.go
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

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
    """Decides which nodes a topology spread constraint counts.

    A node must meet at least one of the requirements in `alternatives`; if there are none, every
    node counts.
    """

    alternatives: tuple[Requirements, ...] = ()
    honors_taints: bool = False
    honors_affinity: bool = False
    tolerations: tuple[Toleration, ...] = ()

    def matches(self, taints: Sequence[Taint], requirements: Requirements) -> bool:
        """Return whether a node with `taints`, described by `requirements`, counts."""
        if self.honors_affinity and self.alternatives:
            one_of = self.alternatives
            if not any(requirements.compatible(asked) for asked in one_of):
                return False
        return not self.honors_taints or untolerated(taints, self.tolerations) is None

    @property
    def matches_all(self) -> bool:
        """Whether every node counts."""
        trivial = not self.alternatives or any(not len(one) for one in self.alternatives)
        return not self.honors_taints and (not self.honors_affinity or trivial)

    @property
    def identity(self) -> Hashable:
        """The identity of the filter: upstream's hash ignores values.

        Only the labels and minValues of each alternative count, and equal elements of an unordered
        list cancel in pairs.
        """
        alternatives = odd(
            frozenset((one.key, one.min_values) for one in requirements)
            for requirements in self.alternatives
        )
        return alternatives, self.honors_taints, self.honors_affinity, odd(self.tolerations)


EVERY_NODE = TopologyNodeFilter()


def node_filter(pod: Pod, constraint: TopologySpreadConstraint) -> TopologyNodeFilter:
    """Return the filter of a spread constraint: nodeSelector and the required affinity terms."""
    selector = label_requirements(pod.spec.node_selector)
    affinity = pod.spec.affinity
    node_affinity = affinity.node_affinity if affinity is not None else None
    required = (
        node_affinity.required_during_scheduling_ignored_during_execution
        if node_affinity is not None
        else None
    )
    alternatives: tuple[Requirements, ...] = (selector,)
    if required is not None:
        alternatives = tuple(
            selector.with_added(term_requirements(term)) for term in required.node_selector_terms
        )
    return TopologyNodeFilter(
        alternatives,
        constraint.node_taints_policy == HONOR,
        constraint.node_affinity_policy == HONOR,
        pod.spec.tolerations,
    )


def odd(elements: Iterable[Hashable]) -> frozenset[Hashable]:
    """Return the elements that occur an odd number of times."""
    return frozenset(one for one, count in Counter(elements).items() if count % 2)
