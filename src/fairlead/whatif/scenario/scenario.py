"""Scenario files: a cluster, timed events, a duration and a seed.

    cluster:                       at least one of these, and not `simkube` alone
      files: [nodes.yaml, dump/]       kubectl output
      trace: {nodes: …, pods: …}       CSV tables (module trace)
      simkube: trace.sktrace           a SimKube trace, for the nodes of the other sources
      audit-log: audit.log             actions of users (module audited_input)
      generated: {nodes: 5000, …}      synthetic nodes (module generated_nodes)
    objects: [...]                 additional objects that exist from the start
    events:                        each with `at` and one verb (module timed_event)
    - {at: 10m, drain: zone=a}
    load: [...]                    the load of workloads, or a file (module workload_load)
    duration: 1h                   default: until the cluster has settled
    seed: 7
    settings:
      kubelet: {start-delay: 1s}
      scheduler: scheduler.yaml
      batch: batch.yaml                configuration of the batch scheduler
      autoscale: karpenter             the autoscaler that acts, and its files
      controller-manager: {flags: {node-eviction-rate: 0.5}}
    outputs: {report: out.html, json: out.json, commands: out.jsonl, snapshot: after.json}

Input files are relative to the scenario file, outputs to the current directory. Virtual time starts
when `files` were taken (see whatif/snapshot/snapshot.py). If there are no `files`, virtual time
starts at the first write in `audit-log`, or else at 2026-01-01T00:00:00Z.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.apiserver.kind import CRON_JOB, HORIZONTAL_POD_AUTOSCALER, NODE
from fairlead.engine.batch.configuration_file import SHIPPED
from fairlead.engine.batch.scheduler_name import FAIRLEAD
from fairlead.engine.core.command import PatchStatus
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import WorkloadLoads
from fairlead.whatif.change.note.unsimulated_workload import unsimulated_notes
from fairlead.whatif.change.owned_object import owned_by, owner_notes
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.configuration.autoscaling.provider_settings import with_provider
from fairlead.whatif.configuration.batch.batch_config import batch_notes
from fairlead.whatif.configuration.batch.options import (
    DEFAULT_BATCH_OPTIONS,
    SINGLE_PODS,
    BatchOptions,
)
from fairlead.whatif.configuration.kwok_stage import with_stages
from fairlead.whatif.configuration.other_scheduler import other_schedulers
from fairlead.whatif.configuration.release import NO_CHOICE, ReleaseChoice, Releases
from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.configuration.scheduler_words import scheduler_words
from fairlead.whatif.configuration.stored_configuration import PREFIXES, chosen_configuration
from fairlead.whatif.configuration.user_plugin import UserPlugins, user_plugins
from fairlead.whatif.configuration.workload_load import LoadForm, loads_of, read_loads, unread_loads
from fairlead.whatif.input.archive import unpacked_file
from fairlead.whatif.input.document import Document, read_bytes, read_listings, read_one
from fairlead.whatif.input.error import InputError, named_by
from fairlead.whatif.input.field_line import with_lines
from fairlead.whatif.input.given_plugin import PluginSource
from fairlead.whatif.input.option_type import require_type
from fairlead.whatif.input.strict_form import FileName, StrictForm, decode_strictly, field_duration
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.run.experiment import QUIET, Experiment, with_batch
from fairlead.whatif.run.pod_timing.stuck_pod import stuck_pods
from fairlead.whatif.scenario.audited_input import (
    NO_INPUT,
    AuditLog,
    audited_input,
    read_audited,
)
from fairlead.whatif.scenario.cron_job_note import (
    endless_cron_job_notes,
    idle_cron_job_notes,
)
from fairlead.whatif.scenario.generated_nodes import GeneratedNodes, generated_nodes
from fairlead.whatif.scenario.settings import (
    Settings,
    autoscaling_of,
    kubelet_config,
    node_lifecycle_config,
    provider_of,
    releases_of,
)
from fairlead.whatif.scenario.simkube_trace import (
    RecordedDurations,
    RecordedLifecycle,
    SimKubeTrace,
    parse_simkube_trace,
)
from fairlead.whatif.scenario.timed_event import (
    TimedEvent,
    capacity_outages_of,
    late_event_notes,
    steps_of,
)
from fairlead.whatif.scenario.trace import Trace, TraceCluster, read_trace
from fairlead.whatif.snapshot.dump_note import (
    cluster_notes,
    kueue_notes,
    unknown_kind_notes,
)
from fairlead.whatif.snapshot.garbage_collection import without_collection
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.live.live_resource import unreadable_notes
from fairlead.whatif.snapshot.manifest import Manifest, Manifests, entries_of
from fairlead.whatif.snapshot.manifest_reader import (
    manifests,
    manifests_of_cluster,
    refuse_duplicates,
    unknown_annotations,
)
from fairlead.whatif.snapshot.node_lifecycle.leaving_node import leaving_notes
from fairlead.whatif.snapshot.samples import samples
from fairlead.whatif.snapshot.snapshot import (
    DEFAULT_START,
    snapshot_of,
    start_of_time,
    with_starting_nodes_ready,
)
from fairlead.whatif.snapshot.unsimulated_controller import unsimulated_controllers
from fairlead.whatif.snapshot.validation.priority_class import refuse_absent_classes
from fairlead.whatif.snapshot.validation.size_limit import refuse_excess
from fairlead.whatif.snapshot.validation.unknown_field import unknown_field_notes
from fairlead.whatif.snapshot.validation.unknown_limit import unknown_limit_notes

_FAILED: Final = {"phase": "Failed"}


class ClusterSource(StrictForm, frozen=True, kw_only=True):
    """The sources of the cluster's objects; all given sources are combined."""

    files: list[FileName] = []
    trace: Trace | None = None
    simkube: FileName | None = None
    audit_log: FileName | None = None
    generated: GeneratedNodes | None = None


class Outputs(StrictForm, frozen=True, kw_only=True):
    """The names of files to write; None for results that are not written."""

    report: str | None = None
    json: str | None = None
    commands: str | None = None
    snapshot: str | None = None


class Scenario(StrictForm, frozen=True, kw_only=True):
    """The content of a scenario file."""

    cluster: ClusterSource
    title: str = ""
    objects: list[dict[str, Any]] = []
    events: list[TimedEvent] = []
    load: list[LoadForm] | FileName = []
    duration: str | int | float | None = None
    seed: int = 0
    settings: Settings = Settings()
    outputs: Outputs = Outputs()


def read_scenario(path: str | PathLike[str]) -> Scenario:
    """Return the scenario in the file `path`. Raises InputError."""
    document = read_scenario_document(path)
    with with_lines(document):
        return decode_strictly(document, Scenario)


def read_scenario_document(path: str | PathLike[str]) -> Document:
    """Return the content of the scenario file `path`; its fields are not checked.

    Raises InputError, also if the file contains a Kubernetes object instead of a scenario.
    """
    document = read_one(fspath(path), "scenario")
    value = document.value
    if isinstance(value, dict) and {"apiVersion", "kind"} <= value.keys():
        raise InputError(document.source, "is a dump, not a scenario; use fairlead whatif")
    return document


def experiment_of(  # noqa: PLR0913 - a scenario and what overrides it
    path: str | PathLike[str],
    scenario: Scenario,
    seed: int | None = None,
    plugins: UserPlugins | Iterable[PluginSource] | None = None,
    batch: BatchOptions = DEFAULT_BATCH_OPTIONS,
    release: ReleaseChoice = NO_CHOICE,
    *,
    allow_extenders: bool = False,
) -> Experiment:
    """Return the experiment of `scenario`, which was read from `path`.

    `plugins`, which are values of --plugin or classes, are added to the scheduler. `seed`, `batch`
    and `release` override the scenario's settings. Extenders are refused unless `allow_extenders`
    is set. Raises InputError.
    """
    for name, value, kind in (
        ("scenario", scenario, Scenario),
        ("seed", seed, int | None),
        ("batch", batch, BatchOptions),
        ("release", release, ReleaseChoice),
    ):
        require_type("experiment_of", name, value, kind)
    plugins = user_plugins("experiment_of", plugins)
    path, settings = fspath(path), scenario.settings
    releases = releases_of(path, settings, release)
    seed = scenario.seed if seed is None else seed
    folder = Path(path).parent
    cluster = _read_cluster(path, folder, scenario, seed)
    initial, inventory, start = cluster.initial, cluster.inventory, cluster.start
    events, created, patched = steps_of(path, folder, scenario.events, inventory, seed)
    duration = field_duration(path, "duration", scenario.duration)
    late: tuple[str, ...] = ()
    if scenario.duration is not None:
        late = tuple(late_event_notes(path, scenario.events, scenario.duration))
    stuck = stuck_pods(initial, start)
    kubelet = stuck.in_config(_kubelet(path, settings, releases, cluster, seed))
    sampled = samples(initial)
    if duration is not None and settings.cron_jobs and kubelet.run_durations is None:
        late += tuple(endless_cron_job_notes(sampled, start, start + duration))
    elif duration is not None and not settings.cron_jobs and scenario.cluster.audit_log is None:
        # Not with an audit log: its steps create the Jobs that the CronJobs created in the cluster.
        late += tuple(idle_cron_job_notes(sampled, start, start + duration))
    if not inventory.of_kind(NODE):
        raise InputError(path, "has no nodes, and no event creates one", field="cluster")
    provider = provider_of(path, settings, capacity_outages_of(path, scenario.events))
    loads = _loads(path, folder, scenario, inventory, start)
    autoscaling = with_provider(autoscaling_of(path, folder, settings, initial), provider)
    config = _path_in(folder, settings.scheduler)
    file = config and chosen_configuration(f"{path}: settings.scheduler", config, initial)
    with named_by(path, "settings.scheduler"):
        scheduler = read_scheduler_config(
            file, plugins, releases.general, allow_extenders=allow_extenders
        )
    experiment = Experiment(
        title=scenario.title or Path(path).stem,
        source=path,
        initial=initial,
        start=start,
        steps=tuple(sorted([*cluster.arriving, *events], key=lambda step: step.after)),
        duration=duration,
        quiet=cluster.quiet,
        seed=seed,
        kubelet=kubelet,
        scheduler=scheduler,
        node_lifecycle=node_lifecycle_config(path, settings.controller_manager, releases.nodes),
        releases=releases,
        autoscaler=autoscaling.config,
        karpenter=autoscaling.karpenter,
        loads=loads,
        runs_cron_jobs=settings.cron_jobs,
        other_schedulers=other_schedulers(scheduler, initial),
        notes=(
            *cluster.notes,
            *stuck.notes,
            *leaving_notes(
                initial,
                start,
                by_cluster_autoscaler=autoscaling.config is None,
                by_karpenter=autoscaling.karpenter is None,
            ),
            *autoscaling.notes,
            *unread_loads(loads, inventory.of_kind(HORIZONTAL_POD_AUTOSCALER)),
            *unknown_annotations([*sampled, *created, *patched]),
            *unknown_field_notes(sampled),
            *unknown_kind_notes(sampled),
            *unknown_limit_notes(sampled),
            *owner_notes(one for one in created if owned_by(one)),
            *unsimulated_notes(one for one in _unless_run(created, settings) if not owned_by(one)),
            *late,
        ),
    )
    if batch.source:
        found = with_batch(experiment, batch, experiment.steps)
    else:
        with named_by(path, "settings.batch"):
            batch = replace(batch, source=_path_in(folder, settings.batch, *SHIPPED, SINGLE_PODS))
            found = with_batch(experiment, batch, experiment.steps)
    notes = batch_notes(
        batch,
        found.batch,
        initial,
        scheduler,
        experiment.steps,
        runs_cron_jobs=experiment.runs_cron_jobs,
    )
    return replace(
        found,
        scheduler_words=_scheduler_words(config, plugins, batch, found),
        notes=(*notes, *found.notes),
    )


def _scheduler_words(
    config: str | None, plugins: UserPlugins, batch: BatchOptions, experiment: Experiment
) -> str:
    source = batch.source or ("" if experiment.batch is None else FAIRLEAD)
    return scheduler_words(config or "", [one.name for one in plugins.named], source)


def _unless_run(created: Iterable[Manifest], settings: Settings) -> Iterator[Manifest]:
    """Yield the objects in `created`, without CronJobs if the simulation runs CronJobs."""
    return (one for one in created if not (settings.cron_jobs and one.kind is CRON_JOB))


class _ScenarioCluster(Struct, frozen=True, kw_only=True):
    """The objects of a scenario at its `start`, and the pods of its traces, which arrive later.

    `inventory` contains all these objects. `lifecycles` are the recorded lifecycles of pods.
    """

    initial: Sequence[Manifest]
    inventory: Inventory
    start: Instant
    arriving: list[ScriptedStep]
    lifecycles: Mapping[WorkloadRef, Sequence[RecordedLifecycle]]
    notes: tuple[str, ...]

    @property
    def quiet(self) -> DurationNs:
        """The time without changes after which a run has settled.

        This time is longer than any recorded runtime of a pod.
        """
        known = (one for found in self.lifecycles.values() for one in found)
        return max((one.ended - one.started for one in known if one.ended), default=0) + QUIET


def _read_cluster(path: str, folder: Path, scenario: Scenario, seed: int) -> _ScenarioCluster:
    """Return the cluster of `scenario`: files, traces and generated nodes. Raises InputError."""
    with named_by(path, "cluster.files"), without_collection():
        names = scenario.cluster.files
        files = [one for name in names for one in read_listings(str(folder / name))]
        from_files: Sequence[Manifest] = manifests_of_cluster(files)
    start = start_of_time(files, from_files)
    with named_by(path, "cluster.audit-log"):
        audit = _audit_log(folder, scenario)
        if audit is not None:
            from_files = from_files or audit.first_objects()
            start = audit.start if start == DEFAULT_START else start
    present, start_notes = with_starting_nodes_ready(from_files, start)
    with named_by(path, "cluster.trace"):
        made, trace = _objects(path, folder, scenario, seed, start)
    initial = Manifests((*entries_of(present), *made))
    dump = snapshot_of(path, files, initial if files else (), start)
    refuse_duplicates(initial)
    refuse_excess(initial)
    inventory = Inventory(initial)
    refuse_absent_classes(made, inventory)
    arriving = [] if trace is None else trace_steps(path, trace, inventory)
    with named_by(path, "cluster.simkube"):
        simkube = _simkube(folder, scenario, inventory)
    arriving += () if simkube is None else simkube.steps
    with named_by(path, "cluster.audit-log"):
        audited = NO_INPUT
        if audit is not None:
            runs_cron_jobs = scenario.settings.cron_jobs
            audited = audited_input(audit, initial, start, inventory, runs_cron_jobs=runs_cron_jobs)
    return _ScenarioCluster(
        initial=initial,
        inventory=inventory,
        start=start,
        arriving=[*arriving, *audited.steps],
        lifecycles={**audited.lifecycles, **({} if simkube is None else simkube.lifecycles)},
        notes=(
            *unreadable_notes(dump.unreadable),
            *start_notes,
            *unsimulated_controllers(dump.manifests),
            *kueue_notes(dump.manifests),
            *cluster_notes(dump),
            *audited.notes,
            *(() if simkube is None else simkube.notes),
        ),
    )


def _loads(
    path: str, folder: Path, scenario: Scenario, inventory: Inventory, start: Instant
) -> WorkloadLoads:
    """Return the loads of workloads, from a separate file if there is one. Raises InputError."""
    with named_by(path, "load"):
        if isinstance(scenario.load, str):
            return read_loads(str(folder / scenario.load), inventory, start)
        return loads_of(path, folder, scenario.load, inventory, start)


def _kubelet(
    path: str,
    settings: Settings,
    releases: Releases,
    cluster: _ScenarioCluster,
    seed: int,
) -> KubeletConfig:
    """Return the kubelets' configuration.

    Recorded lifecycles take precedence over KWOK Stages, and Stages over settings.
    """
    config = kubelet_config(path, settings.kubelet, releases.nodes)
    config = with_stages(config, samples(cluster.initial), seed)
    if not cluster.lifecycles:
        return config
    return replace(
        config, run_durations=RecordedDurations(cluster.lifecycles, config.run_durations)
    )


def _path_in(folder: Path, name: str | None, *reserved: str) -> str | None:
    """Return the path of the file `name` in `folder`.

    None, a `reserved` name, and the name of a ConfigMap (`configmap/NAMESPACE/NAME`) are returned
    unchanged.
    """
    if name is None or name in reserved or name.startswith(PREFIXES):
        return name
    return str(folder / name)


def _objects(
    path: str, folder: Path, scenario: Scenario, seed: int, start: Instant
) -> tuple[list[Manifest], TraceCluster | None]:
    """Return (initial objects, the scenario's trace or None). Raises InputError."""
    cluster = scenario.cluster
    if not (cluster.files or cluster.trace or cluster.generated or cluster.audit_log):
        problem = "needs files, a trace, an audit log or generated nodes"
        raise InputError(path, problem, field="cluster")
    trace: TraceCluster | None = None
    values = []
    if cluster.generated:
        values += generated_nodes(cluster.generated, path, start)
    if cluster.trace:
        trace = read_trace(cluster.trace, scenario=path, folder=folder, seed=seed, start=start)
        values += trace.objects
    return manifests([Document(path, [*values, *scenario.objects])]), trace


def trace_steps(path: str, trace: TraceCluster, inventory: Inventory) -> list[ScriptedStep]:
    """Add the pods of `trace` to `inventory`; return the steps that create and end them.

    If a pod was deleted in the trace before it ran, a step makes the pod fail. The step does not
    delete the pod, because the cluster lacks the Jobs of the trace. If a pod names a missing
    controller, a simulation replaces the pod when it is deleted. `path` is the file in error
    messages. Raises InputError.
    """
    pods = manifests([Document(path, [arrival.pod for arrival in trace.arrivals])])
    for pod in pods:
        inventory.add(pod)
    created = [
        ScriptedStep.creating(arrival.after, pod)
        for arrival, pod in zip(trace.arrivals, pods, strict=True)
    ]
    refs = {pod.ref.name: pod.ref for pod in pods}
    ended = [
        ScriptedStep(after, (PatchStatus(refs[name], _FAILED),), path, f"Pod {refs[name].key}")
        for after, name in trace.departures
    ]
    return [*created, *ended]


def _audit_log(folder: Path, scenario: Scenario) -> AuditLog | None:
    """Return the audit log of a scenario; None if it has no log. Raises InputError."""
    if scenario.cluster.audit_log is None:
        return None
    file = folder / scenario.cluster.audit_log
    return read_audited(*unpacked_file(str(file), read_bytes(file)))


def _simkube(folder: Path, scenario: Scenario, inventory: Inventory) -> SimKubeTrace | None:
    """Return the SimKube trace of a scenario; None if it has no trace. Raises InputError."""
    if scenario.cluster.simkube is None:
        return None
    file = folder / scenario.cluster.simkube
    source, data = unpacked_file(str(file), read_bytes(file))
    return parse_simkube_trace(source, data, inventory)
