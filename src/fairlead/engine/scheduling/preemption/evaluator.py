"""Evaluator: performs dry runs to find the candidates for preemption, and picks the best.

upstream: framework/preemption/preemption.go: Evaluator
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from fairlead.engine.framework.candidate import Candidate
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.diagnosis import Diagnosis
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.interface import Rows
from fairlead.engine.framework.plan.plan_cache import PlanCache
from fairlead.engine.scheduling.preemption.args import CandidateSample
from fairlead.engine.scheduling.preemption.dry_run.candidate_columns import CandidateColumns
from fairlead.engine.scheduling.preemption.dry_run.dry_run import DryRun, DryRuns
from fairlead.engine.scheduling.preemption.pick import Pick, pick_one_node
from fairlead.engine.scheduling.preemption.policy import PreemptionPolicy
from fairlead.engine.state.pod_info import PodInfo


class Evaluator:
    """Finds the candidates for preemption, and rates them by the rules of `policy`."""

    def __init__(self, plans: PlanCache, policy: PreemptionPolicy) -> None:
        """Create an evaluator whose dry runs use the Filter plugins of `plans.framework`."""
        self._policy = policy
        self._dry_runs = DryRuns(plans, policy)

    def find_candidates(
        self, state: CycleState, pod: PodInfo, potential: Rows, sample: CandidateSample | None
    ) -> tuple[DryRun, Pick | None]:
        """Return the dry runs on the nodes at the rows `potential`, and the best candidates.

        `state` must contain the cycle's `Feasibility`. `sample` limits the search; None evaluates
        every node.
        """
        found = state.read(Feasibility)
        dry_run = self._dry_runs.dry_run_preemption(pod, found, potential, sample)
        return dry_run, pick_one_node(dry_run.columns, dry_run.potential)

    def rank(
        self, candidates: Sequence[Candidate], diagnosis: Diagnosis
    ) -> tuple[DryRun, Pick | None]:
        """Compare `candidates` by the rules of the policy, and pick the best.

        Returns a DryRun that contains the candidates as results, and a Pick. The Pick is None if
        `candidates` is empty.
        """
        columns = CandidateColumns(diagnosis.table.capacity, self._policy.rules)
        for candidate in candidates:
            victims = self._policy.arranged(candidate.victims)
            columns.put(candidate.node.row, replace(candidate, victims=victims))
        rows = np.array(sorted(candidate.node.row for candidate in candidates), np.int64)
        return DryRun(columns, rows), pick_one_node(columns, rows)
