"""Runs an Experiment in a simulated world and collects its outcome.

    1. load      all initial objects, as one stimulus
    2. start     everything due at the start: the scheduler places pods that were pending
    3. act       the commands in `Experiment.steps`; their times count from the beginning of step 3
    4. settle    run for the duration, or until only periodic retries have happened for a while

Both runs of a what-if are identical until step 3 begins. So a pod that waits only for the scheduler
gets the same node in both runs. If a rollout or another activity is in progress in the dump, step 3
begins after it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.codec import decode_as
from fairlead.api.json import Json, number, text
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminal, is_terminating
from fairlead.api.pods.original import original_key
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import (
    CRON_JOB,
    DAEMON_SET,
    NODE,
    POD,
    RESOURCE_QUOTA,
    STATEFUL_SET,
    kind_of,
)
from fairlead.apiserver.registry.store import Store
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.command import (
    Command,
    CreateObject,
    EvictPod,
    IssuedCommand,
    ObjectRef,
    PatchObject,
    RecordEvent,
    UpdateQuotaStatus,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds, to_seconds
from fairlead.engine.core.reporter import PodEvicted, Reporter
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectsLoaded,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.engine import Engine
from fairlead.engine.plugins.node_affinity import MISMATCH
from fairlead.engine.plugins.volume_binding.pod_claims import UNBOUND_IMMEDIATE
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import beginning
from fairlead.engine.workloads.job.index_set import format_indexes
from fairlead.whatif.change.commands import cordon
from fairlead.whatif.change.kubectl_drain import NO_DRAIN, DrainCheck, check_pods
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.configuration.other_scheduler import (
    NO_SCHEDULER,
    no_scheduler,
    rules_note,
    unknown_schedulers,
)
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.option_type import require_type
from fairlead.whatif.outcome.autoscaling.pod_autoscaler import (
    PodAutoscalerOutcome,
    metric_notes,
)
from fairlead.whatif.outcome.eviction import eviction_loops
from fairlead.whatif.outcome.image_platform import ImagePlatforms
from fairlead.whatif.outcome.rest import AT_REST, Rest
from fairlead.whatif.outcome.run_outcome import (
    RESIZE_DEFERRED,
    RESIZE_UNDECIDED,
    NodeEnd,
    ObjectError,
    PodEnd,
    Preempted,
    Recurrence,
    RefusedWorkload,
    RunOutcome,
    Skipped,
    Undrained,
)
from fairlead.whatif.outcome.workload import (
    Revision,
    WorkloadReadiness,
    WorkloadRef,
    revision_of,
    workload_of,
)
from fairlead.whatif.run.capacity.allocation import (
    ObjectErrors,
    RequestsByShape,
    allocatable_in,
    allocations,
    requested_in,
)
from fairlead.whatif.run.capacity.device_use import (
    extended_amounts,
    total_device_amounts,
    with_devices,
)
from fairlead.whatif.run.capacity.wanted_pods import (
    desired_pods,
    incomplete_workloads,
    wanted_pods,
)
from fairlead.whatif.run.controllers import controllers_of
from fairlead.whatif.run.end_state import EndState
from fairlead.whatif.run.endless_instant import (
    AttemptLimit,
    EndlessInstant,
    EvictionLimit,
    livelock_error,
)
from fairlead.whatif.run.experiment import Experiment, with_topology_labels
from fairlead.whatif.run.kept_revision import kept_revisions
from fairlead.whatif.run.outage_outcome import outage_outcome
from fairlead.whatif.run.pod_timing.failing_revision import FailingRevisions
from fairlead.whatif.run.progress import NoProgress, Progress
from fairlead.whatif.run.progress_deadline import (
    RolloutHistory,
    deadline_note,
    deployment_transitions,
)
from fairlead.whatif.run.recorders.job_recorder import (
    JobRecorder,
)
from fairlead.whatif.run.recorders.outage_recorder import OutageRecorder
from fairlead.whatif.run.recorders.recorder import Recorder
from fairlead.whatif.run.recorders.workload_recorder import Step
from fairlead.whatif.run.rest import rest_of
from fairlead.whatif.run.run_note import (
    deleted_namespaces,
    failing_provisioner_notes,
    held_namespaces,
    ignored_call_note,
    ignored_notes,
    missing_class_notes,
    unchecked_notes,
)
from fairlead.whatif.snapshot.api_refusal import as_input_error, malformed_object, refusal_of
from fairlead.whatif.snapshot.samples import samples
from fairlead.whatif.snapshot.volume_attachment import simulated_contents
from fairlead.worlds.driver import LivelockError
from fairlead.worlds.extender.extender_caller import reaching
from fairlead.worlds.perform import perform
from fairlead.worlds.simulation.world import SimulatedWorld

if TYPE_CHECKING:
    from fairlead.whatif.run.autoscaling.vertical_pod_autoscaler import RecommendedRequests
    from fairlead.worlds.decision_log import Logging
    from fairlead.worlds.metrics import SchedulerMetrics

FORBIDDEN: Final = 403
ROUNDS_MAX: Final = 2  # displacements of each wanted pod that need not be a loop
_AUTOSCALERS: Final = "verticalpodautoscalers.autoscaling.k8s.io"
_WITH_HISTORY: Final = {kind.kind: kind for kind in (STATEFUL_SET, DAEMON_SET)}

CommandLog = Callable[[str], None]


class FinishedRun(Struct, frozen=True):
    """The outcome of a run, the store at its end, and metrics as Prometheus text (b"" for none).

    `preempted` are the pods that were preempted since the start of the run. `outcome` contains only
    the pods that were preempted since `outcome.started_at`, the instant of the change.
    """

    outcome: RunOutcome
    store: Store
    metrics: bytes
    preempted: tuple[Preempted, ...]

    def __repr__(self) -> str:
        """Return the outcome; a text with the store would be very long."""
        return f"<FinishedRun: {self.outcome!r}>"

    @property
    def objects(self) -> list[Json]:
        """All objects at the end, grouped by kind."""
        return [obj for kind in self.store.storage.kinds() for obj in self.store.list(kind)]


class _RecordedEngine(Struct):
    """Wraps the engine so that recorders observe each stimulus before the engine handles it.

    `requested_before` and `allocatable_before` are the totals when the cluster was loaded.
    """

    engine: Engine
    recorder: Recorder
    jobs: JobRecorder
    endless: EndlessInstant
    requested_before: dict[str, int] = field(default_factory=dict)
    allocatable_before: dict[str, int] = field(default_factory=dict)

    def handle(self, stimulus: Stimulus, now: Instant) -> list[IssuedCommand]:
        if type(stimulus) is CommandSucceeded:  # a fast path: there is nothing to record
            self.recorder.begin(now)
            issued = self.engine.handle(stimulus, now)
            return self._recorded(issued) if issued else issued
        self.recorder.observe(stimulus, now)
        if type(stimulus) is not ReadinessChanged:  # such a pod neither ends nor leaves its gang
            self.endless.observe(stimulus, now)
            self.jobs.observe(stimulus, now)
        issued = self.engine.handle(stimulus, now)
        if type(stimulus) is ObjectsLoaded:
            offered, used = total_device_amounts(self.engine.cluster)
            self.requested_before = requested_in(self.engine.cluster) | used
            for name, amount in extended_amounts(self.engine.cluster).items():
                self.requested_before[name] -= amount
            self.allocatable_before = allocatable_in(self.engine.cluster) | offered
        return self._recorded(issued) if issued else issued

    def next_deadline(self) -> Instant | None:
        return self.engine.next_deadline()

    def handle_deadline(self, now: Instant) -> list[IssuedCommand]:
        self.recorder.now = now
        return self._recorded(self.engine.handle_deadline(now))

    def _recorded(self, issued: list[IssuedCommand]) -> list[IssuedCommand]:
        for one in issued:
            if type(one.command) is RecordEvent:
                self.recorder.observe_event(one.command)
        return issued


def run_experiment(
    experiment: Experiment,
    phase: str = "",
    progress: Progress | None = None,
    command_log: CommandLog | None = None,
    *,
    metered: bool = False,
    logging: Logging | None = None,
) -> FinishedRun:
    """Run `experiment`; `phase` is its name in the progress display.

    `command_log` records the commands. If `metered` is set, scheduler metrics are collected.
    `logging` wraps the run's reporter in a reporter that logs decisions. Raises InputError for
    objects and steps that an API server would reject, and if time stands still
    (`endless_instant`).
    """
    require_type("run_experiment", "experiment", experiment, Experiment)
    run = ExperimentRun(experiment, command_log, metered=metered, logging=logging)
    with run.reaching_extenders():
        run.start(phase, progress or NoProgress())
        return run.finish(progress or NoProgress())


def _metrics(reporter: Reporter, experiment: Experiment) -> SchedulerMetrics:
    # Imported only if it is needed, because the import is slow.
    from fairlead.worlds.metrics import SchedulerMetrics  # noqa: PLC0415

    meter, batch = experiment.scheduler.meter, experiment.batch
    return SchedulerMetrics(
        reporter,
        list if meter is None else meter.times,
        experiment.scheduler.version.version,
        experiment.node_lifecycle.profile.version,
        () if batch is None else batch.ownership.scheduler_names,
    )


class ExperimentRun:
    """One run of an experiment; the caller calls `start`, then `finish`."""

    def __init__(
        self,
        experiment: Experiment,
        command_log: CommandLog | None,
        *,
        metered: bool = False,
        logging: Logging | None = None,
    ) -> None:
        experiment = with_topology_labels(experiment)
        self._experiment = experiment
        self._start = experiment.start
        outage = OutageRecorder(experiment.node_lifecycle)
        self._recorder = Recorder(experiment.start, outage=outage)
        self._end_state = EndState(self._recorder)
        evictions = EvictionLimit(
            self._recorder, experiment.source, self._workload_of, self._number_of_pods
        )
        attempts = AttemptLimit(
            evictions,
            experiment.source,
            lambda: self._cluster.table.count + len(self._cluster.pods),
        )
        self._jobs = JobRecorder(attempts)
        self._metrics = _metrics(self._jobs, experiment) if metered else None
        release = experiment.followed.general
        config = EngineConfig(
            seed=experiment.seed,
            start=experiment.start,
            kubelet=experiment.kubelet,
            scheduler=experiment.scheduler,
            node_lifecycle=experiment.node_lifecycle,
            # The CronJob controller reads the status of Jobs.
            workloads=WorkloadsConfig(
                serves_clients=experiment.runs_cron_jobs,
                starts_from_dump=True,
                max_unavailable_stateful_set=release.max_unavailable_stateful_set,
                seed=experiment.seed,
            ),
            batch=experiment.batch,
            pod_autoscaler=HorizontalPodAutoscalerConfig(
                loads=beginning(experiment.loads, experiment.steps_begin)
            ),
            karpenter=experiment.karpenter,
            autoscaler=experiment.autoscaler,
            removes_finalizers=True,
        )
        reporter: Reporter = self._metrics or self._jobs
        self._decision_log = (
            None if logging is None else logging(reporter, lambda: self._recorder.now)
        )
        engine = build_engine(config, self._decision_log or reporter)
        self._cluster = engine.cluster
        self._recorder.requests_of = RequestsByShape(engine.cluster).of
        self._controllers = controllers_of(engine, experiment)
        if self._metrics is not None:
            self._metrics.waiting = self._controllers.scheduler.queue
        endless = EndlessInstant(experiment.source, self._wanted)
        self._engine = _RecordedEngine(engine, self._recorder, self._jobs, endless)
        self._world = SimulatedWorld(
            self._engine,
            start=self._start,
            seed=experiment.seed if experiment.ids_seed is None else experiment.ids_seed,
            events_max=0,
            command_log=command_log,
            preemption_policies=release.preemption_policies,
            group_priorities=release.group_priorities,
            malformed=partial(malformed_object, experiment.source, experiment.initial),
        )
        self._recommended = self._recommended_requests()
        self._done = self._scheduled = 0
        self._last_step = self._start
        self._skipped: list[Skipped] = []
        self._kubectl_drain = NO_DRAIN

    def _recommended_requests(self) -> RecommendedRequests | None:
        """Add and return the webhook of the VerticalPodAutoscalers.

        If the cluster has no VerticalPodAutoscalers, add nothing and return None.
        """
        if all(one.kind.resource != _AUTOSCALERS for one in samples(self._experiment.initial)):
            return None
        # Imported only if it is needed.
        from fairlead.whatif.run.autoscaling.vertical_pod_autoscaler import RecommendedRequests  # noqa: PLC0415

        found = RecommendedRequests(lambda: self._world.now)
        self._world.admission.add(found)
        return found

    @contextmanager
    def reaching_extenders(self) -> Iterator[None]:
        """Keep the connections to extenders open within the `with` block."""
        with reaching(self._experiment.scheduler.extenders) as extenders:
            self._world.extenders = extenders
            yield

    def start(self, phase: str, progress: Progress) -> None:
        """Load the objects, and perform all work that is due at the start of the run."""
        is_scripted = any(step.after for step in self._experiment.steps)
        progress.begin(phase, len(self._experiment.steps) if is_scripted else 0)
        self._load()
        self._run(self._start, on_progress=partial(self._show, progress))

    def finish(self, progress: Progress) -> FinishedRun:
        """Perform the experiment's steps, and run to the end (steps 3 and 4 of the module)."""
        show = partial(self._show, progress)
        self._recorder.outage.leave_out(self._experiment.known_failures)
        begin = max(self._start + (self._experiment.steps_begin or 0), self._world.now)
        if begin > self._start:
            self._run(begin, on_progress=show)
        self._renew_steps()
        if self._experiment.commands_before_steps and self._experiment.steps_begin is not None:
            self._world.at(begin, self._act_before_steps)
        self._schedule(self._experiment.steps, begin)
        self._settle(begin, show)
        exposition = b"" if self._metrics is None else self._metrics.exposition()
        preempted = tuple(self._recorder.preempted)
        return FinishedRun(self._outcome(), self._world.store, exposition, preempted)

    def act(
        self,
        steps: tuple[ScriptedStep, ...],
        begin: DurationNs,
        is_over: Callable[[Store], bool],
        progress: Progress,
    ) -> bool:
        """Perform `steps` before the experiment's steps; return the last result of `is_over`.

        The time of each step counts from `begin` nanoseconds after the start of the run, or from
        the time of the call if that is later. Simulated time passes until `is_over(store)` returns
        True or the cluster settles, but at most for the experiment's `horizon`. Call this method
        after `start` and before `finish`.
        """
        show, at = partial(self._show, progress), max(self._start + begin, self._world.now)
        self._run(at, on_progress=show)
        self._schedule(steps, at)
        store = self._world.store
        self._run(
            at + self._experiment.horizon,
            stop_when=lambda: is_over(store) or self._is_quiet(),
            on_progress=show,
        )
        return is_over(store)

    def _renew_steps(self) -> None:
        """Replace the steps by steps for the present nodes, if nodes have come or gone.

        If an object that a step names is gone, the old steps are kept. The step for this object is
        later skipped.
        """
        steps_for, store = self._experiment.steps_for, self._world.store
        if steps_for is None:
            return
        nodes = store.list(NODE)
        initial = {one.ref.name for one in self._experiment.initial if one.kind is NODE}
        if {one["metadata"]["name"] for one in nodes} == initial:
            return
        with suppress(InputError):
            steps = steps_for([*nodes, *store.list(POD)])
            self._experiment = replace(self._experiment, steps=steps)

    def _act_before_steps(self, store: Store, now: Instant) -> None:
        """Perform `commands_before_steps`; ignore a command if its object does not exist."""
        for command in self._experiment.commands_before_steps:
            perform(store, command, now)

    def _schedule(self, steps: Sequence[ScriptedStep], begin: Instant) -> None:
        self._scheduled += len(steps)
        for step in steps:
            self._world.at(begin + step.after, partial(self._act, step))

    def _run(
        self,
        until: Instant,
        on_progress: Callable[[Instant], None],
        stop_when: Callable[[], bool] | None = None,
    ) -> None:
        try:
            self._world.run(until, stop_when=stop_when, on_progress=on_progress)
        except LivelockError as cause:
            raise livelock_error(self._experiment.source, cause) from None

    def _workload_of(self, pod: ObjectRef) -> WorkloadRef | None:
        """Return the workload of `pod`; None if the pod does not exist."""
        info = self._cluster.pods.get(pod.key)
        return None if info is None else workload_of(info.pod)

    def _wanted(self, workload: WorkloadRef) -> int | None:
        if workload.is_daemon_set:
            return len(self._recorder.outage.nodes)
        return desired_pods(self._world.store, workload)

    def _number_of_pods(self, workload: WorkloadRef) -> int:
        """Return how many pods `workload` wants; if this is unknown, the number of its pods."""
        wanted = self._wanted(workload)
        if wanted is not None:
            return wanted
        pods = ((ref, pod, node) for ref, _, pod, node in self._recorder.pods_of({workload}))
        return wanted_pods(self._world.store, pods, {workload})[workload]

    @property
    def experiment(self) -> Experiment:
        """The experiment of this run."""
        return self._experiment

    def continue_with(self, experiment: Experiment) -> None:
        """Replace the experiment; `experiment` must start alike (`starts_alike`).

        Call this between `start` and `finish`.
        """
        experiment = with_topology_labels(experiment)
        self._experiment = replace(experiment, initial=self._experiment.initial)

    def stop_logging(self) -> None:
        """Stop the command log and the decision log; the run itself continues."""
        self._world.command_log = None
        if self._decision_log is not None:
            self._decision_log.stop()

    def keep_state(self) -> Sequence[object]:
        """Keep the present nodes and pods for the outcome (`EndState.keep`); return them."""
        return self._end_state.keep()

    def _show(self, progress: Progress, now: Instant) -> None:
        progress.reach(self._done, to_seconds(now - self._start))

    def _load(self) -> None:
        manifests = self._experiment.initial
        try:
            self._world.load(simulated_contents(manifests))
        except ApiError as refused:
            raise as_input_error(self._experiment.source, manifests, refused) from None
        # A dump of a real cluster has the status of each quota. The quotas of a written cluster
        # limit its pods from the start, too.
        store = self._world.store
        for quota in store.list(RESOURCE_QUOTA):
            if not (quota.get("status") or {}).get("hard"):
                _count_quota(CreateObject(quota).target, store, self._start)

    def _act(self, step: ScriptedStep, store: Store, now: Instant) -> None:
        """Perform `step`.

        A refused eviction is recorded as skipped, and so is a command whose object does not exist.
        Raises InputError if the store refuses a command for any other reason.
        """
        self._done += 1
        self._last_step = now
        if step.capacity_outage is not None:
            self._controllers.add_outage(step.capacity_outage.starting(now - self._start))
        commands = self._commands_of(step, store)
        if step.drain_check is not None and self._refuses_drain(step.drain_check, store, now):
            commands = (cordon(step.drain_check.node),)
        for command in commands:
            if isinstance(command, CreateObject):
                self._create(step, command.manifest, store, now)
                continue
            node = self._node_of(command, store)
            if len(commands) == 1:
                outcome = self._world.perform_scripted(command, now)
            else:
                outcome = perform(store, command, now)
            if isinstance(command, EvictPod) and not isinstance(outcome, CommandFailed):
                record = PodEvicted(command.pod, node, command.why, now)
                self._recorder.evicted_within_budgets(record)
            if isinstance(outcome, CommandFailed):
                # These failures are no errors of the input: a budget may refuse an eviction, and a
                # missing object needs no action.
                is_moot = outcome.reason is FailureReason.NOT_FOUND
                if not is_moot and not isinstance(command, EvictPod):
                    raise InputError(step.source, outcome.message, object_name=step.what)
                self._skipped.append(Skipped(what=step.what, at=now, why=outcome.message))
            elif isinstance(command, PatchObject):
                _count_quota(command.target, store, now)

    def _refuses_drain(self, check: DrainCheck, store: Store, now: Instant) -> bool:
        """Return whether kubectl refuses to drain the node of `check` because of its pods.

        The first call checks the nodes of all drains, because evictions begin right after the first
        call. Pods that other steps delete at the same instant do not count.
        """
        if self._kubectl_drain is NO_DRAIN:
            checks = (one.drain_check for one in self._experiment.steps)
            nodes = (one.node for one in checks if one is not None)
            by_node = {node: list(self._present_pods(node, store, now)) for node in nodes}
            daemon_sets = {
                f"{one['metadata']['namespace']}/{one['metadata']['name']}"
                for one in store.list(DAEMON_SET)
            }
            self._kubectl_drain = check_pods(by_node, daemon_sets, check.flags)
        return any(one.node == check.node for one in self._kubectl_drain.refused)

    def _present_pods(self, node: str, store: Store, now: Instant) -> Iterator[Pod]:
        """Yield the pods on `node`, without pods whose deletion was requested at `now`."""
        for key in self._recorder.outage.own_pod_keys_on(node):
            found = store.find(POD, *key.split("/"))
            if found is not None and not _is_deleted_since(now, found["metadata"]):
                yield decode_as(Pod, found)

    def _commands_of(self, step: ScriptedStep, store: Store) -> tuple[Command, ...]:
        """Return the commands of `step`.

        If `step.reads_nodes` is set or the experiment has a node autoscaler, `step.commands_for`
        makes the commands for the present nodes. If `commands_for` is None or raises InputError,
        and in all other cases, the result is `step.commands`.
        """
        experiment = self._experiment
        reads_nodes = step.reads_nodes or experiment.autoscaler or experiment.karpenter
        if step.commands_for is not None and reads_nodes:
            with suppress(InputError):
                return step.commands_for(store.list(NODE))
        return step.commands

    @staticmethod
    def _node_of(command: Command, store: Store) -> str:
        """Return the node of the pod that `command` evicts; "" for other commands."""
        if not isinstance(command, EvictPod):
            return ""
        pod = store.find(POD, command.pod.namespace, command.pod.name)
        return "" if pod is None else str(pod["spec"].get("nodeName", ""))

    def _create(
        self, step: ScriptedStep, manifest: Mapping[str, Any], store: Store, now: Instant
    ) -> None:
        """Create an object of `step`.

        If admission rejects a namespaced object, the rejection becomes an error in the outcome.
        Raises InputError for every other rejection.
        """
        try:
            store.create(manifest, now, write=self._world.user_write())
            _count_quota(CreateObject(manifest).target, store, now)
        except ApiError as refused:
            if refused.code != FORBIDDEN or not kind_of(manifest).namespaced:
                raise refusal_of(step.source, step.what, refused) from None
            self._recorder.errors.setdefault(step.what, refused.message)

    def _settle(self, begin: Instant, on_progress: Callable[[Instant], None]) -> None:
        """Run for the experiment's duration; if it is None, run until `_is_quiet` returns True.

        If the duration is None, the run ends at the latest when the experiment's `horizon` has
        passed since the last step, or if preemptions and evictions repeat too often
        (`recurrences_max`). The times of the steps count from `begin`.

        Events that are due exactly at the horizon do not happen, because the run would end before
        their consequences. For example, a flapping machine would fail in the last instant. But the
        last step always happens, even if the horizon is 0.
        """
        experiment = self._experiment
        if experiment.duration is not None:
            self._run(self._start + experiment.duration, on_progress=on_progress)
            return
        last_step = begin + max((step.after for step in experiment.steps), default=0)
        end = last_step + experiment.horizon
        before_end = max(end - 1, last_step)
        self._run(
            before_end,
            stop_when=lambda: (
                (self._is_quiet() and not self._awaits_deadline(end)) or self._repeats_too_much()
            ),
            on_progress=on_progress,
        )
        if self._world.now == before_end:
            self._world.pass_time(end)

    def _is_quiet(self) -> bool:
        """Return whether the run can end.

        The run can end if all steps are done, and either the awaited pods have a node or the
        cluster has settled. A cluster has settled if nothing has changed for a while, and no timer
        that will change something is running. For example, the end of a toleration is such a timer.
        """
        if self._done != self._scheduled:
            return False
        if self._is_fulfilled():
            return True
        now = self._world.now
        return self._is_unchanged(now) and not self._controllers.is_waiting(now)

    def _awaits_deadline(self, end: Instant) -> bool:
        """Return whether the run waits for a Job deadline, and this deadline is before `end`."""
        if not self._experiment.awaits_job_deadlines:
            return False
        deadline = self._controllers.workloads.next_job_deadline()
        return deadline is not None and deadline < end

    def _repeats_too_much(self) -> bool:
        """Return whether more displacements have repeated than the experiment allows."""
        limit = self._experiment.recurrences_max
        return limit is not None and len(self._recorder.recurrences) > limit

    def _is_unchanged(self, now: Instant) -> bool:
        """Return whether nothing has changed for a while, and no timer of an outage is running."""
        since = now - self._world.last_change
        # The comparison with `experiment.quiet` comes first: it is fast, and ends most calls.
        if since <= self._experiment.quiet or since <= self._quiet:
            return False
        return not self._recorder.outage.is_waiting(now)

    def _awaited_removals(self) -> tuple[Instant, ...]:
        """Return the times from which nodes may be removed.

        The result is () if the run also waits for other times.
        """
        now = self._world.now
        is_at_rest = self._done == self._scheduled and self._is_unchanged(now)
        return self._controllers.awaited_removals(now) if is_at_rest else ()

    @property
    def _quiet(self) -> DurationNs:
        """The time without a change after which the cluster counts as being at rest.

        A pause is a time in which no object changes, although the cluster is not at rest. The time
        returned is at least the longest pause that PauseRecorder recorded. A pause as long as the
        horizon or longer is ignored, because otherwise the run could not settle.
        """
        pause, experiment = self._recorder.pauses.longest, self._experiment
        return max(experiment.quiet, pause if pause < experiment.horizon else 0)

    def _is_fulfilled(self) -> bool:
        """Return whether the condition `ends_when_placed` or `ends_when_filled` is met."""
        awaited, filled = self._experiment.ends_when_placed, self._experiment.ends_when_filled
        if awaited and self._recorder.are_placed(awaited):
            return True
        placed = self._recorder.workloads.placed
        return bool(filled) and all(placed[workload] >= number for workload, number in filled)

    def _outcome(self) -> RunOutcome:
        recorder, world, settled = self._recorder, self._world, self._is_quiet()
        recorder.explain_waiting(self._controllers.why_waiting)
        recorder.hold_up(self._controllers.kubelets.awaiting_volumes())
        open_ended = self._experiment.duration is None and settled
        rest = self._rest(settled=settled)
        since = self._start + (self._experiment.steps_begin or rest.after or 0)
        # The last step may change nothing, for example the return of nodes that no longer exist.
        until = max(world.last_change if open_ended else world.now, since, self._last_step)
        nodes = with_devices(self._end_state.nodes(), recorder.outage.nodes, self._cluster)
        pods = self._end_state.pods(nodes)
        undrained = tuple(recorder.undrained())
        resizes = self._controllers.kubelets.unfinished_resizes()
        errors = tuple(self._errors(resizes, since))
        update_revisions = self._update_revisions(pods.values())
        waits = tuple(recorder.waits(since))
        autoscaling = self._controllers.autoscaling(since, until, waits)
        autoscalers = self._controllers.pod_autoscaler_outcomes(since, until)
        scaled = frozenset(one.workload for one in autoscalers if one.changes)
        concerned = self._concerned(pods, undrained, errors, since).union(update_revisions)
        workloads = self._readiness(concerned, errors, since, until, scaled)
        image_notes = tuple(self._platform_notes())
        return RunOutcome(
            started_at=since,
            ended_at=until,
            settled=settled,
            pods=pods,
            preempted=tuple(one for one in recorder.preempted if one.at >= since),
            evicted=tuple(one for one in recorder.evicted if one.at >= since),
            pdb_breaches=tuple(one for one in recorder.budgets.breaches if one.at >= since),
            undrained=undrained,
            skipped=tuple(self._skipped),
            errors=errors,
            recurrences=tuple(self._recurrences(since, workloads)),
            nodes=nodes,
            allocations=allocations(
                nodes, self._engine.requested_before, self._engine.allocatable_before
            ),
            priority_names=dict(recorder.priority_names),
            samples=tuple(recorder.counts.samples_since(since)),
            choices_among_equals=recorder.choices,
            jobs=self._jobs.outcome(self._controllers.batch, self._cluster, since, world.now),
            outage=outage_outcome(recorder, since, pods, workloads),
            drains=tuple(recorder.drains.progress(undrained)),
            notes=(
                *self._experiment.notes,
                *([] if autoscaling is None else autoscaling.waiting_notes(since)),
                *self._notes(autoscalers, since, until),
                *image_notes,
                *self._overdue_rollouts(errors, since, until, settled=settled),
                *self._pending_notes(pods.values()),
            ),
            image_notes=image_notes,
            rule_notes=(*self._ignored_call_notes(), *self._admission_notes()),
            workloads=workloads,
            workloads_total=self._end_state.workloads_total(),
            budgets=tuple(recorder.budgets.histories(since)),
            touched=frozenset(recorder.touched),
            on_deleted_nodes=dict(recorder.on_deleted_nodes),
            rest=rest,
            autoscaling=autoscaling,
            waits=waits,
            pod_autoscalers=autoscalers,
            cluster_history=recorder.cluster_history(since),
            deleted_claims=tuple(recorder.claims.deleted_since(since)),
            completed_and_deleted=tuple(recorder.completed_since(since)),
            deleted_after_wait=tuple(recorder.deleted_after_wait(since)),
            next_end=self._controllers.next_end(),
            kept_revisions=kept_revisions(world.store),
            update_revisions=update_revisions,
            kubectl_drain=self._kubectl_drain,
            deleted_namespaces=frozenset(deleted_namespaces(self._experiment.steps)),
            failing_revisions=self._failing_revisions(),
            # With an autoscaler, new nodes may have the labels.
            absent_labels=self._absent_labels(pods.values(), nodes) if autoscaling is None else {},
            refused_workloads=self._refused_workloads(),
            scheduler_names=frozenset(recorder.scheduler_names(since)),
            unfinished_resizes=frozenset(resizes),
            awaited_removals=() if settled else self._awaited_removals(),
        )

    def _errors(self, resizes: Mapping[str, str], since: Instant) -> Iterator[ObjectError]:
        """Yield the errors that the outcome reports: failed Jobs, unfinished `resizes` and others.

        `resizes` maps the keys of pods to the reasons why their resizes are deferred, or to "" if
        the kubelet has not decided yet. A deleted Job counts if it failed at `since` or later.
        """
        recorder, workloads = self._recorder, self._controllers.workloads
        found = ObjectErrors(
            store=self._world.store,
            pods=list(recorder.existing_pods()) if recorder.errors else [],
            nodes=recorder.outage.nodes.values(),
            job_pods=self._wanted_job_pods(),
            update_revision=workloads.update_revision,
            unreplaced={f"{ref.kind} {ref.key}": pods for ref, pods in workloads.unreplaced_pods()}
            if recorder.errors
            else {},
        )
        yield from self._failed_jobs(replace(found, pods=()), since)  # they create no more pods
        for key, why in sorted(resizes.items()):
            yield ObjectError(
                f"Pod {key}", f"{RESIZE_DEFERRED}: {why}" if why else RESIZE_UNDECIDED
            )
        for subject, message in recorder.errors.items():
            yield found.error(subject, message)

    def _concerned(
        self,
        pods: Mapping[str, PodEnd],
        undrained: Iterable[Undrained],
        errors: Iterable[ObjectError],
        since: Instant,
    ) -> set[WorkloadRef]:
        """Return workloads whose readiness an answer may show, although they did not change.

        `pods`, `undrained` and `errors` are those at the end of the run. A deleted workload counts
        if it was deleted at `since` or later.
        """
        recorder = self._recorder
        concerned = {one.pod.workload for one in undrained}
        concerned.update(one.workload for one in errors if one.workload and one.missing)
        for key, one in recorder.outage.affected.items():
            # The pod and its replacement have the same workload, which the PodEnd contains.
            end = pods.get(key)
            concerned.add(workload_of(one.pod) if end is None else end.workload)
        # If only one of two runs removes a terminating pod, the answer has a row for its workload.
        concerned.update(pod.workload for pod in pods.values() if pod.is_terminating)
        deletions = recorder.workloads.deletions
        concerned.update(workload for workload, at in deletions.items() if at >= since)
        paused = self._controllers.workloads.paused_deployments()
        concerned.update(incomplete_workloads(self._world.store, pods.values(), paused))
        return concerned

    def _update_revisions(self, pods: Iterable[PodEnd]) -> dict[WorkloadRef, str]:
        """Return the newest revision of each workload that has `pods` of other revisions.

        Only StatefulSets and DaemonSets are examined. Pods without a revision label count as pods
        of another revision.
        """
        revisions: dict[WorkloadRef, set[str]] = {}
        for pod in pods:
            if pod.owner is not None and pod.owner.kind in _WITH_HISTORY:
                revisions.setdefault(pod.owner, set()).add(pod.revision)
        found = {}
        for ref, existing in revisions.items():
            owner = self._world.store.find(_WITH_HISTORY[ref.kind], ref.namespace, ref.name)
            uid = "" if owner is None else owner["metadata"]["uid"]
            newest = self._controllers.workloads.update_revision(uid)
            if newest and existing != {newest}:
                found[ref] = newest
        return found

    def _failing_revisions(self) -> frozenset[Revision]:
        """Return the revisions whose pods fail to start in the dump, and therefore in the run."""
        failing = self._experiment.kubelet.never_starts
        return frozenset(failing.reasons if isinstance(failing, FailingRevisions) else ())

    def _absent_labels(
        self, pods: Iterable[PodEnd], nodes: Iterable[NodeEnd]
    ) -> Mapping[WorkloadRef, str]:
        """Return sentences about labels that pending pods require and that no node has.

        The keys are the workloads of the pods.
        """
        mismatch = MISMATCH.message
        pending = {pod.key: pod.workload for pod in pods if mismatch in pod.reason}
        if not pending:
            return {}
        # Imported only if it is needed.
        from fairlead.whatif.snapshot.absent_label import missing_labels  # noqa: PLC0415

        labels = {one.name: one.labels for one in nodes}
        found: dict[WorkloadRef, str] = {}
        for pod in self._unbound(set(pending.values())):
            workload = pending.get(original_key(pod))
            if workload is not None and workload not in found:
                found[workload] = " ".join(missing_labels(pod, labels))
        return {workload: text for workload, text in found.items() if text}

    def _refused_workloads(self) -> tuple[RefusedWorkload, ...]:
        """Return the workloads of `Experiment.tried` whose next pods would be refused."""
        tried = self._experiment.tried
        if tried is None:
            return ()
        # Imported only if it is needed.
        from fairlead.whatif.run.next_pod import refused_workloads  # noqa: PLC0415

        jobs = {job for job, count in self._wanted_job_pods().items() if count}
        return refused_workloads(self._world, tried, jobs, self._recorder.pods_of)

    def _failed_jobs(self, errors: ObjectErrors, since: Instant) -> Iterator[ObjectError]:
        """Yield an error for each Job that failed or can no longer succeed; deleted Jobs first."""
        for subject, message in self._recorder.failed_jobs_since(since):
            yield ObjectError(subject, message, is_failed_job=True)
        for ref, finished in self._controllers.workloads.failed_jobs():
            message = f"{finished.message} ({finished.reason})"
            found = errors.error(f"Job {ref.key}", message)
            yield replace(found, is_failed_job=True)
        failing = self._controllers.workloads.failing_jobs()
        for ref, indexes in sorted(failing, key=lambda one: one[0].key):
            those = "index" if len(indexes) == 1 else "indexes"
            verb = "has" if len(indexes) == 1 else "have"
            message = f"{those} {format_indexes(indexes)} {verb} failed (backoffLimitPerIndex)"
            found = errors.error(f"Job {ref.key}", message)
            yield replace(found, missing=0, is_failing_job=True)

    def _wanted_job_pods(self) -> dict[WorkloadRef, int]:
        """Return how many pods of each Job should run now."""
        counts = self._controllers.workloads.wanted_job_pods()
        return {WorkloadRef(ref.kind, ref.namespace, ref.name): count for ref, count in counts}

    def _recurrences(
        self, since: Instant, workloads: Mapping[WorkloadRef, WorkloadReadiness]
    ) -> Iterator[Recurrence]:
        """Yield the repeated displacements of pods from `since` on, ordered by time.

        A displacement is a preemption, an eviction or a rejection by a kubelet. A workload whose
        pods are displaced repeatedly is left out if the number of displacements is at most
        ROUNDS_MAX times the number of pods that it wants. So few displacements need not be a loop.
        For example, a rolling update of another workload can displace each pod once, and a later
        outage of a zone can displace it once more.
        """
        recorder = self._recorder
        found = (
            *recorder.recurrences,
            *eviction_loops(recorder.evicted),
            *recorder.rejections.loops(since),
        )
        for one in sorted(found, key=lambda one: one.at):
            ready = None if one.workload is None else workloads.get(one.workload)
            is_rare = ready is not None and 0 < one.times <= ROUNDS_MAX * ready.wanted
            if one.at >= since and not is_rare:
                yield one

    def _rest(self, *, settled: bool) -> Rest:
        """Return when the cluster came to rest, and its activity until then.

        If the experiment's `steps_begin` is set, the result is AT_REST: at rest from the start.
        """
        if self._experiment.steps_begin is not None:
            return AT_REST
        transitions = self._recorder.workloads.transitions
        start, end = self._start, self._world.now
        return rest_of(transitions, start, end, self._quiet, settled=settled)

    def _readiness(
        self,
        others: set[WorkloadRef],
        errors: Iterable[ObjectError],
        since: Instant,
        until: Instant,
        scaled: frozenset[WorkloadRef],
    ) -> dict[WorkloadRef, WorkloadReadiness]:
        """Return the readiness of the workloads that changed after `since`, and of `others`.

        The readiness covers the time from `since` to `until`. `errors` name the DaemonSets
        that lack pods. `scaled` are the workloads that autoscalers scale.
        """
        recorder = self._recorder.workloads
        concerned = recorder.touched(since) | others
        pods = list(self._recorder.pods_of(concerned))
        with_nodes = ((workload, pod, node) for workload, _, pod, node in pods)
        unreplaced = Counter(
            workload_of(pod)
            for _, lost in self._controllers.workloads.unreplaced_pods()
            for pod in lost
        )
        wanted = wanted_pods(self._world.store, with_nodes, concerned, unreplaced)
        for error in errors:
            if error.workload in wanted:  # the pods of a DaemonSet were counted, see `wanted_pods`
                wanted[error.workload] += len(error.nodes)
        # A simulation does not write the status of Jobs.
        job_pods = self._wanted_job_pods()
        wanted.update((job, count) for job, count in job_pods.items() if job in wanted)
        begin = until + 1 if self._experiment.compares_packings else since
        with_uids = ((workload, uid, pod) for workload, uid, pod, _ in pods)
        readiness = dict(recorder.readiness(with_uids, wanted, begin, until, scaled))
        for ref, indexes in self._controllers.workloads.failed_indexes():
            job = WorkloadRef(ref.kind, ref.namespace, ref.name)
            if job in readiness:
                readiness[job] = replace(readiness[job], failed_indexes=indexes)
        return readiness

    def _overdue_rollouts(
        self, errors: Sequence[ObjectError], since: Instant, until: Instant, *, settled: bool
    ) -> Iterator[str]:
        """Yield a note about Deployments that exceed their progress deadline, if there are any."""
        transitions = deployment_transitions(self._recorder.workloads.transitions)
        # A rollout begins with the creation of a pod, even if the creation is refused.
        begun = {
            ref
            for ref, found in transitions.items()
            if any(one.step is Step.CREATED for one in found)
        }
        begun.update(one.workload for one in errors if one.workload is not None)
        if not begun:
            return
        live: dict[WorkloadRef, Counter[str]] = defaultdict(Counter)
        last: Pod | None = None  # one pod represents all unchanged replicas, see `Recorder.pods_of`
        is_last_live, revision = False, ""
        for workload, _, pod, _ in self._recorder.pods_of(begun):
            if pod is not last:
                last, is_last_live = pod, not is_terminal(pod) and not is_terminating(pod)
                revision = revision_of(pod)
            if is_last_live:
                live[workload][revision] += 1
        store, initial = self._world.store, self._experiment.initial
        run = RolloutHistory(store, initial, transitions, live, errors, since, until, settled)
        if note := deadline_note(run):
            yield note

    def _notes(
        self, autoscalers: Iterable[PodAutoscalerOutcome], since: Instant, until: Instant
    ) -> Iterator[str]:
        """Yield notes about what the simulation lacked or ignored.

        Kinds that the dump lacks are noted only if some object has a uid. A uid shows that the
        objects come from an API server; hand-written inputs need not be complete.
        """
        used = self._recorder.scheduler_names(since)
        guessed = [one for one in self._experiment.guessed_schedulers if one in used]
        if guessed:
            yield rules_note(guessed)
        yield from self._controllers.notes(self._world.now)
        yield from metric_notes(autoscalers)
        if self._experiment.runs_cron_jobs and self._experiment.duration is None:
            # Imported only if it is needed.
            from fairlead.whatif.snapshot.due_cron_job import (  # noqa: PLC0415
                later_cron_job_notes,
            )

            cron_jobs = self._world.store.list(CRON_JOB)
            yield from later_cron_job_notes(cron_jobs, self._experiment.initial, self._start, until)
        yield from self._ignored_call_notes()
        yield from ignored_notes(self._experiment, self._world.store)
        if self._experiment.autoscaler is not None or self._experiment.karpenter is not None:
            # Imported only if an autoscaler is simulated.
            from fairlead.whatif.run.autoscaling.kept_setting import (  # noqa: PLC0415
                gate_notes,
                kept_setting_notes,
                missing_priority_notes,
            )

            yield from kept_setting_notes(self._experiment, self._world.store)
            yield from gate_notes(self._experiment, self._world.store)
            yield from missing_priority_notes(self._experiment, self._world.store)
        if self._recommended is not None:
            yield from self._recommended.notes(since)
        steps, outage = self._experiment.steps, self._recorder.outage
        yield from held_namespaces(steps, self._world.store, outage.is_serving)
        yield from self._admission_notes()

    def _admission_notes(self) -> Iterator[str]:
        """Yield notes about the checks that admission skipped."""
        yield from unchecked_notes(self._world.admission.unchecked, self._experiment.initial)

    def _ignored_call_notes(self) -> Iterator[str]:
        """Yield a note for each extender with calls that failed and were ignored."""
        for url, (message, times) in self._recorder.ignored_calls.items():
            yield ignored_call_note(url, message, times)

    def _platform_notes(self) -> Iterator[str]:
        """Yield a note about pods whose images might not support the platform of their nodes."""
        nodes = self._recorder.outage.nodes
        labels = (node.metadata.labels for node in nodes.values())
        images = ImagePlatforms.of(self._experiment.initial, labels)
        if images.are_alike:
            return
        # Loaded pods that have not changed are still on their nodes of the dump.
        bound = ((pod, pod.spec.node_name) for pod in self._recorder.samples())
        yield from images.notes(
            (pod, node, nodes[node].metadata.labels) for pod, node in bound if node in nodes
        )

    def _pending_notes(self, ends: Collection[PodEnd]) -> Iterator[str]:
        """Yield notes about pending pods without a scheduler, StorageClass or provisioner."""
        if not self._recorder.counts.has_pending():
            return  # Most runs end without pending pods, and reading all pods takes time.
        yield from unknown_schedulers(self._unknown_names(ends))
        store, failing = self._world.store, self._controllers.volumes.failing
        pending = {one.workload for one in ends if UNBOUND_IMMEDIATE.message in one.reason}
        if pending:
            yield from missing_class_notes(store, self._experiment.initial, self._unbound(pending))
        if failing:
            pending = {one.workload for one in ends if one.is_pending}
            yield from failing_provisioner_notes(store, self._unbound(pending), failing)

    def _unbound(self, workloads: set[WorkloadRef]) -> Iterator[Pod]:
        """Yield the pods of `workloads` that have no node."""
        return (pod for _, _, pod, node in self._recorder.pods_of(workloads) if not node)

    def _unknown_names(self, ends: Collection[PodEnd]) -> set[str]:
        """Return the schedulerNames for which pods in `ends` stay pending without a scheduler."""
        found = {one.reason: one.workload for one in ends if one.reason.startswith(NO_SCHEDULER)}
        pods = self._recorder.pods_of({*found.values()})
        names = {pod.spec.scheduler_name for _, _, pod, _ in pods}
        return {name for name in names if no_scheduler(name) in found}


def _is_deleted_since(begin: Instant, metadata: Json) -> bool:
    """Return whether an object with `metadata` terminates, and began to do so at `begin` or later.

    A deletion timestamp has whole seconds. If the deletion may have begun less than a second before
    `begin`, the result is also True.
    """
    stated = text(metadata, "deletionTimestamp")
    grace = seconds(number(metadata, "deletionGracePeriodSeconds"))
    return bool(stated) and parse_timestamp(stated) - grace > begin - seconds(1)


def _count_quota(written: ObjectRef, store: Store, now: Instant) -> None:
    """Update the status of `written`, an object that a step wrote, if it is a ResourceQuota.

    A quota limits nothing before its status is written. A real quota controller writes the status
    soon after a change. The commands of a step follow each other without a pause, so this function
    writes the status immediately.
    """
    if written.kind == RESOURCE_QUOTA.kind:
        perform(store, UpdateQuotaStatus(written), now)
