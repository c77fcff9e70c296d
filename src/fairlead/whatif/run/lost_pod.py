"""Finds the pods of an outage that do not run again at the end, and the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from fairlead.api.nodes.taint import NO_EXECUTE
from fairlead.api.objects import OwnerReference, Pod
from fairlead.api.pods.facts import (
    belongs_to_node,
    controller_of,
    is_daemon_pod,
    is_static,
    is_terminal,
    is_terminating,
    pod_priority,
)
from fairlead.api.text.count import counted
from fairlead.apiserver.kind import JOB
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.nodelifecycle.eviction.taint_eviction import ENDLESS, tolerated_s
from fairlead.engine.nodelifecycle.zones.zone_state import ZoneState
from fairlead.engine.workloads.daemon_set.rule import node_eligibility
from fairlead.engine.workloads.job.progress import index_of
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.outage import (
    AffectedPodState,
    LossCause,
    LostPod,
    NodeState,
    ZoneChange,
    zone_phrase,
)
from fairlead.whatif.outcome.run_outcome import PodEnd
from fairlead.whatif.outcome.workload import WorkloadReadiness, WorkloadRef, workload_of
from fairlead.whatif.run.capacity.wanted_pods import SCALED
from fairlead.whatif.run.recorders.outage_recorder import AffectedPod, OutageRecorder

_REPLACING = ("ReplicaSet", "ReplicationController")


def lost_pods(
    recorder: OutageRecorder,
    ends: Mapping[str, PodEnd],
    workloads: Mapping[WorkloadRef, WorkloadReadiness],
    refusals: Mapping[str, str],
    start: Instant,
) -> Iterator[LostPod]:
    """Yield the pods that do not run again, sorted by name.

    `ends` maps keys to pods at the end, and `workloads` are the workloads whose pods changed.
    `refusals` maps objects, such as `DaemonSet ns/name`, to the last failure to create a pod. Times
    in the reasons count from `start`.
    """
    explainer = _LossExplainer(recorder, ends, workloads, refusals, start)
    for key in sorted(recorder.affected):
        pod = recorder.affected[key]
        if pod.state is not AffectedPodState.UP:
            cause, why = explainer.explain(key, pod)
            priority = pod_priority(pod.pod)
            yield LostPod(pod=key, priority=priority, node=pod.node, cause=cause, why=why)


class _LossExplainer(Struct, frozen=True, dict=True):
    """Determines why a pod does not run again, from the recorder's state at the end of the run."""

    recorder: OutageRecorder
    ends: Mapping[str, PodEnd]
    workloads: Mapping[WorkloadRef, WorkloadReadiness]
    refusals: Mapping[str, str]
    start: Instant

    def explain(self, key: str, lost: AffectedPod) -> tuple[LossCause, str]:
        existing = [pod for pod in self.recorder.pods_of(key) if not is_terminal(pod)]
        staying = [pod for pod in existing if not is_terminating(pod)]
        if lost.state is AffectedPodState.WAITING:
            return self._waiting(key, lost, staying)
        if staying:
            return self._not_evicted(staying[0])
        owner = controller_of(lost.pod.metadata)
        if owner is not None and (why := self._not_needed(owner, lost.pod)):
            return LossCause.NOT_NEEDED, why
        # The controllers of these kinds replace a pod while it is being deleted.
        if existing and (owner is None or owner.kind not in _REPLACING):
            if owner is not None and owner.kind == "StatefulSet":
                return LossCause.STICKY, (
                    "its StatefulSet creates no replacement before the old pod is gone, and the "
                    "kubelet of an unresponsive node cannot confirm that"
                )
            return (
                LossCause.UNCONFIRMED,
                "deleted, but the kubelet of its unresponsive node cannot confirm that",
            )
        return self._not_created(owner, lost)

    def _not_created(
        self, owner: OwnerReference | None, lost: AffectedPod
    ) -> tuple[LossCause, str]:
        if belongs_to_node(lost.pod) and lost.node not in self.recorder.nodes:
            return LossCause.NODE_REMOVED, "DaemonSet or static pod, whose node was removed"
        if owner is None:
            return LossCause.NOT_REPLACED, "it has no controller that would create a replacement"
        refusal = self.refusals.get(f"{owner.kind} {lost.pod.metadata.namespace}/{owner.name}", "")
        if (workload := workload_of(lost.pod)).is_daemon_set:  # it would create the pod at once
            if (workload, lost.node) in self._daemon_pods:  # for example, of another revision
                return LossCause.NOT_NEEDED, f"{workload} has another pod on {lost.node}"
            node = self.recorder.nodes.get(lost.node)
            is_wanted = node is not None and node_eligibility(lost.pod, node).should_run
            if not (refusal and is_wanted):
                return LossCause.NOT_NEEDED, f"{workload} wants no pod on {lost.node}"
        why = f"{owner.kind} {owner.name} creates no replacement"
        return LossCause.NOT_REPLACED, f"{why}: {refusal}" if refusal else why

    def _not_needed(self, owner: OwnerReference, pod: Pod) -> str:
        """Return why the workload of `pod` needs no replacement; "" if it needs a replacement."""
        workload = workload_of(pod)
        if not self._is_complete(workload):
            return ""
        if owner.kind == JOB.kind and self._has_ended(workload):
            return f"{workload} has ended and needs no pods"
        # A Job has all pods that it still wants when it gives up an index whose pod was evicted.
        if index_of(pod) in self.workloads[workload].failed_indexes:
            return ""
        wanted = counted(self.workloads[workload].wanted, "pod")
        # Some of these pods may be pending.
        return f"{workload} wants {wanted} and does not need this one"

    def _is_complete(self, workload: WorkloadRef) -> bool:
        """Return whether, at the end of the run, `workload` has all the pods that it wants."""
        if workload not in self.workloads or workload.kind not in SCALED:
            return False
        return self._present[workload] >= self.workloads[workload].wanted

    def _has_ended(self, workload: WorkloadRef) -> bool:
        return workload in self.workloads and not self.workloads[workload].wanted

    @cached_property
    def _daemon_pods(self) -> frozenset[tuple[WorkloadRef, str]]:
        """(workload, node) of the pods at the end, without completed and terminating pods."""
        return frozenset(
            (pod.workload, pod.own_node)
            for pod in self.ends.values()
            if not (pod.is_completed or pod.is_terminating)
        )

    @cached_property
    def _present(self) -> Counter[WorkloadRef]:
        """The number of pods at the end, by workload, without completed and terminating pods."""
        return Counter(
            pod.workload
            for pod in self.ends.values()
            if not (pod.is_completed or pod.is_terminating)
        )

    def _waiting(self, key: str, lost: AffectedPod, staying: list[Pod]) -> tuple[LossCause, str]:
        placed = next((pod for pod in staying if pod.spec.node_name), None)
        end = self.ends.get(key)
        if end is not None and end.awaits_volume_detachment:
            return LossCause.ATTACHED, end.reason
        if placed is not None:
            is_same = placed.metadata.uid == lost.pod.metadata.uid
            who = "it is starting again" if is_same else "its replacement is starting"
            return LossCause.STARTING, f"{who} on {placed.spec.node_name}"
        return LossCause.NO_ROOM, (end.reason if end else "") or "not tried yet"

    def _not_evicted(self, pod: Pod) -> tuple[LossCause, str]:
        """Return (cause, reason) for a `pod` that was not evicted from its unresponsive node."""
        recorder, name = self.recorder, pod.spec.node_name
        timer = recorder.timers.get(pod.metadata.uid)
        if timer is not None:
            tolerated = for_readers(seconds(timer.tolerated_s))
            due = for_readers(timer.due - self.start)
            why = f"tolerates the taint for {tolerated}, until {due} after the start"
            return LossCause.NOT_YET, why
        match recorder.state(name):
            case NodeState.TAINTED:
                return self._tolerated(pod)
            case NodeState.UNREADY if is_daemon_pod(pod) or is_static(pod):
                return LossCause.DAEMON, "DaemonSet or static pod, which is not evicted"
            case NodeState.UNREADY:
                return self._untainted(name)
            case NodeState.UNNOTICED if recorder.is_flapping(name):
                return LossCause.FLAPPING, "its node flaps, and is down when the simulation ends"
            case NodeState.UNNOTICED:
                return LossCause.UNTAINTED, "the node controller has not yet noticed the failure"
            case _:
                return LossCause.NOT_YET, "its node is gone"

    def _tolerated(self, pod: Pod) -> tuple[LossCause, str]:
        node = self.recorder.nodes[pod.spec.node_name]
        taints = tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)
        if is_daemon_pod(pod):
            return LossCause.DAEMON, "pods of DaemonSets tolerate the taint indefinitely"
        if is_static(pod):
            return LossCause.DAEMON, "static pods belong to their node"
        if tolerated_s(taints, pod.spec.tolerations) is ENDLESS:
            return LossCause.TOLERATES, "tolerates the taint indefinitely"
        return LossCause.UNTAINTED, "taint-based eviction is off (--enable-taint-manager=false)"

    def _untainted(self, node: str) -> tuple[LossCause, str]:
        zone = self.recorder.zone(node)
        change = next((one for one in reversed(self.recorder.zones) if one.zone == zone), None)
        if change is None or change.rate > 0:
            what = "tainted" if self.recorder.config.evicts_by_taint else "emptied"
            return LossCause.UNTAINTED, f"its node is still queued to be {what} (rate limit)"
        return LossCause.STOPPED_ZONE, self._stopped(change)

    def _stopped(self, zone: ZoneChange) -> str:
        """Return why the node controller evicts no pods in `zone`."""
        config = self.recorder.config
        last = {one.zone: one.state for one in self.recorder.zones}
        if all(state == ZoneState.FULL_DISRUPTION for state in last.values()):
            return "evictions are stopped: no zone has a ready node"
        stopped = f"evictions are stopped in {zone_phrase(zone.zone)}"
        if zone.state != ZoneState.PARTIAL_DISRUPTION:
            return f"{stopped}: --node-eviction-rate is 0"
        unready = f"{zone.unready:,} of its {zone.size:,} nodes are not ready"
        most = config.large_cluster_size_threshold
        if zone.size > most:
            return f"{stopped}: {unready}, and --secondary-node-eviction-rate is 0"
        return (
            f"{stopped}: {unready}, and it has at most {most:,} nodes "
            "(--large-cluster-size-threshold)"
        )
