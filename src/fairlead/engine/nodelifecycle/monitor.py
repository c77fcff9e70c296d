"""Monitor: what a monitor pass does, and how its writes go on.

    1 register     nodes that came and went since the last pass
    2 look         at each node on the agenda: silence it when it is overdue, tell the eviction
                   mode what its Ready condition is, count it in its zone
    3 assess       the zones; stop, resume or adjust their rates

Everything is decided from the objects as they are when the pass begins. A node that was found
silent is counted as such at once; its event and the marking of its pods follow when the write of
its conditions was done, and not at all when somebody was faster.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go:monitorNodeHealth,
handleDisruption
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from fairlead.api.objects import Node
from fairlead.engine.core.command import Command, ObjectRef, RecordEvent
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import NodeSilenced, Reporter
from fairlead.engine.nodelifecycle.agenda import Agenda
from fairlead.engine.nodelifecycle.beat import Beat
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.eviction import Eviction, Sighting
from fairlead.engine.nodelifecycle.exclusion import is_excluded
from fairlead.engine.nodelifecycle.node_edit import SilenceConditions, has_no_execute, node_ref
from fairlead.engine.nodelifecycle.node_health import Examination, examine, next_examination
from fairlead.engine.nodelifecycle.node_pods import NodePods
from fairlead.engine.nodelifecycle.node_writes import NodeWrites
from fairlead.engine.nodelifecycle.pod_marking import PodMarking
from fairlead.engine.nodelifecycle.watch_list import Watched, WatchList
from fairlead.engine.nodelifecycle.well_known import (
    NODE_CONTROLLER,
    TAINT_OF_STATUS,
    TRUE,
    UNKNOWN,
    ready_condition,
    ready_status,
)
from fairlead.engine.nodelifecycle.zone import zone_key
from fairlead.engine.nodelifecycle.zone_book import Adjust, Rates, Resume, Stop, ZoneBook
from fairlead.engine.nodelifecycle.zone_report import ZoneReport


@dataclass(slots=True)
class Parts:
    """What passes work with; shared with the controller that hears of changes."""

    passes: Beat
    nodes: WatchList
    agenda: Agenda
    pods: NodePods
    writes: NodeWrites
    marking: PodMarking
    eviction: Eviction


class Monitor:
    """Runs passes; `run` and `see_silenced` are its entrances."""

    def __init__(self, config: NodeLifecycleConfig, parts: Parts, reporter: Reporter) -> None:
        """No pass has happened yet."""
        self._config = config
        self._parts = parts
        self._reporter = reporter
        self._zones = ZoneBook(config)
        self._zone_report = ZoneReport(config, reporter)

    @property
    def zones(self) -> ZoneBook:
        """The zones as the last pass left them."""
        return self._zones

    def run(self, now: Instant) -> list[Command]:
        """The pass at `now`; see the module's docstring."""
        names = self._parts.agenda.begin(now)
        for zone in self._zones.unopened():
            self._open(zone, now)
        commands = [command for name in names for command in self._register(name, now)]
        for name in names:
            commands += self._look(name, now)
        return commands + self._assess(now)

    # --- 1 nodes that came and went ------------------------------------------------------------

    def take_over(self, node: Node, now: Instant) -> None:
        """`node` is known from before, with its taint if it has the one of its condition."""
        name, zone = node.metadata.name, zone_key(node, self._config)
        self._parts.nodes[name].registered = node
        self._open(zone, now)
        key = TAINT_OF_STATUS.get(ready_status(node))
        if key is not None and has_no_execute(node, key):
            self._parts.eviction.queues[zone].mark_handled(name)

    def _register(self, name: str, now: Instant) -> list[Command]:
        watched = self._parts.nodes[name]
        node, registered = watched.node, watched.registered
        if node is None:
            return [] if registered is None else self._unregister(watched, registered)
        zone = zone_key(node, self._config)
        self._open(zone, now)
        if registered is not None:
            return []
        watched.registered = node
        note = f"Node {name} event: Registered Node {name} in Controller"
        event = _event(node_ref(node), "RegisteredNode", note)
        return [event, *self._parts.eviction.see_ready(node, zone, now)]

    def _unregister(self, watched: Watched, node: Node) -> list[Command]:
        """The node is gone; a turn that it waits for will be spent on it all the same."""
        name = node.metadata.name
        watched.registered = None
        self._let_age(name)
        self._zones.drop(name)
        self._parts.agenda.plan(name, None)
        note = f"Node {name} event: Removing Node {name} from Controller"
        return [_event(node_ref(node), "RemovingNode", note)]

    def _open(self, zone: str, now: Instant) -> None:
        if self._zones.open(zone):
            self._parts.eviction.queues.open(zone, now)

    def _let_age(self, name: str) -> None:
        """Passes no longer queue the node anew where the last one found it."""
        zone = self._zones.zone_of(name)
        if zone is not None:
            last_fresh = self._parts.passes.before(self._parts.agenda.last_pass)
            self._parts.eviction.queues[zone].let_age(name, last_fresh)

    # --- 2 each node ---------------------------------------------------------------------------

    def _look(self, name: str, now: Instant) -> list[Command]:
        parts = self._parts
        watched = parts.nodes.catch_up(name, parts.passes.before(now))
        node = watched.node
        if node is None:
            return []
        if parts.writes.is_silencing(name):
            parts.agenda.note(name, now)
            return []
        zone = zone_key(node, self._config)
        if self._zones.zone_of(name) != zone:
            self._let_age(name)
        found = examine(watched.health, node, watched.renewals, now, self._config)
        watched.health, watched.through = found.health, now
        self._count(node, zone, is_ready=found.current == TRUE)
        commands = self._silence(node, zone, found, now)
        commands += self._tell_mode(node, zone, found, now)
        if name in parts.marking.to_repeat and found.observed != TRUE:
            del parts.marking.to_repeat[name]
            commands += parts.marking.mark(parts.pods.on(name))
        self._plan(name, watched, node, found)
        return commands

    def _count(self, node: Node, zone: str, *, is_ready: bool) -> None:
        counts = not is_excluded(node, self._config.profile)
        self._zones.place(node.metadata.name, zone, counts=counts, is_ready=is_ready)

    def _silence(self, node: Node, zone: str, found: Examination, now: Instant) -> list[Command]:
        if found.health_silenced is None:
            return []
        name, heard_at = node.metadata.name, found.health.probe
        self._reporter.report(NodeSilenced(name, zone, found.observed or "", heard_at, now))
        edit = SilenceConditions(found.silenced, ready_condition(node), found.health_silenced)
        return self._parts.writes.submit(name, (edit,), now)

    def see_silenced(self, name: str, edit: SilenceConditions) -> list[Command]:
        """The conditions were written: remember that, and mark the pods of a node till then ready.

        A pass that resumed evictions in between has changed when the node was heard of.
        """
        watched = self._parts.nodes[name]
        if watched.health is not None:
            watched.health = replace(edit.health, probe=watched.health.probe)
        if edit.ready is None or edit.ready.status != TRUE or watched.node is None:
            return []
        note = f"Node {name} status is now: NodeNotReady"
        event = _event(node_ref(watched.node), "NodeNotReady", note)
        return [event, *self._parts.marking.mark(self._parts.pods.on(name))]

    def _tell_mode(self, node: Node, zone: str, found: Examination, now: Instant) -> list[Command]:
        """Tell the eviction mode what Ready is, unless there is no such condition."""
        if found.current is None:
            self._let_age(node.metadata.name)
            return []
        status = self._deciding_status(found)
        if status == TRUE:
            return self._parts.eviction.see_ready(node, zone, now)
        if status not in TAINT_OF_STATUS:
            return []
        health = found.health_silenced or found.health
        last_pass = self._parts.passes.before(now)
        seen = Sighting(node, zone, status, health, now, last_pass)
        return self._parts.eviction.see_unready(seen)

    def _deciding_status(self, found: Examination) -> str | None:
        if self._config.profile.taints_by_current:
            return found.current
        return UNKNOWN if found.observed is None else found.observed

    def _plan(self, name: str, watched: Watched, node: Node, found: Examination) -> None:
        """When a pass must look again although nothing changes."""
        agenda, passes, health = self._parts.agenda, self._parts.passes, found.health
        if health.lease is None and watched.renewals is not None:
            agenda.note(name, agenda.last_pass)
        dues = [next_examination(health, node, watched.renewals, passes, self._config)]
        status = self._deciding_status(found)
        if found.current is not None and status is not None:
            wait = self._parts.eviction.reconsider_at(status, health)
            if wait is not None and wait >= agenda.last_pass:
                dues.append(passes.after(wait))
        if found.health_silenced is not None:
            dues = []  # its conditions are being written, which will be news
        agenda.plan(name, min((due for due in dues if due is not None), default=None))

    # --- 3 zones -------------------------------------------------------------------------------

    def _assess(self, now: Instant) -> list[Command]:
        commands: list[Command] = []
        match self._zones.assess():
            case None:
                pass
            case Stop(rates):
                commands += self._stop(now)
                self._set_rates(rates, now)
            case Resume(rates):
                self._set_rates(rates, now)
                self._resume(now)
            case Adjust(rates):
                self._set_rates(rates, now)
            case verdict:
                assert_never(verdict)
        self._zone_report.report(self._zones, now)
        self._note_forgotten(now)
        return commands

    def _set_rates(self, rates: Rates, now: Instant) -> None:
        for zone, rate in rates.items():
            self._parts.eviction.queues.swap_limiter(zone, rate, now)

    def _stop(self, now: Instant) -> list[Command]:
        """Take back what was done to any node; the next pass begins to wait anew."""
        commands: list[Command] = []
        for name, _, node in self._parts.nodes.existing():
            zone = zone_key(node, self._config)
            commands += self._parts.eviction.see_ready(node, zone, now)
            self._parts.agenda.note(name, now)
        return commands

    def _resume(self, now: Instant) -> None:
        """Count the grace period of every node from now; passes planned for earlier do no harm."""
        for name, _, _ in self._parts.nodes.existing():
            watched = self._parts.nodes.catch_up(name, now)
            if watched.health is not None:
                watched.health = replace(watched.health, probe=now, ready_since=now)

    def _note_forgotten(self, now: Instant) -> None:
        """Zones without nodes that count begin anew with each pass, so that nodes wait anew."""
        for zone in self._zones.unopened():
            for name in self._zones.members(zone):
                node = self._parts.nodes.find(name)
                if node is not None and ready_status(node) != TRUE:
                    self._parts.agenda.note(name, now)


def _event(regarding: ObjectRef, reason: str, note: str) -> RecordEvent:
    return RecordEvent(regarding, "Normal", reason, "", note, NODE_CONTROLLER)
