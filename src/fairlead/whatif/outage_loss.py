"""OutageLoss: which pods that were on quiet nodes are not back, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import (
    controller_of,
    is_daemon_pod,
    is_static,
    is_terminal,
    is_terminating,
    pod_priority,
)
from fairlead.api.taint import NO_EXECUTE
from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.eviction.taint_eviction import ENDLESS, tolerated_s
from fairlead.engine.nodelifecycle.zones.zone_state import ZoneState
from fairlead.whatif.duration import for_readers
from fairlead.whatif.outage_outcome import Cause, Lost, NodeState, PodState, zone_phrase
from fairlead.whatif.outage_recorder import Hit, OutageRecorder
from fairlead.whatif.outcome import PodEnd


@dataclass(frozen=True, slots=True)
class Loss:
    """What is needed to say it: the recorder at the end, the pods by name, and the start."""

    recorder: OutageRecorder
    ends: Mapping[str, PodEnd]
    start: Instant

    def all(self) -> Iterator[Lost]:
        """Every pod that is not back, by name."""
        for key in sorted(self.recorder.hits):
            hit = self.recorder.hits[key]
            if hit.state is not PodState.UP:
                cause, why = self._why(key, hit)
                priority = pod_priority(hit.pod)
                yield Lost(pod=key, priority=priority, node=hit.node, cause=cause, why=why)

    def _why(self, key: str, hit: Hit) -> tuple[Cause, str]:
        mates = [pod for pod in self.recorder.mates(key) if not is_terminal(pod)]
        coming = [pod for pod in mates if not is_terminating(pod)]
        if hit.state is PodState.WAITING:
            return self._why_waiting(key, coming)
        if coming:
            return self._why_still_there(coming[0])
        owner = controller_of(hit.pod.metadata)
        if mates:
            if owner is not None and owner.kind == "StatefulSet":
                return Cause.STICKY, (
                    "its StatefulSet makes no new one before the old one is gone, and a silent "
                    "node cannot say that it is"
                )
            return Cause.UNCONFIRMED, "deleted, but its silent node cannot confirm that it is gone"
        if owner is None:
            return Cause.NOT_REPLACED, "it belongs to no controller that would make a new one"
        return Cause.NOT_REPLACED, f"{owner.kind} {owner.name} makes no new one"

    def _why_waiting(self, key: str, coming: list[Pod]) -> tuple[Cause, str]:
        on = next((pod.spec.node_name for pod in coming if pod.spec.node_name), "")
        if on:
            return Cause.STARTING, f"its successor is starting on {on}"
        end = self.ends.get(key)
        return Cause.NO_ROOM, (end.reason if end else "") or "not tried yet"

    def _why_still_there(self, pod: Pod) -> tuple[Cause, str]:
        """Why nobody has evicted `pod` from its quiet node."""
        recorder, name = self.recorder, pod.spec.node_name
        timer = recorder.timers.get(pod.metadata.uid)
        if timer is not None:
            due = for_readers(timer.due - self.start)
            return Cause.NOT_YET, f"tolerates the taint for {timer.tolerated_s} s, until {due}"
        match recorder.state(name):
            case NodeState.TAINTED:
                return self._why_tolerated(pod)
            case NodeState.UNREADY if is_daemon_pod(pod) or is_static(pod):
                return Cause.DAEMON, "belongs to its node, and is not evicted"
            case NodeState.UNREADY:
                return self._why_untainted(name)
            case NodeState.UNNOTICED:
                return Cause.UNTAINTED, "nobody has noticed yet that its node is dark"
            case _:
                return Cause.NOT_YET, "its node is away"

    def _why_tolerated(self, pod: Pod) -> tuple[Cause, str]:
        node = self.recorder.nodes[pod.spec.node_name]
        taints = tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)
        if is_daemon_pod(pod):
            return Cause.DAEMON, "pods of DaemonSets tolerate the taint for ever"
        if is_static(pod):
            return Cause.DAEMON, "static pods belong to their node"
        if tolerated_s(taints, pod.spec.tolerations) is ENDLESS:
            return Cause.TOLERATES, "tolerates the taint for ever"
        return Cause.UNTAINTED, "nobody evicts pods (--enable-taint-manager=false)"

    def _why_untainted(self, node: str) -> tuple[Cause, str]:
        zone = self.recorder.zone(node)
        change = next((one for one in reversed(self.recorder.zones) if one.zone == zone), None)
        if change is None or change.rate > 0:
            what = "tainted" if self.recorder.config.taint_based_evictions else "emptied"
            return Cause.UNTAINTED, f"its node's turn to be {what} has not come"
        if change.state == ZoneState.FULL_DISRUPTION:
            return Cause.STOPPED_ZONE, "evictions are stopped: every zone is dark"
        return Cause.STOPPED_ZONE, (
            f"evictions are stopped in {zone_phrase(zone)}: {change.unready} of its {change.size} "
            "nodes are not ready, and it is no large zone"
        )
