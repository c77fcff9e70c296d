"""ClusterAutoscaler: the autoscaler as a controller of the engine, with a simulated provider.

A loop runs every --scan-interval. If a loop has the same result as the loop before it, and no
object changed between the two, the next loops are skipped. Loops resume when an object changes. If
no object changes, loops resume when time alone can change the result, for example at the end of a
backoff. If no such time is known, the next loop runs after an hour. Thus idle hours cost almost
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from fairlead.api.objects import ApiObject, Node, Unstructured
from fairlead.api.text.count import counted
from fairlead.engine.autoscaling.capacity_outage import CapacityOutage
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import NodeGroup
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
    SimulatedProvider,
)
from fairlead.engine.autoscaling.cluster_autoscaler.clusterstate.status_config_map import (
    StatusConfigMap,
)
from fairlead.engine.autoscaling.cluster_autoscaler.expander.priority import (
    CONFIG_MAP,
    priorities_in,
)
from fairlead.engine.autoscaling.cluster_autoscaler.history import AutoscalerHistory
from fairlead.engine.autoscaling.cluster_autoscaler.object_change import is_read, is_visible_change
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.pod_kind import (
    created_at,
    is_daemon_set_pod,
    is_expendable,
)
from fairlead.engine.autoscaling.cluster_autoscaler.resource_quota import TotalLimit, total_limits
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.timers import ScaleDownTimers
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.unremovable import UnremovableReason
from fairlead.engine.autoscaling.cluster_autoscaler.scaleup.pod_list import scale_up_delay
from fairlead.engine.autoscaling.cluster_autoscaler.scaleup.skipped_group import (
    MAX_SIZE_REACHED,
    QUOTA_EXCEEDED,
)
from fairlead.engine.autoscaling.cluster_autoscaler.scaleup.status import MAX_NODES_REACHED
from fairlead.engine.autoscaling.cluster_autoscaler.static_autoscaler import (
    LoopRecord,
    StaticAutoscaler,
)
from fairlead.engine.autoscaling.eviction_reporter import EvictionReporter
from fairlead.engine.autoscaling.reached_limit import ReachedLimit
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, EvictPod, PatchObject
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import CLUSTER_AUTOSCALER, Issuer
from fairlead.engine.core.reporter import Reporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.tie_break import TieBreak

# Some rules change their result when a new pod, a node or a taint reaches one of these ages.
_POD_AGES: Final = (seconds(2), seconds(30))
_NODE_AGES: Final = (seconds(60), seconds(300))
_RECHECK: Final[DurationNs] = seconds(3600)
# It begins with the words of static_autoscaler.go: RunOnce.
_UNHEALTHY: Final = (
    "Cluster is unhealthy: {unready:,} of {nodes:,} nodes are not ready, so Cluster Autoscaler "
    "adds no nodes"
)


class ClusterAutoscaler:
    """Cluster Autoscaler with a simulated provider; `history` records its actions."""

    issuer: ClassVar[Issuer] = CLUSTER_AUTOSCALER
    interest: ClassVar[Interest] = Interest(
        succeeded=(EvictPod,), failed=(CreateObject, DeleteObject, EvictPod, PatchObject)
    )

    def __init__(
        self,
        options: AutoscalingOptions,
        provider: SimulatedProvider,
        reporter: Reporter,
        *,
        seed: int,
        start: Instant,
        priorities: str | None = None,
    ) -> None:
        """Create the controller. Its first loop runs one scan interval after `start`.

        The controller reports evictions to `reporter`. `seed` decides between equal expansion
        options. `priorities` is the text of the ConfigMap of the priority expander at `start`.
        Later versions of this ConfigMap replace the text.
        """
        self._options = options
        self._provider = provider
        self._priorities = priorities
        self._evictions = EvictionReporter(reporter)
        pick = TieBreak(seed)
        self.autoscaler = StaticAutoscaler(
            provider, options, pick=pick.pick, priorities=lambda: self._priorities
        )
        self.history = AutoscalerHistory(provider)
        context = self.autoscaler.context
        context.provider_names = {
            group.id: group.spec.provider_name
            for group in provider.node_groups()
            if group.spec.provider_name
        }
        self._status = StatusConfigMap(
            provider, context.registry, options.namespace, options.status_config_map_name
        )
        self._start = start
        self._next_loop = start + options.scan_interval
        self._earliest = self._next_loop
        self._has_changed = True
        self._last: tuple[object, ...] | None = None
        self._changed_at: Instant = start

    def resume(self, timers: ScaleDownTimers) -> None:
        """Continue the work of an earlier process from its `timers`; call this before the run."""
        self.autoscaler.planner.resume(timers.unneeded_since)
        self.autoscaler.scale_down.last_scale_up = timers.last_scale_up
        self.autoscaler.context.scale_up_times |= timers.scale_ups

    # --- stimuli ---------------------------------------------------------------------------

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Process `stimulus`, a cluster change or a command's outcome; return new commands."""
        match stimulus:
            case ObjectsLoaded(objects):
                for one in objects:
                    self._put(one, now, is_loaded=True)
            case ObjectChanged(changed):
                self._put(changed, now, is_loaded=False)
            case ObjectDeleted(gone):
                self._remove(gone, now)
            case CommandSucceeded(EvictPod(pod=ref) as eviction):
                self._evictions.succeeded(eviction, now)
                self.autoscaler.actuator.handle_eviction_outcome(ref, None, now)
            case CommandFailed(EvictPod(pod=ref), reason, message):
                problem = None if reason is FailureReason.NOT_FOUND else message
                self.autoscaler.actuator.handle_eviction_outcome(ref, problem, now)
            case CommandFailed(CreateObject() | PatchObject() as command, reason, _):
                if command.target == self._status.ref:
                    self._status.forget_written(exists=reason is not FailureReason.NOT_FOUND)
                self._observe_refusal(command, reason, now)
                return []
            case CommandFailed(DeleteObject() as command, reason, _):
                self._observe_refusal(command, reason, now)
                return []
            case _:
                return []
        return self._commands()

    def _observe_refusal(
        self,
        command: CreateObject | PatchObject | DeleteObject,
        reason: FailureReason,
        now: Instant,
    ) -> None:
        """Make the provider repeat a failed creation or deletion of a machine's Node."""
        is_over = reason in (FailureReason.NOT_FOUND, FailureReason.ALREADY_EXISTS)
        if command.target.kind == "Node" and not isinstance(command, PatchObject) and not is_over:
            self._provider.refused(command, now)

    def _put(self, changed: ApiObject, now: Instant, *, is_loaded: bool) -> None:
        if not is_read(type(changed)):
            if isinstance(changed, Unstructured):
                self._observe_priorities(changed, priorities_in(changed.data), now)
            return
        if isinstance(changed, Node):
            changed = self._provider.adopt(changed)
        known = self.autoscaler.context.listers.find(changed)
        if known is None and isinstance(changed, Node) and not is_loaded:
            is_own = self._provider.has_created_node(changed.spec.provider_id)
            self.history.node_added(changed, now, is_own=is_own)
        if known is None or is_visible_change(known, changed):
            self.autoscaler.put(changed)
            self._wake(now)
        else:
            self.autoscaler.put_unread(changed)

    def _remove(self, gone: ApiObject, now: Instant) -> None:
        if not is_read(type(gone)):
            if isinstance(gone, Unstructured):
                self._observe_priorities(gone, None, now)
            return
        if isinstance(gone, Node):
            gone = self.autoscaler.context.listers.nodes.get(gone.metadata.name, gone)
            self.history.node_removed(gone, now)
            self._provider.delete_machine_of(gone)
        self.autoscaler.remove(gone)
        self._wake(now)

    def _observe_priorities(self, one: Unstructured, text: str | None, now: Instant) -> None:
        """Store the priorities `text` if the object `one` is the priority expander's ConfigMap.

        `text` is None if the ConfigMap was deleted.

        upstream: expander/priority/priority.go: BestOptions, which reads the ConfigMap each time
        """
        if one.kind != "ConfigMap" or one.key != f"{self._options.namespace}/{CONFIG_MAP}":
            return
        if text != self._priorities:
            self._priorities = text
            self._wake(now)

    def _wake(self, now: Instant) -> None:
        """Record a change at `now`.

        The first change after a loop schedules the next loop at the earliest allowed scan time.
        """
        if not self._has_changed:
            self._has_changed = True
            self._next_loop = max(self._on_grid(now), self._earliest)
        self._changed_at = now

    def _on_grid(self, at: Instant) -> Instant:
        """Return the first scan time at or after `at`."""
        interval = self._options.scan_interval
        return self._start + max(-(-(at - self._start) // interval), 1) * interval

    # --- time ------------------------------------------------------------------------------

    def next_deadline(self) -> Instant | None:
        """Return the time of the next loop, node deletion or machine event.

        A loop is always scheduled, so the result is never None.
        """
        dues = (self._next_loop, self.autoscaler.actuator.next_due(), self._provider.next_due())
        return min(due for due in dues if due is not None)

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Do the first work that is due: a node deletion, else a machine event, else a loop."""
        due = self.autoscaler.actuator.next_due()
        if due is not None and due <= now:
            self.autoscaler.actuator.run_due(now)
            return self._commands()
        due = self._provider.next_due()
        if due is not None and due <= now:
            self._provider.run_due(now)
            self._wake(now)
            return self._commands()
        self._loop(now)
        return self._commands()

    def _commands(self) -> list[Command]:
        found = [*self._provider.commands, *self.autoscaler.commands]
        self._provider.commands.clear()
        self.autoscaler.commands.clear()
        self._evictions.sent(found, self.autoscaler.context.listers.any_pod)
        return found

    def _loop(self, now: Instant) -> None:
        has_changed, self._has_changed = self._has_changed, False
        record = self.autoscaler.run_once(now)
        self.history.loop_done(record, self.autoscaler)
        if self._options.write_status_configmap:
            self.autoscaler.commands += self._status.update_commands(self._unneeded(), now)
        result = self._result(record)
        is_steady = not has_changed and result == self._last
        self._last = result
        self._next_loop = self._earliest = now + self._options.scan_interval
        if is_steady:
            due = min((at for at in self._times() if at > now), default=now + _RECHECK)
            self._next_loop = max(self._on_grid(due), self._next_loop)

    def _unneeded(self) -> dict[str, list[str]]:
        """Return the names of the unneeded nodes, by node group."""
        found: dict[str, list[str]] = {}
        for name, one in self.autoscaler.planner.unneeded.by_name.items():
            group = self.autoscaler.context.group_of(one.removal.node)
            if group is not None:
                found.setdefault(group.id, []).append(name)
        return found

    def _result(self, record: LoopRecord) -> tuple[object, ...]:
        """Return the parts of a loop's result that are compared with those of the previous loop."""
        planner, registry = self.autoscaler.planner, self.autoscaler.context.registry
        unneeded = tuple((name, one.since) for name, one in planner.unneeded.by_name.items())
        reasons = tuple((name, one.reason) for name, one in planner.unremovable.reasons.items())
        remain = tuple(
            (info.pod.key, str(info.rejected), str(info.skipped))
            for status in record.scale_ups
            for info in status.remain
        )
        results = tuple(status.result for status in record.scale_ups)
        requests = tuple((name, one.increase) for name, one in sorted(registry.requests.items()))
        return (record.scale_down.result, results, unneeded, reasons, remain, requests)

    # --- when a loop can have another result -----------------------------------------------

    def _times(self) -> Iterator[Instant]:
        """Yield the times at which the result of a loop can change even if no object changes."""
        yield from self._times_of_scale_down()
        registry, context = self.autoscaler.context.registry, self.autoscaler.context
        for request in registry.requests.values():
            yield request.expected_by + 1
        for end in registry.backoff.ends():
            yield end + 1
        for group in self._provider.node_groups():
            allowed = context.group_options(group).max_node_provision_time
            for since in registry.unregistered().values():
                yield since + allowed + 1
            wrong = registry.incorrect_size(group.id)
            if wrong is not None:
                yield wrong.since + allowed + 1
        for pod in context.listers.unbound.values():
            for age in (*_POD_AGES, scale_up_delay(pod, self._options.new_pod_scale_up_delay)):
                yield created_at(pod) + age + 1
        for age in (*_NODE_AGES, self._options.defaults.max_node_startup_time):
            yield self._changed_at + age + 1

    def _times_of_scale_down(self) -> Iterator[Instant]:
        options, planner = self._options, self.autoscaler.planner
        for one in planner.unneeded.by_name.values():
            yield one.since + planner.unneeded.threshold(one.removal.node) + 1
        expiry = planner.unremovable.next_expiry()
        if expiry is not None:
            yield expiry
        yield from self.autoscaler.scale_down.delay_ends()
        timeout = options.blocking_system_pod_distruption_timeout
        for why in planner.unremovable.reasons.values():
            if why.blocking is not None:
                yield created_at(why.blocking.pod) + timeout + 1

    # --- provider, and inspection ----------------------------------------------------------

    @property
    def options(self) -> AutoscalingOptions:
        """The flags of the autoscaler."""
        return self._options

    def add_outage(self, outage: CapacityOutage) -> None:
        """Add an outage of the simulated provider."""
        self._provider.add_outage(outage)

    @property
    def groups(self) -> list[NodeGroupSpec]:
        """The specifications of all node groups."""
        return [group.spec for group in self._provider.node_groups()]

    def nodes_by_group(self) -> dict[str, list[Node]]:
        """Return the current nodes of each group that has nodes."""
        found: dict[str, list[Node]] = {}
        for node in self.autoscaler.context.listers.nodes.values():
            group = self.autoscaler.context.group_of(node)
            if group is not None:
                found.setdefault(group.id, []).append(node)
        return found

    @property
    def nodes_max(self) -> int:
        """The value of --max-nodes-total; 0 if the number of all nodes has no limit."""
        return self._options.max_nodes_total

    @property
    def total_limits(self) -> tuple[TotalLimit, ...]:
        """The cluster-wide maximums of cores, memory and GPUs, with the amounts of all nodes."""
        nodes = self.autoscaler.context.listers.nodes.values()
        return total_limits(self._options, self._provider, nodes)

    @property
    def undelivered(self) -> dict[str, int]:
        """The number of machines that failed for lack of capacity, by node group."""
        return self._provider.undelivered

    def pods_without_scale_up(self) -> dict[str, str]:
        """Return the pods for which no group grows, each with the reason.

        The result also contains `ignored_pods`. While too many nodes are unready, no loop looks at
        pods. The unready nodes are then the reason for every unschedulable pod that upstream does
        not ignore.
        """
        listers, total = self.autoscaler.context.listers, self.autoscaler.context.registry.total
        if self.history.unhealthy_now is None:
            found = dict(self.history.without_scale_up)
        else:
            why = _UNHEALTHY.format(unready=len(total.unready), nodes=len(total.registered))
            found = {pod.key: why for pod in listers.unschedulable_pods()}
        return found | self.ignored_pods()

    def ignored_pods(self) -> dict[str, str]:
        """Return the unbound pods that upstream ignores without an event, each with the reason.

        The result contains expendable pods, pods of DaemonSets, and pods of schedulers that
        --allowed-scheduler-names does not list.
        """
        listers, found = self.autoscaler.context.listers, dict[str, str]()
        cutoff = self._options.expendable_pods_priority_cutoff
        for pod in listers.unschedulable_pods():
            if is_expendable(pod, cutoff):
                found[pod.key] = (
                    f"priority {pod.spec.priority} is below --expendable-pods-priority-cutoff "
                    f"({cutoff})"
                )
            elif is_daemon_set_pod(pod):
                found[pod.key] = "pods of DaemonSets trigger no scale-up"
        for key, pod in listers.other_pods.items():
            if not pod.spec.node_name:
                found[key] = f"--allowed-scheduler-names does not contain {pod.spec.scheduler_name}"
        return found

    def reached_limits(self, now: Instant) -> dict[str, tuple[ReachedLimit, ...]]:
        """Return the limits that keep pods from getting new nodes, by pod key."""
        waiting = {
            pod: why
            for pod, why in self.history.without_scale_up.items()
            if any(one in why for one in (MAX_NODES_REACHED, MAX_SIZE_REACHED, QUOTA_EXCEEDED))
        }
        if not waiting:
            return {}
        totals = self.total_limits
        pending = self.autoscaler.context.listers.unschedulable_pods()
        limited = [one for one in pending if one.key in waiting]
        total = ReachedLimit("flag", "--max-nodes-total", counted(self.nodes_max, "node"))
        found: dict[str, tuple[ReachedLimit, ...]] = {}
        for pod, groups in self.autoscaler.suitable_groups(limited, now).items():
            full = [one for one in groups if one.target_size() >= one.max_size]
            # Scale-up compares the amounts of a group only if the group is below its maximum size.
            growing = [one for one in groups if one.target_size() < one.max_size]
            exceeded = [
                one for one in totals if any(one.exceeded_by(group.id, 1) for group in growing)
            ]
            free = [
                group
                for group in growing
                if not any(one.exceeded_by(group.id, 1) for one in totals)
            ]
            own = (*map(_size_limit, full), *map(_total_limit, exceeded))
            if MAX_NODES_REACHED in waiting[pod]:
                # A group without another limit would grow if only the total were higher.
                found[pod] = (total,) if free else (total, *own)
            elif own:
                found[pod] = own
        return found

    def nodes_without_scale_down(self) -> dict[str, str]:
        """Return the nodes that the autoscaler does not remove, each with the reason.

        The result also contains the nodes that upstream leaves out before it looks for a reason.
        Upstream leaves out the nodes of groups at their minimum size, and the nodes without a
        group. upstream: processors/nodes/pre_filtering_processor.go: GetScaleDownCandidates
        """
        found = dict(self.history.staying)
        context = self.autoscaler.context
        for name, node in context.listers.nodes.items():
            group = context.group_of(node)
            if group is None:
                found[name] = UnremovableReason.NOT_AUTOSCALED.value
            elif group.target_size() <= group.min_size:
                found[name] = UnremovableReason.NODE_GROUP_MIN_SIZE_REACHED.value
        return found

    def is_working(self, now: Instant) -> bool:
        """Return whether the autoscaler may still change the cluster if nothing else happens.

        If nodes have not been unneeded for long enough, their later removal does not count as a
        change (see `removal_times`).
        """
        autoscaler, options = self.autoscaler, self._options
        context = autoscaler.context
        if self._provider.next_due() is not None or autoscaler.actuator.next_due() is not None:
            return True
        if context.registry.requests or self._has_changed:
            return True
        pods = context.listers.unschedulable_pods()
        ends = context.registry.backoff.ends()
        if pods and any(end + options.scan_interval >= now for end in ends):
            return True
        delays = ((pod, scale_up_delay(pod, options.new_pod_scale_up_delay)) for pod in pods)
        if any(
            delay and created_at(pod) + delay + options.scan_interval >= now
            for pod, delay in delays
        ):
            return True
        # With local delays, scale-down does not examine the nodes of delayed groups.
        return options.scale_down_delay_type_local and any(
            end + options.scan_interval >= now for end in autoscaler.scale_down.delay_ends()
        )

    def removal_times(self, now: Instant) -> tuple[Instant, ...]:
        """Return, for each unneeded node, the time of the first scan that can remove the node.

        This scan is after the end of the node's unneeded time, and not before the end of the
        scale-down delays. Times before `now` are left out, because the scans at these times did not
        remove their nodes.

        upstream: core/scaledown/unneeded/nodes.go: unremovableReason,
        core/static_autoscaler.go: isScaleDownInCooldown
        """
        planner, scan = self.autoscaler.planner, self._options.scan_interval
        delay_end = max(self.autoscaler.scale_down.delay_ends(), default=now - scan - 1)
        ends = (
            max(one.since + planner.unneeded.threshold(one.removal.node) + 1, delay_end)
            for one in planner.unneeded.by_name.values()
        )
        scans = map(self._on_grid, ends)
        return tuple(at for at in scans if at >= now)


def _total_limit(one: TotalLimit) -> ReachedLimit:
    return ReachedLimit("flag", one.flag, one.words(one.maximum))


def _size_limit(group: NodeGroup) -> ReachedLimit:
    return ReachedLimit("node group", group.id, counted(group.max_size, "node"))
