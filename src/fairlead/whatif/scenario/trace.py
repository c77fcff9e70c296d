"""Clusters from CSV tables in the format of the openb trace (Alibaba, cluster-trace-gpu-v2023).

Each row of a table describes one node (header `sn,…`) or one pod (header `name,…`). In a second
format, each row describes a shape: a combination of values that several nodes or pods share. The
column `nodes` (header `nodes,…`) or `pods` (header `pods,…`) contains their number.

Rows become objects as follows:

    cpu, memory    copied
    GPUs           one extended resource `openb/gpu-milli`: 1,000 per GPU of a node, `num_gpu` x
                   `gpu_milli` for a pod (individual devices are not distinguished)
    gpu_spec       required node affinity on the label `gpu-model`
    zone           one of `zones`, assigned to the nodes in turn
    qos            BE (best-effort) pods get the lower of two PriorityClasses, whose values are
                   `priorities`
    arrival        evenly spread over `arrivals`; the order is that of the table if each row is a
                   pod, and random if each row is a shape; with `arrivals: recorded`, each pod
                   arrives at its creation_time
    duration       pods run forever unless `durations: recorded` is set
    owner          a Job that is not in the table, so that preempted and evicted pods are replaced

`gpus-at-least` skips rows with fewer GPUs. If `jobs` is set, gangs arrive instead of single pods
(module trace_jobs). Two additional columns, `memory_used_mib` and `disk_used_mib`, contain the
actual usage of pods. An empty cell means unknown usage.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.api.pods.usage import USAGE
from fairlead.api.well_known_label import ZONE
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.whatif.input.archive import unpacked_file
from fairlead.whatif.input.document import decode_text, read_bytes
from fairlead.whatif.input.duration import read_duration
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.seeded_choice import shuffled
from fairlead.whatif.input.strict_form import FileName, StrictForm
from fairlead.whatif.scenario.generated_nodes import PODS_PER_NODE, node_object
from fairlead.whatif.scenario.trace_jobs import PodSource, TraceJobs, job_arrivals, queue_objects
from fairlead.whatif.snapshot.manifest_reader import DEFAULT_NAMESPACE

GPU_RESOURCE: Final = "openb/gpu-milli"
GPU_MODEL_LABEL: Final = "gpu-model"
QOS_LABEL: Final = "qos"
MILLI_PER_GPU: Final = 1000
ROWS_MAX: Final = 1_000_000
AMOUNT_MAX: Final = 10**12
RECORDED: Final = "recorded"

_LISTED_NODES: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_COUNTED_NODES: Final = ("nodes", "cpu_milli", "memory_mib", "gpu", "model")
_LISTED_PODS: Final = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
    "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip
_COUNTED_PODS: Final = ("pods", "qos", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")

_USED: Final = {"memory_used_mib": "memory", "disk_used_mib": "ephemeral-storage"}

BEST_EFFORT: Final = "best-effort"
LATENCY_SENSITIVE: Final = "latency-sensitive"
_CLASS_OF_QOS: Final = {
    "BE": BEST_EFFORT,
    "LS": LATENCY_SENSITIVE,
    "Burstable": LATENCY_SENSITIVE,
    "Guaranteed": LATENCY_SENSITIVE,
}


class TracePriorities(StrictForm, frozen=True, kw_only=True):
    """The values of the two PriorityClasses of a trace."""

    best_effort: int = 100
    latency_sensitive: int = 1000


class Trace(StrictForm, frozen=True, kw_only=True):
    """The field `trace` of a scenario; `nodes` and `pods` are CSV files.

    Pods are created in `namespace`, and `pods_per_node` is the number of pods that a node can run.
    The module's docstring explains the other fields.
    """

    nodes: FileName | None = None
    pods: FileName | None = None
    arrivals: str | int | float = "1h"
    durations: Literal["none", "recorded"] = "none"
    zones: tuple[str, ...] = ("a", "b", "c")
    namespace: str = DEFAULT_NAMESPACE
    pods_per_node: int = PODS_PER_NODE
    priorities: TracePriorities = TracePriorities()
    gpus_at_least: int = 0
    jobs: TraceJobs | None = None


class Arrival(Struct, frozen=True):
    """A pod or PodGroup of the trace, and the time from the start to its creation."""

    after: DurationNs
    pod: Json


class RecordedTimes(Struct, frozen=True):
    """The times at which a pod was created, got a node and was deleted.

    The times count from the first creation of a pod in the trace. `scheduled` and `deleted` are
    None if the trace does not contain the event.
    """

    created: DurationNs
    scheduled: DurationNs | None
    deleted: DurationNs | None


class TraceCluster(Struct, frozen=True):
    """The initial objects of a trace, the arrivals, and the `departures` of pods that never ran.

    `recorded` maps the names of pods to their times in the trace. `recorded` is empty unless
    `arrivals: recorded` is set.
    """

    objects: list[Json]
    arrivals: list[Arrival]
    recorded: Mapping[str, RecordedTimes] = field(default_factory=dict)
    departures: tuple[tuple[DurationNs, str], ...] = ()


class _Table(Struct, frozen=True):
    """A CSV table; `rows` contains (number of the line on which the row ends, row)."""

    source: str
    header: tuple[str, ...]
    rows: list[tuple[int, dict[str, str]]]


def read_trace(
    trace: Trace, *, scenario: str, folder: Path, seed: int, start: Instant
) -> TraceCluster:
    """Return the cluster of `trace`. Raises InputError.

    The paths of files in `trace` are relative to `folder`. `scenario` is the path of the scenario
    file, for error messages.
    """
    try:
        arrivals_ns = 0 if trace.arrivals == RECORDED else read_duration(trace.arrivals)
    except ValueError as cause:
        raise InputError(scenario, str(cause), field="cluster.trace.arrivals") from None
    if not 0 < trace.pods_per_node <= AMOUNT_MAX:
        raise InputError(scenario, "must be positive", field="cluster.trace.pods-per-node")
    objects = _priority_classes(trace.priorities)
    if trace.nodes is not None:
        nodes = _read_table(folder / trace.nodes, _LISTED_NODES, _COUNTED_NODES)
        objects += _nodes(nodes, trace, start)
    if trace.pods is None:
        return TraceCluster(objects, [])
    if trace.jobs is not None:
        if trace.arrivals == RECORDED:
            problem = "must not be recorded with jobs, because the queues state when gangs arrive"
            raise InputError(scenario, problem, field="cluster.trace.arrivals")
        table = _read_table(folder / trace.pods, _LISTED_PODS, _COUNTED_PODS)
        pod_source = PodSource(
            rows=_pod_rows(table, trace),
            make_pod=lambda row, name: _pod(table, row[0], row[1], trace, name),
            arrivals=arrivals_ns,
            namespace=trace.namespace,
        )
        created = job_arrivals(trace.jobs, pod_source, seed, scenario)
        arriving = [Arrival(after, one) for after, one in created]
        return TraceCluster([*objects, *queue_objects(trace.jobs, start)], arriving)
    table = _read_table(folder / trace.pods, _LISTED_PODS, _COUNTED_PODS)
    pods = _pods(table, trace, seed)
    if trace.arrivals != RECORDED:
        return TraceCluster(
            objects, [Arrival(n * arrivals_ns // len(pods), pod) for n, pod in enumerate(pods)]
        )
    recorded = _recorded_times(scenario, table, trace)
    times = {pod["metadata"]["name"]: one for one, pod in zip(recorded, pods, strict=True)}
    arrivals = [Arrival(one.created, pod) for one, pod in zip(recorded, pods, strict=True)]
    departures: list[tuple[DurationNs, str]] = []
    if trace.durations == RECORDED:  # the end of a pod that ran follows from its run duration
        departures = [
            (one.deleted, name)
            for name, one in times.items()
            if one.deleted is not None and one.scheduled is None
        ]
    return TraceCluster(objects, arrivals, times, tuple(departures))


def _read_table(path: Path, *forms: tuple[str, ...]) -> _Table:
    source = str(path)
    _, data = unpacked_file(source, read_bytes(path))
    reader = csv.DictReader(io.StringIO(decode_text(source, data)), strict=True)
    try:
        header = tuple(reader.fieldnames or ())
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as cause:
        line = f"line {reader.line_num}"
        raise InputError(source, f"is not CSV: {cause}", object_name=line) from None
    if not any(set(form) <= set(header) for form in forms):
        expected = " or ".join(",".join(form) for form in forms)
        raise InputError(source, f"the header must be {expected}", object_name="line 1")
    for number, row in rows:
        if None in row or None in row.values():
            raise InputError(
                source,
                f"does not have {len(header)} columns like the header",
                object_name=f"line {number}",
            )
    return _Table(source, header, rows)


def _repeated(table: _Table, count_column: str) -> Iterator[tuple[int, int, Mapping[str, str]]]:
    """Yield (line, index, row) for each row, as often as the column `count_column` states.

    The index counts the yielded items from 0.
    """
    number = 0
    for line, row in table.rows:
        count = _amount(table, line, row, count_column) if count_column in table.header else 1
        if number + count > ROWS_MAX:
            raise InputError(
                table.source, f"more than {ROWS_MAX} objects", object_name=f"line {line}"
            )
        for _ in range(count):
            yield line, number, row
            number += 1


def _amount(table: _Table, line: int, row: Mapping[str, str], column: str) -> int:
    text = row[column].strip()
    if not text.isascii() or not text.isdigit() or len(text) > 15 or int(text) > AMOUNT_MAX:
        raise InputError(
            table.source,
            f"{text!r} is not an integer from 0 to {AMOUNT_MAX}",
            object_name=f"line {line}",
            field=column,
        )
    return int(text)


def _priority_classes(priorities: TracePriorities) -> list[Json]:
    values = {BEST_EFFORT: priorities.best_effort, LATENCY_SENSITIVE: priorities.latency_sensitive}
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        for name, value in values.items()
    ]


def _nodes(table: _Table, trace: Trace, start: Instant) -> Iterator[Json]:
    for line, number, row in _repeated(table, "nodes"):
        if _amount(table, line, row, "gpu") < trace.gpus_at_least:
            continue
        allocatable: dict[str, Any] = {
            "cpu": f"{_amount(table, line, row, 'cpu_milli')}m",
            "memory": f"{_amount(table, line, row, 'memory_mib')}Mi",
            "pods": str(trace.pods_per_node),
        }
        if gpus := _amount(table, line, row, "gpu"):
            allocatable[GPU_RESOURCE] = str(gpus * MILLI_PER_GPU)
        labels = {ZONE: trace.zones[number % len(trace.zones)]} if trace.zones else {}
        if row["model"]:
            labels[GPU_MODEL_LABEL] = row["model"]
        name = row.get("sn") or f"openb-node-{number:04}"
        yield node_object(name, labels=labels, allocatable=allocatable, start=start)


def _pods(table: _Table, trace: Trace, seed: int) -> list[Json]:
    rows = _pod_rows(table, trace)
    if "pods" in table.header:
        rows = shuffled(rows, seed)
    return [
        _pod(table, line, row, trace, row.get("name") or f"openb-pod-{order:04}")
        for order, (line, row) in enumerate(rows)
    ]


def _pod_rows(table: _Table, trace: Trace) -> list[tuple[int, Mapping[str, str]]]:
    """Return (line, row) for each pod; a row is repeated as often as its count column says."""
    return [
        (line, row)
        for line, _, row in _repeated(table, "pods")
        if _amount(table, line, row, "num_gpu") >= trace.gpus_at_least
    ]


def _recorded_times(scenario: str, table: _Table, trace: Trace) -> list[RecordedTimes]:
    """Return the times of the pods in `table`, counted from the first creation of a pod."""
    if "creation_time" not in table.header:
        problem = f"recorded needs the column creation_time, which {table.source} lacks"
        raise InputError(scenario, problem, field="cluster.trace.arrivals")
    rows = _pod_rows(table, trace)
    first = min((_amount(table, line, row, "creation_time") for line, row in rows), default=0)

    def time_in(line: int, row: Mapping[str, str], column: str) -> DurationNs | None:
        if not row.get(column):
            return None
        return max(0, seconds(_amount(table, line, row, column) - first))

    return [
        RecordedTimes(
            time_in(line, row, "creation_time") or 0,
            time_in(line, row, "scheduled_time"),
            time_in(line, row, "deletion_time"),
        )
        for line, row in rows
    ]


def _pod(table: _Table, line: int, row: Mapping[str, str], trace: Trace, name: str) -> Json:
    qos = row["qos"]
    if qos not in _CLASS_OF_QOS:
        raise InputError(
            table.source,
            f"{qos!r} is not one of {', '.join(_CLASS_OF_QOS)}",
            object_name=f"line {line}",
            field="qos",
        )
    metadata: Json = {
        "name": name,
        "namespace": trace.namespace,
        "labels": {QOS_LABEL: qos},
        "ownerReferences": [_owner(name)],
    }
    if annotations := _annotations(table, line, row, trace):
        metadata["annotations"] = annotations
    spec: Json = {
        "priorityClassName": _CLASS_OF_QOS[qos],
        "containers": [_container(_requests(table, line, row))],
    }
    if models := list(dict.fromkeys(filter(None, row.get("gpu_spec", "").split("|")))):
        spec["affinity"] = _gpu_model_affinity(models)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _annotations(table: _Table, line: int, row: Mapping[str, str], trace: Trace) -> dict[str, str]:
    """Return the annotations for run duration and usage, if they are configured and known."""
    annotations = {}
    if trace.durations == RECORDED and (runs := _run_seconds(table, line, row)) is not None:
        annotations[RUN_DURATION] = f"{runs}s"
    used = [
        f"{resource}={_amount(table, line, row, column)}Mi"
        for column, resource in _USED.items()
        if row.get(column)
    ]
    return annotations | ({USAGE: ",".join(used)} if used else {})


def _owner(pod_name: str) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": pod_name,
        "uid": f"job-{pod_name}",
        "controller": True,
    }


def _requests(table: _Table, line: int, row: Mapping[str, str]) -> Json:
    requests: Json = {
        "cpu": f"{_amount(table, line, row, 'cpu_milli')}m",
        "memory": f"{_amount(table, line, row, 'memory_mib')}Mi",
    }
    gpu = _amount(table, line, row, "num_gpu") * _amount(table, line, row, "gpu_milli")
    if gpu:
        requests[GPU_RESOURCE] = str(gpu)
    return requests


def _container(requests: Json) -> Json:
    resources: Json = {"requests": requests}
    if gpu := requests.get(GPU_RESOURCE):
        resources["limits"] = {
            GPU_RESOURCE: gpu
        }  # extended resources need a limit that equals the request
    return {"name": "main", "image": "openb/task", "resources": resources}


def _gpu_model_affinity(models: list[str]) -> Json:
    requirement = {"key": GPU_MODEL_LABEL, "operator": "In", "values": models}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _run_seconds(table: _Table, line: int, row: Mapping[str, str]) -> int | None:
    """Return the recorded runtime of the pod in seconds; None if it is unknown."""
    if not row.get("deletion_time") or not row.get("scheduled_time"):
        return None
    deleted = _amount(table, line, row, "deletion_time")
    return max(deleted - _amount(table, line, row, "scheduled_time"), 0)
