"""DynamicResources, as far as pods without resource claims notice it (plugins/dynamicresources).

Claims are not supported yet: a pod with any is refused by name. Its PostFilter runs before
preemption and contributes to every message; if PreFilter was never reached it fails with upstream's
bare "not found", and preemption is then not attempted (dynamicresources.go: getStateData).
"""

from __future__ import annotations

from typing import Final

from fairlead.core.status import SKIP, Status, error, unschedulable
from fairlead.framework.cycle_state import CycleState
from fairlead.framework.diagnosis import Diagnosis
from fairlead.framework.interface import PostFilterResult
from fairlead.plugins.unsupported import refusal, uses_resource_claims
from fairlead.state.node_info import NodeInfo
from fairlead.state.pod_info import PodInfo

NO_CLAIMS: Final = unschedulable("no new claims to deallocate")


class _Reached:
    """Left in the CycleState once PreFilter has run."""


class DynamicResources:
    """PreFilter, Filter, PostFilter, Score."""

    name = "DynamicResources"

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Skipped for pods without claims."""
        state.write(_Reached())
        return refusal(self.name) if uses_resource_claims(pod.shape.spec) else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Never reached: PreFilter either skips or rejects."""
        return None

    def scores_alike(self, pod: PodInfo) -> bool:
        """Without claims no node is better than another."""
        return True

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Always 0."""
        return 0

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> PostFilterResult:
        """There never are claims whose allocation could be given up."""
        if state.find(_Reached) is None:
            return PostFilterResult(error("not found"))
        return PostFilterResult(NO_CLAIMS)
