"""How a plugin changes whom DefaultPreemption removes, and where.

A plugin may have any of these three methods beside those of the extension points. They take the
place of what upstream's plugin writers set on its preemption: IsEligiblePod, MoreImportantPod and
OrderedScoreFuncs. That no victim may have a priority as high as the preemptor's is not theirs to
change.
upstream: framework/plugins/defaultpreemption/default_preemption.go: DefaultPreemption;
framework/preemption/preemption.go: Interface
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from fairlead.engine.framework.candidate import CandidateRule
from fairlead.engine.framework.interface import Plugin
from fairlead.engine.state.pod_info import PodInfo


@runtime_checkable
class VictimEligibility(Plugin, Protocol):
    """Spares pods; all plugins with this method must agree before a pod may be a victim."""

    def is_eligible_victim(self, pod: PodInfo, victim: PodInfo) -> bool:
        """Whether `pod` may push out `victim`, whose priority is lower."""
        ...


@runtime_checkable
class VictimImportance(Plugin, Protocol):
    """Says who is given up first; the first plugin with this method decides alone.

    Beyond the pod's priority, it may look at its spec, labels, annotations, start and deletion, and
    at nothing else.
    """

    def importance(self, pod: PodInfo) -> tuple[int, ...]:
        """The greater, the longer the pod is kept; equals go by their names."""
        ...


@runtime_checkable
class CandidateRanking(Plugin, Protocol):
    """Says which node's victims cost least; asked once, when the profile is put together."""

    def candidate_rules(self, rules: Sequence[CandidateRule]) -> Sequence[CandidateRule]:
        """The ordered rules to use instead of `rules`."""
        ...
