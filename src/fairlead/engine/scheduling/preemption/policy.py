"""PreemptionPolicy: the eligibility and order of victims, and the rules that rate candidates.

The defaults are the rules of Kubernetes 1.36. The plugins of a profile may replace some of these
rules (`engine.framework.preemption.policy`), and a `SchedulerVersion` may replace other rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.pods.facts import condition
from fairlead.engine.framework.candidate import CandidateRule
from fairlead.engine.framework.interface import Plugin
from fairlead.engine.framework.preemption.policy import (
    CandidateRanking,
    VictimEligibility,
    VictimImportance,
)
from fairlead.engine.scheduling.preemption.importance import importance
from fairlead.engine.state.pod_info import PodInfo

PREEMPTED_BY_SCHEDULER: Final = "PreemptionByScheduler"
DISRUPTION_TARGET: Final = "DisruptionTarget"

# upstream: framework/preemption/preemption.go: pickOneNodeForPreemption
# The most important victim should be as unimportant as possible.
LOWEST_HIGHEST_PRIORITY: Final = CandidateRule(
    "lowest highest victim priority", lambda candidate: candidate.highest_priority
)
RULES: Final = (
    # A budget is a promise to the owner of the pods, so it is violated only as a last resort.
    CandidateRule("fewest PDB violations", lambda candidate: candidate.pdb_violations),
    LOWEST_HIGHEST_PRIORITY,
    # The sum of the victims' priorities should be low, too. If all priorities are equal, this rule
    # prefers fewer victims.
    CandidateRule("lowest sum of victim priorities", lambda candidate: candidate.priority_sum),
    # The sum is higher with more victims, because each adds its priority + 2^31. So this rule
    # decides only if a victim has the lowest possible priority, which adds 0.
    CandidateRule("fewest victims", lambda candidate: len(candidate.victims)),
    # The pods that started last lose the least work.
    CandidateRule("latest start of the most important victims", lambda candidate: -candidate.start),
)


def is_preempted(pod: PodInfo) -> bool:
    """Return whether a scheduler has preempted the pod (condition DisruptionTarget)."""
    found = condition(pod.pod, DISRUPTION_TARGET)
    return found is not None and found.status == "True" and found.reason == PREEMPTED_BY_SCHEDULER


class PreemptionPolicy(Struct, frozen=True):
    """The rules for choosing and ordering victims and for rating candidates."""

    order: Callable[[PodInfo], Any] = importance  # a sort key, most important pod first
    # A pod can be a victim only if all of these plugins accept it.
    eligibility: tuple[VictimEligibility, ...] = ()
    rules: tuple[CandidateRule, ...] = RULES  # rate the candidates

    # The following fields differ between upstream versions.

    # Whether a terminating pod of lower priority on the preemptor's nominated node prevents another
    # preemption.
    waits_for: Callable[[PodInfo], bool] = is_preempted
    honors_never: bool = True  # pods with preemptionPolicy Never do not preempt
    # If there are potential nodes, but none of them is a candidate, the preemptor keeps its
    # nomination.
    keeps_nomination: bool = False
    # The victims whose removal violates a disruption budget are deleted before the other victims.
    # If False, victims are deleted in the order of importance.
    groups_violating: bool = False
    by_group: bool = False  # pods of a PodGroup preempt as a group (gate WorkloadAwarePreemption)

    def victims_among(self, others: Iterable[PodInfo], pod: PodInfo) -> list[PodInfo]:
        """Return the pods in `others` that `pod` may preempt."""
        priority = pod.priority
        lower = [other for other in others if other.priority < priority]
        for plugin in self.eligibility:
            lower = [other for other in lower if plugin.is_eligible_victim(pod, other)]
        return lower

    def arranged(self, victims: Sequence[PodInfo]) -> tuple[PodInfo, ...]:
        """Return `victims` in the order in which they are evicted.

        If `groups_violating` is not set, the most important victim comes first. If it is set, as in
        1.19, the order of `victims` is kept; in `victims`, the pods whose eviction violates a
        budget come first.
        """
        return tuple(victims if self.groups_violating else sorted(victims, key=self.order))


def policy_of(
    plugins: Sequence[Plugin], default: PreemptionPolicy | None = None
) -> PreemptionPolicy:
    """Return `default` with the changes that `plugins` define.

    Exceptions of a plugin's `candidate_rules` are not caught.
    """
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
