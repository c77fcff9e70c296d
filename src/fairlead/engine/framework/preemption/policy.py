"""How a plugin changes which victims DefaultPreemption removes, and on which node.

A plugin may have any of these three methods in addition to those of the extension points. They
replace the fields that upstream's plugins set on DefaultPreemption: IsEligiblePod,
MoreImportantPod and OrderedScoreFuncs. A victim's priority is always lower than the preemptor's;
plugins cannot change that.
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
    """Protects pods: a pod can be a victim only if all plugins with this method allow it."""

    def is_eligible_victim(self, pod: PodInfo, victim: PodInfo) -> bool:
        """Return True if `pod` may preempt `victim`, whose priority is lower."""
        ...


@runtime_checkable
class VictimImportance(Plugin, Protocol):
    """Orders the victims; only the first plugin with this method is used.

    It may read the pod's priority, spec, labels, annotations, start time and deletion time, and
    nothing else.
    """

    def importance(self, pod: PodInfo) -> tuple[int, ...]:
        """Return the importance of `pod` as a victim; less important pods are removed first.

        Equal pods are ordered by name.
        """
        ...


@runtime_checkable
class CandidateRanking(Plugin, Protocol):
    """Decides which candidate node costs least; called once, when the profile is built."""

    def candidate_rules(self, rules: Sequence[CandidateRule]) -> Sequence[CandidateRule]:
        """Return the ordered rules that replace `rules`."""
        ...
