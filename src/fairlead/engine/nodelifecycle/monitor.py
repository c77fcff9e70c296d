"""Monitor: one pass over the nodes that need examination.

    1 register     nodes that were added or deleted since the last pass
    2 examine      each queued node: mark it Unknown if its heartbeat is overdue, report its Ready
                   status to the EvictionMode (see below), count it in its zone
    3 assess       the zone states; stop or resume evictions, or change their rates

All decisions use the objects at the start of the pass. A node whose heartbeat is overdue counts as
not ready immediately. The conditions of the node are not written if Ready changes before the write
is sent. After the conditions have been written, a node whose Ready was True before gets the event
NodeNotReady, and the pods of the node are marked not ready. The eviction mode (`eviction.mode`)
adds a NoExecute taint to a node that is not ready. If taint-based evictions are off, the eviction
mode deletes the pods of the node instead.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go:monitorNodeHealth,
handleDisruption
"""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.nodes.readiness import TRUE, UNKNOWN, ready_condition, ready_status
from fairlead.api.objects import Node
from fairlead.engine.core.command import Command, ObjectRef, RecordEvent, node_ref
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import NodeMarkedUnknown, Reporter
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.eviction.mode import EvictionMode, Observation
from fairlead.engine.nodelifecycle.health.examination_queue import ExaminationQueue
from fairlead.engine.nodelifecycle.health.node_health import Examination, examine, next_examination
from fairlead.engine.nodelifecycle.health.node_health_map import NodeHealthMap, NodeRecord
from fairlead.engine.nodelifecycle.health.pod_readiness import NotReadyMarker
from fairlead.engine.nodelifecycle.node_edit import MarkUnknown, has_no_execute
from fairlead.engine.nodelifecycle.node_pods import NodePods
from fairlead.engine.nodelifecycle.node_writer import NodeWriter
from fairlead.engine.nodelifecycle.period import Period
from fairlead.engine.nodelifecycle.well_known import NODE_CONTROLLER, TAINT_OF_STATUS
from fairlead.engine.nodelifecycle.zones.zone_state import zone_key
from fairlead.engine.nodelifecycle.zones.zone_states import (
    AdjustRates,
    Rates,
    ResumeEvictions,
    StopEvictions,
    ZoneReport,
    ZoneStates,
    is_excluded,
)


class SharedState(Struct):
    """The node records, pods, queues and writers that the monitor shares with the controller."""

    passes: Period
    nodes: NodeHealthMap
    examinations: ExaminationQueue
    pods: NodePods
    writer: NodeWriter
    not_ready_marker: NotReadyMarker
    eviction: EvictionMode


class Monitor:
    """Runs monitor passes over the nodes that need examination."""

    def __init__(
        self, config: NodeLifecycleConfig, shared: SharedState, reporter: Reporter
    ) -> None:
        self._config = config
        self._shared = shared
        self._reporter = reporter
        self._zones = ZoneStates(config)
        self._zone_report = ZoneReport(config, reporter)

    @property
    def zones(self) -> ZoneStates:
        """The state of all zones after the last pass."""
        return self._zones

    def run(self, now: Instant) -> list[Command]:
        """Run the pass at `now`: register nodes, examine nodes, assess the zones."""
        names = self._shared.examinations.begin_pass(now)
        for zone in self._zones.untracked():
            self._open(zone, now)
        commands = [command for name in names for command in self._register(name, now)]
        for name in names:
            commands += self._examine(name, now)
        return commands + self._assess(now)

    # --- 1 added and removed nodes -------------------------------------------------------------

    def take_over(self, node: Node, now: Instant) -> None:
        """Register `node`, which existed before this controller started, and its zone.

        If the node already has the NoExecute taint for its Ready status, the zone's eviction queue
        records the node as handled.
        """
        name, zone = node.metadata.name, zone_key(node, self._config)
        self._shared.nodes[name].registered = node
        self._open(zone, now)
        key = TAINT_OF_STATUS.get(ready_status(node))
        if key is not None and has_no_execute(node, key):
            self._shared.eviction.queues[zone].mark_handled(name)

    def _register(self, name: str, now: Instant) -> list[Command]:
        record = self._shared.nodes[name]
        node, registered = record.node, record.registered
        if node is None:
            return [] if registered is None else self._unregister(record, registered)
        zone = zone_key(node, self._config)
        self._open(zone, now)
        if registered is not None:
            return []
        record.registered = node
        note = f"Node {name} event: Registered Node {name} in Controller"
        event = _event(node_ref(node), "RegisteredNode", note)
        return [event, *self._shared.eviction.on_ready(node, zone, now)]

    def _unregister(self, record: NodeRecord, node: Node) -> list[Command]:
        """Remove a deleted node, but not its entry in the eviction queue.

        As in upstream, a waiting entry of a deleted node still uses up a token.
        """
        name = node.metadata.name
        record.registered = None
        self._stop_requeuing(name)
        self._zones.drop(name)
        self._shared.examinations.schedule(name, None)
        note = f"Node {name} event: Removing Node {name} from Controller"
        return [_event(node_ref(node), "RemovingNode", note)]

    def _open(self, zone: str, now: Instant) -> None:
        if self._zones.open(zone):
            self._shared.eviction.queues.open(zone, now)

    def _stop_requeuing(self, name: str) -> None:
        """Turn the node's requeued entry into a timed entry (see `zone_queues`)."""
        zone = self._zones.zone_of(name)
        if zone is not None:
            last_requeued = self._shared.passes.before(self._shared.examinations.last_pass)
            self._shared.eviction.queues[zone].stop_requeuing(name, last_requeued)

    # --- 2 each node ---------------------------------------------------------------------------

    def _examine(self, name: str, now: Instant) -> list[Command]:
        shared = self._shared
        record = shared.nodes.catch_up(name, shared.passes.before(now))
        node = record.node
        if node is None:
            return []
        if shared.writer.is_marking_unknown(name):
            shared.examinations.add(name, now)
            return []
        zone = zone_key(node, self._config)
        if self._zones.zone_of(name) != zone:
            self._stop_requeuing(name)
        found = examine(record.health, node, record.renewals, now, self._config)
        record.health, record.last_pass = found.health, now
        counts = not is_excluded(node, self._config.profile)
        self._zones.place(node.metadata.name, zone, counts=counts, is_ready=found.current == TRUE)
        commands = self._mark_unknown(node, zone, found, now)
        commands += self._notify_mode(node, zone, found, now)
        if name in shared.not_ready_marker.nodes_to_retry and found.observed != TRUE:
            del shared.not_ready_marker.nodes_to_retry[name]
            commands += shared.not_ready_marker.mark(shared.pods.on(name))
        self._plan(name, record, node, found)
        return commands

    def _mark_unknown(
        self, node: Node, zone: str, found: Examination, now: Instant
    ) -> list[Command]:
        if found.health_if_unknown is None:
            return []
        name, last_probe = node.metadata.name, found.health.probe
        self._reporter.report(NodeMarkedUnknown(name, zone, found.observed or "", last_probe, now))
        edit = MarkUnknown(found.unknown_conditions, ready_condition(node), found.health_if_unknown)
        return self._shared.writer.submit(name, (edit,), now)

    def on_marked_unknown(self, name: str, edit: MarkUnknown) -> list[Command]:
        """Replace the node's saved health, except `probe`, with `edit.health`.

        The conditions in `edit` must have been written. If Ready was True before the write, return
        the event NodeNotReady and the writes that mark the node's pods as not ready. The saved
        `probe` is kept. A pass that resumed evictions may have set `probe` to a newer time.
        """
        record = self._shared.nodes[name]
        if record.health is not None:
            record.health = replace(edit.health, probe=record.health.probe)
        if edit.ready is None or edit.ready.status != TRUE or record.node is None:
            return []
        note = f"Node {name} status is now: NodeNotReady"
        event = _event(node_ref(record.node), "NodeNotReady", note)
        return [event, *self._shared.not_ready_marker.mark(self._shared.pods.on(name))]

    def _notify_mode(
        self, node: Node, zone: str, found: Examination, now: Instant
    ) -> list[Command]:
        """If `node` has a Ready condition, pass the condition's status to the eviction mode."""
        if found.current is None:
            self._stop_requeuing(node.metadata.name)
            return []
        status = self._deciding_status(found)
        if status == TRUE:
            return self._shared.eviction.on_ready(node, zone, now)
        if status not in TAINT_OF_STATUS:
            return []
        health = found.health_if_unknown or found.health
        last_pass = self._shared.passes.before(now)
        seen = Observation(node, zone, status, health, now, last_pass)
        return self._shared.eviction.on_not_ready(seen)

    def _deciding_status(self, found: Examination) -> str | None:
        if self._config.profile.taints_by_current:
            return found.current
        return UNKNOWN if found.observed is None else found.observed

    def _plan(self, name: str, record: NodeRecord, node: Node, found: Examination) -> None:
        """Schedule the node's next examination. A changed node may be examined before that."""
        examinations, passes, health = self._shared.examinations, self._shared.passes, found.health
        if health.lease is None and record.renewals is not None:
            examinations.add(name, examinations.last_pass)
        dues = [next_examination(health, node, record.renewals, passes, self._config)]
        status = self._deciding_status(found)
        if found.current is not None and status is not None:
            wait = self._shared.eviction.next_check(status, health)
            if wait is not None and wait >= examinations.last_pass:
                dues.append(passes.after(wait))
        if found.health_if_unknown is not None:
            dues = []  # the write of the conditions will queue the node again
        examinations.schedule(name, min((due for due in dues if due is not None), default=None))

    # --- 3 zones -------------------------------------------------------------------------------

    def _assess(self, now: Instant) -> list[Command]:
        commands: list[Command] = []
        match self._zones.assess():
            case None:
                pass
            case StopEvictions(rates):
                commands += self._stop(now)
                self._set_rates(rates, now)
            case ResumeEvictions(rates):
                self._set_rates(rates, now)
                self._resume(now)
            case AdjustRates(rates):
                self._set_rates(rates, now)
            case verdict:
                assert_never(verdict)
        self._zone_report.report(self._zones, now)
        self._note_forgotten(now)
        return commands

    def _set_rates(self, rates: Rates, now: Instant) -> None:
        for zone, rate in rates.items():
            self._shared.eviction.queues.swap_limiter(zone, rate, now)

    def _stop(self, now: Instant) -> list[Command]:
        """Remove all nodes from the eviction queues; return the writes that untaint the nodes.

        The writes remove the NoExecute taints `not-ready` and `unreachable`. The next pass examines
        all nodes again.
        """
        commands: list[Command] = []
        for name, _, node in self._shared.nodes.existing():
            zone = zone_key(node, self._config)
            commands += self._shared.eviction.on_ready(node, zone, now)
            self._shared.examinations.add(name, now)
        return commands

    def _resume(self, now: Instant) -> None:
        """Restart the grace period of every node."""
        for name, _, _ in self._shared.nodes.existing():
            record = self._shared.nodes.catch_up(name, now)
            if record.health is not None:
                record.health = replace(record.health, probe=now, ready_since=now)

    def _note_forgotten(self, now: Instant) -> None:
        """Let the next pass examine the not-ready nodes of zones whose state was dropped.

        A pass drops the state of a zone if all nodes of the zone are excluded from the node counts.
        The examination in the next pass creates the state again.
        """
        for zone in self._zones.untracked():
            for name in self._zones.members(zone):
                node = self._shared.nodes.find(name)
                if node is not None and ready_status(node) != TRUE:
                    self._shared.examinations.add(name, now)


def _event(regarding: ObjectRef, reason: str, note: str) -> RecordEvent:
    return RecordEvent(regarding, "Normal", reason, "", note, NODE_CONTROLLER)
