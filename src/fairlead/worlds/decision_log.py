"""DecisionLog: writes the engine's decisions as structured log lines in klog's format.

    I0101 00:01:00.000000 scheduler] "Unable to schedule pod; no fit; waiting" pod="default/web-0" …

A line contains the world's time, the component, a message and key-value pairs. If upstream logs the
same decision, the message is in upstream's words. As in klog, each message has a verbosity. The
verbosity is 0 for errors and problems that need attention, 2 for decisions, and 3 to 5 for details
of decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.engine.core.reporter import (
    DisplacementCycle,
    EvictionCancelled,
    EvictionTimed,
    ExtenderIgnored,
    NodeEmptied,
    NodeMarkedUnknown,
    NodeTainted,
    NominationsWasted,
    PluginFailed,
    PodBound,
    PodCollected,
    PodEvicted,
    PodPlaced,
    PodPreempting,
    PodUnschedulable,
    QueueAllocation,
    QueueMissing,
    Record,
    Reporter,
    WorkloadStarving,
    ZoneAssessed,
)
from fairlead.engine.loop_detector import causes_warning
from fairlead.worlds.log_entry import LogEntry, Pairs, clock_text

Logging = Callable[[Reporter, Callable[[], Instant]], "DecisionLog"]
# The verbosity of each --log-level; upstream's components run with -v 2 by default.
LEVELS: Final = {"info": 2, "debug": 4, "trace": 10}
_SCHEDULER: Final = "scheduler"
_BATCH: Final = "batch"
_NODES: Final = "node-lifecycle"


class DecisionLog:
    """A Reporter that logs records up to the verbosity `verbosity`, and forwards every record."""

    def __init__(
        self,
        reporter: Reporter,
        clock: Callable[[], Instant],
        write: Callable[[LogEntry, Instant], None],
        verbosity: int,
    ) -> None:
        """Log with `write`, which receives each line and its time.

        `reporter` receives every record. `clock` returns the current time, which is used for
        records without a time. Lines of a higher verbosity than `verbosity` are not logged.
        """
        self._reporter = reporter
        self._clock = clock
        self._write = write
        self._verbosity = verbosity
        self._cycle = 0
        self._placing: dict[ObjectRef, int] = {}  # the cycles of placed pods that are not bound yet
        self._zone_states: dict[str, str] = {}

    def stop(self) -> None:
        """Stop writing lines."""
        self._verbosity = -1

    def report(self, record: Record) -> None:
        """Log `record` and forward it."""
        if isinstance(record, PodBound):  # not logged
            self._placing.pop(record.pod, None)
        else:
            self._log(record)
        self._reporter.report(record)

    def _log(self, record: Record) -> None:
        for line in self._lines(record):
            if line.verbosity <= self._verbosity:
                # The failure of a plugin or an extender has no time of its own.
                at = (
                    self._clock()
                    if isinstance(record, PluginFailed | ExtenderIgnored)
                    else record.at
                )
                self._write(line, at)

    def _lines(self, record: Record) -> Iterator[LogEntry]:
        pairs: Pairs
        match record:
            case PodPlaced() | PodUnschedulable():
                yield from self._attempted(record)
            case PodPreempting():
                yield from _preempting(record, self._cycle + 1)
            case PodEvicted(pod=pod, node=node, why=why):
                pairs = {"pod": _key(pod), "node": node, "reason": why}
                yield LogEntry(2, "eviction", "Evicting pod", pairs)
            case PodCollected(pod=pod, node=node, why=why):
                pairs = {"pod": _key(pod), "node": node, "reason": why}
                yield LogEntry(2, "pod-gc", "PodGC is force deleting Pod", pairs)
            case DisplacementCycle() | WorkloadStarving() | NominationsWasted():
                yield from _findings(record)
            case PluginFailed() | ExtenderIgnored():
                yield _failure(record)
            case QueueAllocation():
                pairs = {
                    "queue": record.queue,
                    "share": record.share,
                    "weight": record.weight,
                }
                yield LogEntry(4, _BATCH, "Queue has changed", pairs)
            case QueueMissing(queue=queue, jobs=jobs):
                pairs = {"queue": queue, "jobs": jobs}
                message = "Queue does not exist; jobs wait for it"
                yield LogEntry(0, _BATCH, message, pairs, severity="warning")
            case ZoneAssessed():
                yield self._zone_line(record)
            case _:
                yield from _node_lines(record)

    def _zone_line(self, record: ZoneAssessed) -> LogEntry:
        """Return the log line about a changed zone; upstream logs only zones with a new state."""
        is_new = self._zone_states.get(record.zone) != record.state
        self._zone_states[record.zone] = record.state
        pairs: Pairs = {
            "zone": _shown(record.zone),
            "newState" if is_new else "state": record.state,
            "nodes": record.size,
            "notReady": record.unready,
            "evictionRate": record.eviction_rate,
        }
        message = "Controller detected that zone is now in new state"
        return LogEntry(2, _NODES, message if is_new else "Zone has changed", pairs)

    def _attempted(self, record: PodPlaced | PodUnschedulable) -> Iterator[LogEntry]:
        """Yield the log lines of a scheduling cycle, or of a failed binding."""
        pod: Pairs = {"pod": _key(record.pod)}
        if isinstance(record, PodPlaced) and record.via == _BATCH:
            yield LogEntry(2, _BATCH, "Placed pod of a job", {**pod, "node": record.node})
            return
        if isinstance(record, PodUnschedulable) and record.via == _BATCH:
            pairs = {**pod, "reason": record.message}
            yield LogEntry(2, _BATCH, "Unable to place pod of a job; waiting", pairs)
            return
        # A pod that Reserve, Permit or PreBind rejects immediately was never reported as placed.
        is_binding = (
            isinstance(record, PodUnschedulable)
            and record.is_binding
            and record.pod in self._placing
        )
        self._cycle += not is_binding
        cycle = self._placing.pop(record.pod) if is_binding else self._cycle
        pair = {**pod, "cycle": cycle, "attempt": record.attempt}
        if not is_binding:
            yield LogEntry(3, _SCHEDULER, "Attempting to schedule pod", pair)
        if isinstance(record, PodPlaced):
            self._placing[record.pod] = cycle
            found = {
                "feasibleNodes": record.feasible,
                "via": record.via,
                "equals": record.equals,
            }
            yield LogEntry(
                2, _SCHEDULER, "Placed pod on node", {**pair, "node": record.node, **found}
            )
            return
        pair_and_reason = {**pair, "reason": record.message, "plugins": list(record.plugins)}
        if record.is_error:
            message = "Error scheduling pod; retrying"
            yield LogEntry(0, _SCHEDULER, message, pair_and_reason, severity="error")
        else:
            message = "Unable to schedule pod; no fit; waiting"
            yield LogEntry(2, _SCHEDULER, message, pair_and_reason)
        if record.post_filter is None:
            message = "No PostFilter plugins are registered, so no preemption will be performed"
            yield LogEntry(3, _SCHEDULER, message, pod)
        elif record.post_filter or record.nominated_node:
            nominated = record.nominated_node or ""
            status = "Success" if nominated else "Unschedulable"
            message = "Status after running PostFilter plugins for pod"
            pairs = {**pair, "status": status, "node": nominated, "reason": record.post_filter}
            if record.post_filter_failed:
                pairs["status"] = "Error"
                yield LogEntry(0, _SCHEDULER, message, pairs, severity="error")
            else:
                yield LogEntry(5, _SCHEDULER, message, pairs)


def _findings(
    record: DisplacementCycle | WorkloadStarving | NominationsWasted,
) -> Iterator[LogEntry]:
    """Yield at most one warning about `record`, a finding of the LoopDetector.

    Every DisplacementCycle causes a warning. A record of another type causes a warning only if
    `causes_warning` returns True for the record.
    """
    pairs: Pairs
    match record:
        case DisplacementCycle(workloads=workloads, times=times):
            pairs = {
                "workloads": list(workloads),
                "times": times,
                "pod": _key(record.pod),
            }
            yield LogEntry(
                0, _SCHEDULER, "Workloads displace each other", pairs, severity="warning"
            )
        case WorkloadStarving(workload=workload, times=times) if causes_warning(record):
            pairs = {"workload": workload, "times": times, "pod": _key(record.pod)}
            yield LogEntry(0, _SCHEDULER, "Workload is starving", pairs, severity="warning")
        case NominationsWasted(pod=pod, times=times) if causes_warning(record):
            pairs = {"pod": _key(pod), "times": times}
            yield LogEntry(0, _SCHEDULER, "Nominations are not used", pairs, severity="warning")


def _failure(record: PluginFailed | ExtenderIgnored) -> LogEntry:
    if isinstance(record, ExtenderIgnored):
        what, pairs = "Extender failed and is ignored", {"url": record.url}
    else:
        what, pairs = "Plugin failed", {"plugin": record.plugin, "extensionPoint": record.point}
    return LogEntry(0, _SCHEDULER, what, {**pairs, "reason": record.message}, severity="warning")


def _preempting(record: PodPreempting, cycle: int) -> Iterator[LogEntry]:
    """Yield the log line of a preemption, then one line for each victim.

    `cycle` is the number of the scheduling cycle. If the batch scheduler preempts, `cycle` is not
    logged.
    """
    is_batch = record.via == _BATCH
    component = _BATCH if is_batch else _SCHEDULER
    pod, node = _key(record.pod), record.node
    victims = [_key(victim) for victim in record.victims]
    pairs = {
        "pod": pod,
        "node": node,
        **({} if is_batch else {"cycle": cycle}),
        "reason": record.rule,
        "victims": victims,
    }
    more = {"candidates": record.candidates}
    if record.pdb_violations is not None:
        more["pdbViolations"] = record.pdb_violations
    yield LogEntry(2, component, "Preempting pods on node", {**pairs, **more})
    for victim in victims:
        message = "Pod is a preemption victim on node"
        yield LogEntry(5, component, message, {"pod": victim, "node": node, "preemptor": pod})


def _node_lines(record: Record) -> Iterator[LogEntry]:
    """Yield the log lines of a record from a node controller."""
    pairs: Pairs
    match record:
        case NodeMarkedUnknown(node=node, zone=zone, heartbeat_at=heartbeat_at, at=at):
            pairs = {
                "node": node,
                "zone": _shown(zone),
                "silentFor": f"{to_seconds(at - heartbeat_at):g}s",
            }
            yield LogEntry(2, _NODES, "Node has not posted its status in time", pairs)
        case NodeTainted(node=node, zone=zone, key=key, is_rate_limited=is_rate_limited):
            pairs = {
                "node": node,
                "zone": _shown(zone),
                "taint": key,
                "rateLimited": is_rate_limited,
            }
            yield LogEntry(2, _NODES, "Added taint to node", pairs)
        case NodeEmptied(node=node, zone=zone):
            yield LogEntry(2, _NODES, "Evicting pods on node", {"node": node, "zone": _shown(zone)})
        case EvictionTimed(pod=pod, node=node, taints=taints, due=due):
            pairs = {
                "pod": _key(pod),
                "node": node,
                "taints": list(taints),
                "due": clock_text(due),
            }
            yield LogEntry(4, _NODES, "Adding TimedWorkerQueue item", pairs)
        case EvictionCancelled(pod=pod):
            yield LogEntry(4, _NODES, "Cancelling TimedWorkerQueue item", {"pod": _key(pod)})
        case _:
            pass


def _key(ref: ObjectRef) -> str:
    return f"{ref.namespace}/{ref.name}"


def _shown(zone: str) -> str:
    """Return the zone key `zone` without the null character between region and zone."""
    return zone.replace("\0", "")
