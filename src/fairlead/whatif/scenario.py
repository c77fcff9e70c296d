"""SCENARIO.yaml: a cluster, what happens to it and when, for how long, under which seed.

    cluster:                       at least one of
      files: [nodes.yaml, dump/]       what kubectl prints
      trace: {nodes: …, pods: …}       CSV tables (fairlead.whatif.trace)
      generated: {nodes: 5000, …}      nodes made to order (fairlead.whatif.generated)
    objects: [...]                 further objects that are there from the start
    events:                        what happens, each with `at` and one verb (timed_event)
    - {at: 10m, drain: zone=a}
    duration: 1h                   until nothing happens any more, when left out
    seed: 7
    settings:
      kubelet: {start-delay: 1s}
      scheduler: scheduler.yaml
      batch: batch.yaml                how whole jobs are scheduled
      controller-manager: {flags: {node-eviction-rate: 0.5}}
    outputs: {report: out.html, json: out.json, commands: out.jsonl, snapshot: after.json}

Input files are found relative to the scenario file, outputs relative to where the command runs.
Virtual time starts when `files` were taken (see snapshot.py), else at 2026-01-01T00:00:00Z.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlead.apiserver.kind import NODE
from fairlead.engine.batch.configuration_file import SHIPPED
from fairlead.engine.core.instant import Instant
from fairlead.whatif.batch_config import AS_NEEDED, SINGLE_PODS, Jobs, with_jobs
from fairlead.whatif.documents import Document, read, read_one
from fairlead.whatif.experiment import Experiment, Step
from fairlead.whatif.generated import GeneratedNodes, generated_nodes
from fairlead.whatif.input_error import InputError
from fairlead.whatif.inventory import Inventory
from fairlead.whatif.limits import refuse_excess
from fairlead.whatif.manifest import Manifest, manifests, refuse_duplicates
from fairlead.whatif.priority_classes import refuse_absent_classes
from fairlead.whatif.scheduler_config import read_scheduler_config
from fairlead.whatif.settings import Settings, kubelet_config, node_lifecycle_config
from fairlead.whatif.snapshot import start_of_time
from fairlead.whatif.strict import StrictForm, decode_strictly, field_duration
from fairlead.whatif.timed_event import TimedEvent, steps_of
from fairlead.whatif.trace import Arrival, Trace, read_trace
from fairlead.whatif.user_plugin import UserPlugins


class ClusterSource(StrictForm, frozen=True, kw_only=True):
    """Where the cluster comes from; the parts add up."""

    files: list[str] = []
    trace: Trace | None = None
    generated: GeneratedNodes | None = None


class Outputs(StrictForm, frozen=True, kw_only=True):
    """Files to write; none where left out."""

    report: str | None = None
    json: str | None = None
    commands: str | None = None
    snapshot: str | None = None


class Scenario(StrictForm, frozen=True, kw_only=True):
    """The whole file."""

    cluster: ClusterSource
    title: str = ""
    objects: list[dict[str, Any]] = []
    events: list[TimedEvent] = []
    duration: str | int | float | None = None
    seed: int = 0
    settings: Settings = Settings()
    outputs: Outputs = Outputs()


def read_scenario(path: str) -> Scenario:
    """The scenario in the file `path`. Raises InputError."""
    return decode_strictly(read_one(path), Scenario)


def experiment_of(
    path: str,
    scenario: Scenario,
    seed: int | None = None,
    plugins: UserPlugins | None = None,
    jobs: Jobs = AS_NEEDED,
) -> Experiment:
    """What to run for `scenario`, read from `path`, with `plugins`.

    `seed`, and where they say something `jobs`, override its own. Raises InputError.
    """
    seed = scenario.seed if seed is None else seed
    folder = Path(path).parent
    files = [document for name in scenario.cluster.files for document in read(str(folder / name))]
    from_files = manifests(files)
    start = start_of_time(files, from_files)
    made, arrivals = _made(path, folder, scenario, seed, start)
    initial = [*from_files, *made]
    refuse_duplicates(initial)
    refuse_excess(initial)
    inventory = Inventory(initial)
    refuse_absent_classes(made, inventory)
    arriving = _arriving(path, arrivals, inventory)
    events = steps_of(path, folder, scenario.events, inventory, seed)
    duration = field_duration(path, "duration", scenario.duration)
    _refuse_empty(path, inventory)
    steps = tuple(sorted([*arriving, *events], key=lambda step: step.after))
    experiment = Experiment(
        title=scenario.title or Path(path).stem,
        source=path,
        initial=tuple(initial),
        start=start,
        steps=steps,
        duration=duration,
        seed=seed,
        kubelet=kubelet_config(path, scenario.settings.kubelet),
        scheduler=read_scheduler_config(_config_path(folder, scenario), plugins),
        node_lifecycle=node_lifecycle_config(path, scenario.settings.controller_manager),
        runs_cron_jobs=scenario.settings.cron_jobs,
    )
    source = jobs.source or _batch_source(folder, scenario)
    return with_jobs(experiment, replace(jobs, source=source), steps)


def _refuse_empty(path: str, inventory: Inventory) -> None:
    if not inventory.of_kind(NODE):
        raise InputError(path, "has no node, and no event creates one", field="cluster")


def _config_path(folder: Path, scenario: Scenario) -> str | None:
    name = scenario.settings.scheduler
    return None if name is None else str(folder / name)


def _batch_source(folder: Path, scenario: Scenario) -> str | None:
    name = scenario.settings.batch
    return name if name is None or name in (*SHIPPED, SINGLE_PODS) else str(folder / name)


def _made(
    path: str, folder: Path, scenario: Scenario, seed: int, start: Instant
) -> tuple[list[Manifest], list[Arrival]]:
    """The objects that come from no file, and the pods that arrive by the trace."""
    cluster = scenario.cluster
    if not (cluster.files or cluster.trace or cluster.generated):
        raise InputError(path, "names no files, no trace and no generated nodes", field="cluster")
    arrivals: list[Arrival] = []
    values = []
    if cluster.generated:
        values += generated_nodes(cluster.generated, path, start)
    if cluster.trace:
        trace = read_trace(cluster.trace, scenario=path, folder=folder, seed=seed, start=start)
        values += trace.objects
        arrivals = trace.arrivals
    return manifests([Document(path, [*values, *scenario.objects])]), arrivals


def _arriving(path: str, arrivals: list[Arrival], inventory: Inventory) -> list[Step]:
    """The steps by which the pods of a trace come."""
    pods = manifests([Document(path, [arrival.pod for arrival in arrivals])])
    for pod in pods:
        inventory.add(pod)
    return [Step.creating(arrival.after, pod) for arrival, pod in zip(arrivals, pods, strict=True)]
