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
    """Return the reason for which `pod` may not preempt, "" if it may.

    `pod` may not preempt while its nominated node has a terminating pod for which it must wait,
    usually one of its own victims; `policy` defines these pods. `pod` does not wait if the
    nominated node was deleted or now rejects `pod` as UnschedulableAndUnresolvable.
    """
    if policy.honors_never and not preempts_lower(pod.pod):
        return NEVER
    node = diagnosis.table.find(nominated_node) if nominated_node else None
    if node is None:
        return ""
    if diagnosis.status_of(node.row).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    leaving = (p for p in policy.victims_among(node.pods.values(), pod) if p.terminating)
    return WAITING if any(policy.waits_for(victim) for victim in leaving) else ""
