"""NodeLifecycle: the controller that notices when nodes go quiet, and says so in their objects.

    a node or its lease changes    NoSchedule taints and labels are put right at once; the next
                                   monitor pass will look at the node
    a monitor pass (5 s)           who was heard of lately, and how each zone does: `monitor`
    a look at the queues (0.1 s)   the nodes whose turn has come are tainted (or emptied)

Passes and looks that could not find anything are left out (`agenda`, `zone_queues`): a day of a
quiet cluster costs nothing, and what is written when is the same as if none had been.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go. Its workers run side by side
and their order within an instant is open; here nodes go by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from fairlead.api.lease import NODE_LEASES, renewals_of
from fairlead.api.objects import ApiObject, Lease, Node, Pod
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.reporter import NodeTainted, Reporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.nodelifecycle.agenda import Agenda
from fairlead.engine.nodelifecycle.beat import Beat
from fairlead.engine.nodelifecycle.config import EVICTION_PERIOD, NodeLifecycleConfig
from fairlead.engine.nodelifecycle.eviction import Eviction
from fairlead.engine.nodelifecycle.late_pods import LatePods
from fairlead.engine.nodelifecycle.monitor import Monitor, Parts
from fairlead.engine.nodelifecycle.no_execute_tainting import NoExecuteTainting
from fairlead.engine.nodelifecycle.no_schedule import missing_keys, stale_keys
from fairlead.engine.nodelifecycle.node_edit import (
    AddNoSchedule,
    CopyLabels,
    NodeEdit,
    RemoveNoSchedule,
    SilenceConditions,
    TaintNoExecute,
)
from fairlead.engine.nodelifecycle.node_label import stale_labels
from fairlead.engine.nodelifecycle.node_pods import NodePods
from fairlead.engine.nodelifecycle.node_writes import NodeWrites, Settled
from fairlead.engine.nodelifecycle.pod_eviction import PodEviction
from fairlead.engine.nodelifecycle.pod_marking import PodMarking
from fairlead.engine.nodelifecycle.watch_list import Watched, WatchList
from fairlead.engine.nodelifecycle.zone import ZoneState, zone_key
from fairlead.engine.nodelifecycle.zone_queues import ZoneQueues


class NodeLifecycle:
    """Health, taints by condition, labels, and the rate-limited part of evictions."""

    issuer: ClassVar[Issuer] = controller_account("node-controller")

    def __init__(self, config: NodeLifecycleConfig, reporter: Reporter, start: Instant = 0) -> None:
        """The first pass begins at `start`."""
        self._config = config
        self._reporter = reporter
        self._parts = _parts(config, reporter, start)
        self._monitor = Monitor(config, self._parts, reporter)
        self._late_pods = LatePods(self._parts.nodes, self._parts.pods, self._parts.marking)
        self._next_look: Instant | None = None

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Learn what changed; what a node's state asks for is put right at once."""
        match stimulus:
            case ObjectChanged(Pod() as pod):
                return self._see_pod(pod, now)
            case ObjectChanged(Node() as node):
                return self._see_node(node, now)
            case ObjectChanged(Lease() as lease):
                self._see_lease(lease, now)
            case ObjectDeleted(gone):
                self._forget(gone, now)
            case ObjectsLoaded(objects):
                return self._load(objects, now)
            case CommandSucceeded() | CommandFailed():
                return self._settle(stimulus, now)
            case _:
                pass
        return []

    def next_deadline(self) -> Instant | None:
        """The next pass or look that may find something."""
        found = self._parts.agenda.next_pass()
        for due in (self._next_look, self._late_pods.next_due()):
            if due is not None and (found is None or due < found):
                found = due
        return found

    def handle_deadline(self, now: Instant) -> list[Command]:
        """The pass or else the look that is due."""
        next_pass = self._parts.agenda.next_pass()
        if next_pass is not None and next_pass <= now:
            commands = self.monitor_node_health(now)
        elif self._next_look is not None and self._next_look <= now:
            commands = self.look_at_queues(now)
        else:
            return self._late_pods.look_again(now)
        self._next_look = self._parts.eviction.queues.next_look(now)
        return commands

    def monitor_node_health(self, now: Instant) -> list[Command]:
        """One monitor pass."""
        return self._monitor.run(now)

    def look_at_queues(self, now: Instant) -> list[Command]:
        """Let the nodes have their turns for which there is a token."""
        commands: list[Command] = []
        eviction = self._parts.eviction
        last_pass = self._parts.passes.before(now)
        for zone, name in eviction.queues.look(now, last_pass):
            commands += eviction.take_turn(zone, name, now)
        return commands

    @property
    def zone_states(self) -> dict[str, ZoneState]:
        """The states of the zones as the last pass left them."""
        return dict(self._monitor.zones.states)

    # --- learning ------------------------------------------------------------------------------

    def _load(self, objects: Sequence[ApiObject], now: Instant) -> list[Command]:
        """Take in everything; no pass has happened, so no pod can be late."""
        commands: list[Command] = []
        for one in objects:
            match one:
                case Pod():
                    self._parts.pods.put(one)
                case Lease():
                    self._see_lease(one, now)
                case Node():
                    commands += self._see_node(one, now)
                    if self._config.is_taking_over:
                        self._monitor.take_over(one, now)
                case _:
                    pass
        return commands

    def _see_pod(self, pod: Pod, now: Instant) -> list[Command]:
        before = self._parts.pods.put(pod)
        node = pod.spec.node_name
        if not node or (before is not None and before.spec.node_name == node):
            return []
        return self._late_pods.see(pod, now) if self._config.profile.marks_late_pods else []

    def _see_node(self, node: Node, now: Instant) -> list[Command]:
        name = node.metadata.name
        self._parts.nodes[name].node = node
        self._parts.agenda.note(name, now)
        commands = self._parts.writes.see_node(name, now)
        edits = self._corrections(node)
        return commands + self._parts.writes.submit(name, edits, now) if edits else commands

    def _corrections(self, node: Node) -> tuple[NodeEdit, ...]:
        """What level-triggered rules have to put right."""
        edits: list[NodeEdit] = []
        if missing_keys(node):
            edits.append(AddNoSchedule())
        if stale_keys(node):
            edits.append(RemoveNoSchedule())
        copies = self._config.profile.label_copies
        if stale_labels(node, copies):
            edits.append(CopyLabels(copies))
        return tuple(edits)

    def _see_lease(self, lease: Lease, now: Instant) -> None:
        if lease.metadata.namespace == NODE_LEASES:
            try:
                renewals = renewals_of(lease)
            except ValueError:
                return  # not a heartbeat that anybody could read
            self._renew(lease.metadata.name, now).renewals = renewals

    def _renew(self, name: str, now: Instant) -> Watched:
        """The node of a lease that changes now, with all passes so far taken in."""
        agenda, passes = self._parts.agenda, self._parts.passes
        last_pass = now if agenda.last_pass == now else passes.before(now)
        agenda.note(name, now)
        return self._parts.nodes.catch_up(name, last_pass)

    def _forget(self, gone: ApiObject, now: Instant) -> None:
        match gone:
            case Pod():
                self._parts.pods.remove(gone)
            case Node():
                name = gone.metadata.name
                self._parts.nodes[name].node = None
                self._parts.writes.forget(name)
                self._parts.agenda.note(name, now)
            case Lease() if gone.metadata.namespace == NODE_LEASES:
                self._renew(gone.metadata.name, now).renewals = None
            case _:
                pass

    # --- outcomes ------------------------------------------------------------------------------

    def _settle(self, outcome: CommandSucceeded | CommandFailed, now: Instant) -> list[Command]:
        commands = self._parts.marking.settle(outcome)
        for name in self._parts.marking.to_repeat:
            self._parts.agenda.note(name, now)
        settled = self._parts.writes.settle(outcome)
        if settled is None:
            return commands
        if settled.is_over:
            commands += self._see_settled(settled, now)
        return commands + self._parts.writes.see_node(settled.node, now)

    def _see_settled(self, settled: Settled, now: Instant) -> list[Command]:
        match settled:
            case Settled(name, SilenceConditions() as edit, None):
                return self._monitor.see_silenced(name, edit)
            case Settled(name, SilenceConditions()):
                self._parts.agenda.note(name, now)
            case Settled(name, TaintNoExecute(key, is_turn), None):
                zone = self._zone_of(name)
                self._reporter.report(NodeTainted(name, zone, key, is_turn, now))
            case Settled(name, TaintNoExecute(_, True)):
                self._have_turn_again(name, now)
            case _:
                pass
        return []

    def _zone_of(self, name: str) -> str:
        node = self._parts.nodes.find(name)
        return "" if node is None else zone_key(node, self._config)

    def _have_turn_again(self, name: str, now: Instant) -> None:
        """The world refused the taint for reasons of its own."""
        queues, zone = self._parts.eviction.queues, self._zone_of(name)
        if self._parts.nodes.find(name) is not None and queues.has(zone):
            queues[zone].retry(name, now + 1)
            self._next_look = queues.next_look(now)


def _parts(config: NodeLifecycleConfig, reporter: Reporter, start: Instant) -> Parts:
    passes = Beat(start + config.pass_cost, config.node_monitor_period + config.pass_cost)
    nodes, pods = WatchList(passes), NodePods()
    writes = NodeWrites(nodes.find)
    queues = ZoneQueues(config, Beat(start + config.eviction_offset, EVICTION_PERIOD))
    eviction: Eviction
    if config.taint_based_evictions:
        requeues = config.profile.requeues_untainted
        eviction = NoExecuteTainting(queues, writes, nodes.find, requeues=requeues)
    else:
        timeout = config.pod_eviction_timeout
        eviction = PodEviction(queues, pods, nodes.find, timeout, reporter)
    return Parts(
        passes=passes,
        nodes=nodes,
        agenda=Agenda(passes),
        pods=pods,
        writes=writes,
        marking=PodMarking(reports=config.profile.reports_unready_pods),
        eviction=eviction,
    )
