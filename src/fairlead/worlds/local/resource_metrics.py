"""Resource metrics of pods and nodes (metrics.k8s.io), for `kubectl top`.

No containers run, so usage is computed from the objects. The default usage of a container is its
requests, or a small idle amount if it has no requests. The annotation `fairlead.dev/usage` of a pod
sets the pod's total usage instead. The annotation `fairlead.dev/load` of a workload sets the total
usage of the workload's pods. The ready pods share this total equally. A share takes precedence over
the pod's own annotation. The containers of a pod share the pod's usage in proportion to their
default usage. The usage of a node is the sum of the usages of its pods, plus the usage of system
daemons in the node's own annotation `fairlead.dev/usage`.

Only running pods on nodes with a reachable kubelet are measured.

upstream: metrics-server's pkg/api/{node,pod}.go, pkg/storage
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from fairlead.api.codec import decode_as, without_nulls
from fairlead.api.json import Json
from fairlead.api.objects import LabelSelector
from fairlead.api.pods.usage import CPU, NOTHING, USAGE, Usage, parse_usage
from fairlead.api.quantity import (
    NANOS_PER_MILLI,
    NANOS_PER_UNIT,
    Format,
    Quantity,
    canonical,
    milli_value,
    whole_value,
)
from fairlead.api.selector import selector_matches
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.auth.bootstrap_policy.objects import AGGREGATE_TO
from fairlead.apiserver.endpoints.request_scope import ComputedObjects
from fairlead.apiserver.error import ApiError, not_found
from fairlead.apiserver.kind import (
    API_SERVICE,
    CLUSTER_ROLE,
    NODE,
    NODE_METRICS,
    POD,
    POD_METRICS,
    REPLICATION_CONTROLLER,
    SCALABLE,
    Kind,
)
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import annotated_load

# CPU in thousandths, memory in bytes.
Amounts = dict[str, int]

MEMORY: Final = "memory"
WINDOW: Final = "15s"  # upstream: metrics-server's --metric-resolution
# the usage of a container without requests
IDLE: Final[Mapping[str, int]] = {CPU: 1, MEMORY: 8 << 20}
# Users who may read pods may also read their metrics.
_READER: Final[Json] = {
    "apiVersion": CLUSTER_ROLE.api_version,
    "kind": CLUSTER_ROLE.kind,
    "metadata": {
        "name": "system:aggregated-metrics-reader",
        "labels": {f"{AGGREGATE_TO}{role}": "true" for role in ("admin", "edit", "view")},
    },
    "rules": [
        {
            "apiGroups": [POD_METRICS.group],
            "resources": [POD_METRICS.plural, NODE_METRICS.plural],
            "verbs": ["get", "list", "watch"],
        }
    ],
}
# Clients find a metrics server through its APIService.
_SERVICE: Final[Json] = {
    "apiVersion": API_SERVICE.api_version,
    "kind": API_SERVICE.kind,
    "metadata": {"name": f"{POD_METRICS.version}.{POD_METRICS.group}"},
    "spec": {
        "group": POD_METRICS.group,
        "version": POD_METRICS.version,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    },
}
# the objects that a metrics server adds to a new cluster
MEASUREMENTS: Final = (_READER, _SERVICE)
_MEASURED: Final = (CPU, MEMORY)
_READ: Final = {CPU: milli_value, MEMORY: whole_value}
_FIELDS: Final = (
    ("containers", "containerStatuses"),
    ("initContainers", "initContainerStatuses"),
)


def measured(storage: Storage) -> Mapping[Kind, ComputedObjects]:
    """Return a ComputedObjects for each kind that a metrics server serves."""
    return {NODE_METRICS: _Nodes(storage), POD_METRICS: _Pods(storage)}


class _Pods:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def objects(self, namespace: str, now: Instant) -> list[Json]:
        """Return the PodMetrics objects of `namespace`; see `ComputedObjects.objects`."""
        silent = {node["metadata"]["name"] for node in _nodes(self._storage) if _is_silent(node)}
        found, loads = [], _shared_loads(self._storage, namespace or None)
        for pod in self._storage.items(POD, namespace or None):
            used = container_usage(pod, loads.get(pod["metadata"]["uid"], NOTHING))
            if used and pod["spec"].get("nodeName") not in silent:
                rows = [{"name": name, "usage": _written(one)} for name, one in used.items()]
                found.append({**_metrics_head(pod, now), "containers": rows})
        return found

    def absent(self, namespace: str, name: str) -> ApiError:
        """Return the NotFound error for a pod that does not exist or is not measured."""
        if self._storage.find(POD, namespace, name) is None:
            return not_found(POD, namespace, name)
        return not_found(replace(POD_METRICS, plural="podmetrics"), "", f"{namespace}/{name}")


class _Nodes:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def objects(self, namespace: str, now: Instant) -> list[Json]:
        """Return the NodeMetrics objects of all nodes; see `ComputedObjects.objects`."""
        sums = {
            node["metadata"]["name"]: {
                name: _annotated_usage(node).get(name, 0) for name in _MEASURED
            }
            for node in _nodes(self._storage)
        }
        loads = _shared_loads(self._storage, None)
        for pod in self._storage.unsorted(POD):
            total = sums.get(pod["spec"].get("nodeName", ""))
            if total is not None:
                load = loads.get(pod["metadata"]["uid"], NOTHING)
                for used in container_usage(pod, load).values():
                    for name in _MEASURED:
                        total[name] += used[name]
        return [
            {**_metrics_head(node, now), "usage": _written(sums[node["metadata"]["name"]])}
            for node in _nodes(self._storage)
            if not _is_silent(node)
        ]

    def absent(self, namespace: str, name: str) -> ApiError:
        """Return the NotFound error for a node that does not exist or is not measured."""
        if self._storage.find(NODE, "", name) is None:
            return not_found(NODE, "", name)
        return not_found(replace(NODE_METRICS, plural="nodemetrics"), "", name)


def _nodes(storage: Storage) -> Iterator[Json]:
    return storage.items(NODE)


def _is_silent(node: Json) -> bool:
    """Return whether the node's kubelet is unreachable."""
    rows = node.get("status", {}).get("conditions") or ()
    return any(row["type"] == "Ready" and row["status"] == "Unknown" for row in rows)


def container_usage(pod: Json, load: Usage = NOTHING) -> dict[str, Amounts]:
    """Return the usage of each running container of `pod`, keyed by name, in the order of the spec.

    `load` is the pod's share of the load of its workload. The result is {} if the pod does not run.
    """
    if pod.get("status", {}).get("phase") != "Running":
        return {}
    used = {container["name"]: _default_usage(container) for container in _running(pod)}
    annotated = {**_annotated_usage(pod), **load}
    for name in _MEASURED:
        if used and name in annotated:
            shares = _split(annotated[name], [one[name] for one in used.values()])
            for one, share in zip(used.values(), shares, strict=True):
                one[name] = share
    return used


def _shared_loads(storage: Storage, namespace: str | None) -> dict[str, Usage]:
    """Return each pod's share of the load of its workload, keyed by the pod's uid."""
    shares: dict[str, dict[str, int]] = {}
    for kind in SCALABLE:
        for workload in storage.items(kind, namespace):
            meta = workload["metadata"]
            load = annotated_load(meta.get("annotations") or {})
            if not load:
                continue
            pods = list(_pods_of(kind, workload, storage))
            serving = [pod for pod in pods if _is_serving(pod)]
            for pod in pods:
                shares.setdefault(pod["metadata"]["uid"], {}).update(dict.fromkeys(load, 0))
            for name, curve in load.items():
                parts = _split(curve.at(0), [1] * len(serving))
                for pod, part in zip(serving, parts, strict=False):
                    shares[pod["metadata"]["uid"]][name] = part
    return dict(shares)


def _pods_of(kind: Kind, workload: Json, storage: Storage) -> Iterator[Json]:
    """Yield the pods that the selector of `workload` matches."""
    stated = workload["spec"].get("selector") or {}
    if kind is REPLICATION_CONTROLLER:
        stated = {"matchLabels": stated}
    selector = decode_as(LabelSelector, without_nulls(stated))
    for pod in storage.items(POD, workload["metadata"]["namespace"]):
        if stated and selector_matches(selector, pod["metadata"].get("labels") or {}):
            yield pod


def _is_serving(pod: Json) -> bool:
    rows = pod["status"].get("conditions") or ()
    is_ready = any(row["type"] == "Ready" and row["status"] == "True" for row in rows)
    is_running = pod["status"].get("phase") == "Running"
    return is_running and is_ready and "deletionTimestamp" not in pod["metadata"]


def _running(pod: Json) -> Iterator[Json]:
    for field, statuses in _FIELDS:
        rows = pod["status"].get(statuses) or ()
        names = {row["name"] for row in rows if "running" in (row.get("state") or {})}
        for container in pod["spec"].get(field) or ():
            if container["name"] in names:
                yield container


def _default_usage(container: Json) -> Amounts:
    requests = (container.get("resources") or {}).get("requests") or {}
    return {
        name: _READ[name](requests[name]) if name in requests else IDLE[name] for name in _MEASURED
    }


def _annotated_usage(subject: Json) -> Usage:
    text = (subject["metadata"].get("annotations") or {}).get(USAGE)
    if text is None:
        return NOTHING
    try:
        return parse_usage(text)
    except ValueError:
        return NOTHING


def _split(total: int, weights: list[int]) -> Iterator[int]:
    """Split `total` in proportion to `weights`, into integers that add up to `total`."""
    if not sum(weights):
        weights = [1] * len(weights)
    behind, weight_behind = 0, 0
    for weight in weights:
        weight_behind += weight
        reached = total * weight_behind // sum(weights)
        yield reached - behind
        behind = reached


def _written(used: Mapping[str, int]) -> Json:
    cpu = Quantity(nano=used[CPU] * NANOS_PER_MILLI, format=Format.DECIMAL_SI)
    memory = Quantity(nano=used[MEMORY] * NANOS_PER_UNIT, format=Format.BINARY_SI)
    return {CPU: canonical(cpu), MEMORY: canonical(memory)}


def _metrics_head(subject: Json, now: Instant) -> Json:
    """Return the metadata, timestamp and window of the metrics of `subject` at `now`."""
    meta, timestamp = subject["metadata"], format_timestamp(now)
    copied = {key: meta[key] for key in ("name", "namespace", "labels") if meta.get(key)}
    return {
        "metadata": {**copied, "creationTimestamp": timestamp},
        "timestamp": timestamp,
        "window": WINDOW,
    }
