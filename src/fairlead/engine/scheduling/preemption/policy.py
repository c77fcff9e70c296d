"""PreemptionPolicy: which pods may be victims, their order, and the rules that rate candidates.

The defaults are those of Kubernetes 1.36. A profile's plugins may replace some of them
(`engine.framework.preemption.policy`), a `SchedulerVersion` others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fairlead.api.pods.facts import condition
from fairlead.engine.framework.candidate import CandidateRule
from fairlead.engine.framework.interface import Plugin
from fairlead.engine.framework.preemption.policy import (
    CandidateRanking,
    VictimEligibility,
    VictimImportance,
)
from fairlead.engine.scheduling.preemption.candidate import importance
from fairlead.engine.state.pod_info import PodInfo

PREEMPTED_BY_SCHEDULER: Final = "PreemptionByScheduler"
DISRUPTION_TARGET: Final = "DisruptionTarget"

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


def is_preempted(pod: PodInfo) -> bool:
    """Return True if a scheduler has preempted this pod."""
    found = condition(pod.pod, DISRUPTION_TARGET)
    return found is not None and found.status == "True" and found.reason == PREEMPTED_BY_SCHEDULER


@dataclass(frozen=True, slots=True)
class PreemptionPolicy:
    """The rules by which victims are chosen, ordered and rated.

    `order` is a sort key, most important pod first; a victim must be eligible by all of
    `eligibility`.

    These differ between upstream versions. `waits_for`: the terminating pods of lower priority on
    its nominated node that keep a preemptor from preempting again. `honors_never`: pods with
    preemptionPolicy Never do not preempt. `keeps_nomination`: a search without candidates leaves
    the preemptor's nomination unless no node was worth a dry run. `groups_violating`: victims
    whose removal violates a disruption budget come before all others.
    """

    order: Callable[[PodInfo], Any] = importance
    eligibility: tuple[VictimEligibility, ...] = ()
    rules: tuple[CandidateRule, ...] = RULES
    waits_for: Callable[[PodInfo], bool] = is_preempted
    honors_never: bool = True
    keeps_nomination: bool = False
    groups_violating: bool = False

    def victims_among(self, others: Iterable[PodInfo], pod: PodInfo) -> list[PodInfo]:
        """Return the pods that `pod` may preempt."""
        priority = pod.priority
        lower = [other for other in others if other.priority < priority]
        for plugin in self.eligibility:
            lower = [other for other in lower if plugin.is_eligible_victim(pod, other)]
        return lower

    def arranged(self, victims: Sequence[PodInfo]) -> tuple[PodInfo, ...]:
        """Return the victims of a candidate, violating ones first, in their final order."""
        return tuple(victims if self.groups_violating else sorted(victims, key=self.order))


def policy_of(
    plugins: Sequence[Plugin], default: PreemptionPolicy | None = None
) -> PreemptionPolicy:
    """Return `default` as changed by `plugins`; raises what their `candidate_rules` raise."""
    default = default or PreemptionPolicy()
    rules: Sequence[CandidateRule] = default.rules
    for plugin in plugins:
        if isinstance(plugin, CandidateRanking):
            rules = plugin.candidate_rules(rules)
    deciding = next((plugin for plugin in plugins if isinstance(plugin, VictimImportance)), None)
    return replace(
        default,
        order=default.order if deciding is None else _order_by(deciding),
        eligibility=tuple(plugin for plugin in plugins if isinstance(plugin, VictimEligibility)),
        rules=tuple(rules),
    )


def _order_by(plugin: VictimImportance) -> Callable[[PodInfo], Any]:
    def order(pod: PodInfo) -> tuple[tuple[int, ...], str]:
        return tuple(-part for part in plugin.importance(pod)), pod.key

    return order
