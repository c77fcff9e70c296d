"""Autoscaling benchmarks: single decisions, and a day of an elastic cluster.

    ClusterAutoscaler/ScaleUp    one loop: 5,000 pending pods of 50 ReplicaSets, 20 node groups
    Karpenter/Provisioning       one pass over the pods of Karpenter's own benchmark: in equal
                                 numbers, plain pods and pods with zonal spread, host spread,
                                 host affinity, zonal affinity and host anti-affinity
    …/Day                        a day in which a fifth of the workloads double in size and shrink
                                 again, two times; a script changes their sizes every ten minutes;
                                 API objects, controllers and kubelets are included
    …/LoadCurve                  a day in which the loads of a fifth of the workloads change, and
                                 HorizontalPodAutoscalers scale these workloads

upstream: karpenter pkg/controllers/provisioning/scheduling/scheduling_benchmark_test.go
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Literal

from msgspec import Struct

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import Node, Pod
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import ARCH, HOSTNAME, INSTANCE_TYPE, OS, ZONE
from fairlead.apiserver.kind import DEPLOYMENT, NODE, POD
from fairlead.apiserver.registry.store import Store
from fairlead.bench.measurement import KIB_PER_MIB, IncompleteRunError, Measurement
from fairlead.bench.templates import affinity_term, requests, required
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
    SimulatedProvider,
)
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.static_autoscaler import StaticAutoscaler
from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
from fairlead.engine.autoscaling.karpenter.apis import NodePool
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    InstanceType,
    Offering,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type_table import (
    InstanceTypeTable,
)
from fairlead.engine.autoscaling.karpenter.config import KarpenterConfig
from fairlead.engine.autoscaling.karpenter.labels import CAPACITY_TYPE, NODE_POOL, ON_DEMAND, SPOT
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import Provisioner
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import requirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import combined
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import LoadCurve, WorkloadLoads
from fairlead.worlds.simulation.world import SimulatedWorld

START: Final[Instant] = seconds(1_800_000_000)
_CREATED: Final[Instant] = START - seconds(3_600)
NAMESPACE: Final = "bench"
ZONES: Final = ("zone-a", "zone-b", "zone-c")
GROUPS: Final = 20
REPLICAS: Final = 50
PODS_PER_NODE: Final = 20
REQUEST_MILLI: Final = 450
TARGET_PERCENT: Final = 70
GENERATION: Final = 7
_DAY_S: Final = 24 * 3_600
_STEP_S: Final = 600
_GIB: Final = 1 << 30

Autoscaler = Literal["ClusterAutoscaler", "Karpenter"]


class AutoscalingWorkload(Struct, frozen=True):
    """An autoscaling benchmark.

    `prepare` builds the cluster and returns a function, which executes the measured part and
    returns the number of pods. `virtual_s` is the simulated time in seconds, or None if the
    benchmark measures a single scale-up or provisioning pass.
    """

    name: str
    prepare: Callable[[], Callable[[], int]]
    virtual_s: int | None = None


def measure_autoscaling(workload: AutoscalingWorkload) -> Measurement:
    """Run `workload` once in this process.

    Raises IncompleteRunError if the run did not do the work to be measured.
    """
    run = workload.prepare()
    cpu, started = time.process_time(), time.perf_counter()
    pods = run()
    elapsed = time.perf_counter() - started
    return Measurement(
        workload=workload.name,
        pods_per_second=pods / elapsed,
        seconds=elapsed,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MIB,
        upstream_threshold=None,
        virtual_seconds_per_second=workload.virtual_s / elapsed if workload.virtual_s else None,
        cpu_seconds=time.process_time() - cpu,
    )


# --- one scale-up of Cluster Autoscaler ------------------------------------------------------


def scale_up(pods: int) -> Callable[[], int]:
    """Prepare one loop of Cluster Autoscaler with `pods` pending pods.

    Returns a function that runs the loop and returns `pods`. The function raises
    IncompleteRunError if no pod triggers a scale-up.
    """
    groups = tuple(_group(f"group-{number:02d}", number, 1_000) for number in range(GROUPS))
    provider = SimulatedProvider(groups, seed=0, start=START)
    autoscaler = StaticAutoscaler(provider, AutoscalingOptions(expander=("least-waste",)))
    for number, group in enumerate(groups):
        node = decode_as(Node, _node(f"node-{number:02d}", dict(group.labels), _size(number)))
        autoscaler.put(provider.adopt(node))
    per_owner = max(pods // 50, 1)
    for number in range(pods):
        owner = number // per_owner
        spec = requests(f"{200 + 50 * (owner % 8)}m", f"{256 + 128 * (owner % 6)}Mi")
        autoscaler.put(decode_as(Pod, _pending(f"pod-{number:05d}", f"app-{owner:02d}", spec)))

    def run() -> int:
        record = autoscaler.run_once(START + seconds(60))
        triggered = sum(len(status.triggered) for status in record.scale_ups)
        if not triggered:
            raise IncompleteRunError(f"no pod triggered a scale-up: {record.scale_ups}")
        return pods

    return run


def _size(number: int) -> Json:
    cpu = 4 << number % 4
    return {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"}


def _group(name: str, number: int, maximum: int) -> NodeGroupSpec:
    labels = {"group": name}
    template = _node(name, labels, _size(number))
    return NodeGroupSpec(
        id=name, minimum=1, maximum=maximum, labels=labels, template=template, price=0.05
    )


def _node(name: str, labels: Json, amounts: Json, at: Instant = _CREATED) -> Json:
    stamp = format_timestamp(at)
    ready = {
        "type": "Ready",
        "status": "True",
        "lastHeartbeatTime": stamp,
        "lastTransitionTime": stamp,
    }
    own = {HOSTNAME: name, ZONE: ZONES[0], **labels}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": own, "creationTimestamp": stamp},
        "spec": {"providerID": f"bench:///{name}"},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
    }


def _pending(name: str, owner: str, spec: Json, labels: Json | None = None) -> Json:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": name,
            "labels": labels or {"app": owner},
            "creationTimestamp": format_timestamp(START),
            "ownerReferences": [{**reference, "controller": True}],
        },
        "spec": spec,
        "status": {"phase": "Pending", "conditions": [condition]},
    }


# --- one pass of Karpenter -------------------------------------------------------------------


def provisioning(pods: int, types: int) -> Callable[[], int]:
    """Prepare one pass of Karpenter for `pods` pending pods and `types` instance types.

    Returns a function that runs the pass and returns `pods`. The function raises IncompleteRunError
    if too few pods get a node.
    """
    cluster, options = KarpenterCluster(), KarpenterOptions()
    cluster.put(_pool("720h"), START)
    table = InstanceTypeTable(_types(types), options.well_known_labels)
    for number in range(pods):
        spec, labels = _MIX[number * len(_MIX) // pods](number)
        manifest = _pending(f"pod-{number:05d}", f"app-{number}", spec, labels)
        cluster.put(decode_as(Pod, manifest), START)
    provisioner = Provisioner(cluster, lambda _: table, options)

    def run() -> int:
        found = provisioner.provision(START + seconds(60))
        placed = sum(len(request.pods) for request in found.requests)
        if placed + len(found.errors) != pods or placed < pods * 4 // 5:
            raise IncompleteRunError(f"{placed} of {pods} pods got a node")
        return pods

    return run


def _amounts(number: int) -> Json:
    cpu = (100, 250, 500, 1000, 1500)[number * 7 % 5]
    memory = (100, 256, 512, 1024, 2048, 4096)[number * 5 % 6]
    return requests(f"{cpu}m", f"{memory}Mi")


def _letter(number: int) -> str:
    return "abcdefg"[number % GENERATION]


def _plain(number: int) -> tuple[Json, Json]:
    return _amounts(number), {"my-label": _letter(number)}


def _spread(number: int, key: str) -> tuple[Json, Json]:
    labels = {"my-label": _letter(number)}
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"my-label": _letter(number * 3)}},
    }
    return {**_amounts(number), "topologySpreadConstraints": [constraint]}, labels


def _affinity(number: int, key: str) -> tuple[Json, Json]:
    color = f"{key.rpartition('/')[2]}-{_letter(number)}"
    affinity = required("podAffinity", affinity_term(color, key))
    return {**_amounts(number), "affinity": affinity}, {"color": color}


def _alone(number: int) -> tuple[Json, Json]:
    """Return (spec, labels) of a pod that must not share a node with a pod with the same labels.

    `number` determines how much CPU and memory the pod requests.
    """
    labels = {"app": "nginx"}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOSTNAME}
    return {**_amounts(number), "affinity": required("podAntiAffinity", term)}, labels


_MIX: Final[tuple[Callable[[int], tuple[Json, Json]], ...]] = (
    _plain,
    partial(_spread, key=ZONE),
    partial(_spread, key=HOSTNAME),
    partial(_affinity, key=HOSTNAME),
    partial(_affinity, key=ZONE),
    _alone,
)


def _pool(expire_after: str) -> NodePool:
    manifest = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default", "uid": "default"},
        "spec": {
            "template": {
                "spec": {
                    "requirements": [
                        {"key": CAPACITY_TYPE, "operator": "In", "values": [ON_DEMAND]}
                    ],
                    "nodeClassRef": {"group": "bench", "kind": "NodeClass", "name": "default"},
                    "expireAfter": expire_after,
                }
            },
        },
    }
    return decode_as(NodePool, manifest)


def _types(count: int) -> tuple[InstanceType, ...]:
    """Return `count` instance types of 1, 2, 3, … cores, in three zones.

    Each type has 2 GiB and 10 pods per core.
    """
    return tuple(_type(number) for number in range(1, count + 1))


def _type(cores: int) -> InstanceType:
    kinds = (ON_DEMAND, SPOT)
    price = cores * 0.025 + cores * 2 * 0.001
    requirements = combined(
        [
            requirement(INSTANCE_TYPE, "In", (f"fake-it-{cores}",)),
            requirement(ARCH, "In", ("amd64",)),
            requirement(OS, "In", ("linux",)),
            requirement(ZONE, "In", ZONES),
            requirement(CAPACITY_TYPE, "In", kinds),
        ]
    )
    offerings = tuple(
        Offering(
            combined([requirement(CAPACITY_TYPE, "In", (kind,)), requirement(ZONE, "In", (zone,))]),
            price if kind == ON_DEMAND else price * 0.7,
        )
        for zone in ZONES
        for kind in kinds
    )
    capacity = {"cpu": cores * 1_000, "memory": cores * 2 * _GIB, "pods": cores * 10}
    overhead = {"cpu": 100, "memory": 10 << 20}
    return InstanceType(f"fake-it-{cores}", requirements, capacity, overhead, offerings)


# --- a day -----------------------------------------------------------------------------------


def day(
    autoscaler: Autoscaler, nodes: int, pods: int, *, is_by_load: bool = False
) -> Callable[[], int]:
    """Prepare a simulated day with `autoscaler`; `pods` is the number of pods at the peak.

    `nodes` is the maximum size of each node group of Cluster Autoscaler, and has no effect on
    Karpenter. If `is_by_load` is set, HorizontalPodAutoscalers scale the workloads. Otherwise, a
    script scales them every ten minutes.

    Returns a function that runs the day and returns `pods`. The function raises
    IncompleteRunError if the number of nodes hardly changed, or if pods are not bound at the end.
    """
    workloads = pods * 5 // 6 // REPLICAS
    elastic = workloads // 5
    count = -(-workloads * REPLICAS // PODS_PER_NODE)
    karpenter = KarpenterConfig(pools=(_pool("Never"),), types=_types(40))
    config = EngineConfig(
        start=START,
        node_lifecycle=NodeLifecycleConfig(is_taking_over=True),
        autoscaler=_groups(nodes) if autoscaler == "ClusterAutoscaler" else None,
        karpenter=karpenter if autoscaler == "Karpenter" else None,
        pod_autoscaler=HorizontalPodAutoscalerConfig(loads=_loads(elastic) if is_by_load else {}),
    )
    world = SimulatedWorld(build_engine(config, SilentReporter()), start=START, events_max=0)
    objects = [*_day_nodes(autoscaler, count), *_deployments(workloads)]
    if is_by_load:
        objects += _pod_autoscalers(elastic)
    else:
        for after_s in range(_STEP_S, _DAY_S, _STEP_S):
            world.at(START + seconds(after_s), partial(_scale, elastic, after_s))

    def run() -> int:
        world.load(objects)
        sizes: list[int] = []
        for after_s in range(_STEP_S, _DAY_S + 1, _STEP_S):
            world.run(START + seconds(after_s))
            sizes.append(sum(1 for _ in world.store.list(NODE)))
        _verify(world.store, sizes, workloads * REPLICAS)
        return pods

    return run


def _verify(store: Store, sizes: list[int], pods: int) -> None:
    """Raise IncompleteRunError if a pod is not bound, or if `sizes` vary by less than 5 %.

    `sizes` are the numbers of nodes at different times of the run.
    """
    bound = sum(bool(pod["spec"].get("nodeName")) for pod in store.list(POD))
    if bound < pods or max(sizes) - min(sizes) < max(sizes) // 20:
        shown = f"{bound} pods are bound, and {min(sizes)} to {max(sizes)} nodes existed"
        raise IncompleteRunError(shown)


def _scale(elastic: int, after_s: int, store: Store, now: Instant) -> None:
    """Scale the first `elastic` Deployments to the size that the time `after_s` requires.

    `after_s` is the number of seconds since the start.

    All these Deployments have the same size, which follows a cosine curve with two periods per day,
    from REPLICAS to twice that number.
    """
    patch = {"spec": {"replicas": REPLICAS + round(REPLICAS * _share(after_s))}}
    for number in range(elastic):
        store.patch(DEPLOYMENT, NAMESPACE, f"app-{number:04d}", patch, now)


def _share(after_s: int) -> float:
    return (1 - math.cos(4 * math.pi * after_s / _DAY_S)) / 2


def _loads(elastic: int) -> WorkloadLoads:
    """Return loads that make the autoscalers double and halve the elastic workloads.

    At the peak, a load needs a tenth more pods than maxReplicas. Otherwise, the tolerance of the
    HorizontalPodAutoscaler would stop the scale-up before maxReplicas.
    """
    target = REQUEST_MILLI * TARGET_PERCENT // 100
    points = tuple(
        (seconds(after_s), round(REPLICAS * (1 + 1.2 * _share(after_s)) * target))
        for after_s in range(0, _DAY_S + 1, _STEP_S)
    )
    curve = LoadCurve(points, START)
    return {
        ("Deployment", NAMESPACE, f"app-{number:04d}"): {"cpu": curve} for number in range(elastic)
    }


def _pod_autoscalers(elastic: int) -> Iterator[Json]:
    target = {"type": "Utilization", "averageUtilization": TARGET_PERCENT}
    for number in range(elastic):
        name = f"app-{number:04d}"
        yield {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
                "minReplicas": REPLICAS,
                "maxReplicas": 2 * REPLICAS,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
            },
        }


_DAY_SIZE: Final = {"cpu": "10", "memory": "40Gi", "pods": "110"}


def _groups(nodes: int) -> ClusterAutoscalerConfig:
    groups = tuple(
        NodeGroupSpec(
            id=f"group-{zone}",
            minimum=1,
            maximum=nodes,
            labels={"group": zone, ZONE: zone},
            template=_node("template", {"group": zone, ZONE: zone}, _DAY_SIZE),
            price=0.4,
        )
        for zone in ZONES
    )
    options = AutoscalingOptions(expander=("least-waste",), balance_similar_node_groups=True)
    return ClusterAutoscalerConfig(groups=groups, options=options)


def _day_nodes(autoscaler: Autoscaler, count: int) -> Iterator[Json]:
    for number in range(count):
        zone = ZONES[number % len(ZONES)]
        labels: Json = {"group": zone, ZONE: zone}
        if autoscaler == "Karpenter":
            labels |= {
                NODE_POOL: "default",
                INSTANCE_TYPE: "fake-it-10",
                CAPACITY_TYPE: ON_DEMAND,
                ARCH: "amd64",
                OS: "linux",
                "karpenter.sh/registered": "true",
                "karpenter.sh/initialized": "true",
            }
        yield _node(f"node-{number:05d}", labels, _DAY_SIZE)


def _deployments(count: int) -> Iterator[Json]:
    for number in range(count):
        name = f"app-{number:04d}"
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": requests(f"{REQUEST_MILLI}m", "1Gi")}
        yield {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": name},
            "spec": {
                "replicas": REPLICAS,
                "selector": {"matchLabels": labels},
                "template": template,
            },
        }


def _workloads() -> Iterator[AutoscalingWorkload]:
    yield AutoscalingWorkload(
        "ClusterAutoscaler/ScaleUp/20Groups_5000Pods", partial(scale_up, 5_000)
    )
    for pods in (1_000, 5_000):
        name = f"Karpenter/Provisioning/400Types_{pods}Pods"
        yield AutoscalingWorkload(name, partial(provisioning, pods, 400))
    autoscalers: tuple[Autoscaler, ...] = ("ClusterAutoscaler", "Karpenter")
    for autoscaler in autoscalers:
        for nodes in (100, 1_000):
            name = f"{autoscaler}/Day/{nodes}Nodes_{20 * nodes}Pods"
            run = partial(day, autoscaler, nodes, 20 * nodes)
            yield AutoscalingWorkload(name, run, _DAY_S)
            name = f"{autoscaler}/LoadCurve/{nodes}Nodes_{20 * nodes}Pods"
            run = partial(day, autoscaler, nodes, 20 * nodes, is_by_load=True)
            yield AutoscalingWorkload(name, run, _DAY_S)


AUTOSCALING_WORKLOADS: Final = {workload.name: workload for workload in _workloads()}
