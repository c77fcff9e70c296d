"""Changes that `ClusterModel.repeat` makes again: the model is as if they were decided again."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import deployment

from fairlead.engine.core.tie_break import TieBreak
from fairlead.whatif.planner.node_drain.drain_planner import PlannedDrain

NODES = ("a", "b", "c", "d", "e")
SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 2,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "w1"}},
        }
    ]
}
PORT = {"containerPort": 80, "hostPort": 80}
LISTENS = {"containers": [{"name": "c", "image": "i", "ports": [PORT]}]}


def shuffled(choose):
    left = list(NODES)
    return [left.pop(choose.pick(len(left))) for _ in NODES]


def cluster(make, choose):
    """Return five nodes, a pod that waits, and three Deployments with pods on random nodes."""
    objects = [*(make.node(name, cpu="8") for name in NODES), make.pod("waits", cpu="1")]
    for number, spec in enumerate(({}, SPREAD, LISTENS)):
        nodes = shuffled(choose)[: 1 + choose.pick(3)]
        objects += deployment(make, f"w{number}", nodes, cpu=str(1 + choose.pick(2)), **spec)
    return objects


def state(model):
    """Return the pods, used ports and spec of each node, and the number of random choices."""
    model.table.validate()
    nodes = {
        info.name: (
            sorted((pod.key, pod.uid) for pod in info.pods.values()),
            sorted(info.used_ports),
            info.node.spec,
        )
        for info in model.table.nodes()
    }
    return nodes, sorted(model.cluster.pods), model._tie_break.choices


@pytest.mark.parametrize("seed", range(12))
def test_repeated_changes_equal_decided_changes(planner, make, seed):
    """Two nodes are emptied; the changes are reverted and repeated, and then a third is emptied."""
    choose = TieBreak(seed)
    first, second, third = shuffled(choose)[:3]
    plan = planner(*cluster(make, choose))
    model = plan.model
    before = state(model)
    recorded, decided = [], []
    with model.hypothesis():
        for name in (first, second):
            with model.hypothesis() as supposed:
                plan.empty(name)
                recorded.append(model.changes_since(supposed))
                supposed.commit()
            decided.append(state(model))
        expected = plan.empty(third)
    assert state(model) == before
    for _ in range(2):
        with model.hypothesis():
            for changes, after in zip(recorded, decided, strict=True):
                model.repeat(changes)
                assert state(model) == after
            assert plan.empty(third) == expected
        assert state(model) == before
    assert any(changes.made for changes in recorded)


def test_repeated_changes_are_kept_outside_a_hypothesis(planner, make):
    plan = planner(*map(make.node, NODES), *deployment(make, "web", ["a", "a"]))
    with plan.model.hypothesis() as supposed:
        assert isinstance(plan.empty("a"), PlannedDrain)
        changes, after = plan.model.changes_since(supposed), state(plan.model)
    plan.model.repeat(changes)
    assert state(plan.model) == after
    assert not plan.evicted("a")
