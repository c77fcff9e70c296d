"""DefaultPreemption: the PostFilter plugin that evicts pods of lower priority.

upstream: framework/preemption/preemption.go: Evaluator.Preempt
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct, field

from fairlead.engine.core.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.candidate import Candidate
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.diagnosis import Diagnosis, histogram
from fairlead.engine.framework.interface import PostFilterResult, Rows
from fairlead.engine.framework.plan.plan_cache import PlanCache
from fairlead.engine.scheduling.preemption.args import CandidateSample, DefaultPreemptionArgs
from fairlead.engine.scheduling.preemption.eligibility import ineligibility, is_forbidden
from fairlead.engine.scheduling.preemption.policy import PreemptionPolicy
from fairlead.engine.state.pod_info import PodInfo

if TYPE_CHECKING:
    from fairlead.engine.scheduling.preemption.dry_run.dry_run import DryRun
    from fairlead.engine.scheduling.preemption.evaluator import Evaluator
    from fairlead.engine.scheduling.preemption.pick import Pick

NAME: Final = "DefaultPreemption"
# upstream: framework/preemption/preemption.go: Preempt
NONE_LEFT: Final = "preemption: no candidate node for preemption"
# upstream: default_preemption.go: PostFilter
LEFT_TO_GROUP: Final = "not eligible due to workload aware preemption enabled"
NOT_HELPFUL: Final = unresolvable("Preemption is not helpful for scheduling")


class PreemptionSearch(Struct, frozen=True):
    """The result of a search for candidates; used for decisions and for explanations.

    `potential` are the rows of the nodes on which preemption might help. `ineligible` is the reason
    for which the pod may not preempt, "" if the pod may preempt.
    """

    potential: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    dry_run: DryRun | None = None
    pick: Pick | None = None
    ineligible: str = ""

    def refusals(self) -> Sequence[tuple[Status, int]]:
        """Return (reason, number of nodes) for the nodes that the dry runs rejected."""
        if self.dry_run is None:
            return ()
        return self.dry_run.columns.refusal_counts(self.dry_run.potential)


class DefaultPreemption:
    """Evicts pods of lower priority so that a pod fits (PostFilter).

    The CycleState must contain the cycle's `Feasibility`.
    """

    name = NAME
    events = frozenset({EventKind.ASSIGNED_POD_DELETE})
    wakes_alike = True

    def __init__(
        self,
        plans: PlanCache,
        tie_break: TieBreak,
        policy: PreemptionPolicy | None = None,
        args: DefaultPreemptionArgs | None = None,
        *,
        consults: bool = False,
    ) -> None:
        """Create the plugin.

        `args` may limit the search for candidates. `tie_break` chooses between candidates that the
        rules of `policy` rate as equal. If `consults` is set, extenders filter the candidates
        before one of them is chosen.
        """
        self._plans = plans
        self._policy = policy or PreemptionPolicy()
        self._tie_break = tie_break
        self._args = args or DefaultPreemptionArgs()
        self._is_sampled = self._args.are_set
        self._consults = consults

    @cached_property
    def _evaluator(self) -> Evaluator:
        """The evaluator; its module is imported only on first use."""
        from fairlead.engine.scheduling.preemption.evaluator import Evaluator  # noqa: PLC0415

        return Evaluator(self._plans, self._policy)

    @property
    def is_by_group(self) -> bool:
        """Whether the pods of a PodGroup preempt as a group."""
        return self._policy.by_group

    @property
    def evaluates_every_node(self) -> bool:
        """Whether searches evaluate all nodes, and no plugin restricts the choice of victims.

        In this case, if a search finds no candidate, it need not be repeated for pods with an equal
        `equivalence_key`, as long as the cluster does not change.
        """
        return not self._is_sampled and not self._policy.eligibility

    def is_forbidden(self, pod: PodInfo) -> bool:
        """Return whether the preemptionPolicy of `pod` forbids it to preempt other pods."""
        return is_forbidden(pod, self._policy)

    def is_woken_by(self, _pod: PodInfo, _event: ClusterEvent) -> bool:
        """Return False: the plugins that rejected the preemptor decide when it is retried.

        upstream: default_preemption.go: isPodSchedulableAfterAssignedPodDeletion
        """
        return False

    def search(
        self,
        state: CycleState,
        pod: PodInfo,
        diagnosis: Diagnosis,
        sample: CandidateSample | None = None,
    ) -> PreemptionSearch:
        """Find the candidates, and choose one by the rules of the policy; evict nothing.

        `sample` limits the search; None evaluates every node. If `pod` may not preempt, only
        `ineligible` of the result is set.
        """
        if self._policy.by_group and pod.pod.spec.scheduling_group is not None:
            return PreemptionSearch(ineligible=LEFT_TO_GROUP)
        nominated = pod.pod.status.nominated_node_name
        reason = ineligibility(pod, nominated, diagnosis, self._policy)
        if reason:
            return PreemptionSearch(ineligible=reason)
        potential = diagnosis.rows_with(Code.UNSCHEDULABLE)
        dry_run, pick = self._evaluator.find_candidates(state, pod, potential, sample)
        return PreemptionSearch(potential, dry_run, pick)

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """Return the nomination of the best candidate, with its victims.

        If extenders filter the candidates, the result contains a shortlist for the extenders
        instead of a nomination. If there is no candidate, the result clears the pod's earlier
        nomination. But the nomination is kept if `policy.keeps_nomination` is set, if the pod may
        not preempt, or if dry runs failed.
        """
        search = self.search(state, pod, diagnosis, self._sample(diagnosis))
        if search.ineligible:
            return PostFilterResult(unschedulable(f"preemption: {search.ineligible}"))
        if search.dry_run is None or search.pick is None:
            refusals = search.refusals()
            failure = _failure(refusals)
            if failure:
                return PostFilterResult(error(f"preemption: {failure}"))
            message = no_candidates(diagnosis.table.count, refusals)
            keeps = self._policy.keeps_nomination and len(search.potential) > 0
            nominated = None if keeps else ""
            return PostFilterResult(unschedulable(message), nominated_node=nominated)
        if self._consults:
            shortlist = CandidateShortlist(tuple(search.dry_run.candidates()), self, diagnosis)
            return PostFilterResult(SUCCESS, shortlist=shortlist)
        return self._nominate(search.dry_run, search.pick)

    def _sample(self, diagnosis: Diagnosis) -> CandidateSample | None:
        """Return the limits of the search; None if every node is evaluated."""
        potential = len(diagnosis.rows_with(Code.UNSCHEDULABLE)) if self._is_sampled else 0
        if not potential:
            return None
        return CandidateSample(self._tie_break.pick(potential), self._args.wanted(potential))

    def _nominate(self, dry_run: DryRun, pick: Pick) -> PostFilterResult:
        rows = pick.rows
        chosen = dry_run.columns.candidate(rows[self._tie_break.pick(len(rows))])
        return PostFilterResult(
            SUCCESS,
            nominated_node=chosen.node.name,
            victims=_present(chosen),
            pdb_violations=chosen.pdb_violations,
            rule=pick.rule,
            candidates=dry_run.columns.count(dry_run.potential),
            equals=len(rows),
        )

    def choose(self, candidates: Sequence[Candidate], diagnosis: Diagnosis) -> PostFilterResult:
        """Nominate the best of `candidates`, which the extenders have filtered."""
        dry_run, pick = self.rank(candidates, diagnosis)
        if pick is None:
            return PostFilterResult(unschedulable(NONE_LEFT))
        return self._nominate(dry_run, pick)

    def rank(
        self, candidates: Sequence[Candidate], diagnosis: Diagnosis
    ) -> tuple[DryRun, Pick | None]:
        """Compare `candidates` by the rules of the policy, and pick the best.

        Returns a DryRun that contains the candidates as results, and a Pick. The Pick is None if
        `candidates` is empty.
        """
        return self._evaluator.rank(candidates, diagnosis)


class CandidateShortlist(Struct, frozen=True):
    """The candidates that extenders may filter before DefaultPreemption picks one of them."""

    candidates: tuple[Candidate, ...]
    preemption: DefaultPreemption
    diagnosis: Diagnosis

    def choose(self, candidates: Sequence[Candidate] | Status) -> PostFilterResult:
        """Nominate the best of `candidates`.

        If an extender failed, `candidates` is the Status of the failure; the result is an error.
        """
        if isinstance(candidates, Status):
            return PostFilterResult(error(f"preemption: {candidates.message}"))
        return self.preemption.choose(candidates, self.diagnosis)


def _present(chosen: Candidate) -> tuple[PodInfo, ...]:
    """Return the current versions of the victims; a cached candidate may have older versions."""
    pods = chosen.node.pods
    return tuple([pods.get(victim.id, victim) for victim in chosen.victims])


def no_candidates(nodes: int, refusals: Sequence[tuple[Status, int]]) -> str:
    """Return the message for a search without candidates, such as `preemption: 0/5 nodes are …`.

    `refusals` has the number of nodes for each reason that the dry runs gave. The remaining nodes
    count as NOT_HELPFUL.
    """
    rest = nodes - sum([count for _, count in refusals])
    counts = (*refusals, (NOT_HELPFUL, rest)) if rest else refusals
    return f"preemption: 0/{nodes} nodes are available:{histogram(counts)}"


def _failure(refusals: Sequence[tuple[Status, int]]) -> str:
    """Return the messages of the dry runs that failed; "" if no dry run failed.

    `refusals` has the number of nodes for each reason that the dry runs gave. As in upstream,
    failed dry runs matter only if there is no candidate.
    upstream: preemption.go: DryRunPreemption, Preempt
    """
    messages = [status.message for status, _ in refusals if status.code is Code.ERROR]
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]" if messages else ""
