"""NodeResourcesFit: the three scoring strategies, with numbers computed by hand."""

from __future__ import annotations

import pytest

from fairlead.api.objects import DeviceClass, DeviceClassSpec, ObjectMeta
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.plugins.node_resources.args import FitArgs, ResourceSpec, ScoringStrategy
from fairlead.engine.plugins.node_resources.scoring_strategy import (
    least_allocated,
    most_allocated,
    scoring_strategy,
)
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.scheduling.evaluation import evaluate
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.device_builders import (
    make_claim_status,
    make_device,
    make_device_class,
    make_device_request,
    make_resource_claim,
    make_slice,
)
from fairlead.testing.random_cluster import Chance

GPU = "nvidia.com/gpu"
MIB = 1 << 20


@pytest.mark.parametrize(
    ("used", "offered", "least", "most"),
    [(0, 10, 100, 0), (3, 10, 70, 30), (10, 10, 0, 100), (11, 10, 0, 100), (1, 3, 66, 33)],
)
def test_the_score_of_one_resource(used, offered, least, most):
    """Integers, rounded down; a utilization above 100 % counts as 100 %."""
    assert (least_allocated(used, offered), most_allocated(used, offered)) == (least, most)


def score(strategy, pod, node=None, *others):
    """Return the score of the node for `pod` under `strategy`."""
    cluster = Cluster()
    nodes = [node or make_node("n", cpu="4", memory="4Gi"), make_node("other")]
    cluster.apply(ObjectsLoaded([*nodes, *others]))
    args = {"NodeResourcesFit": {"scoringStrategy": strategy}}
    served = build_profile(Profile(args=args), PluginHandle(cluster, Nominator()), TieBreak(0))
    found = evaluate(served, PodInfo(pod, cluster.shapes.shape_of(pod)))
    return found.scores["NodeResourcesFit"]["n"]


def strategy(kind, *resources, shape=None):
    found = {"type": kind}
    if resources:
        found["resources"] = [{"name": name, "weight": weight} for name, weight in resources]
    if shape:
        points = [{"utilization": at, "score": value} for at, value in shape]
        found["requestedToCapacityRatio"] = {"shape": points}
    return found


ONE = make_pod("p", requests={"cpu": "1", "memory": 512 * MIB})
GPUS = make_node("n", cpu="4", memory="4Gi", devices={GPU: 4})
RISING = ((0, 0), (100, 10))


@pytest.mark.parametrize(
    ("wanted", "pod", "node", "others", "expected"),
    [
        (strategy("LeastAllocated"), ONE, None, [], (75 + 87) // 2),
        (strategy("MostAllocated"), ONE, None, [], (25 + 12) // 2),
        (strategy("MostAllocated", ("cpu", 3), ("memory", 1)), ONE, None, [], (75 + 12) // 4),
        (strategy("LeastAllocated"), make_pod("p"), None, [], (97 + 95) // 2),
        (strategy("MostAllocated"), ONE, None, [make_pod("x", node="n")], (27 + 17) // 2),
        (strategy("MostAllocated", (GPU, 1)), make_pod("p", requests={GPU: 1}), GPUS, [], 25),
        (strategy("MostAllocated", (GPU, 1), ("cpu", 1)), ONE, GPUS, [], 25),
        (strategy("MostAllocated", (GPU, 1)), ONE, GPUS, [], 0),
        (strategy("LeastAllocated", ("ephemeral-storage", 1)), ONE, None, [], 0),
        (strategy("RequestedToCapacityRatio", shape=RISING), ONE, None, [], 19),
        (strategy("RequestedToCapacityRatio", shape=((0, 10), (100, 0))), ONE, None, [], 82),
        (strategy("RequestedToCapacityRatio", shape=((30, 0), (100, 10))), ONE, None, [], 0),
        (strategy("RequestedToCapacityRatio", shape=((20, 0), (30, 10))), ONE, None, [], 50),
        (strategy("RequestedToCapacityRatio", shape=((0, 3), (10, 3))), ONE, None, [], 30),
    ],
    ids=[
        "least of cpu and memory",
        "most of cpu and memory",
        "weights",
        "a pod that asks for nothing counts 100m and 200Mi",
        "and so do the pods that are there",
        "devices",
        "devices that are not asked for do not count",
        "nor does a node where nothing counts",
        "a resource that is not offered does not count",
        "a rising line; the mean is rounded to the nearest",
        "a falling line is cut toward zero",
        "below its first point a line is flat",
        "a resource that scores 0 does not count",
        "beyond its last point a line is flat",
    ],
)
def test_the_score_of_each_strategy(wanted, pod, node, others, expected):
    """The utilization includes the incoming pod."""
    assert score(wanted, pod, node, *others) == expected


def provider(*expressions, resource=GPU):
    """Return a DeviceClass whose devices provide `resource`."""
    spec = make_device_class("gpu", *expressions).spec
    own = DeviceClassSpec(selectors=spec.selectors, extended_resource_name=resource)
    return DeviceClass(metadata=ObjectMeta(name="gpu"), spec=own)


def held(node, *devices):
    """Return a claim to which `devices` of `node` are allocated."""
    requests = make_device_request("r", count=len(devices))
    return make_resource_claim(f"of-{node}", requests, status=make_claim_status(node, *devices))


FOUR = make_slice("n", [make_device(f"gpu-{i}", "80Gi" if i else "10Gi") for i in range(4)])
BIG = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'
OLD = make_slice("n", ["gpu-9"], name="old", pool="incomplete", count=2)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], 25),
        ([held("n", "gpu-1", "gpu-2")], 75),
        ([provider(BIG), held("n", "gpu-0")], 33),
        ([OLD], 20),
    ],
    ids=[
        "free devices",
        "devices that a claim holds are used",
        "only devices of the class count",
        "devices of an incomplete pool count",
    ],
)
def test_devices_provide_a_resource_that_the_node_does_not_list(others, expected):
    """Devices of the class that is mapped to the resource count, and those in use."""
    pod = make_pod("p", requests={GPU: 1})
    wanted = strategy("MostAllocated", (GPU, 1))
    assert score(wanted, pod, None, provider(), FOUR, *others) == expected


@pytest.mark.parametrize(
    "others",
    [
        [provider("device.nothing"), FOUR],
        [provider(resource="example.com/other"), FOUR],
        [make_device_class("gpu"), FOUR],
        [provider(), make_slice("other")],
        [],
    ],
    ids=["a failing selector", "another resource", "no resource", "another node", "no class"],
)
def test_other_devices_do_not_count(others):
    """Without devices that provide the resource, the strategy leaves the resource out."""
    cluster = Cluster()
    cluster.apply(ObjectsLoaded([make_node("n"), make_node("other"), *others]))
    args = ScoringStrategy("MostAllocated", (ResourceSpec(GPU, 1),))
    rated = scoring_strategy(FitArgs(scoring_strategy=args), PluginHandle(cluster, Nominator()))
    pod = make_pod("p", requests={GPU: 1})
    info = PodInfo(pod, cluster.shapes.shape_of(pod))
    assert rated.score(CycleState(), info, cluster.table.find("n")) == 0


def test_a_resource_that_the_node_lists_is_not_counted_in_devices():
    """Four of the device plugin and four devices: the node's allocatable counts."""
    pod, used = make_pod("p", requests={GPU: 1}), held("n", "gpu-1", "gpu-2")
    wanted = strategy("MostAllocated", (GPU, 1))
    assert score(wanted, pod, GPUS, provider(), FOUR, used) == 25


@pytest.mark.parametrize("seed", range(6))
def test_cached_scores_follow_the_devices(seed):
    """After random changes of devices, claims and classes, kept plans agree with new ones."""
    chance, cluster, nodes = Chance(seed), Cluster(), ["a", "b", "c"]
    cluster.apply(ObjectsLoaded([make_node(name) for name in nodes]))
    args = {"NodeResourcesFit": {"scoringStrategy": strategy("MostAllocated", (GPU, 1))}}

    def plans():
        handle = PluginHandle(cluster, Nominator())
        return build_profile(Profile(args=args), handle, TieBreak(0)).plans

    kept, kinds = plans(), [{GPU: count} for count in (1, 2, 3)] + [{"cpu": "1"}]
    pods = [make_pod(f"p{i}", requests=kind) for i, kind in enumerate(kinds)]
    infos = [PodInfo(pod, cluster.shapes.shape_of(pod)) for pod in pods]
    seen = set()
    for number in range(80):
        node = chance.of(nodes)
        devices = [f"gpu-{i}" for i in range(1 + chance.below(4))]
        match chance.below(6):
            case 0:
                cluster.apply(ObjectChanged(provider(resource=chance.of([GPU, ""]))))
            case 1:
                shared = {"allNodes": True} if chance.one_in(5) else {}
                one = make_slice("" if shared else node, devices, spec=shared)
                cluster.apply(ObjectChanged(one))
            case 2:
                cluster.apply(ObjectDeleted(held(node)))
            case 3:
                pod = make_pod(f"x{number}", node=node, requests=chance.of(kinds))
                cluster.apply(ObjectChanged(pod))
            case _:
                cluster.apply(ObjectChanged(held(node, *devices)))
        fresh = plans()
        for info in infos:
            found = kept.plan_for(info).total.tolist()
            assert found == fresh.plan_for(info).total.tolist()
            seen.update(found)
    assert len(seen) > 4
