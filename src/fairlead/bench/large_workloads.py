"""LARGE_WORKLOADS: workloads with many different pods, a full cluster, or 100,000 nodes.

Upstream's benchmarks do not include these cases:

SchedulingMixed     pods with different requests alternate, so the placement of one pod changes the
                    filter results and scores of its node for all other pods
PreemptionFull      each node is full of pods of five priorities, and every new pod preempts;
                    in some of these workloads, the new pods also have topology spread
                    constraints, anti-affinity or volumes
Reclaim             pods of one queue fill the cluster, and gangs of another queue reclaim half
SchedulingBasic     like upstream's workload of this name, but with twenty times as many nodes and
                    without initial pods
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import structs

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Pod, PodGroup, Queue
from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.bench.batch_workloads import batch_engine, gang_annotations
from fairlead.bench.templates import (
    affinity_term,
    claimed_volumes,
    claiming_pods,
    csi_nodes,
    nodes,
    pods,
    requests,
    required,
)
from fairlead.bench.workload import Setting, Workload
from fairlead.engine.batch.configuration_file import RECOMMENDED
from fairlead.engine.batch.scheduler_name import FAIRLEAD

_NAMESPACE: Final = "bench"
_INIT: Final = "bench-init"
_PRIORITIES: Final = 5
_LOWER_PRIORITY_PODS: Final = 30
_GANG: Final = 10


def _mixed(shapes: int, measured: int) -> Setting:
    """Build 5,000 nodes, and pods whose requests cycle through `shapes` variants.

    `measured` is the number of these pods.
    """
    specs = [
        requests(f"{50 + i * 7 % 97 + i // 97}m", f"{100 + i * 13 % 401}Mi") for i in range(shapes)
    ]
    queues = [pods(f"shape-{i}", -(-measured // shapes), spec=spec) for i, spec in enumerate(specs)]
    interleaved = [next(queues[i % shapes]) for i in range(measured)]
    return Setting([*nodes(5_000)], list(pods("init", 1_000, _INIT)), interleaved)


def _preemption_full(
    node_count: int, high: Iterable[Pod], zones: int = 0, related: Iterable[ApiObject] = ()
) -> Setting:
    """Build nodes that run 30 pods each, so the pods in `high` do not fit without preemption.

    `zones` is the number of zones, 0 for none. `related` are objects to which the pods in `high`
    refer.
    """
    objects: list[ApiObject] = [*nodes(node_count, zones), *related]
    for priority in range(_PRIORITIES):
        each = _LOWER_PRIORITY_PODS // _PRIORITIES
        spec = requests("130m", "500Mi", priority=priority, terminationGracePeriodSeconds=0)
        running = pods(f"low-{priority}", node_count * each, spec=spec)
        objects += [_on(pod, i % node_count) for i, pod in enumerate(running)]
    return Setting(objects, [], list(high))


def _high(**spec: Any) -> Json:
    """Return the spec of a pod that preempts; `spec` adds fields."""
    return requests("1", "500Mi", priority=10, **spec)


def _preemption_with_spread(node_count: int, measured: int) -> Setting:
    labels = {"color": "blue"}
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    spec = _high(topologySpreadConstraints=[constraint])
    return _preemption_full(node_count, pods("high", measured, spec=spec, labels=labels), zones=3)


def _preemption_with_anti_affinity(node_count: int, measured: int) -> Setting:
    spec = _high(affinity=required("podAntiAffinity", affinity_term("blue", HOSTNAME)))
    return _preemption_full(
        node_count, pods("high", measured, spec=spec, labels={"color": "blue"}), zones=3
    )


def _preemption_with_volumes(node_count: int, measured: int) -> Setting:
    """Build nodes with volume limits, and new preemptors with one volume each."""
    related = [*csi_nodes(node_count, limit=39), *claimed_volumes("high", measured)]
    return _preemption_full(
        node_count, claiming_pods("high", measured, spec=_high()), zones=3, related=related
    )


def _on(pod: Pod, node: int) -> Pod:
    """Return a copy of `pod` that runs on node number `node`."""
    spec = structs.replace(pod.spec, node_name=f"node-{node:05d}")
    return structs.replace(pod, spec=spec, status=structs.replace(pod.status, phase="Running"))


def _reclaim(node_count: int) -> Setting:
    """Build a queue with a running gang per node, and a queue with half as many pending gangs.

    A node has CPU for ten tasks. Running gangs have `minMember: 1`, so all members but one may be
    evicted.
    """
    offered = {"cpu": "10", "memory": "64Gi", "pods": "110"}
    objects: list[ApiObject] = [*nodes(node_count, allocatable=offered)]
    objects += (
        decode_as(Queue, {"metadata": {"name": name}, "spec": {"weight": 1}})
        for name in ("running", "reclaiming")
    )
    for number in range(node_count):
        name = f"running-{number:05d}"
        objects.append(_group(name, "running", minimum=1, phase="Running"))
        objects += [_on(pod, number) for pod in _members(name)]
    waiting: list[Pod] = []
    for number in range(node_count // 2):
        name = f"reclaiming-{number:05d}"
        objects.append(_group(name, "reclaiming", minimum=_GANG, phase="Inqueue"))
        waiting += _members(name)
    return Setting(objects, [], waiting)


def _group(name: str, queue: str, *, minimum: int, phase: str) -> PodGroup:
    meta: Json = {"name": name, "namespace": _NAMESPACE}
    spec = {"minMember": minimum, "queue": queue}
    return decode_as(PodGroup, {"metadata": meta, "spec": spec, "status": {"phase": phase}})


def _members(name: str) -> Iterator[Pod]:
    spec = requests("1", "1Gi", schedulerName=FAIRLEAD)
    return pods(name, _GANG, _NAMESPACE, spec, annotations=gang_annotations(name))


LARGE_WORKLOADS: Final = (
    Workload("SchedulingMixed/5000Nodes_64Shapes", None, lambda: _mixed(64, 10_000)),
    Workload("SchedulingMixed/5000Nodes_512Shapes", None, lambda: _mixed(512, 10_000)),
    Workload("SchedulingMixed/5000Nodes_10000Shapes", None, lambda: _mixed(10_000, 10_000)),
    Workload(
        "PreemptionFull/5000Nodes_150000Pods",
        None,
        lambda: _preemption_full(5_000, pods("high", 1_000, spec=_high())),
        is_long=True,
    ),
    Workload(
        "PreemptionFull/5000Nodes_150000Pods/TopologySpread",
        None,
        lambda: _preemption_with_spread(5_000, 100),
        is_long=True,
    ),
    Workload(
        "PreemptionFull/5000Nodes_150000Pods/PodAntiAffinity",
        None,
        lambda: _preemption_with_anti_affinity(5_000, 100),
        is_long=True,
    ),
    Workload(
        "PreemptionFull/5000Nodes_150000Pods/CSIVolumes",
        None,
        lambda: _preemption_with_volumes(5_000, 100),
        is_long=True,
    ),
    Workload(
        "Reclaim/1000Nodes_500Gangs",
        None,
        lambda: _reclaim(1_000),
        engine=lambda: batch_engine(RECOMMENDED),
        has_long_cycles=True,
    ),
    Workload(
        "Reclaim/5000Nodes_2500Gangs",
        None,
        lambda: _reclaim(5_000),
        engine=lambda: batch_engine(RECOMMENDED),
        is_long=True,
        has_long_cycles=True,
    ),
    Workload(
        "SchedulingBasic/100000Nodes_10000Pods",
        None,
        lambda: Setting([*nodes(100_000)], [], list(pods("pod", 10_000))),
        is_long=True,
    ),
)
