"""Protocols for plugins that change how DefaultPreemption chooses victims and nodes.

The methods `is_eligible_victim`, `importance` and `candidate_rules` replace the fields that
upstream's plugins set on DefaultPreemption: IsEligiblePod, MoreImportantPod and OrderedScoreFuncs.
A victim's priority is always lower than the preemptor's; plugins cannot change that.
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
    """A plugin that can protect pods; a pod is evicted only if every such plugin allows it."""

    def is_eligible_victim(self, pod: PodInfo, victim: PodInfo) -> bool:
        """Return whether `pod` may preempt `victim`, which has a lower priority."""
        ...


@runtime_checkable
class VictimImportance(Plugin, Protocol):
    """A plugin that orders the victims; if there are several such plugins, the first is used.

    `importance` may read only the pod's priority, spec, labels, annotations, start time and
    deletion time.
    """

    def importance(self, pod: PodInfo) -> tuple[int, ...]:
        """Return the importance of `pod`; a greater tuple means a more important pod.

        Pods of equal importance are ordered by key (`namespace/name`).
        """
        ...


@runtime_checkable
class CandidateRanking(Plugin, Protocol):
    """A plugin that defines the rules that compare candidate nodes.

    `candidate_rules` is called once, when the profile is built.
    """

    def candidate_rules(self, rules: Sequence[CandidateRule]) -> Sequence[CandidateRule]:
        """Return the rules to use instead of `rules`, in the order in which they are applied."""
        ...
