"""Actuator: carries out the deletion of nodes.

    start        taint and cordon all chosen nodes; check each again after
                 --node-delete-delay-after-taint
    empty        evict DaemonSet pods if configured ──┐
    drain        evict pods, wait until they are gone ┴─▶ ready ──▶ batch ──▶ the provider deletes
    any failure  remove the taint and the cordon

Here, *ready* means ready to be deleted. Annotations can delay the deletion of a node. The node then
becomes ready when these annotations are gone, or after a timeout. If a batch interval is
configured, the first ready node of a group opens a batch. The nodes of a batch are deleted at the
end of the interval. If no interval is configured, each ready node is deleted immediately.

The nodes of an *atomic* group are deleted together. A ready node waits until all nodes of the group
are ready. If one node fails to become ready, the deletions of the waiting nodes are cancelled
immediately. If a further node becomes ready after the failure, its deletion is cancelled, too. As
in upstream, the failure is forgotten at the next scale-down. Nodes that become ready later wait
again.

upstream: core/scaledown/actuation/{actuator,group_deletion_scheduler,delete_in_batch}.go,
core/scaledown/actuation/wait_for_delay_deletion.go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import Node, Pod, PodDisruptionBudget
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    ProviderError,
)
from fairlead.engine.autoscaling.cluster_autoscaler.context import AutoscalingContext
from fairlead.engine.autoscaling.cluster_autoscaler.event import NORMAL, WARNING
from fairlead.engine.autoscaling.cluster_autoscaler.pod_kind import is_expendable
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.actuation.drain import (
    NodeDrain,
    daemon_set_eviction_of,
    drain_of,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.actuation.node_write import (
    NodeTaintWriter,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.deletion_tracker import (
    DeleteResult,
    NodeDeleteResult,
    NodeDeletionTracker,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.disruption_budget import (
    RemainingBudgets,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.drainability import DrainRules
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.parallelism import CroppedNodes
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.timer_queue import TimerQueue

_DELAYING: Final = "delay-deletion.cluster-autoscaler.kubernetes.io/"
_CHECK_INTERVAL: Final[DurationNs] = seconds(5)
_OTHERS_FAILED: Final = "couldn't scale down other nodes in this node group"
Task = Callable[[Instant], None]


class _Deletion(Struct, frozen=True):
    """A node whose deletion has started.

    `drain` is set if pods must be evicted. `batch_size` is the number of nodes of an atomic group
    that are deleted together. `batch_size` is 0 if the node can be deleted alone.
    """

    node: Node
    group: str
    drain: bool
    batch_size: int

    @property
    def name(self) -> str:
        return self.node.metadata.name


class DeletionOutcome(Struct, frozen=True):
    """The result of one request to the provider to delete nodes of `group`.

    The scale-down delays of the group start at the time `at`.
    """

    group: str
    at: Instant
    is_success: bool


class Actuator:
    """Deletes nodes in the background; `outcomes` collects the results.

    Call `run_due` at each time that `next_due` returns.
    """

    def __init__(self, context: AutoscalingContext, rules: DrainRules) -> None:
        """`rules` decide which pods of a node move, and which pod blocks the node's removal."""
        self._context = context
        self._rules = rules
        self.tracker = NodeDeletionTracker()
        options = context.options
        cordon = options.cordon_node_before_terminating
        self.writer = NodeTaintWriter(context.commands, context.listers, cordon=cordon)
        self._timers: TimerQueue[Task] = TimerQueue()
        self._drains: dict[str, tuple[NodeDrain, _Deletion]] = {}
        self._ready: dict[str, list[_Deletion]] = {}
        self._failed_groups: set[str] = set()
        self._batches: dict[str, list[_Deletion]] = {}
        self.outcomes: list[DeletionOutcome] = []

    # --- background work -------------------------------------------------------------------

    def at(self, due: Instant, task: Task) -> None:
        """Run `task` in the background at the time `due`."""
        self._timers.add(due, task)

    def next_due(self) -> Instant | None:
        """Return the time at which `run_due` next has work; None if no work is pending."""
        dues = [self._timers.next_due(), *(drain.due for drain, _ in self._drains.values())]
        return min((due for due in dues if due is not None), default=None)

    def run_due(self, now: Instant) -> None:
        """Do all background work that is due at `now`."""
        for task in self._timers.pop_due(now):
            task(now)
        for name in list(self._drains):
            entry = self._drains.get(name)
            if entry is not None and entry[0].due is not None and entry[0].due <= now:
                entry[0].advance(now)
                self._after_drain(name, now)

    def handle_eviction_outcome(self, ref: ObjectRef, problem: str | None, now: Instant) -> None:
        """Handle the outcome of the eviction of the pod `ref`.

        `problem` is the error text, None if the eviction succeeded.
        """
        for name in list(self._drains):
            drain, _ = self._drains[name]
            drain.handle_outcome(ref, problem, now)
            self._after_drain(name, now)

    # --- start -----------------------------------------------------------------------------

    def forget_failures(self) -> None:
        """Forget the atomic groups in which a deletion failed.

        Call this in each scale-down, before `start_deletion`.

        upstream: group_deletion_scheduler.go: ResetAndReportMetrics
        """
        self._failed_groups.clear()

    def start_deletion(self, chosen: CroppedNodes, now: Instant) -> list[str]:
        """Taint the `chosen` nodes and begin their deletion; return the names of these nodes.

        upstream: actuator.go: StartDeletion
        """
        started: list[str] = []
        for views, drain in ((chosen.empty, False), (chosen.drain, True)):
            deletions = [
                _Deletion(one.node, view.group, drain, view.batch_size)
                for view in views
                for one in view.nodes
            ]
            for one in deletions:
                self.writer.mark_to_be_deleted(one.name, now)
                message = "marked the node as toBeDeleted/unschedulable"
                self._context.events.on_node(one.node, NORMAL, "ScaleDown", message)
                self.tracker.start(one.group, one.name, drain=drain)
                started.append(one.name)
            if deletions:
                self._begin(deletions, now)
        return started

    def _begin(self, deletions: Sequence[_Deletion], now: Instant) -> None:
        delay = self._context.options.node_delete_delay_after_taint

        def recheck(then: Instant) -> None:
            for one in deletions:
                self._recheck(one, then)

        self.at(now + delay, recheck)

    def pods_on(self, name: str) -> list[Pod]:
        """Return the pods that are bound to node `name`, oldest first, without expendable pods.

        Pods of schedulers that --allowed-scheduler-names does not list are included. The Node may
        be gone already.
        upstream: actuator.go: createSnapshot
        """
        listers, cutoff = (
            self._context.listers,
            self._context.options.expendable_pods_priority_cutoff,
        )
        info = self._context.snapshot.node(name)
        if info is None:
            known = iter(listers.pods.values())
        else:
            known = (
                found
                for pod in info.pods.values()
                if (found := listers.pods.get(pod.key)) is not None
            )
        pods = chain(known, listers.other_pods.values())
        bound = (pod for pod in pods if pod.spec.node_name == name)
        return listers.in_order(pod for pod in bound if not is_expendable(pod, cutoff))

    def _recheck(self, one: _Deletion, now: Instant) -> None:
        """Check the pods of the node again, then drain the node or cancel its deletion.

        A node that was chosen as empty must still be empty. The deletion continues even if the Node
        object no longer exists.
        """
        context = self._context
        pods = self.pods_on(one.name)
        if one.drain:
            budgets = RemainingBudgets(context.listers.all_of(PodDisruptionBudget))
            found = self._rules.pods_to_move(pods, now, context.listers, budgets)
        else:
            found = self._rules.pods_to_move(pods, now)
        if found.blocking is not None:
            pod = found.blocking.pod
            text = f'GetPodsToMove for "{one.name}" returned error: {pod.key} blocks'
            self._abort(one, DeleteResult.INTERNAL, text, now)
        elif not one.drain and (found.pods or found.on_completion):
            why = "new pods scheduled" if found.pods else "active on-completion pods present"
            text = f'failed to delete empty node "{one.name}", {why}'
            self._abort(one, DeleteResult.INTERNAL, text, now)
        else:
            make = drain_of if one.drain else daemon_set_eviction_of
            drain = make(context, one.name, pods)
            self._drains[one.name] = (drain, one)
            drain.start(now)
            self._after_drain(one.name, now)

    def _after_drain(self, name: str, now: Instant) -> None:
        entry = self._drains.get(name)
        if entry is None:
            return
        drain, one = entry
        if drain.failure:
            del self._drains[name]
            self._abort(one, DeleteResult.FAILED_TO_EVICT_PODS, drain.failure, now)
        elif drain.is_done:
            del self._drains[name]
            timeout = self._context.options.node_deletion_delay_timeout
            if timeout and _is_delayed(one.node):
                self._check_later(one, now, now + timeout)
            else:
                self._node_ready(one, now)

    def _check_later(self, one: _Deletion, now: Instant, deadline: Instant) -> None:
        """Check every 5 s, until `deadline`, whether annotations still delay the deletion."""

        def check(then: Instant) -> None:
            node = self._context.listers.nodes.get(one.name)
            if node is None:
                text = f'failed to get node {one.name}: node "{one.name}" not found'
                self._abort(one, DeleteResult.FAILED_TO_DELETE, text, then)
            elif _is_delayed(node) and then < deadline:
                self._check_later(one, then, deadline)
            else:
                self._node_ready(one, then)

        self.at(min(now + _CHECK_INTERVAL, deadline), check)

    # --- groups ----------------------------------------------------------------------------

    def _node_ready(self, one: _Deletion, now: Instant) -> None:
        """Delete a node, or let it wait until all nodes of its atomic group can be deleted.

        As in upstream, the last node to become ready for deletion decides how its atomic group is
        reported. If that node was drained, all nodes are reported as drained. Otherwise, all are
        reported as empty (group_deletion_scheduler.go: addToBatcher).
        """
        if not one.batch_size:
            self._add_to_batch([one], now)
            return
        if one.group in self._failed_groups:
            self._clean_up(one, DeleteResult.FAILED_TO_DELETE, _OTHERS_FAILED, now)
            return
        waiting = self._ready.setdefault(one.group, [])
        waiting.append(one)
        if len(waiting) >= one.batch_size:
            nodes = self._ready.pop(one.group)
            self._add_to_batch([replace(each, drain=one.drain) for each in nodes], now)

    def _abort(self, one: _Deletion, result: DeleteResult, text: str, now: Instant) -> None:
        """Cancel the deletion of a node, and of the waiting nodes of its atomic group."""
        self._clean_up(one, result, text, now)
        if one.batch_size:
            self._failed_groups.add(one.group)
            for other in self._ready.pop(one.group, ()):
                like = replace(other, drain=one.drain)
                self._clean_up(like, DeleteResult.FAILED_TO_DELETE, _OTHERS_FAILED, now)

    def _clean_up(self, one: _Deletion, result: DeleteResult, text: str, now: Instant) -> None:
        what = "failed to drain and delete node" if one.drain else "failed to delete empty node"
        self._context.events.on_node(one.node, WARNING, "ScaleDownFailed", f"{what}: {text}")
        self.writer.clean_to_be_deleted(one.name)
        self.tracker.end(one.name, NodeDeleteResult(result, text), now)

    # --- deletion --------------------------------------------------------------------------

    def _add_to_batch(self, nodes: Sequence[_Deletion], now: Instant) -> None:
        interval = self._context.options.node_deletion_batcher_interval
        if not interval:
            self._delete(nodes, now)
            return
        group = nodes[0].group
        is_first = group not in self._batches
        self._batches.setdefault(group, []).extend(nodes)
        if is_first:
            self.at(now + interval, lambda then: self._delete(self._batches.pop(group), then))

    def _delete(self, nodes: Sequence[_Deletion], now: Instant) -> None:
        """Delete `nodes`, which belong to one group, in a single call of the provider.

        If the call succeeds, the deletions are complete, even if the Node objects still exist.
        """
        context, name = self._context, nodes[0].group
        try:
            group = context.groups_by_id()[name]
            group.delete_nodes([one.node.spec.provider_id for one in nodes], now)
        except ProviderError as failure:
            text = f"failed to delete nodes from group {name}: {failure}"
            self.outcomes.append(DeletionOutcome(name, now, is_success=False))
            for one in nodes:
                self._clean_up(one, DeleteResult.FAILED_TO_DELETE, text, now)
            return
        for one in nodes:
            events = context.events
            events.on_node(one.node, NORMAL, "ScaleDown", "nodes removed by cluster autoscaler")
            if one.drain:
                events.on_status(
                    NORMAL, "ScaleDown", f"Scale-down: node {one.name} removed with drain"
                )
            else:
                events.on_status(
                    NORMAL, "ScaleDownEmpty", f"Scale-down: empty node {one.name} removed"
                )
            self.tracker.end(one.name, NodeDeleteResult(DeleteResult.OK), now)
            self.outcomes.append(DeletionOutcome(name, now, is_success=True))


def _is_delayed(node: Node) -> bool:
    return any(key.startswith(_DELAYING) for key in node.metadata.annotations)
