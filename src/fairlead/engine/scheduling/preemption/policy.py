"""PreemptionPolicy: which pods may be victims, their order, and the rules that rate candidates.

The defaults are upstream's; a profile's plugins may replace them
(`engine.framework.preemption_policy`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.engine.framework.candidate import CandidateRule
from fairlead.engine.framework.interface import Plugin
from fairlead.engine.framework.preemption.policy import (
    CandidateRanking,
    VictimEligibility,
    VictimImportance,
)
from fairlead.engine.scheduling.preemption.candidate import importance
from fairlead.engine.state.pod_info import PodInfo

# upstream: framework/preemption/preemption.go: pickOneNodeForPreemption
RULES: Final = (
    # A budget is a promise to the owner of the pods; violating it is the last resort.
    CandidateRule("fewest PDB violations", lambda candidate: candidate.pdb_violations),
    # The most important victim should matter as little as possible,
    CandidateRule("lowest highest victim priority", lambda candidate: candidate.highest_priority),
    # and the sum of all, too; with equal priorities this already prefers fewer victims.
    CandidateRule("lowest sum of victim priorities", lambda candidate: candidate.priority_sum),
    # Decides only if a victim has the lowest possible priority, which adds 0 above.
    CandidateRule("fewest victims", lambda candidate: len(candidate.victims)),
    # Pods that started last lose the least work.
    CandidateRule("latest start of the most important victims", lambda candidate: -candidate.start),
)


@dataclass(frozen=True, slots=True)
class PreemptionPolicy:
    """`order` is a sort key, most important pod first; all of `eligibility` must agree."""

    order: Callable[[PodInfo], Any] = importance
    eligibility: tuple[VictimEligibility, ...] = ()
    rules: tuple[CandidateRule, ...] = RULES

    def may_preempt(self, pod: PodInfo, victim: PodInfo) -> bool:
        """Whether `pod` may preempt `victim`."""
        if victim.priority >= pod.priority:
            return False
        return all(plugin.is_eligible_victim(pod, victim) for plugin in self.eligibility)


def policy_of(plugins: Sequence[Plugin]) -> PreemptionPolicy:
    """The policy that `plugins` define; raises what their `candidate_rules` raise."""
    rules: Sequence[CandidateRule] = RULES
    for plugin in plugins:
        if isinstance(plugin, CandidateRanking):
            rules = plugin.candidate_rules(rules)
    deciding = next((plugin for plugin in plugins if isinstance(plugin, VictimImportance)), None)
    return PreemptionPolicy(
        order=importance if deciding is None else _order_by(deciding),
        eligibility=tuple(plugin for plugin in plugins if isinstance(plugin, VictimEligibility)),
        rules=tuple(rules),
    )


def _order_by(plugin: VictimImportance) -> Callable[[PodInfo], Any]:
    def order(pod: PodInfo) -> tuple[tuple[int, ...], str]:
        return tuple(-part for part in plugin.importance(pod)), pod.key

    return order
