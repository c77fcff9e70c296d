"""ineligibility: checks whether a pod may preempt other pods.

upstream: default_preemption.go: PodEligibleToPreemptOthers
"""

from __future__ import annotations

from typing import Final

from fairlead.api.pods.facts import preempts_lower
from fairlead.engine.core.status import Code
from fairlead.engine.framework.diagnosis import Diagnosis
from fairlead.engine.scheduling.preemption.policy import PreemptionPolicy
from fairlead.engine.state.pod_info import PodInfo

NEVER: Final = "not eligible due to preemptionPolicy=Never."
WAITING: Final = "not eligible due to a terminating pod on the nominated node."


def ineligibility(
    pod: PodInfo, nominated_node: str, diagnosis: Diagnosis, policy: PreemptionPolicy
) -> str:
    """Return the reason for which `pod` may not preempt; "" if `pod` may preempt.

    A reason is one of two facts:
    - The preemptionPolicy of `pod` is Never, and `policy.honors_never` is set.
    - `pod` must wait for a terminating pod on `nominated_node`, usually one of the victims of
      `pod`. `policy` defines for which terminating pods `pod` waits. `pod` waits for none of them
      if the node was deleted or now rejects `pod` as UnschedulableAndUnresolvable.
    """
    if is_forbidden(pod, policy):
        return NEVER
    node = diagnosis.table.find(nominated_node) if nominated_node else None
    if node is None:
        return ""
    if diagnosis.status_of(node.row).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    leaving = (p for p in policy.victims_among(node.pods.values(), pod) if p.terminating)
    return WAITING if any(policy.waits_for(victim) for victim in leaving) else ""


def is_forbidden(pod: PodInfo, policy: PreemptionPolicy) -> bool:
    """Return whether the preemptionPolicy of `pod` is Never, and `policy.honors_never` is set."""
    return policy.honors_never and not preempts_lower(pod.pod)
