"""Plugins give equal results per node, over columns of nodes, and over columns of shapes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.engine.core.status import Code
from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_table import EXACT_BELOW
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape_columns import ShapeColumns
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.random_cluster import NODE_NAMES, POD_NAMES, Chance, any_node, any_pod


def strategy(kind, **more):
    resources = [{"name": "cpu", "weight": 3}, {"name": "nvidia.com/gpu", "weight": 2}]
    return {"scoringStrategy": {"type": kind, "resources": resources, **more}}


SHAPE = [{"utilization": 0, "score": 10}, {"utilization": 70, "score": 3}]
FIT_ARGS = {
    "LeastAllocated of cpu and memory": {},
    "LeastAllocated of cpu and gpu": strategy("LeastAllocated"),
    "MostAllocated": strategy("MostAllocated"),
    "RequestedToCapacityRatio": strategy(
        "RequestedToCapacityRatio", requestedToCapacityRatio={"shape": SHAPE}
    ),
    "a resource left to others": {"ignoredResources": ["nvidia.com/gpu"]},
}


def serve_cluster(objects, args):
    cluster = Cluster()
    cluster.apply(ObjectsLoaded(objects))
    handle = PluginHandle(cluster, Nominator(), WaitingPods())
    return build_profile(Profile(args={"NodeResourcesFit": args}), handle, TieBreak(0)).framework


def any_cluster(chance):
    """Nodes with pods on them, and the number of the nodes."""
    names = NODE_NAMES[: 1 + chance.below(len(NODE_NAMES))]
    nodes = [any_node(chance, name) for name in names]
    pods = [any_pod(chance, name, chance.of(names)) for name in chance.some(POD_NAMES, 10)]
    return [*nodes, *pods], len(nodes)


@pytest.mark.parametrize("args", FIT_ARGS.values(), ids=FIT_ARGS)
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_results_per_node_equal_those_over_columns(args, seed):
    """Statuses with reasons, raw scores and skips; for any rows in any order."""
    chance = Chance(seed)
    objects, count = any_cluster(chance)
    framework = serve_cluster(objects, args)
    table = framework.cluster.table
    pod = any_pod(chance, "incoming")
    incoming = PodInfo(pod, framework.cluster.shapes.shape_of(pod))
    table.widen()  # the pod may ask for a resource that no node or pod has named before
    rows = np.array(chance.some(range(count), count) or [0], np.int64)
    state = CycleState()
    for plugin in framework.pre_filters:
        framework.run_pre_filter(state, incoming, plugin)
    for point in framework.filters:
        if point.name not in state.skipped_filters:
            assert verdicts_by_columns(point, state, incoming, table, rows) == [
                named(point, point.one(state, incoming, table.at(row))) for row in rows.tolist()
            ]
    for point in framework.scorers:
        framework.run_pre_score(state, incoming, point.name, rows)
        if point.name not in state.skipped_scores:
            found = point.many(state, incoming, table, rows)
            assert found.dtype == np.int64
            assert found.tolist() == [
                point.one(state, incoming, table.at(row)) for row in rows.tolist()
            ], point.name


@pytest.mark.parametrize("args", FIT_ARGS.values(), ids=FIT_ARGS)
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_results_per_shape_equal_those_for_many_shapes(args, seed):
    """Feasibility and raw scores are equal, for shapes that are added and dropped in any order."""
    chance = Chance(seed)
    objects, count = any_cluster(chance)
    framework = serve_cluster(objects, args)
    cluster = framework.cluster
    pods = [any_pod(chance, f"incoming-{i}") for i in range(2 + chance.below(20))]
    known = [PodInfo(pod, cluster.shapes.shape_of(pod)) for pod in pods]
    cluster.table.widen()
    shapes = ShapeColumns(cluster.table.resources)
    for pod in known:
        shapes.add(pod.shape)
    gone = chance.below(len(known))
    shapes.remove(gone)
    known[gone] = known[-1]
    row, state = chance.below(count), CycleState()
    node = cluster.table.at(row)
    calls = Counter()
    for point in framework.filters:
        if point.shapes is not None:
            mask = point.shapes(shapes, cluster.table, row)
            fits = [True] * (len(known) - 1) if mask is None else mask.tolist()
            assert fits == [named(point, point.one(state, pod, node)) is None for pod in known[:-1]]
            calls[point.name] += 1
            calls["all fit"] += mask is None
    for point in framework.scorers:
        found = None if point.shapes is None else point.shapes(shapes, cluster.table, row)
        if found is not None:
            assert found.tolist() == [point.one(state, pod, node) for pod in known[:-1]]
    assert calls["NodeResourcesFit"]


# Amounts of cpu (millicores) and memory (bytes): below, at and above the bound for dividing floats.
AMOUNTS = st.one_of(
    st.sampled_from((0, 1, 2, 3, 7, EXACT_BELOW - 1, EXACT_BELOW, EXACT_BELOW + 1)),
    st.integers(0, EXACT_BELOW - 1),
    st.integers(1, 1 << 55),
)


@settings(max_examples=100)
@given(
    offered=st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=4),
    requested=st.tuples(AMOUNTS, AMOUNTS),
    used=st.tuples(AMOUNTS, AMOUNTS),
)
def test_scores_of_all_forms_are_equal_for_any_amounts(offered, requested, used):
    """The scores of cpu and memory per node, over columns and per shape, exactly."""
    nodes = [
        make_node(f"n{i}", cpu=f"{cpu}m", memory=memory) for i, (cpu, memory) in enumerate(offered)
    ]
    requests = [{"cpu": f"{cpu}m", "memory": memory} for cpu, memory in (used, requested)]
    objects = [*nodes, make_pod("used", node="n0", requests=requests[0])]
    framework = serve_cluster(objects, {})
    cluster, state = framework.cluster, CycleState()
    pod = make_pod("incoming", requests=requests[1])
    incoming = PodInfo(pod, cluster.shapes.shape_of(pod))
    shapes = ShapeColumns(cluster.table.resources)
    shapes.add(incoming.shape)
    cluster.table.validate()
    for name in ("NodeResourcesFit", "NodeResourcesBalancedAllocation"):
        point = next(one for one in framework.scorers if one.name == name)
        expected = [point.one(state, incoming, node) for node in cluster.table.nodes()]
        rows = cluster.table.every_row()
        assert point.many(state, incoming, cluster.table, rows).tolist() == expected
        for row in rows.tolist():
            found = point.shapes(shapes, cluster.table, row)
            assert found is None or found.tolist() == [expected[row]]


def verdicts_by_columns(point, state, pod, table, rows):
    found = point.many(state, pod, table, rows)
    statuses = [found.statuses[code] if code else None for code in found.codes.tolist()]
    return [named(point, status) for status in statuses]


def named(point, status):
    """Return a status with its plugin and extension point; no status and success are equal."""
    if status is None or status.code is Code.SUCCESS:
        return None
    return status if status.plugin else status.by(point.name)
