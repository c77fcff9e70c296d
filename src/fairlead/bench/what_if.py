"""What-if benchmarks: the time that `fairlead whatif` takes on a generated dump.

The dump has the form that `kubectl get -A -o json` prints. The dump contains nodes in three zones,
20 pods per node, and Deployments of 50 pods each, with their ReplicaSets. One more Deployment has a
pod on every node. Required anti-affinity keeps its pods on different nodes. The benchmarks are:

    Drain     a node is drained
    Zone      one of three zones fails for twenty minutes
    Scale     the Deployment with a pod on every node gets 200 more pods, which stay pending

One more `Drain` benchmark has 100,000 nodes and 10 pods per node. This benchmark reads the cluster
from a snapshot file instead of a dump. It runs only if it is requested by name.

Each command runs in its own process, so the time includes starting, parsing and printing.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.bench.measurement import KIB_PER_MIB, IncompleteRunError, Measurement

ZONES: Final = ("zone-a", "zone-b", "zone-c")
REPLICAS: Final = 50
PENDING: Final = 200
NAMESPACE: Final = "bench"
SPREAD: Final = "spread"
_STAMP: Final = "2026-11-01T10:00:00Z"
_HASH: Final = "5d8f"
_POD: Final = "POD-NAME"
_NODE: Final = "NODE-NAME"
_COMPLETED_CODES: Final = (0, 1)  # exit codes: no difference, a difference


class WhatIfWorkload(Struct, frozen=True):
    """A `whatif` command with `options`, for a cluster of `nodes` nodes and `pods` pods.

    If `is_large` is set, the cluster is read from a snapshot file, and the workload takes long.
    """

    name: str
    nodes: int
    pods: int
    options: tuple[str, ...]
    is_large: bool = False


def _workloads(nodes: int) -> Iterator[WhatIfWorkload]:
    pods = 20 * nodes
    scaled = f"deploy/{NAMESPACE}/{SPREAD}={nodes + PENDING}"
    for question, *options in (
        ("Drain", "--drain", "node-00000"),
        ("Zone", "--fail-zone", ZONES[0], "--for", "20m"),
        ("Scale", "--scale", scaled),
    ):
        name = f"WhatIf/{nodes}Nodes_{pods}Pods/{question}"
        yield WhatIfWorkload(name, nodes, pods, tuple(options))


_LARGEST: Final = WhatIfWorkload(
    "WhatIf/100000Nodes_1000000Pods/Drain",
    100_000,
    1_000_000,
    ("--drain", "node-00000"),
    is_large=True,
)
WHAT_IF_WORKLOADS: Final = {
    one.name: one for one in (*_workloads(1_000), *_workloads(5_000), _LARGEST)
}


def measure_what_if(workload: WhatIfWorkload) -> Measurement:
    """Run `whatif` once in its own process and measure that process.

    Raises IncompleteRunError if the command fails.
    """
    with TemporaryDirectory(prefix="fairlead-bench-") as folder:
        dump = Path(folder) / "dump.json"
        write = write_snapshot if workload.is_large else write_dump
        write(dump, workload.nodes, workload.pods)
        command = [sys.executable, "-m", "fairlead.cli", "whatif", str(dump), *workload.options]
        started = time.perf_counter()
        done = subprocess.run(  # noqa: S603 - ours
            [*command, "--output", "json"], capture_output=True, check=False
        )
        elapsed = time.perf_counter() - started
    if done.returncode not in _COMPLETED_CODES:
        raise IncompleteRunError(f"{workload.name}: {done.stderr.decode(errors='replace').strip()}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Measurement(
        workload=workload.name,
        pods_per_second=workload.pods / elapsed,
        seconds=elapsed,
        peak_mib=used.ru_maxrss / KIB_PER_MIB,
        upstream_threshold=None,
        cpu_seconds=used.ru_utime + used.ru_stime,
    )


# --- the dump --------------------------------------------------------------------------------


def write_dump(path: Path, nodes: int, pods: int) -> None:
    """Write a dump of `nodes` nodes and `pods` pods to `path`; `pods` must be at least `nodes`."""
    with path.open("w") as file:
        file.write('{\n    "apiVersion": "v1",\n    "items": [')
        separator = "\n"
        for text in _items(nodes, pods):
            file.write(separator + text)
            separator = ",\n"
        file.write('\n    ],\n    "kind": "List",\n    "metadata": {}\n}\n')


def write_snapshot(path: Path, nodes: int, pods: int) -> None:
    """Write a snapshot to `path`, with the same cluster as the dump that `write_dump` writes."""
    items, groups, position = [*map(_node, range(nodes))], list[Json](), nodes
    for name, on_nodes in _deployments(nodes, pods):
        items += _owners(name, len(on_nodes))
        position += 2
        groups.append(_columns(name, on_nodes, position))
        position += len(on_nodes)
    head = {"apiVersion": "fairlead.dev/v1", "kind": "Snapshot", "metadata": {}}
    path.write_text(json.dumps({**head, "items": items, "pods": groups}, separators=(",", ":")))


def _columns(name: str, nodes: list[str], position: int) -> Json:
    """Return the pods of the Deployment `name` as columns; see `whatif/input/pod_columns.py`.

    `nodes` has the name of each pod's node. `position` is the index of the first pod among all
    objects of the snapshot.
    """
    like = _pod_of(name)
    pieces = json.dumps(like).split('"')
    numbers = [number for number in range(1, len(pieces), 2) if _is_own(pieces[number])]
    names = [f"{name}-{_HASH}-{number:05d}" for number in range(len(nodes))]
    return {
        "like": like,
        "positions": [*range(position, position + len(nodes))],
        "strings": [number // 2 for number in numbers],
        "columns": [
            [
                pieces[number].replace(_POD, pod).replace(_NODE, node)
                for pod, node in zip(names, nodes, strict=True)
            ]
            for number in numbers
        ],
    }


def _is_own(text: str) -> bool:
    return _POD in text or _NODE in text


def _items(nodes: int, pods: int) -> Iterator[str]:
    yield from (_text(_node(number)) for number in range(nodes))
    for name, on_nodes in _deployments(nodes, pods):
        yield from map(_text, _owners(name, len(on_nodes)))
        pod = _text(_pod_of(name))
        for number, node in enumerate(on_nodes):
            yield pod.replace(_POD, f"{name}-{_HASH}-{number:05d}").replace(_NODE, node)


def _deployments(nodes: int, pods: int) -> Iterator[tuple[str, list[str]]]:
    """Yield (name, list with the node of each pod) for each Deployment."""
    yield SPREAD, [f"node-{number:05d}" for number in range(nodes)]
    rest = pods - nodes
    for first in range(0, rest, REPLICAS):
        numbers = range(first, min(first + REPLICAS, rest))
        yield f"app-{first}", [f"node-{one % nodes:05d}" for one in numbers]


def _text(value: Json) -> str:
    text = json.dumps(value, indent=4, sort_keys=True)
    return "\n".join("        " + line for line in text.split("\n"))


def _node(number: int) -> Json:
    name = f"node-{number:05d}"
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    conditions = [
        {"lastHeartbeatTime": _STAMP, "lastTransitionTime": _STAMP, "message": "kubelet is posting "
         "ready status", "reason": "KubeletReady", "status": "True", "type": "Ready"}
    ]  # fmt: skip
    labels = {HOSTNAME: name, ZONE: ZONES[number % len(ZONES)]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _meta(name, labels=labels),
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": f"bench:///{name}"},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": conditions},
    }


def _meta(name: str, **more: object) -> Json:
    own = {"creationTimestamp": _STAMP, "name": name, "resourceVersion": "1", "uid": f"uid-{name}"}
    return {**own, **more}


def _owners(name: str, count: int) -> Iterator[Json]:
    labels = {"app": name}
    owned = {**labels, "pod-template-hash": _HASH}
    spec = _pod_spec(name)
    template = {"metadata": {"labels": owned}, "spec": spec}
    status = {"availableReplicas": count, "readyReplicas": count, "replicas": count}
    owners = [_owner("Deployment", name)]
    for kind, title, selected, owned_by in (
        ("Deployment", name, labels, {}),
        ("ReplicaSet", f"{name}-{_HASH}", owned, {"ownerReferences": owners}),
    ):
        made = {"metadata": {"labels": selected}, "spec": spec}
        yield {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": _meta(title, namespace=NAMESPACE, labels=selected, **owned_by),
            "spec": {
                "replicas": count,
                "selector": {"matchLabels": selected},
                "template": made if kind == "Deployment" else template,
            },
            "status": status,
        }


def _pod_of(name: str) -> Json:
    """Return a pod of the Deployment `name`, with placeholders for its name and its node."""
    owned = {"app": name, "pod-template-hash": _HASH}
    return _pod(_POD, _NODE, f"{name}-{_HASH}", owned, _pod_spec(name))


def _owner(kind: str, name: str) -> Json:
    return {"apiVersion": "apps/v1", "controller": True, "kind": kind, "name": name,
            "uid": f"uid-{name}"}  # fmt: skip


def _pod_spec(name: str) -> Json:
    variables = [{"name": f"ENV_{one}", "value": f"{name}-{one}"} for one in range(8)]
    probe = {"httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
    container = {
        "env": variables,
        "image": f"registry.example.com/{name}:v1",
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": probe,
        "name": "app",
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "readinessProbe": probe,
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
        "securityContext": {"capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True},
        "volumeMounts": [{"mountPath": "/etc/config", "name": "config"}],
    }
    spec: Json = {
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "volumes": [{"configMap": {"name": name}, "name": "config"}],
    }
    if name == SPREAD:
        term = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": HOSTNAME}
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        spec["affinity"] = {"podAntiAffinity": {required: [term]}}
    return spec


def _pod(name: str, node: str, owner: str, labels: Json, spec: Json) -> Json:
    tolerations = [
        {"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists",
         "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]  # fmt: skip
    conditions = [
        {"lastProbeTime": None, "lastTransitionTime": _STAMP, "status": "True", "type": one}
        for one in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    status = {"name": "app", "ready": True, "state": {"running": {"startedAt": _STAMP}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _meta(
            name, namespace=NAMESPACE, labels=labels, ownerReferences=[_owner("ReplicaSet", owner)]
        ),
        "spec": {**spec, "nodeName": node, "priority": 0, "tolerations": tolerations},
        "status": {
            "conditions": conditions,
            "containerStatuses": [status],
            "phase": "Running",
            "startTime": _STAMP,
        },
    }
