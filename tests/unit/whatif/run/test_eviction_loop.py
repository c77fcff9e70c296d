"""Pods that tolerate a NoExecute taint for a while return to the tainted node for ever."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.question import what_if


@pytest.fixture
def answer(make, snapshot, write):
    """A node with three pods gets a NoExecute taint that they tolerate for ten seconds."""
    toleration = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10}
    web = make.workload("Deployment", replicas=3, tolerations=[toleration])
    node = make.node("a")
    tainted = write(
        "change.json", {**node, "spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}
    )
    change, horizon = ClusterChange(apply=(tainted,)), Conditions(horizon=seconds(1200))
    return what_if(snapshot(node, web), change, horizon)


def test_the_loop_is_named_once_with_its_workload_and_taint(answer):
    loops = [one for one in answer.changed.recurrences if one.kind == "evictions"]
    assert len(answer.changed.evicted) > 30
    [loop] = loops
    assert loop.message == (
        f"3 pods of deploy/default/web evicted and replaced {len(answer.changed.evicted)} "
        "times for the same reason: taint k:NoExecute (10s)"
    )
    assert not answer.changed.settled


def test_pods_that_are_evicted_once_are_no_loop(make, snapshot):
    pods = [make.pod(f"p{number}", node_name="a", owner="rs") for number in range(3)]
    answer = what_if(snapshot(make.node("a"), make.node("b"), *pods), ClusterChange(drain=("a",)))
    assert answer.changed.recurrences == ()
