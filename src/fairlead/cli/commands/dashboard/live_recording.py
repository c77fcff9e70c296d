"""LiveRecording: what happens in a local cluster, as the data of a report.

It is the Recorder of a simulation, which receives the changes of the store and the decisions that
the engine reports. After a large number of records, it starts again from the current state.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.codec import DecodeError, decode_stored
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Pod
from fairlead.api.pods.facts import condition
from fairlead.apiserver.storage.storage import StoredChange
from fairlead.engine.core.reporter import Record, Reporter
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.report.data import Heading, simulation_report
from fairlead.whatif.report.page_data import packed
from fairlead.whatif.run.allocation import allocations, nodes_at_end
from fairlead.whatif.run.outage_outcome import outage_outcome
from fairlead.whatif.run.recorders.recorder import Recorder
from fairlead.worlds.informer import is_watched, stimulus_if_decodable
from fairlead.worlds.local.cluster import LocalCluster

SAMPLES_MAX: Final = 20_000
TITLE: Final = "Local cluster"


class CopiedReports:
    """A Reporter that forwards every record, and copies it to a recorder once there is one."""

    def __init__(self, reporter: Reporter) -> None:
        """Forward records to `reporter`."""
        self._reporter = reporter
        self.recorder: Recorder | None = None

    def report(self, record: Record) -> None:
        """Forward `record`, and copy it to the recorder if there is one."""
        self._reporter.report(record)
        if self.recorder is not None:
            self.recorder.report(record)


class LiveRecording:
    """Records `cluster` from now on; `revision` grows with every change."""

    def __init__(self, cluster: LocalCluster, reports: CopiedReports | None) -> None:
        """Record the changes of `cluster`, and the decisions in `reports`."""
        self.revision = 0
        self._cluster = cluster
        self._reports = reports
        self._start()
        self._unsubscribe = cluster.store.subscribe(self._observe)

    def close(self) -> None:
        """Stop recording."""
        self._unsubscribe()
        if self._reports is not None:
            self._reports.recorder = None

    def page(self) -> Json:
        """Return the state and what led to it, as `report/page_data.py` packs it for the page."""
        heading = Heading(TITLE, "now", 0, 0.0)
        data = simulation_report(heading, self._outcome())
        return packed({**data, "kind": "live"})

    def _start(self) -> None:
        now = self._cluster.clock.now()
        self._since = now
        self._recorder = Recorder(now)
        storage = self._cluster.store.storage
        kinds = [kind for kind in storage.kinds() if is_watched(kind)]
        views = (_view(obj) for kind in kinds for obj in self._cluster.store.list(kind))
        loaded = ObjectsLoaded([view for view in views if view is not None])
        self._recorder.observe(loaded, now)
        if self._reports is not None:
            self._reports.recorder = self._recorder

    def _observe(self, change: StoredChange) -> None:
        if not is_watched(change.kind):
            return
        stimulus = stimulus_if_decodable(change)
        if stimulus is not None:
            self.revision += 1
            self._recorder.observe(stimulus, self._cluster.clock.now())
            # Not only when a page is open: a cluster may run for days without one.
            if len(self._recorder.samples) > SAMPLES_MAX:
                self._start()

    def _outcome(self) -> RunOutcome:
        recorder, since = self._recorder, self._since
        recorder.explain_waiting(_why_waiting)
        nodes = nodes_at_end(recorder.outage.nodes, recorder.all_pods())
        pods = recorder.ends()
        return RunOutcome(
            started_at=since,
            ended_at=self._cluster.clock.now(),
            settled=False,
            pods=pods,
            preempted=tuple(recorder.preempted),
            evicted=tuple(recorder.evicted),
            pdb_breaches=tuple(recorder.breaches),
            undrained=(),
            skipped=(),
            complaints=(),
            recurrences=tuple(recorder.recurrences),
            nodes=nodes,
            allocations=allocations(nodes, {}),
            priority_names=dict(recorder.priority_names),
            samples=tuple(recorder.samples),
            choices_among_equals=recorder.choices,
            outage=outage_outcome(
                recorder.outage, since, pods, recorder.preempted, recorder.breaches
            ),
            cluster_history=recorder.cluster_history(since),
        )


def _view(obj: Json) -> ApiObject | None:
    try:
        return decode_stored(obj)
    except DecodeError:
        return None


def _why_waiting(pod: Pod) -> str:
    scheduled = condition(pod, "PodScheduled")
    return "" if scheduled is None else scheduled.message
