"""Kubelets: one controller simulates the kubelet of every node.

    heartbeat       leases and node conditions, as the node annotation `fairlead.dev/kubelet` states
    pod_workers     the lifecycle of the pods bound to a node
    node_pressure   node-pressure eviction
    mirror_pods     static pods, which are created again when they are deleted

Nodes and pods are not polled. So the amount of work depends on the number of changes, not on the
number of nodes and pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from fairlead.api.objects import ApiObject, Lease, Node, Pod
from fairlead.api.pods.facts import is_terminating
from fairlead.engine.core.command import (
    Command,
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import KUBELET, Issuer
from fairlead.engine.core.reporter import Reporter, SilentReporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.kubelet.mirror_pods import MirrorPods
from fairlead.engine.kubelet.node_pressure import NodePressure
from fairlead.engine.kubelet.node_status.heartbeat import Heartbeats
from fairlead.engine.kubelet.pod_lifecycle import deletion_requested_at
from fairlead.engine.kubelet.pod_workers import PodWorkers
from fairlead.engine.state.cluster import Cluster


class Kubelets:
    """All simulated kubelets. Pods on unknown nodes are not changed."""

    issuer: ClassVar[Issuer] = KUBELET
    interest: ClassVar[Interest] = Interest(
        changed=(Pod, Node, Lease),
        succeeded=(),
        failed=(PatchStatus, PatchObject, CreateObject, DeleteObject),
    )

    def __init__(
        self,
        config: KubeletConfig | None = None,
        reporter: Reporter | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        """`reporter` gets records of evictions, and of stops and resumptions of flapping kubelets.

        A kubelet admits a pod only if `cluster` shows that the pod fits its node. If `cluster` is
        None, the kubelets admit all pods.
        """
        config = config or KubeletConfig()
        reporter = reporter or SilentReporter()
        self._nodes = config.nodes
        self._heartbeats = heartbeats = Heartbeats(
            config.lease_period, config.annotates_renewals, config.renews_leases, reporter=reporter
        )
        self._workers = PodWorkers(config, heartbeats.is_reporting, cluster)
        self._mirrors = MirrorPods()
        self._pressure = NodePressure(
            config.eviction,
            heartbeats.report_pressures,
            heartbeats.is_reporting,
            reporter,
        )

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Let the kubelets react to `stimulus`; return the resulting commands."""
        if type(stimulus) is ObjectChanged or type(stimulus) is ReadinessChanged:
            changed = stimulus.object
            if type(changed) is Node:
                return self._observe_node(changed, now)
            if type(changed) is Lease:
                return self._heartbeats.observe_lease(changed, now)
            if type(changed) is Pod:
                return self._observe_pod(changed, now, now)
        elif type(stimulus) is ObjectDeleted:
            return self._forget(stimulus.object, now)
        elif type(stimulus) is ObjectsLoaded:
            return self._load(stimulus, now)
        elif type(stimulus) is CommandFailed:
            self._observe_failure(stimulus.command, stimulus.reason, now)
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Handle the changed `pod`, as `handle` does; return the resulting commands."""
        return self._observe_pod(pod, now, now)

    def next_deadline(self) -> Instant | None:
        """Return the time of the next pod transition, heartbeat change or pressure check.

        Returns None if nothing is scheduled.
        """
        found = self._workers.next_due()
        for due in (self._heartbeats.next_due(), self._pressure.next_due()):
            if due is not None and (found is None or due < found):
                found = due
        return found

    def next_transition(self) -> Instant | None:
        """Return the next time at which a pod starts, becomes ready, ends or stops.

        Returns None if nothing is scheduled.
        """
        return self._workers.next_due()

    def is_waiting(self) -> bool:
        """Return whether any working kubelet waits for a pod to start, become ready or stop."""
        return self._workers.is_waiting()

    def awaiting_volumes(self) -> dict[str, str]:
        """Return {key of a pod that waits for a volume: key of the pod that holds the volume}."""
        return self._workers.awaiting_volumes()

    def unfinished_resizes(self) -> dict[str, str]:
        """Return {key of a running pod whose resize is not carried out: why it is deferred}.

        The value is "" if the kubelet of the pod has stopped and has not decided about the resize.
        """
        return self._workers.unfinished_resizes()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Do one kind of the work that is due at `now`, and return the commands.

        If several kinds are due, the first of these is done: all heartbeats, all pressure checks,
        or acts of pod workers (see `PodWorkers.act`).
        """
        due = self._heartbeats.next_due()
        if due is not None and due <= now:
            return self._with_resumptions(self._heartbeats.act(now), now)
        due = self._pressure.next_due()
        if due is not None and due <= now:
            return self._pressure.act(now)
        return self._workers.act(now)

    # --- observations --------------------------------------------------------------------------

    def _load(self, loaded: ObjectsLoaded, now: Instant) -> list[Command]:
        """Process the loaded leases, then the nodes, then the pods; return the resulting commands.

        The leases come first because the kubelet of a loaded node continues the renewals of the
        node's lease.
        """
        commands: list[Command] = []
        for lease in (one for one in loaded.others if isinstance(one, Lease)):
            commands += self._heartbeats.observe_lease(lease, now)
        for node in (one for one in loaded.others if isinstance(one, Node)):
            commands += self._observe_node(node, now)
        for pod in self._workers.load_settled(loaded, now):
            terminating_at = deletion_requested_at(pod) if is_terminating(pod) else now
            commands += self._observe_pod(pod, now, terminating_at)
        return commands

    def _observe_pod(self, pod: Pod, now: Instant, terminating_at: Instant) -> list[Command]:
        self._pressure.observe_pod(pod, self._heartbeats.find, now)
        self._mirrors.observe(pod)
        return self._workers.observe(pod, now, terminating_at)

    def _observe_node(self, node: Node, now: Instant) -> list[Command]:
        if self._nodes is not None and node.metadata.name not in self._nodes:
            return []
        commands = self._with_resumptions(self._heartbeats.observe_node(node, now), now)
        self._pressure.observe_node(node, now)
        if self._heartbeats.is_reporting(node.metadata.name):
            commands += self._workers.resume(node.metadata.name, now)
        return commands

    def _with_resumptions(self, commands: list[Command], now: Instant) -> list[Command]:
        """Return `commands` plus the commands for pods on nodes whose kubelets have resumed."""
        for back in self._heartbeats.resumed:
            commands += self._workers.kubelet_resumed(back.node, now, was_down=back.was_down)
            self._pressure.kubelet_resumed(back.node, now)
            commands += self._mirrors.kubelet_resumed(back.node)
        self._heartbeats.resumed.clear()
        return commands

    def _forget(self, gone: ApiObject, now: Instant) -> list[Command]:
        if type(gone) is Pod:
            self._workers.forget(gone, now)
            self._pressure.forget_pod(gone, now)
            node = gone.spec.node_name
            if self._heartbeats.find(node) is not None:
                return self._mirrors.observe_deleted(
                    gone, is_reporting=self._heartbeats.is_reporting(node)
                )
        elif type(gone) is Node:
            self._heartbeats.forget_node(gone.metadata.name)
            self._pressure.forget_node(gone.metadata.name)
            self._mirrors.forget_node(gone.metadata.name)
        elif type(gone) is Lease:
            return self._heartbeats.forget_lease(gone, now)
        return []

    def _observe_failure(self, command: Command, reason: FailureReason, now: Instant) -> None:
        match command:
            case PatchStatus() | DeleteObject() if command.target.kind == "Pod":
                self._workers.observe_refused(command, reason, now)
            case CreateObject() | PatchObject() | PatchStatus():
                self._heartbeats.observe_refused(command, now)
            case _:
                pass
