"""Replays recorded workloads that contain the start times of pods, but not their nodes.

The recorded objects are created and deleted at their times in a simulated cluster, where the
scheduler's rules place the pods. The time at which a pod is placed is compared with a recorded
time:

    openb     the scheduled_time of the pod
    SimKube   for the n-th placed pod of a workload, the n-th recorded start of a pod of the
              workload, because the simulated pods have other names

Two times agree if their difference is at most a tolerance. Recorded times include other delays,
such as queues of the API server and image pulls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import zip_longest
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.text.count import counted, counted_of
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import CRON_JOB, NODE
from fairlead.engine.core.instant import DurationNs, Instant, to_seconds
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.configuration.batch.options import DEFAULT_BATCH_OPTIONS
from fairlead.whatif.configuration.controller_manager import controller_manager
from fairlead.whatif.configuration.kwok_stage import with_stages
from fairlead.whatif.configuration.release import Releases
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.autoscaling.waiting_time import PodWait
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    Row,
    TabularAnswer,
)
from fairlead.whatif.run.experiment import Experiment, with_batch
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.scenario.scenario import trace_steps
from fairlead.whatif.scenario.simkube_trace import (
    RecordedDurations,
    RecordedLifecycle,
    parse_simkube_trace,
)
from fairlead.whatif.scenario.trace import RECORDED, RecordedTimes, Trace, read_trace
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.snapshot import DEFAULT_START, Snapshot

TABLE_SUFFIXES: Final = (".csv", ".csv.gz")
_SHOWN: Final = 20


class StartAgreement(StrEnum):
    """Whether the scheduler's rules place a pod at the recorded time, earlier, later or never."""

    SAME = "same"
    EARLIER = "earlier"
    LATER = "later"
    PENDING = "pending"
    NOT_RECORDED = "not-recorded"
    NOT_PLACED = "not-placed"


_MEANINGS: Final = {
    StartAgreement.SAME: "placed at the recorded time, within the tolerance",
    StartAgreement.PENDING: "placed neither in the record nor by the rules",
    StartAgreement.EARLIER: "placed earlier by the rules",
    StartAgreement.LATER: "placed later by the rules",
    StartAgreement.NOT_RECORDED: "placed by the rules, not in the record",
    StartAgreement.NOT_PLACED: "placed in the record, not by the rules",
}
_AGREEING: Final = (StartAgreement.SAME, StartAgreement.PENDING)


class ReplayedStart(Struct, frozen=True):
    """The times at which a pod was placed: as recorded, and by the scheduler's rules.

    Times count from the start of the record. `recorded` is None if the record does not place the
    pod. `placed` is None if the rules do not place it; `reason` then explains why.
    """

    pod: str
    recorded: DurationNs | None
    placed: DurationNs | None
    reason: str = ""

    def agreement(self, tolerance: DurationNs) -> StartAgreement:
        """Return how `placed` compares with `recorded`; SAME allows a difference of `tolerance`."""
        if self.recorded is None:
            return StartAgreement.PENDING if self.placed is None else StartAgreement.NOT_RECORDED
        if self.placed is None:
            return StartAgreement.NOT_PLACED
        if abs(self.placed - self.recorded) <= tolerance:
            return StartAgreement.SAME
        is_earlier = self.placed < self.recorded
        return StartAgreement.EARLIER if is_earlier else StartAgreement.LATER


class ReplaySettings(Struct, frozen=True):
    """The settings of a replay; start times that differ by at most `tolerance` agree."""

    scheduler: SchedulerConfig
    releases: Releases
    seed: int
    tolerance: DurationNs


def is_openb_table(data: bytes) -> bool:
    """Return whether `data` is a CSV table of openb: its first line contains `cpu_milli`."""
    return b"cpu_milli" in data[: data.find(b"\n")]


# --- openb --------------------------------------------------------------------------------------


def replay_openb(
    pods: str, nodes: str | Snapshot, settings: ReplaySettings, progress: Progress
) -> TabularAnswer:
    """Replay the table `pods`; `nodes` is the table of nodes or a snapshot. Raises InputError."""
    table = nodes if isinstance(nodes, str) else None
    snapshot = nodes if isinstance(nodes, Snapshot) else None
    start = DEFAULT_START if snapshot is None else snapshot.taken_at
    trace = read_trace(
        Trace(nodes=table, pods=pods, arrivals=RECORDED, durations=RECORDED),
        scenario=pods,
        folder=Path(),
        seed=settings.seed,
        start=start,
    )
    found = () if snapshot is None else snapshot.manifests
    known = Inventory(found)
    made = [
        one
        for one in manifests([Document(pods, trace.objects)])
        if known.get(one.kind, one.ref.namespace, one.ref.name) is None
    ]
    initial = (*found, *made)
    steps = trace_steps(pods, trace, Inventory(initial))
    outcome = _run(Snapshot(pods, initial, start), steps, settings, progress)
    starts = list(_openb_starts(trace.recorded, outcome))
    note = "The table records cpu, memory, GPUs and GPU models, but no images and no quotas."
    return _answer(pods, start, starts, settings.tolerance, (note,))


def _openb_starts(
    recorded: Mapping[str, RecordedTimes], outcome: RunOutcome
) -> Iterator[ReplayedStart]:
    first = _first_places(outcome)
    for name, times in recorded.items():
        key = f"default/{name}"
        placed = first.get(key)
        since = None if placed is None else placed - outcome.started_at
        end = outcome.pods.get(key)
        yield ReplayedStart(key, times.scheduled, since, "" if end is None else end.reason)


def _first_places(outcome: RunOutcome) -> dict[str, Instant]:
    """Return the time at which each pod, or a replacement of it, first got a node."""
    found: dict[str, Instant] = {}
    for one in outcome.waits:
        if one.until is not None:
            found[one.pod] = min(one.until, found.get(one.pod, one.until))
    return found


# --- SimKube ------------------------------------------------------------------------------------


def replay_simkube(
    source: str, data: bytes, snapshot: Snapshot, settings: ReplaySettings, progress: Progress
) -> TabularAnswer:
    """Replay the trace `data` of the file `source` in the cluster `snapshot`. Raises InputError."""
    trace = parse_simkube_trace(source, data, snapshot.inventory())
    outcome = _run(
        replace(snapshot, source=source), trace.steps, settings, progress, trace.lifecycles
    )
    waits: dict[object, list[PodWait]] = defaultdict(list)
    for one in outcome.waits:
        waits[one.workload].append(one)
    starts = [
        start
        for workload in sorted(trace.lifecycles)
        for start in _simkube_starts(trace.lifecycles[workload], waits.pop(workload, []), outcome)
    ]
    notes = list(trace.notes)
    if rest := sum(map(len, waits.values())):
        pods = counted(rest, "pod")
        notes.append(f"Not compared: {pods} of workloads without recorded pods.")
    return _answer(source, trace.start, starts, settings.tolerance, tuple(notes))


def _simkube_starts(
    recorded: Sequence[RecordedLifecycle], waits: Iterable[PodWait], outcome: RunOutcome
) -> Iterator[ReplayedStart]:
    """Pair the n-th recorded start of a workload with its n-th placed pod.

    `waits` are the periods in which pods of the workload waited for a node. If there are more
    starts than pods, or the reverse, the missing time is None.
    """
    ordered = sorted(
        waits, key=lambda one: (one.until is None, one.until or one.since, one.since, one.pod)
    )
    for number, (then, wait) in enumerate(zip_longest(recorded, ordered), start=1):
        end = None if wait is None else outcome.pods.get(wait.pod)
        until = None if wait is None else wait.until
        yield ReplayedStart(
            f"start {number}" if wait is None else wait.pod,
            None if then is None else then.started,
            None if until is None else until - outcome.started_at,
            "" if end is None else end.reason,
        )


# --- the run ------------------------------------------------------------------------------------


def _run(
    cluster: Snapshot,
    steps: Sequence[ScriptedStep],
    settings: ReplaySettings,
    progress: Progress,
    lifecycles: Mapping[WorkloadRef, Sequence[RecordedLifecycle]] | None = None,
) -> RunOutcome:
    """Simulate the recorded workload in `cluster`. Raises InputError."""
    if not any(one.kind is NODE for one in cluster.manifests):
        raise InputError("--snapshot", f"has no Node to which pods of {cluster.source} could go")
    nodes = settings.releases.nodes
    created = [one.what for one in steps]
    experiment = Experiment(
        title=cluster.source,
        source=cluster.source,
        initial=cluster.manifests,
        start=cluster.taken_at,
        steps=tuple(sorted(steps, key=lambda step: step.after)),
        seed=settings.seed,
        kubelet=_kubelet(cluster, settings, lifecycles),
        scheduler=settings.scheduler,
        node_lifecycle=controller_manager(nodes, {}),
        releases=settings.releases,
        runs_cron_jobs=any(one.startswith(CRON_JOB.kind) for one in created),
    )
    experiment = with_batch(experiment, DEFAULT_BATCH_OPTIONS, experiment.steps)
    return run_experiment(experiment, "replaying", progress).outcome


def _kubelet(
    cluster: Snapshot,
    settings: ReplaySettings,
    lifecycles: Mapping[WorkloadRef, Sequence[RecordedLifecycle]] | None,
) -> KubeletConfig:
    """Return the kubelets' configuration, with the KWOK Stages in `cluster`. Raises InputError."""
    config = KubeletConfig(renews_leases=settings.releases.nodes.node_leases)
    config = with_stages(config, cluster.manifests, settings.seed)
    if lifecycles is None:
        return config
    return replace(config, run_durations=RecordedDurations(lifecycles, config.run_durations))


# --- the answer ---------------------------------------------------------------------------------


def _answer(
    source: str,
    start: Instant,
    starts: Sequence[ReplayedStart],
    tolerance: DurationNs,
    notes: tuple[str, ...],
) -> TabularAnswer:
    rows = [_row(one, start, tolerance) for one in starts]
    counts = {one: sum(row["agreement"] == one for row in rows) for one in _MEANINGS}
    agreeing = sum(counts[one] for one in _AGREEING)
    differing = [row for row in rows if row["agreement"] not in _AGREEING]
    facts: Json = {
        "placements": len(rows),
        "agreement_ratio": round(agreeing / len(rows), 4) if rows else None,
        "tolerance_s": to_seconds(tolerance),
    }
    verdict = "The record has no starts of pods to compare with."
    if rows:
        within = for_readers(tolerance)
        share = f"{agreeing / len(rows):.1%}"
        same, pending = counts[StartAgreement.SAME], counts[StartAgreement.PENDING]
        agree = counted_of(agreeing, len(rows), "pod", ("agrees", "agree"))
        verdict = (
            f"{agree} with the rules ({share}): "
            f"{same:,} placed within {within} of the recorded time, {pending:,} never placed."
        )
    classes: list[Row] = [
        {"agreement": str(one), "pods": n, "share": f"{n / len(rows):.1%}", "meaning": meaning}
        for one, meaning in _MEANINGS.items()
        if (n := counts[one])
    ]
    columns = (
        ResultColumn("agreement", "agreement", NAME),
        ResultColumn("pods", "pods", NUMBER),
        ResultColumn("share", "share"),
        ResultColumn("meaning", "the pod is", rank=1),
    )
    return TabularAnswer(
        "Replay",
        source,
        verdict,
        (),
        (
            ResultTable("agreement", "agreement", columns, classes, len(classes)),
            ResultTable("differences", "pods that differ", _columns(), differing, _SHOWN),
            ResultTable("pods", "all pods", _columns(), rows, 0),
        ),
        facts,
        notes,
    )


def _columns() -> tuple[ResultColumn, ...]:
    return (
        ResultColumn("pod", "pod", NAME),
        ResultColumn("time", "recorded", rank=1),
        ResultColumn("placed", "by the rules", rank=2),
        ResultColumn("agreement", "agreement", NAME),
        ResultColumn("difference", "difference", rank=1),
        ResultColumn("reason", "because", rank=3),
    )


def _row(one: ReplayedStart, start: Instant, tolerance: DurationNs) -> Row:
    later = None
    if one.recorded is not None and one.placed is not None:
        later = one.placed - one.recorded
    return {
        "pod": one.pod,
        "time": "" if one.recorded is None else format_timestamp(start + one.recorded),
        "placed": "" if one.placed is None else format_timestamp(start + one.placed),
        "agreement": str(one.agreement(tolerance)),
        "difference": "" if later is None else f"{'-' * (later < 0)}{for_readers(abs(later))}",
        "difference_s": None if later is None else to_seconds(later),
        "reason": one.reason,
    }
