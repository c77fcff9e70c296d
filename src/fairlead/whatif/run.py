"""Run: an experiment in a simulated world, from its objects to its outcome.

    load      the objects, as one stimulus
    look      what is due at the start happens: the scheduler deals with what was pending
    act       steps at the start happen now, the others when their time comes
    settle    until nothing but periodic retries happened for a while, or for the set duration

Both runs of a what-if are the same up to `act`, so a pod that was only waiting for the scheduler
is placed alike in both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, Final

from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.registry.store import Store
from fairlead.engine.batch.controller import Batch
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.command import CreateObject, Issued
from fairlead.engine.core.instant import Instant, seconds, to_seconds
from fairlead.engine.core.reporter import Reporter
from fairlead.engine.core.stimulus import CommandFailed, FailureReason, Stimulus
from fairlead.engine.engine import Engine
from fairlead.engine.framework.user_plugin.meter import Meter
from fairlead.engine.scheduling.controller import Scheduler
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.whatif.experiment import Experiment, Step
from fairlead.whatif.gang_ledger import GangLedger
from fairlead.whatif.input_error import InputError
from fairlead.whatif.jobs import JobRecorder
from fairlead.whatif.outage_ending import outage_outcome
from fairlead.whatif.outage_recorder import OutageRecorder
from fairlead.whatif.outcome import Complaint, Outcome, Skipped
from fairlead.whatif.progress import Progress
from fairlead.whatif.recorder import Recorder
from fairlead.whatif.refusal import as_input_error, refusal_of
from fairlead.whatif.stock import allocations, nodes_at_end, requested_in
from fairlead.worlds.extender.caller import reaching
from fairlead.worlds.perform import perform
from fairlead.worlds.simulation.world import SimulatedWorld

if TYPE_CHECKING:
    from fairlead.worlds.metrics import SchedulerMetrics

# Pods that wait are tried again every five minutes at the latest (the scheduler's leftover
# flush); when that changes nothing, nothing will.
QUIET: Final = seconds(6 * 60)

CommandLog = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of a run, and the objects there were at its end.

    `metrics` are the scheduler's in Prometheus' text format, b"" unless they were asked for.
    """

    outcome: Outcome
    objects: list[Json]
    metrics: bytes


@dataclass(frozen=True, slots=True)
class _Listening:
    """The engine, with a recorder that hears everything first."""

    engine: Engine
    recorder: Recorder
    ledger: GangLedger

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Issued]:
        self.recorder.hear(stimulus, now)
        self.ledger.hear(stimulus, now)
        return self._told(self.engine.handle(stimulus, now))

    def next_deadline(self) -> Instant | None:
        return self.engine.next_deadline()

    def handle_deadline(self, now: Instant) -> list[Issued]:
        self.recorder.now = now
        return self._told(self.engine.handle_deadline(now))

    def _told(self, issued: list[Issued]) -> list[Issued]:
        self.recorder.read([one.command for one in issued])
        return issued


def run(
    experiment: Experiment,
    phase: str,
    progress: Progress,
    command_log: CommandLog | None = None,
    *,
    metered: bool = False,
) -> Finished:
    """Run `experiment`; `progress` is told of it as `phase`, `metered` asks for metrics.

    Raises InputError for objects and steps that an API server would refuse.
    """
    return _Run(experiment, command_log, metered=metered).finish(phase, progress)


def _metrics(reporter: Reporter, meter: Meter | None) -> SchedulerMetrics:
    # Dear to import, and rarely wanted.
    from fairlead.worlds.metrics import SchedulerMetrics  # noqa: PLC0415

    return SchedulerMetrics(reporter, list if meter is None else meter.times)


class _Run:
    """One run; `finish` is its only entrance."""

    def __init__(
        self, experiment: Experiment, command_log: CommandLog | None, *, metered: bool
    ) -> None:
        self._experiment = experiment
        self._start = experiment.start
        outage = OutageRecorder(experiment.node_lifecycle)
        self._recorder = Recorder(experiment.start, outage=outage)
        self._jobs = JobRecorder(self._recorder)
        self._metrics = _metrics(self._jobs, experiment.scheduler.meter) if metered else None
        config = EngineConfig(
            seed=experiment.seed,
            start=experiment.start,
            kubelet=experiment.kubelet,
            scheduler=experiment.scheduler,
            node_lifecycle=experiment.node_lifecycle,
            # CronJobs read what Jobs say of themselves.
            workloads=WorkloadsConfig(serves_clients=experiment.runs_cron_jobs),
            batch=experiment.batch,
        )
        engine = build_engine(config, self._metrics or self._jobs)
        self._cluster = engine.cluster
        self._scheduler = engine.find(Scheduler)
        self._batch = None if experiment.batch is None else engine.find(Batch)
        if self._metrics is not None:
            self._metrics.waiting = self._scheduler.queue
        self._world = SimulatedWorld(
            _Listening(engine, self._recorder, self._jobs.ledger),
            start=self._start,
            seed=experiment.seed,
            events_max=0,
            command_log=command_log,
        )
        self._done = 0
        self._skipped: list[Skipped] = []

    def finish(self, phase: str, progress: Progress) -> Finished:
        """Load, look, act, settle; see the module's docstring."""
        with reaching(self._experiment.scheduler.extenders) as extenders:
            self._world.extenders = extenders
            return self._finish(phase, progress)

    def _finish(self, phase: str, progress: Progress) -> Finished:
        is_scripted = any(step.after for step in self._experiment.steps)
        progress.begin(phase, len(self._experiment.steps) if is_scripted else 0)
        self._load()
        requested_before = requested_in(self._world.store)

        def on_progress(now: Instant) -> None:
            progress.reach(self._done, to_seconds(now - self._start))

        self._world.run(self._start, on_progress=on_progress)
        for step in self._experiment.steps:
            self._world.at(self._start + step.after, partial(self._act, step))
        self._settle(on_progress)
        exposition = b"" if self._metrics is None else self._metrics.exposition()
        return Finished(self._outcome(requested_before), self._objects(), exposition)

    def _load(self) -> None:
        manifests = self._experiment.initial
        try:
            self._world.load(manifest.value for manifest in manifests)
        except ApiError as refused:
            raise as_input_error(self._experiment.source, manifests, refused) from None

    def _act(self, step: Step, store: Store, now: Instant) -> None:
        """Perform `step`. Raises InputError where the store refuses it."""
        self._done += 1
        for command in step.commands:
            if isinstance(command, CreateObject):
                try:
                    store.create(command.manifest, now)
                except ApiError as refused:
                    raise refusal_of(step.source, step.what, refused) from None
                continue
            outcome = perform(store, command, now)
            if isinstance(outcome, CommandFailed):
                if outcome.reason is not FailureReason.NOT_FOUND:
                    raise InputError(step.source, outcome.message, object_name=step.what)
                self._skipped.append(Skipped(what=step.what, at=now, why=outcome.message))

    def _settle(self, on_progress: Callable[[Instant], None]) -> None:
        """Let time pass until the set end, or until nothing is going on any more."""
        world, experiment = self._world, self._experiment
        if experiment.duration is not None:
            world.run(self._start + experiment.duration, on_progress=on_progress)
            return
        last_step = max((step.after for step in experiment.steps), default=0)
        end = self._start + last_step + experiment.horizon
        world.run(end, stop_when=self._is_quiet, on_progress=on_progress)

    def _is_quiet(self) -> bool:
        """Whether nothing will happen any more but what has no effect.

        A gang that will have waited too long changes what jobs get, though nothing happens; so
        does a pod whose toleration of a taint ends, or a quiet node whose turn comes.
        """
        world = self._world
        if self._batch is not None and self._batch.next_deadline() is not None:
            return False
        if self._recorder.outage.is_waiting():
            return False
        return self._done == len(self._experiment.steps) and world.now - world.last_change > QUIET

    def _why_waiting(self, pod: Pod) -> str:
        """Why a plugin keeps `pod` out of the queue, or what was said of it before the run."""
        queued = self._scheduler.queue.find(pod.key)
        if queued is None:
            said = condition(pod, "PodScheduled")
            return "" if said is None else said.message
        if not queued.gated_by:
            return ""
        served = self._scheduler.served[pod.spec.scheduler_name]
        status = served.framework.run_pre_enqueue(queued.info)
        return "" if status is None else status.message

    def _outcome(self, requested_before: dict[str, int]) -> Outcome:
        recorder, world, settled = self._recorder, self._world, self._is_quiet()
        recorder.explain_waiting(self._why_waiting)
        open_ended = self._experiment.duration is None and settled
        nodes = nodes_at_end(world.store, recorder.everyone())
        names = {node.name for node in nodes}
        # A pod whose node was deleted runs nowhere, whoever clears it away.
        pods = {
            key: pod
            for key, pod in recorder.ends().items()
            if not pod.is_placed or pod.node in names
        }
        undrained = tuple(recorder.undrained())
        return Outcome(
            started_at=self._start,
            ended_at=world.last_change if open_ended else world.now,
            settled=settled,
            pods=pods,
            preempted=tuple(recorder.preempted),
            evicted=tuple(recorder.evicted),
            pdb_breaches=tuple(recorder.breaches),
            undrained=undrained,
            skipped=tuple(self._skipped),
            complaints=tuple(starmap(Complaint, recorder.complaints.items())),
            recurrences=tuple(recorder.recurrences),
            nodes=nodes,
            allocations=allocations(nodes, requested_before),
            priority_names=dict(recorder.priority_names),
            samples=tuple(recorder.samples),
            choices_among_equals=recorder.choices,
            jobs=self._jobs.outcome(self._batch, self._cluster, world.now),
            outage=outage_outcome(
                recorder.outage, self._start, pods, recorder.preempted, recorder.breaches
            ),
            drains=tuple(recorder.drains.turns(undrained)),
        )

    def _objects(self) -> list[Json]:
        store = self._world.store
        return [obj for kind in store.storage.kinds() for obj in store.list(kind)]
