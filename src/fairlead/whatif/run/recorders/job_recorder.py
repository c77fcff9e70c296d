"""JobRecorder: collects the JobsOutcome of a run.

Samples of queues come from the reports of the batch scheduler. Samples of the capacity of the nodes
come from stimuli.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from fairlead.api.objects import Node, Pod
from fairlead.engine.batch.info.task_status import TaskStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import PodPreempting, QueueAllocation, Record, Reporter
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded, Stimulus
from fairlead.engine.state.cluster import Cluster
from fairlead.whatif.outcome.jobs import CapacityChange, JobsOutcome
from fairlead.whatif.run.capacity.allocation import allocatable_of
from fairlead.whatif.run.recorders.gang_recorder import GangRecorder
from fairlead.whatif.run.recorders.sample import samples_since

if TYPE_CHECKING:
    from fairlead.engine.batch.controller import Batch

_QUEUE: Final = (
    '{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"Queue","metadata":{"name":"%s"},'
    '"spec":{"weight":1}}'
)
_DEFAULT: Final = "default"
_NO_AMOUNTS: Final[Mapping[str, str]] = {}
EXPLAINED_MAX: Final = 300
"""The maximum number of waiting groups to explain; each explanation costs a trial session."""


class _CapacityRecorder(Struct):
    """Observes nodes, and records the sum of their allocatable amounts whenever it changes."""

    changes: list[CapacityChange] = field(default_factory=list)
    _nodes: dict[str, Node] = field(default_factory=dict)
    _total: Counter[str] = field(default_factory=Counter)

    def observe(self, stimulus: Stimulus, now: Instant) -> None:
        """Record the nodes in `stimulus`, which arrives at `now`."""
        if type(stimulus) is ObjectChanged and type(stimulus.object) is Node:
            has_changed = self._update(stimulus.object)
        elif type(stimulus) is ObjectDeleted and type(stimulus.object) is Node:
            gone = stimulus.object.metadata.name
            has_changed = self._replace(self._nodes.pop(gone, None), None)
        elif type(stimulus) is ObjectsLoaded:
            # without pods, so that no pod is made for this
            updates = [self._update(one) for one in stimulus.others if type(one) is Node]
            has_changed = any(updates)
        else:
            return
        if has_changed:
            self._record(now)

    def _update(self, node: Node) -> bool:
        name = node.metadata.name
        before, self._nodes[name] = self._nodes.get(name), node
        return self._replace(before, node)

    def _replace(self, before: Node | None, after: Node | None) -> bool:
        """Replace `before` by `after` in the total; return whether the allocatable amounts differ.

        None stands for a node that does not exist.
        """
        old = _NO_AMOUNTS if before is None else before.status.allocatable
        new = _NO_AMOUNTS if after is None else after.status.allocatable
        if old is new or old == new:
            return False
        if before is not None:
            self._total.subtract(allocatable_of(before))
        if after is not None:
            self._total.update(allocatable_of(after))
        return True

    def _record(self, now: Instant) -> None:
        change = CapacityChange(now, dict(self._total))
        if self.changes and self.changes[-1].at == now:
            self.changes[-1] = change
        else:
            self.changes.append(change)


class JobRecorder(Struct):
    """A Reporter that keeps samples of queues and forwards every record to `reporter`."""

    reporter: Reporter
    samples: list[QueueAllocation] = field(default_factory=list)
    gangs: GangRecorder = field(default_factory=GangRecorder)
    capacity: _CapacityRecorder = field(default_factory=_CapacityRecorder)

    def report(self, record: Record) -> None:
        """Record the data about queues and gangs in `record`, then forward `record`."""
        if type(record) is QueueAllocation:
            self.samples.append(record)
        elif type(record) is PodPreempting:
            self.gangs.preempted(record.victims, record.at)
        self.reporter.report(record)

    def observe(self, stimulus: Stimulus, now: Instant) -> None:
        """Record the gangs and nodes in `stimulus`, which the engine handles next."""
        self.gangs.observe(stimulus, now)
        self.capacity.observe(stimulus, now)

    def outcome(
        self, batch: Batch | None, cluster: Cluster, since: Instant, now: Instant
    ) -> JobsOutcome:
        """Return the outcome at `now`, with the samples of queues from `since` on."""
        gangs = self.gangs.tally(now)
        if batch is None:
            return JobsOutcome(gangs=gangs)
        from fairlead.engine.batch.explanation.explanation import batch_overview  # noqa: PLC0415

        found = batch_overview(
            batch.composition,
            cluster,
            now,
            EXPLAINED_MAX,
            has_changed=batch.has_changed,
        )
        by_name = {sample.queue: sample for sample in self.samples}
        return JobsOutcome(
            queues=tuple(by_name[name] for name in sorted(by_name)),
            waiting=found.waiting,
            waiting_count=found.waiting_count,
            samples=tuple(samples_since(self.samples, since, lambda one: one.queue)),
            capacity=tuple(self.capacity.changes),
            gangs=gangs,
        )


def missing_queue(batch: Batch, pod: Pod) -> str:
    """Return the missing queue that `pod` waits for; "" if its queue exists."""
    task = batch.jobs.tasks.get(pod.metadata.uid or pod.key)
    return task.job.queue if task is not None and batch.lacks_queue(task.job) else ""


def has_task(batch: Batch, pod: Pod) -> bool:
    """Return whether the batch scheduler schedules `pod`."""
    return (pod.metadata.uid or pod.key) in batch.jobs.tasks


def missing_group(batch: Batch, pod: Pod) -> str:
    """Return the missing PodGroup that `pod` waits for; "" if it exists."""
    task = batch.jobs.tasks.get(pod.metadata.uid or pod.key)
    return task.job.id if task is not None and task.job.group is None else ""


def missing_group_notes(batch: Batch) -> Iterator[str]:
    """Yield a sentence for each missing PodGroup that pods wait for."""
    for name, job in sorted(batch.jobs.jobs.items()):
        count = len(job.by_status[TaskStatus.PENDING])
        if job.group is None and count:
            waiting = "1 pod waits for it" if count == 1 else f"{count:,} pods wait for it"
            yield f'PodGroup "{name}" does not exist, and {waiting} forever.'


def missing_queue_notes(batch: Batch) -> Iterator[str]:
    """Yield a note for each missing queue that jobs wait for."""
    waiting = batch.missing_queues()
    for queue in sorted(waiting):
        count = f"{waiting[queue]} {'job waits' if waiting[queue] == 1 else 'jobs wait'} for it"
        origin = " Volcano creates this queue when it starts." if queue == _DEFAULT else ""
        yield (
            f'Queue "{queue}" does not exist, and {count} forever.{origin} To see the effect of '
            f"the queue, use --apply with a file that contains {_QUEUE % queue}"
        )
