"""Dry runs on many nodes at once find what dry runs on each node find."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import PodDisruptionBudget
from fairlead.engine.core.status import Status
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.scheduling.compose import PluginHandle, serve
from fairlead.engine.scheduling.evaluation import evaluate
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.preemption import victim_columns
from fairlead.engine.scheduling.preemption.victim_columns import guarded_rows
from fairlead.engine.scheduling.preemption.victims import select_victims_on_node
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.random_cluster import Chance

NODES = [f"n{number:02}" for number in range(60)]


def budget(allowed):
    """A budget that allows to disrupt so many of the guarded pods."""
    return decode_as(
        PodDisruptionBudget,
        {
            "metadata": {"name": "guard", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "guarded"}}},
            "status": {"disruptionsAllowed": allowed},
        },
    )


def any_pod(chance, name):
    """A pod on some node; pods of different sizes have the same priority and start."""
    return make_pod(
        name,
        node=chance.of(NODES),
        priority=chance.of([1, 1, 2, 3, 10]),
        labels={"app": chance.of(["a", "a", "a", "guarded"])},
        requests={"cpu": chance.of(["300m", "700m", "1100m"]), "memory": chance.of(["1Gi", "2Gi"])},
        status={"startTime": chance.of(["2026-01-01T00:00:00Z", "2026-01-01T00:00:07Z"])},
    )


def by_node(served, pod):
    """The candidates and refusals that a trial on each potential node finds."""
    framework, found = served.framework, find_nodes_that_fit(served.plans, pod)
    table, budgets = framework.cluster.table, framework.cluster.budgets()
    potential = evaluate(served, pod).preemption.potential_nodes
    return {
        name: select_victims_on_node(framework, found.state, pod, table.find(name), budgets)
        for name in potential
    }


def at_once(served, pod):
    """The same, as the search for a nomination finds them."""
    search = evaluate(served, pod).preemption
    return {**search.candidates, **search.rejected}


def test_a_budget_whose_pods_are_all_gone_guards_no_node():
    """The index keeps their labels for a while."""
    cluster, pod = Cluster(), make_pod("p", node="n00", labels={"app": "guarded"})
    for stimulus in (ObjectChanged(make_node("n00")), ObjectChanged(pod)):
        cluster.apply(stimulus)
    assert guarded_rows(cluster.table, [budget(0)]).tolist().count(True) == 1
    cluster.apply(ObjectDeleted(pod))
    assert not guarded_rows(cluster.table, [budget(0)]).any()


@pytest.mark.parametrize("seed", range(3))
def test_many_nodes_are_evaluated_as_each_is(seed):
    """Also after pods, budgets and nominations have changed."""
    chance, cluster, nominator = Chance(seed), Cluster(), Nominator()
    for name in NODES:
        cluster.apply(ObjectChanged(make_node(name, cpu=4, memory="8Gi", pods=chance.of([3, 9]))))
        lasting = make_pod(f"lasting-{name}", node=name, priority=2, requests={"cpu": "300m"})
        cluster.apply(ObjectChanged(lasting))  # so that nothing fits without preemption
    served = serve(Profile(), PluginHandle(cluster, nominator, WaitingPods()), TieBreak(0))
    placed = {}
    for number in range(480):
        placed[number] = any_pod(chance, f"p{number}")
        cluster.apply(ObjectChanged(placed[number]))
    if seed:
        cluster.apply(ObjectChanged(budget(0)))
    seen = set()
    for step in range(6):
        wanted = {"cpu": chance.of(["3800m", "4", "5"]), "memory": "2Gi"}
        waiting = make_pod(f"new-{step}", priority=chance.of([3, 9]), requests=wanted)
        pod = PodInfo(waiting, cluster.shapes.shape_of(waiting))
        found = at_once(served, pod)
        assert found == by_node(served, pod)
        seen |= {type(answer) for answer in found.values()}
        nominator.nominate(pod, chance.of(NODES))
        if seed:
            cluster.apply(ObjectChanged(budget(chance.below(4))))
        for _ in range(30):
            gone = chance.of(sorted(placed))
            cluster.apply(ObjectDeleted(placed.pop(gone)))
            placed[1_000 * (step + 1) + gone] = new = any_pod(chance, f"q{step}-{gone}")
            cluster.apply(ObjectChanged(new))
    assert Status in seen
    assert len(seen) > 1


def test_shapes_of_deleted_pods_are_dropped(monkeypatch):
    """Otherwise the columns of a scheduler that runs for months would grow."""
    monkeypatch.setattr(victim_columns, "_KINDS_SPARE", 4)
    cluster = Cluster()
    cluster.apply(ObjectChanged(make_node("n")))
    columns = victim_columns.VictimColumns(cluster.table)
    for number in range(40):
        pod = make_pod("p", node="n", requests={"cpu": f"{100 + number}m"})
        cluster.apply(ObjectChanged(pod))
        assert columns.refresh()
        cluster.apply(ObjectDeleted(pod))
    assert len(columns._kinds) <= 2 * 2 + 4 + 1
