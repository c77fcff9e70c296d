"""Outage benchmarks: a simulated day of a cluster in which one of three zones fails for an hour.

Every node has ten pods, every ReplicaSet has fifty pods, and each pod tolerates a failed node for
the default five minutes. Six hours after the start, the machines of the first zone are switched off
for an hour. No other changes happen, so the run measures only the outage.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.nodes.kubelet_behaviour import KUBELET, Mode
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.registry.store import Store
from fairlead.bench.measurement import KIB_PER_MIB, IncompleteRunError, Measurement
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.reporter import PodEvicted, Record
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.worlds.simulation.world import SimulatedWorld

START: Final[Instant] = seconds(1_800_000_000)
HOUR_S: Final = 3_600
OUTAGE_START_H: Final = 6
DAY_H: Final = 24
ZONES: Final = ("zone-a", "zone-b", "zone-c")
PODS_PER_NODE: Final = 10
FEW_NODES: Final = 6
REPLICAS: Final = 50
NAMESPACE: Final = "bench"


class OutageWorkload(Struct, frozen=True):
    """A day with `nodes` nodes and an outage of `duration_s` seconds.

    A test requires that the run takes less than `seconds_max` seconds of CPU time.
    """

    name: str
    nodes: int
    seconds_max: float
    duration_s: float = HOUR_S


class _Evictions(Struct):
    count: int = 0

    def report(self, record: Record) -> None:
        self.count += isinstance(record, PodEvicted)


def measure_outage(outage: OutageWorkload) -> Measurement:
    """Simulate the day of `outage` once in this process, and return its Measurement.

    A day of a small cluster is simulated first and is not measured. So all modules are imported
    before the measurement. Raises IncompleteRunError if no pod was evicted, or if a pod is not
    ready at the end.
    """
    _run_day(replace(outage, nodes=FEW_NODES), _Evictions(), _manifests(FEW_NODES))
    manifests = _manifests(outage.nodes)
    evictions = _Evictions()
    started, cpu = time.perf_counter(), time.process_time()
    world = _run_day(outage, evictions, manifests)
    elapsed, cpu_used = time.perf_counter() - started, time.process_time() - cpu
    _verify(outage, world.store, evictions.count)
    return Measurement(
        workload=outage.name,
        pods_per_second=evictions.count / elapsed,
        seconds=elapsed,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MIB,
        upstream_threshold=None,
        virtual_seconds_per_second=DAY_H * HOUR_S / elapsed,
        cpu_seconds=cpu_used,
    )


def _run_day(
    outage: OutageWorkload, evictions: _Evictions, manifests: Sequence[Json]
) -> SimulatedWorld:
    world = _world(outage, evictions)
    world.load(manifests)
    world.run(START + seconds(DAY_H * HOUR_S))
    return world


def _world(outage: OutageWorkload, evictions: _Evictions) -> SimulatedWorld:
    lifecycle = NodeLifecycleConfig(is_taking_over=True)
    engine = build_engine(EngineConfig(start=START, node_lifecycle=lifecycle), evictions)
    world = SimulatedWorld(engine, start=START, events_max=0)
    outage_start = START + seconds(OUTAGE_START_H * HOUR_S)
    world.at(outage_start, _SetBehaviour(str(Mode.STOPPED)))
    world.at(outage_start + seconds(outage.duration_s), _SetBehaviour(None))
    return world


class _SetBehaviour(Struct, frozen=True):
    """Sets how kubelets in the first zone behave; if `behaviour` is None, they behave normally."""

    behaviour: str | None

    def __call__(self, store: Store, now: Instant) -> None:
        patch = {"metadata": {"annotations": {KUBELET: self.behaviour}}}
        for node in store.list(NODE):
            if node["metadata"]["labels"][ZONE] == ZONES[0]:
                store.patch(NODE, "", node["metadata"]["name"], patch, now)


def _verify(outage: OutageWorkload, store: Store, evicted: int) -> None:
    """Raise IncompleteRunError if no pod was evicted, or a pod is not ready at the end."""
    ready = sum(_is_ready(pod) for pod in store.list(POD))
    expected = outage.nodes * PODS_PER_NODE
    if not evicted or ready != expected:
        problem = f"{evicted} pods were evicted, and {ready} of {expected} are ready"
        raise IncompleteRunError(f"{outage.name}: {problem}")


def _is_ready(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


# --- the cluster -----------------------------------------------------------------------------


def _manifests(nodes: int) -> list[Json]:
    return [*_nodes(nodes), *_workloads(nodes)]


def _nodes(count: int) -> Iterator[Json]:
    stamp = format_timestamp(START)
    offered = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    ready = {
        "type": "Ready",
        "status": "True",
        "lastHeartbeatTime": stamp,
        "lastTransitionTime": stamp,
    }
    for number in range(count):
        name = f"node-{number:05d}"
        labels = {HOSTNAME: name, ZONE: ZONES[number % len(ZONES)]}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": name, "labels": labels, "creationTimestamp": stamp},
            "status": {"allocatable": offered, "capacity": offered, "conditions": [ready]},
        }


def _workloads(nodes: int) -> Iterator[Json]:
    for number in range(nodes * PODS_PER_NODE // REPLICAS):
        name = f"app-{number:04d}"
        labels = {"app": name}
        meta = {"name": name, "namespace": NAMESPACE, "uid": name}
        template = {"metadata": {"labels": labels}, "spec": _spec()}
        yield {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": meta,
            "spec": {
                "replicas": REPLICAS,
                "selector": {"matchLabels": labels},
                "template": template,
            },
        }
        for place in range(number * REPLICAS, (number + 1) * REPLICAS):
            yield _pod(name, place, nodes, labels)


def _pod(owner: str, place: int, nodes: int, labels: Json) -> Json:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
    name, stamp = f"{owner}-{place:05d}", format_timestamp(START)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": name,
            "labels": labels,
            "ownerReferences": [{**reference, "controller": True}],
            "creationTimestamp": stamp,
        },
        "spec": {**_spec(), "nodeName": f"node-{place % nodes:05d}"},
        "status": {"phase": "Running", "startTime": stamp, "conditions": [ready]},
    }


def _spec() -> Json:
    resources = {"requests": {"cpu": "100m", "memory": "500Mi"}}
    tolerations = [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for key in ("not-ready", "unreachable")
    ]
    container = {"name": "pause", "image": "pause", "resources": resources}
    return {"containers": [container], "tolerations": tolerations}


OUTAGE_WORKLOADS: Final = {
    outage.name: outage
    for outage in (
        OutageWorkload("Outage/5000Nodes_24h", 5_000, 60),
        OutageWorkload("Outage/100Nodes_24h", 100, 2),
    )
}
