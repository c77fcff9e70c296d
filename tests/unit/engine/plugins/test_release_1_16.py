"""Plugins of Kubernetes 1.16: numbers computed by hand, and equal results in both forms."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.api.objects import NodeCondition
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.runtime import Framework
from fairlead.engine.plugins.priority_sort import PrioritySort
from fairlead.engine.plugins.release_1_16.registry import release_1_16
from fairlead.engine.plugins.release_1_16.requested import NodeSums
from fairlead.engine.scheduling.compose import PluginHandle
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.random_cluster import NODE_NAMES, POD_NAMES, Chance, any_node, any_pod

PLUGINS = release_1_16(NodeSums())


class Scene:
    """A cluster, and methods that call one plugin."""

    def __init__(self, *objects):
        self.cluster = Cluster()
        self.cluster.apply(ObjectsLoaded(list(objects)))
        self.table = self.cluster.table
        self.table.widen()
        self.rows = np.array([node.row for node in self.table.nodes()], np.int64)
        handle = PluginHandle(self.cluster, Nominator())
        built = [(factory(handle, {}), 1) for factory in PLUGINS.values()]
        self.framework = Framework(Profile(), [(PrioritySort(), 0), *built], handle)

    def info(self, pod):
        return PodInfo(pod, self.cluster.shapes.shape_of(pod))

    def scores(self, name, pod, among=None):
        """Return {node: normalized score} over the nodes named `among`, or all."""
        point = next(point for point in self.framework.scorers if point.name == name)
        rows, info, state = self.rows, self.info(pod), CycleState()
        if among is not None:
            rows = np.array([self.table.find(node).row for node in among], np.int64)
        self.framework.run_pre_score(state, info, name, rows)
        if name in state.skipped_scores:
            return dict.fromkeys((self.table.at(row).name for row in rows), 0)
        found = point.normalize(state, info, point.many(state, info, self.table, rows))
        return {self.table.at(row).name: score for row, score in zip(rows, found, strict=True)}

    def reason(self, name, pod, node):
        point = next(point for point in self.framework.filters if point.name == name)
        status = point.one(CycleState(), self.info(pod), self.table.find(node))
        return "" if status is None else status.message


def asks(name="p", cpu="1", memory="2Gi", **more):
    return make_pod(name, requests={"cpu": cpu, "memory": memory}, **more)


# --- how full a node would be ----------------------------------------------------------------


def test_least_requested_prefers_the_node_with_the_fewest_requests():
    """(10 * 2/4 + 10 * 6/8) / 2, each rounded down, including existing pods; 0 without room."""
    scene = Scene(
        make_node("n1", cpu="4", memory="8Gi"),
        make_node("n2", cpu="4", memory="8Gi"),
        make_node("n3", cpu="0"),
        asks("there", node="n2"),
    )
    scores = scene.scores("LeastRequestedPriority", asks())
    assert scores == {"n1": (7 + 7) // 2, "n2": (5 + 5) // 2, "n3": (0 + 8) // 2}


def test_most_requested_prefers_the_node_with_the_most_requests():
    scene = Scene(make_node("n1", cpu="4", memory="8Gi"), make_node("n2", cpu="1", memory="1Gi"))
    scores = scene.scores("MostRequestedPriority", asks())
    assert scores == {"n1": (2 + 2) // 2, "n2": (10 + 0) // 2}


def test_balanced_allocation_prefers_equal_fractions():
    """10 * (1 - |1/4 - 1/2|), and 0 for a resource that is used up."""
    scene = Scene(make_node("n1", cpu="4", memory="4Gi"), make_node("n2", cpu="1", memory="4Gi"))
    assert scene.scores("BalancedResourceAllocation", asks()) == {"n1": 7, "n2": 0}


def test_pods_without_requests_count_with_defaults():
    """100 milli and 200 MiB."""
    scene = Scene(make_node("n1", cpu="200m", memory="400Mi"))
    assert scene.scores("LeastRequestedPriority", make_pod("p")) == {"n1": 5}


# --- affinity --------------------------------------------------------------------------------


def test_node_affinity_scores_by_the_sum_of_weights():
    """The highest sum gives 10, the others proportionally less, rounded down."""

    def term(weight, key):
        expression = {"key": key, "operator": "Exists"}
        return {"weight": weight, "preference": {"matchExpressions": [expression]}}

    prefers = {"preferredDuringSchedulingIgnoredDuringExecution": [term(5, "a"), term(3, "b")]}
    scene = Scene(
        make_node("n1", labels={"a": "", "b": ""}), make_node("n2", labels={"b": ""}),
        make_node("n3"),
    )  # fmt: skip
    pod = asks(spec={"affinity": {"nodeAffinity": prefers}})
    assert scene.scores("NodeAffinityPriority", pod) == {"n1": 10, "n2": 3, "n3": 0}
    assert scene.scores("NodeAffinityPriority", asks()) == {"n1": 0, "n2": 0, "n3": 0}


def liking(weight):
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
    liked = [{"weight": abs(weight), "podAffinityTerm": term}]
    kind = "podAffinity" if weight > 0 else "podAntiAffinity"
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": liked}}}


@pytest.mark.parametrize(("weight", "scores"), [(5, (10, 5, 0)), (-5, (0, 5, 10))])
def test_inter_pod_affinity_prefers_the_node_with_the_most_matches(weight, scores):
    scene = Scene(
        *(make_node(f"n{i}", labels={"zone": f"z{i}"}) for i in (1, 2, 3)),
        *(asks(f"db{i}", node="n1", labels={"app": "db"}) for i in (1, 2)),
        asks("db3", node="n2", labels={"app": "db"}),
    )
    found = scene.scores("InterPodAffinityPriority", asks(spec=liking(weight)))
    assert tuple(found.values()) == scores


def test_only_pods_on_the_scored_nodes_count():
    """1.16 read only these nodes, even if other nodes are in the same zone."""
    scene = Scene(
        *(make_node(f"n{i}", labels={"zone": "z"}) for i in (1, 2, 3)),
        asks("db", node="n1", labels={"app": "db"}),
    )
    pod = asks(spec=liking(5))
    assert scene.scores("InterPodAffinityPriority", pod, ["n2", "n3"]) == {"n2": 0, "n3": 0}
    assert scene.scores("InterPodAffinityPriority", pod) == {"n1": 10, "n2": 10, "n3": 10}


# --- conditions of nodes ---------------------------------------------------------------------


def conditioned(kind, status):
    """A node with one condition."""
    node = make_node("n1")
    found = msgspec.structs.replace(node.status, conditions=(NodeCondition(kind, status),))
    return msgspec.structs.replace(node, status=found)


@pytest.mark.parametrize(
    ("kind", "status", "plugin", "reason"),
    [
        ("Ready", "True", "CheckNodeCondition", ""),
        ("Ready", "False", "CheckNodeCondition", "node(s) were not ready"),
        ("Ready", "Unknown", "CheckNodeCondition", "node(s) were not ready"),
        ("NetworkUnavailable", "False", "CheckNodeCondition", ""),
        ("NetworkUnavailable", "True", "CheckNodeCondition", "node(s) had unavailable network"),
        ("DiskPressure", "True", "CheckNodeDiskPressure", "node(s) had disk pressure"),
        ("DiskPressure", "False", "CheckNodeDiskPressure", ""),
        ("PIDPressure", "True", "CheckNodePIDPressure", "node(s) had pid pressure"),
        ("MemoryPressure", "True", "CheckNodeMemoryPressure", ""),
    ],
)
def test_node_conditions_reject_nodes(kind, status, plugin, reason):
    assert Scene(conditioned(kind, status)).reason(plugin, asks(), "n1") == reason


@pytest.mark.parametrize("requests", [{}, {"cpu": "0m", "memory": "0Mi"}])
def test_memory_pressure_rejects_best_effort_pods(requests):
    scene = Scene(conditioned("MemoryPressure", "True"))
    pod = make_pod("p", requests=requests)
    assert scene.reason("CheckNodeMemoryPressure", pod, "n1") == "node(s) had memory pressure"


def test_a_cordoned_node_rejects_pods_with_any_toleration():
    tolerates = {"tolerations": [{"operator": "Exists"}]}
    scene = Scene(make_node("n1", unschedulable=True))
    found = scene.reason("CheckNodeCondition", asks(spec=tolerates), "n1")
    assert found == "node(s) were unschedulable"


# --- both forms ------------------------------------------------------------------------------


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_results_per_node_equal_those_over_columns(seed):
    chance = Chance(seed)
    names = NODE_NAMES[: 1 + chance.below(len(NODE_NAMES))]
    pods = [any_pod(chance, name, chance.of(names)) for name in chance.some(POD_NAMES, 10)]
    scene = Scene(*(any_node(chance, name) for name in names), *pods)
    incoming, state = scene.info(any_pod(chance, "incoming")), CycleState()
    for point in scene.framework.scorers:
        scene.framework.run_pre_score(state, incoming, point.name, scene.rows)
        if point.name not in state.skipped_scores:
            many = point.many(state, incoming, scene.table, scene.rows).tolist()
            alone = [point.one(state, incoming, scene.table.at(row)) for row in scene.rows]
            if point.name != "InterPodAffinityPriority":  # which counts pods on these nodes only
                assert many == alone, point.name
            scores = point.normalize(state, incoming, np.array(many, np.int64))
            assert all(0 <= score <= 10 for score in scores), point.name
