"""NodeLifecycle: the node lifecycle controller.

    a node changes                 reconcile its NoSchedule taints and its labels immediately
    a node or its lease changes    examine the node in the next monitor pass
    monitor pass (5 s)             update node health and zone states: `monitor`
    queue processing (0.1 s)       taint nodes, or evict their pods, at the rate of their zone

Passes that cannot find anything are skipped (`examination_queue`, `zone_queues`). Skipping these
passes changes neither the writes nor their times.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go. Upstream's workers run
concurrently, so their order within an instant is not defined. Here nodes are ordered by name.
"""

from __future__ import annotations

from typing import ClassVar, Final

from fairlead.api.lease import NODE_LEASES, renewals_of
from fairlead.api.objects import ApiObject, Lease, Node, Pod
from fairlead.engine.core.command import Command, PatchObject, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest, WritesTo
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.reporter import NodeTainted, Reporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.nodelifecycle.config import EVICTION_PERIOD, NodeLifecycleConfig
from fairlead.engine.nodelifecycle.eviction.mode import EvictionMode
from fairlead.engine.nodelifecycle.eviction.no_execute_taint_mode import NoExecuteTaintMode
from fairlead.engine.nodelifecycle.eviction.pod_eviction_mode import PodEvictionMode
from fairlead.engine.nodelifecycle.health.examination_queue import ExaminationQueue
from fairlead.engine.nodelifecycle.health.node_health_map import NodeHealthMap, NodeRecord
from fairlead.engine.nodelifecycle.health.pod_readiness import LateBoundPods, NotReadyMarker
from fairlead.engine.nodelifecycle.monitor import Monitor, SharedState
from fairlead.engine.nodelifecycle.node_edit import (
    AddNoSchedule,
    CopyLabels,
    MarkUnknown,
    NodeEdit,
    RemoveNoSchedule,
    TaintNoExecute,
    desired_keys,
    present_keys,
    stale_labels,
)
from fairlead.engine.nodelifecycle.node_pods import NodePods
from fairlead.engine.nodelifecycle.node_writer import EditOutcome, NodeWriter
from fairlead.engine.nodelifecycle.period import Period
from fairlead.engine.nodelifecycle.zones.zone_queues import ZoneQueues
from fairlead.engine.nodelifecycle.zones.zone_state import ZoneState, zone_key

_WRITES: Final = (WritesTo(PatchStatus, ("Pod", "Node")), WritesTo(PatchObject, ("Node",)))


class NodeLifecycle:
    """Maintains node health, NoSchedule taints and labels; starts evictions at limited rates."""

    issuer: ClassVar[Issuer] = controller_account("node-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Pod, Node, Lease), succeeded=_WRITES, failed=_WRITES
    )

    def __init__(
        self,
        config: NodeLifecycleConfig,
        reporter: Reporter,
        start: Instant = 0,
        pods: NodePods | None = None,
    ) -> None:
        """The first monitor pass runs at `start + config.pass_cost`.

        `pods` may be shared with other controllers.
        """
        self._config = config
        self._reporter = reporter
        self._shared = _shared(config, reporter, start, NodePods() if pods is None else pods)
        self._monitor = Monitor(config, self._shared, reporter)
        self._late_bound_pods = LateBoundPods(
            self._shared.nodes, self._shared.pods, self._shared.not_ready_marker
        )
        self._next_attempt: Instant | None = None

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Record `stimulus`; return the writes that it requires immediately."""
        if type(stimulus) is CommandSucceeded or type(stimulus) is CommandFailed:
            return self._handle_outcome(stimulus, now)
        if type(stimulus) is ObjectChanged or type(stimulus) is ReadinessChanged:
            changed = stimulus.object
            if type(changed) is Node:
                return self._observe_node(changed, now)
            if type(changed) is Lease:
                self._observe_lease(changed, now)
            elif type(changed) is Pod:
                return self.handle_pod(changed, now)
        elif type(stimulus) is ObjectDeleted:
            self._forget(stimulus.object, now)
        elif type(stimulus) is ObjectsLoaded:
            return self._load(stimulus, now)
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> list[Command]:
        """Handle the changed `pod`, as `handle` does; return the resulting commands."""
        before, node = self._shared.pods.put(pod), pod.spec.node_name
        is_new_there = before is None or before.spec.node_name != node
        if is_new_there and node and self._config.profile.marks_late_bound_pods:
            return self._late_bound_pods.observe(pod, now)
        return []

    def next_deadline(self) -> Instant | None:
        """Return the time of the next pass, queue processing or retry that may cause a change.

        Returns None if nothing can happen before an object changes or a command has an outcome.
        """
        found = self._shared.examinations.next_pass()
        for due in (self._next_attempt, self._late_bound_pods.next_due()):
            if due is not None and (found is None or due < found):
                found = due
        return found

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Run the monitor pass, the queue processing or the retry that is due at `now`."""
        next_pass = self._shared.examinations.next_pass()
        if next_pass is not None and next_pass <= now:
            commands = self.monitor_node_health(now)
        elif self._next_attempt is not None and self._next_attempt <= now:
            commands = self.process_queues(now)
        else:
            return self._late_bound_pods.retry(now)
        self._next_attempt = self._shared.eviction.queues.next_attempt(now)
        return commands

    def monitor_node_health(self, now: Instant) -> list[Command]:
        """Run one monitor pass at `now`; return its commands."""
        return self._monitor.run(now)

    def process_queues(self, now: Instant) -> list[Command]:
        """Return the commands that evict queued nodes, as far as each zone's rate limit allows.

        Evicting a node means tainting it or, in the older mode, deleting its pods.
        """
        commands: list[Command] = []
        eviction = self._shared.eviction
        last_pass = self._shared.passes.before(now)
        for zone, name in eviction.queues.accepted(now, last_pass):
            commands += eviction.process(zone, name, now)
        return commands

    @property
    def zone_states(self) -> dict[str, ZoneState]:
        """The state of each zone after the last pass."""
        return dict(self._monitor.zones.states)

    # --- observations --------------------------------------------------------------------------

    def _load(self, loaded: ObjectsLoaded, now: Instant) -> list[Command]:
        """Load a snapshot, and return the commands about its nodes.

        The pods in the snapshot cause no commands.
        """
        commands: list[Command] = []
        self._shared.pods.load(loaded)
        for one in loaded.others:
            if type(one) is Lease:
                self._observe_lease(one, now)
            elif type(one) is Node:
                commands += self._observe_node(one, now)
                if self._config.is_taking_over:
                    self._monitor.take_over(one, now)
        return commands

    def _observe_node(self, node: Node, now: Instant) -> list[Command]:
        name = node.metadata.name
        self._shared.nodes[name].node = node
        self._shared.examinations.add(name, now)
        commands = self._shared.writer.observe_node(name, now)
        edits = self._corrections(node)
        return commands + self._shared.writer.submit(name, edits, now) if edits else commands

    def _corrections(self, node: Node) -> tuple[NodeEdit, ...]:
        """Return the edits that correct the node's NoSchedule taints and copied labels."""
        edits: list[NodeEdit] = []
        profile = self._config.profile
        if profile.taints_by_condition:
            desired, present = set(desired_keys(node)), present_keys(node).keys()
            if not present >= desired:  # there are `missing_keys`
                edits.append(AddNoSchedule())
            if not present <= desired:  # there are `stale_keys`
                edits.append(RemoveNoSchedule())
        copies = profile.label_copies
        if stale_labels(node, copies):
            edits.append(CopyLabels(copies))
        return tuple(edits)

    def _observe_lease(self, lease: Lease, now: Instant) -> None:
        if self._config.profile.uses_leases and lease.metadata.namespace == NODE_LEASES:
            try:
                renewals = renewals_of(lease)
            except ValueError:
                return  # a lease that cannot be parsed is not a heartbeat
            self._renew(lease.metadata.name, now).renewals = renewals

    def _renew(self, name: str, now: Instant) -> NodeRecord:
        """Queue the node for examination, because its lease has changed; return its record.

        The record is first updated as if every monitor pass so far had examined the node.
        """
        examinations, passes = self._shared.examinations, self._shared.passes
        last_pass = now if examinations.last_pass == now else passes.before(now)
        examinations.add(name, now)
        return self._shared.nodes.catch_up(name, last_pass)

    def _forget(self, gone: ApiObject, now: Instant) -> None:
        match gone:
            case Pod():
                self._shared.pods.remove(gone)
            case Node():
                name = gone.metadata.name
                self._shared.nodes[name].node = None
                self._shared.writer.forget(name)
                self._shared.examinations.add(name, now)
            case Lease() if gone.metadata.namespace == NODE_LEASES:
                self._renew(gone.metadata.name, now).renewals = None
            case _:
                pass

    # --- outcomes ------------------------------------------------------------------------------

    def _handle_outcome(
        self, outcome: CommandSucceeded | CommandFailed, now: Instant
    ) -> list[Command]:
        commands = self._shared.not_ready_marker.on_outcome(outcome)
        for name in self._shared.not_ready_marker.nodes_to_retry:
            self._shared.examinations.add(name, now)
        edit_outcome = self._shared.writer.on_outcome(outcome)
        if edit_outcome is None:
            return commands
        if edit_outcome.is_over:
            commands += self._handle_finished_edit(edit_outcome, now)
        return commands + self._shared.writer.observe_node(edit_outcome.node, now)

    def _handle_finished_edit(self, edit_outcome: EditOutcome, now: Instant) -> list[Command]:
        match edit_outcome:
            case EditOutcome(name, MarkUnknown() as edit, None):
                return self._monitor.on_marked_unknown(name, edit)
            case EditOutcome(name, MarkUnknown()):
                self._shared.examinations.add(name, now)
            case EditOutcome(name, TaintNoExecute(key, is_rate_limited), None):
                zone = self._zone_of(name)
                self._reporter.report(NodeTainted(name, zone, key, is_rate_limited, now))
            case EditOutcome(name, TaintNoExecute(_, True)):
                self._requeue(name, now)
            case _:
                pass
        return []

    def _zone_of(self, name: str) -> str:
        node = self._shared.nodes.find(name)
        return "" if node is None else zone_key(node, self._config)

    def _requeue(self, name: str, now: Instant) -> None:
        queues, zone = self._shared.eviction.queues, self._zone_of(name)
        if self._shared.nodes.find(name) is not None and queues.has(zone):
            queues[zone].retry(name, now + 1)
            self._next_attempt = queues.next_attempt(now)


def _shared(
    config: NodeLifecycleConfig, reporter: Reporter, start: Instant, pods: NodePods
) -> SharedState:
    passes = Period(start + config.pass_cost, config.node_monitor_period + config.pass_cost)
    nodes = NodeHealthMap(passes)
    writer = NodeWriter(nodes.find)
    queues = ZoneQueues(config, Period(start + config.eviction_offset, EVICTION_PERIOD))
    eviction: EvictionMode
    if config.evicts_by_taint:
        requeues = config.profile.requeues_untainted
        eviction = NoExecuteTaintMode(queues, writer, nodes.find, requeues=requeues)
    else:
        timeout = config.pod_eviction_timeout
        eviction = PodEvictionMode(queues, pods, nodes.find, timeout, reporter)
    return SharedState(
        passes=passes,
        nodes=nodes,
        examinations=ExaminationQueue(passes),
        pods=pods,
        writer=writer,
        not_ready_marker=NotReadyMarker(reports=config.profile.reports_unready_pods),
        eviction=eviction,
    )
