"""ScaleDown: the part of the loop that removes nodes.

upstream: core/static_autoscaler.go: RunOnce, isScaleDownInCooldown;
processors/scaledowncandidates/scale_down_candidates_delay_processor.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from fairlead.api.objects import Node, Pod
from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.event import NORMAL
from fairlead.engine.autoscaling.cluster_autoscaler.pod_kind import (
    is_daemon_set_pod,
    is_mirror_pod,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.actuation.actuator import Actuator
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.actuation.node_write import (
    NodeTaintWriter,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.actuation.soft_taint import (
    soft_taint_writes,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.deletion_tracker import (
    DeletionsInProgress,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.parallelism import (
    CroppedNodes,
    crop_nodes,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.planner import ScaleDownPlanner
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.status import (
    ScaleDownNode,
    ScaleDownResult,
    ScaleDownStatus,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.timers import LONG_AGO
from fairlead.engine.core.instant import DurationNs, Instant


class ScaleDown:
    """The scale-down part of a loop: applies the delays, then plans and starts deletions.

    The delays that apply to the whole cluster start at `last_scale_up` and `last_deletion`.
    `sleep_time` is the time in ns for which upstream would have slept in the last `run`.
    """

    def __init__(
        self, context: AutoscalingContext, planner: ScaleDownPlanner, actuator: Actuator
    ) -> None:
        self._context = context
        self._planner = planner
        self._actuator = actuator
        self.last_scale_up: Instant = LONG_AGO
        self.last_deletion: Instant = LONG_AGO
        self._shrunk: dict[str, Instant] = {}
        self._failed: dict[str, Instant] = {}
        self.sleep_time: DurationNs = 0

    def run(
        self,
        status: ScaleDownStatus,
        nodes: Sequence[Node],
        deletions: DeletionsInProgress,
        now: Instant,
        *,
        is_forbidden: bool,
    ) -> None:
        """Find unneeded nodes among `nodes`, start deletions, and update soft taints.

        The result is written to `status`. If `is_forbidden` is set, no deletion starts in this
        loop.
        """
        self.sleep_time = 0
        candidates = self._planner.candidates(self._without_delayed(nodes, now), now)
        status.candidates = [node.metadata.name for node in candidates]
        self._planner.update(nodes, candidates, deletions, now)
        written: Sequence[str] = ()
        if is_forbidden or self._is_in_cooldown(now):
            status.result = ScaleDownResult.IN_COOLDOWN
        elif not candidates:
            status.result = ScaleDownResult.NO_CANDIDATES
        else:
            written = self._delete(status, deletions, now)
        if self._context.options.max_bulk_soft_taint_count:
            self._update_soft_taints(nodes, written, now)

    def _is_in_cooldown(self, now: Instant) -> bool:
        options = self._context.options
        if options.scale_down_delay_type_local:
            return False
        return (
            self.last_scale_up + options.scale_down_delay_after_add > now
            or self.last_deletion + options.scale_down_delay_after_delete > now
        )

    def _without_delayed(self, nodes: Sequence[Node], now: Instant) -> list[Node]:
        """Return `nodes` without the nodes of groups in which a scale-down delay is running.

        If the delays apply to the whole cluster, returns all of `nodes`.
        """
        context, delays = self._context, self._group_delays()
        if not context.options.scale_down_delay_type_local:
            return list(nodes)
        found = []
        for node in nodes:
            group = context.group_of(node)
            name = "" if group is None else group.id
            if not any(times.get(name, LONG_AGO) + delay > now for times, delay in delays):
                found.append(node)
        return found

    def _group_delays(self) -> tuple[tuple[Mapping[str, Instant], DurationNs], ...]:
        """Record the new outcomes of the actuator, and return the delays of the node groups.

        Each outcome is recorded as the start of a delay. Each entry of the result is for one kind
        of delay: the mapping {node group: start of the delay}, and the length of the delay in ns.
        """
        options = self._context.options
        for outcome in self._actuator.outcomes:
            (self._shrunk if outcome.is_success else self._failed)[outcome.group] = outcome.at
        self._actuator.outcomes.clear()
        return (
            (self._context.scale_up_times, options.scale_down_delay_after_add),
            (self._shrunk, options.scale_down_delay_after_delete),
            (self._failed, options.scale_down_delay_after_failure),
        )

    def delay_ends(self) -> Iterator[Instant]:
        """Yield the end of each scale-down delay. Ends that have already passed are included."""
        options = self._context.options
        if options.scale_down_delay_type_local:
            for times, delay in self._group_delays():
                yield from (at + delay for at in times.values())
            return
        yield self.last_scale_up + options.scale_down_delay_after_add
        yield self.last_deletion + options.scale_down_delay_after_delete

    def _delete(
        self, status: ScaleDownStatus, deletions: DeletionsInProgress, now: Instant
    ) -> Sequence[str]:
        """Taint the nodes that can be deleted now, and start deleting them; return their names."""
        status.to_delete = self._planner.nodes_to_delete(deletions, now)
        self._actuator.forget_failures()
        chosen = crop_nodes(self._context, status.to_delete, deletions)
        status.deleting = self._described(chosen)
        if not status.deleting:
            status.result = ScaleDownResult.NO_NODE_DELETED
            return ()
        self._announce(chosen, status.deleting, now)
        status.result = ScaleDownResult.NODE_DELETE_STARTED
        self.last_deletion = now
        started = self._actuator.start_deletion(chosen, now)
        self._context.registry.recalculate()
        return started

    def _described(self, chosen: CroppedNodes) -> list[ScaleDownNode]:
        empty = [ScaleDownNode(one.name) for view in chosen.empty for one in view.nodes]
        drain = [
            ScaleDownNode(one.name, tuple(self._evicted(one.name)))
            for view in chosen.drain
            for one in view.nodes
        ]
        return [*empty, *drain]

    def _evicted(self, name: str) -> list[Pod]:
        """Return the pods in the snapshot that will be evicted from the node `name`."""
        snapshot = self._context.snapshot
        info = snapshot.node(name)
        pods = [] if info is None else [pod.pod for pod in snapshot.pods_on(info)]
        return [pod for pod in pods if not is_mirror_pod(pod) and not is_daemon_set_pod(pod)]

    def _announce(
        self, chosen: CroppedNodes, deleting: Sequence[ScaleDownNode], now: Instant
    ) -> None:
        drained = {one.name for view in chosen.drain for one in view.nodes}
        snapshot = self._context.snapshot
        for one in deleting:
            if one.name not in drained:
                message = f'Scale-down: removing empty node "{one.name}"'
                self._context.events.on_status(NORMAL, "ScaleDownEmpty", message)
                continue
            info = snapshot.node(one.name)
            assert info is not None
            used = self._planner.eligibility.utilization(info, now)
            names = ",".join(pod.metadata.name for pod in one.evicted)
            message = (
                f"Scale-down: removing node {one.name}, utilization: {used}, "
                f"pods to reschedule: {names}"
            )
            self._context.events.on_status(NORMAL, "ScaleDown", message)

    def _update_soft_taints(
        self, nodes: Sequence[Node], written: Sequence[str], now: Instant
    ) -> None:
        """Add the taint DeletionCandidate to unneeded nodes, and remove it from needed nodes.

        `written` are the names of the nodes that have just been tainted for deletion. If
        upstream sleeps before a write (module `soft_taint`), this method delays the write by the
        same time.
        """
        context, writer = self._context, self._actuator.writer
        unneeded = self._planner.unneeded.by_name
        # A needed node without taints is left out: there is no taint to add or remove.
        autoscaled = [
            node
            for node in nodes
            if (node.spec.taints or node.metadata.name in unneeded)
            and context.group_of(node) is not None
        ]
        for write in soft_taint_writes(autoscaled, unneeded, written, context.options):
            self.sleep_time = write.delay
            perform = partial(_perform, writer, write.name, add=write.add)
            if write.delay:
                self._actuator.at(now + write.delay, perform)
            else:
                perform(now)


def _perform(writer: NodeTaintWriter, name: str, now: Instant, *, add: bool) -> None:
    if add:
        writer.mark_deletion_candidate(name, now)
    else:
        writer.clean_deletion_candidate(name)
