"""UnboundVictims: victims of preemption that have a node but are not bound to it yet.

upstream: framework/preemption/executor.go: PreemptPod
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.scheduling.preemption.default_preemption import NAME
from fairlead.engine.state.pod_info import PodInfo

_PREEMPTED: Final = "preempted"


class UnboundVictims(Struct, frozen=True):
    """Ends the placement of victims that wait on Permit (`waiting`) or are in PreBind.

    `cancel(pod)` cancels the PreBind phase of `pod`; it returns False if `pod` is not in PreBind.
    """

    waiting: WaitingPods
    cancel: Callable[[PodInfo], bool]

    def preempt(self, victim: PodInfo) -> bool:
        """Send `victim` back to the queue; return False if it must be deleted instead."""
        return self.waiting.preempt(victim.id, NAME, _PREEMPTED) or self.cancel(victim)

    def reject(self, victim: PodInfo) -> None:
        """Reject `victim` if it waits on Permit, as versions before 1.33 do."""
        self.waiting.reject(victim.id, NAME, _PREEMPTED)
