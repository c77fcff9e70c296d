"""How full a node should be: the three strategies, by numbers worked out by hand."""

from __future__ import annotations

import pytest

from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.plugins.node_resources.scoring_strategy import least_allocated, most_allocated
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.scheduling.evaluation import evaluate
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod

GPU = "nvidia.com/gpu"
MIB = 1 << 20


@pytest.mark.parametrize(
    ("used", "offered", "least", "most"),
    [(0, 10, 100, 0), (3, 10, 70, 30), (10, 10, 0, 100), (11, 10, 0, 100), (1, 3, 66, 33)],
)
def test_one_resource(used, offered, least, most):
    """Whole numbers, rounded down; more than full is full."""
    assert (least_allocated(used, offered), most_allocated(used, offered)) == (least, most)


def score(strategy, pod, node=None, *others):
    """What NodeResourcesFit gives the node for `pod` under `strategy`."""
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
def test_a_strategy(wanted, pod, node, others, expected):
    """Utilisation counts the incoming pod."""
    assert score(wanted, pod, node, *others) == expected
