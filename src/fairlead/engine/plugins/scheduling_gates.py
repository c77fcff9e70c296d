"""SchedulingGates: a gated pod does not enter the queue (plugins/schedulinggates)."""

from __future__ import annotations

from fairlead.engine.core.status import Status, unresolvable
from fairlead.engine.framework.cluster_event import EventKind
from fairlead.engine.state.pod_info import PodInfo


class SchedulingGates:
    """Keeps pods with scheduling gates out of the queue (PreEnqueue)."""

    name = "SchedulingGates"
    events = frozenset({EventKind.POD_GATES_GONE})

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """Reject the pod while it has scheduling gates."""
        gates = pod.pod.spec.scheduling_gates
        if not gates:
            return None
        names = " ".join(gate.name for gate in gates)
        return unresolvable(f"waiting for scheduling gates: [{names}]")
