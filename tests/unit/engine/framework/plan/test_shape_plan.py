"""ShapePlan: a plan that is kept between cycles equals a new plan."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.plan import shape_plan, static_results
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.random_cluster import Chance

NODES = [f"n{number}" for number in range(13)]  # enough for a pass over columns
SIZES = ("1", "500m", "2")
EMPTY = ("e1", "e2", "e3")  # nodes without pods, which come and go
IMAGE = "app:latest"  # the image of make_pod
MEBIBYTE = 1024 * 1024


def plans_of(cluster):
    return build_profile(Profile(), PluginHandle(cluster, Nominator()), TieBreak(0)).plans


def limited_to(*names):
    """Return the spec of a pod that may only run on the nodes `names`; () means all nodes."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]
    terms = {"nodeSelectorTerms": [{"matchFields": [field]} for field in fields]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"affinity": {"nodeAffinity": required}} if names else {}


def put_node(chance, cluster, name):
    """Put a node that may be cordoned and may have a taint."""
    effect = chance.of(["", "NoSchedule", "PreferNoSchedule"])
    taints = [f"key:{effect}"] if effect else []
    cpu, is_cordoned = chance.of([3, 4]), chance.one_in(4)
    images = {IMAGE: 400 * MEBIBYTE} if chance.one_in(2) else {}
    node = make_node(name, cpu=cpu, unschedulable=is_cordoned, taints=taints, images=images)
    cluster.apply(ObjectChanged(node))


def change(chance, cluster, placed, number):
    """Add or delete a pod or an empty node, or change a node or all nodes."""
    if chance.one_in(8):
        name = chance.of(EMPTY)
        if cluster.table.find(name) is None:
            put_node(chance, cluster, name)
        else:
            cluster.apply(ObjectDeleted(cluster.table.find(name).node))
    elif chance.one_in(10):
        for name in NODES if chance.one_in(4) else [chance.of(NODES)]:
            put_node(chance, cluster, name)
    elif placed and chance.one_in(3):
        cluster.apply(ObjectDeleted(placed.pop(chance.below(len(placed)))))
    else:
        requests = {"cpu": chance.of(SIZES)}
        placed.append(make_pod(f"p{number}", node=chance.of(NODES), requests=requests))
        cluster.apply(ObjectChanged(placed[-1]))


def verdicts(plan):
    return [plan.statuses[code] if code >= 0 else None for code in plan.codes.tolist()]


@pytest.fixture
def new_plan(monkeypatch):
    """Return a function that makes a new plan, whose results are computed in columns."""

    def make(cluster, info):
        with monkeypatch.context() as patch:
            for module in (shape_plan, static_results):
                patch.setattr(module, "_COLUMNS_FROM", 0)
            return plans_of(cluster).plan_for(info)

    return make


NAMED = {"all": (), "one": ("n3",), "some": ("n1", "n3", "n6"), "many": (*NODES, *EMPTY)}


@pytest.mark.parametrize("names", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("seed", range(4))
def test_a_kept_plan_equals_a_new_plan(names, seed, new_plan):
    """After random changes, an old plan has the results, counts and best nodes of a new one."""
    chance, cluster, placed = Chance(seed), Cluster(), []
    for name in NODES:
        cluster.apply(ObjectChanged(make_node(name, cpu=3)))
    pod = make_pod("waiting", requests={"cpu": "1"}, spec=limited_to(*names))
    info, kept = PodInfo(pod, cluster.shapes.shape_of(pod)), plans_of(cluster)
    masks: dict[int, np.ndarray] = {}  # by number of rows
    for number in range(120):
        for _ in range(1 + chance.below(3)):
            change(chance, cluster, placed, number)
        plan, new = kept.plan_for(info), new_plan(cluster, info)
        assert plan.total.tolist() == new.total.tolist()
        fits = new.codes == 0
        mask = masks.setdefault(len(fits), np.arange(len(fits)) % 2 == 0)
        assert verdicts(plan) == verdicts(new)
        for point in plan.static.live:
            raw, expected = (one.static.raw_scores[point.name] for one in (plan, new))
            assert raw[fits].tolist() == expected[fits].tolist()
        assert plan.count_feasible(mask) == np.count_nonzero(fits & mask)
        assert plan.count_feasible() == np.count_nonzero(fits)
        assert plan.count_feasible(mask) == plan.count_feasible(mask.copy())
        if fits.any():
            best = np.flatnonzero(new.total == new.total.max())
            assert list(plan.best_positions()) == best.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_kept_plans_of_many_shapes_equal_new_plans(seed):
    """The plans share the results of NODE plugins, and are updated at different times."""
    chance, cluster, placed = Chance(seed), Cluster(), []
    for name in NODES:
        cluster.apply(ObjectChanged(make_node(name, cpu=3)))
    pods = [make_pod(f"w{number}", requests={"cpu": f"{number}00m"}) for number in range(1, 31)]
    infos = [PodInfo(pod, cluster.shapes.shape_of(pod)) for pod in pods]
    kept = plans_of(cluster)
    for number in range(120):
        if chance.one_in(3):
            put_node(chance, cluster, chance.of(NODES))
        else:
            change(chance, cluster, placed, number)
        info = chance.of(infos)
        plan, new = kept.plan_for(info), plans_of(cluster).plan_for(info)
        assert plan.total.tolist() == new.total.tolist()
        assert verdicts(plan) == verdicts(new)
    assert any(kept.plan_for(info).matrix is not None for info in infos)


def test_another_taint_of_a_rejected_node_changes_no_result():
    """So the plan, and the matrix with the plans of other shapes, need not be updated."""
    cluster = Cluster()
    for name in NODES:
        cluster.apply(ObjectChanged(make_node(name, cpu=3)))
    pod = make_pod("waiting", requests={"cpu": "1"})
    info, kept = PodInfo(pod, cluster.shapes.shape_of(pod)), plans_of(cluster)
    cluster.apply(ObjectChanged(make_node("n1", cpu=3, taints=["key:NoSchedule"])))
    static = kept.plan_for(info).static
    changed_at = static.changed_at
    taints = ["key:NoSchedule", "other:NoExecute"]
    cluster.apply(ObjectChanged(make_node("n1", cpu=3, taints=taints)))
    assert verdicts(kept.plan_for(info)) == verdicts(plans_of(cluster).plan_for(info))
    assert static.changed_at == changed_at
    cluster.apply(ObjectChanged(make_node("n1", cpu=3)))
    assert verdicts(kept.plan_for(info)) == verdicts(plans_of(cluster).plan_for(info))
    assert static.changed_at > changed_at
