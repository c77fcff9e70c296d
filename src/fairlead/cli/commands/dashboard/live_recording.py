"""LiveRecording: records a running cluster, and returns the data of a report about it.

After SAMPLES_MAX samples, the recording starts again from the current state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Pod
from fairlead.api.pods.facts import condition, is_terminating
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import PodEvicted, Record, Reporter
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.whatif.next_steps.estimated_nodes import estimated_nodes
from fairlead.whatif.outcome.eviction import EVICTED_BY_CLIENT
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.report.next_step_row import step_row
from fairlead.whatif.report.page_data import packed
from fairlead.whatif.report.report_builder import Heading, simulation_report
from fairlead.whatif.run.capacity.allocation import allocations, nodes_at_end
from fairlead.whatif.run.outage_outcome import outage_outcome
from fairlead.whatif.run.recorders.outage_recorder import OutageRecorder
from fairlead.whatif.run.recorders.recorder import Recorder
from fairlead.whatif.run.recorders.replacement import MatchedReplacements
from fairlead.worlds.local.clock import LocalClock

SAMPLES_MAX: Final = 20_000

Objects = Callable[[], Sequence[ApiObject]]


class CopiedReports:
    """A Reporter that forwards every record, and copies it to `recorder` if one is set."""

    def __init__(self, reporter: Reporter) -> None:
        """`reporter` receives the forwarded records."""
        self._reporter = reporter
        self.recorder: Recorder | None = None

    def report(self, record: Record) -> None:
        """Forward `record`, and copy it to the recorder if one is set."""
        self._reporter.report(record)
        if self.recorder is not None:
            self.recorder.report(record)


class LiveRecording:
    """Records a running cluster; `revision` increases with every change."""

    def __init__(
        self, title: str, clock: LocalClock, objects: Objects, reports: CopiedReports | None
    ) -> None:
        """The recording contains the changes that `observe` gets, and the records of `reports`.

        `objects` returns all current objects of the cluster. If `reports` is None, the scheduler's
        decisions are not recorded.
        """
        self.revision = 0
        self._title = title
        self._clock = clock
        self._objects = objects
        self._reports = reports
        self.restart(clock.now())

    def restart(self, now: Instant) -> None:
        """Discard all records, and start again at `now` with the current objects."""
        self.revision += 1
        self._since = now
        outage = OutageRecorder(replacements=MatchedReplacements())
        self._recorder = Recorder(now, outage=outage)
        objects = self._objects()
        self._evicted = {
            one.metadata.uid
            for one in objects
            if isinstance(one, Pod) and is_terminating(one) and _is_target(one)
        }
        self._recorder.observe(ObjectsLoaded(objects), now)
        if self._reports is not None:
            self._reports.recorder = self._recorder

    def close(self) -> None:
        """Stop recording the engine's decisions."""
        if self._reports is not None:
            self._reports.recorder = None

    def observe(
        self, change: ObjectChanged | ObjectDeleted, now: Instant, *, by_client: bool = True
    ) -> None:
        """Record the change of an object at `now`.

        Set `by_client` to False if a controller made the change and also sends its own reports to
        this recording.
        """
        self.revision += 1
        if isinstance(change.object, Pod):
            is_deleted = isinstance(change, ObjectDeleted) or is_terminating(change.object)
            if is_deleted and _is_target(change.object):
                self._observe_eviction(change.object, now, by_client=by_client)
        self._recorder.observe(change, now)
        # Checked at each change, because a cluster may run for days without an open page.
        if len(self._recorder.counts.samples) > SAMPLES_MAX:
            self.restart(now)

    def _observe_eviction(self, pod: Pod, now: Instant, *, by_client: bool) -> None:
        """Record the eviction of `pod` if a client evicted the pod.

        Only the first call for a pod records its eviction. Evictions by controllers are recorded
        from the controllers' own reports.
        """
        uid = pod.metadata.uid
        if uid in self._evicted:
            return
        self._evicted.add(uid)
        if by_client:
            ref = ObjectRef("Pod", pod.metadata.namespace, pod.metadata.name, uid)
            self._recorder.begin(now)
            self._recorder.report(PodEvicted(ref, pod.spec.node_name, EVICTED_BY_CLIENT, now))

    def page(self) -> Json:
        """Return the current state and the recorded history, packed for the page."""
        heading = Heading(self._title, "now", 0, 0.0)
        outcome = self._outcome()
        data = simulation_report(heading, outcome)
        more = estimated_nodes("ask what happens with", outcome.pending, outcome.nodes)
        steps = [step_row(one) for one in more]
        return packed(
            {
                **data,
                "kind": "live",
                "next_steps": steps,
                "without_pods": _without_pods(outcome),
                "replaced": _replaced(outcome),
            }
        )

    def _outcome(self) -> RunOutcome:
        recorder, since = self._recorder, self._since
        recorder.explain_waiting(_why_waiting)
        nodes = nodes_at_end(recorder.outage.nodes, recorder.all_pods())
        pods = recorder.ends()
        return RunOutcome(
            started_at=since,
            ended_at=self._clock.now(),
            settled=False,
            pods=pods,
            preempted=tuple(recorder.preempted),
            evicted=tuple(recorder.evicted),
            pdb_breaches=tuple(recorder.budgets.breaches),
            undrained=(),
            skipped=(),
            errors=(),
            recurrences=tuple(recorder.recurrences),
            nodes=nodes,
            allocations=allocations(nodes, {}, {}),
            priority_names=dict(recorder.priority_names),
            samples=tuple(recorder.counts.samples),
            choices_among_equals=recorder.choices,
            outage=outage_outcome(recorder, since, _by_original(recorder.outage, pods), {}),
            cluster_history=recorder.cluster_history(since),
        )


def _is_target(pod: Pod) -> bool:
    """Return whether the condition DisruptionTarget says that the eviction API deletes `pod`."""
    target = condition(pod, "DisruptionTarget")
    return target is not None and target.reason == "EvictionByEvictionAPI"


def _by_original(outage: OutageRecorder, pods: Mapping[str, PodEnd]) -> dict[str, PodEnd]:
    """Return `pods`, each keyed by the first pod in its replacement chain; see `Replacements`.

    If several pods have the same key, one that is not terminating takes precedence. If no node has
    failed, the result is not needed, and is empty.
    """
    if not outage.failed_nodes:
        return {}  # nothing reads them
    found: dict[str, PodEnd] = {}
    for pod in outage.pods.values():
        key, end = outage.replacements.key_of(pod), pods.get(pod.key)
        if end is not None and (key not in found or found[key].is_terminating):
            found[key] = end
    return found


def _without_pods(outcome: RunOutcome) -> list[str]:
    """Return the names of the workloads that have no pod on a node that is in service.

    Jobs and completed pods are ignored.
    """
    history = outcome.cluster_history
    silent = set(history.out_of_service) if history is not None else set()
    serving = dict[WorkloadRef, bool]()
    for pod in outcome.pods.values():
        if pod.workload.is_permanent and not pod.is_completed:
            is_serving = pod.is_placed and pod.node not in silent
            serving[pod.workload] = serving.get(pod.workload, False) or is_serving
    return [str(ref) for ref in sorted(serving) if not serving[ref]]


def _replaced(outcome: RunOutcome) -> int:
    """Return the number of displaced pods that have been replaced by pods with nodes.

    A controller does not state which pod a new pod replaces. So two numbers of each workload are
    compared: the number of its displaced pods that are gone or terminating, and the number of its
    replacements. The smaller number is used. A replacement is a pod that was created during the run
    and meets one of two conditions:

    - It has a node and was never displaced.
    - It was displaced, and is gone or terminating. Such a pod counts in both numbers, because it
      replaced an earlier pod before it was displaced.
    """
    displaced = {one.pod.key: one.pod for one in (*outcome.preempted, *outcome.evicted)}
    existing = {key for key, pod in outcome.pods.items() if not pod.is_terminating}
    left = [pod for key, pod in displaced.items() if key not in existing]
    missing = Counter(pod.workload for pod in left)
    new = Counter(pod.workload for pod in left if not pod.is_initial)
    for key, pod in outcome.pods.items():
        if not pod.is_initial and pod.is_placed and key not in displaced:
            new[pod.workload] += 1
    return sum(min(count, new[workload]) for workload, count in missing.items())


def _why_waiting(pod: Pod) -> str:
    """Return why `pod` is pending: the scheduler's message, or a text about its nomination.

    Returns "" if the pod has neither. A scheduler that waits to bind a pod, for example for its
    volumes, nominates the pod and writes no message. The text does not name the node, because the
    page groups pods by the result.
    """
    scheduled = condition(pod, "PodScheduled")
    if scheduled is not None and scheduled.message:
        return scheduled.message
    return "Nominated to a node, not bound yet" if pod.status.nominated_node_name else ""
