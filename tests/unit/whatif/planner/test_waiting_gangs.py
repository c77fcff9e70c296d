"""Consolidation keeps room for gangs that wait, because they start only as a whole."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import budget, deployment
from tests.unit.whatif.planner.test_consolidate import consolidated

from fairlead.engine.configuration.default_config import default_config
from fairlead.engine.configuration.release import Release
from fairlead.engine.workloads.disruption.budget_room import BudgetRoom
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.consolidate import consolidate_answer
from fairlead.whatif.planner.node_drain.drain_planner import BlockCause, DrainPlanner
from fairlead.whatif.planner.waiting_pods import place_waiting_gangs, place_waiting_pods

GANGS = default_config(Release(gates={"GenericWorkload": True, "GangScheduling": True}), {})
KEPT = (BlockCause.WAITING_GANG, "rs/default/train")


def train(make, waiting, *, cpu="4", **spec):
    """A ReplicaSet of Volcano with `waiting` pods."""
    spec = {"schedulerName": "volcano", **spec}
    owner = make.workload("ReplicaSet", "train", replicas=waiting, cpu=cpu, **spec)
    owner["metadata"]["uid"] = "train"
    pods = [make.pod(f"train-{n}", cpu=cpu, owner="train", **spec) for n in range(waiting)]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "train"}
    return [owner, *pods]


def room_kept(planner):
    planner.keep_room_for_gangs()
    return planner


@pytest.fixture
def cluster(make):
    """One node runs a pod, two nodes are empty."""
    return [*map(make.node, "abc"), *deployment(make, "web", ["a"])]


def test_nodes_with_room_for_a_waiting_gang_stay(planner, make, cluster):
    """The gang needs three whole nodes, and only b and c are empty."""
    made = room_kept(planner(*cluster, *train(make, 3)))
    found = consolidated(made)
    assert found.removable == []
    kept = {one.node: (one.cause, one.owner) for one in found.blockers}
    assert (kept["b"], kept["c"]) == (KEPT, KEPT)
    answer = consolidate_answer(found, made.model, "dump.json", ())
    assert (
        "The plan keeps room for 2 of the 3 waiting pods of rs/default/train, which start only "
        "with their gang." in answer.findings
    )
    assert answer.to_json()["waiting_gangs"] == [
        {"workload": "rs/default/train", "waiting": 3, "fitting": 2}
    ]
    assert answer.to_json()["causes"][0] == {"cause": KEPT[0], "nodes": 2, "alone": 2}


def test_without_the_rule_the_same_nodes_can_be_removed(planner, make, cluster):
    found = consolidated(planner(*cluster, *train(make, 3)))
    assert len(found.removable) == 2
    assert found.gangs == []


def test_room_for_a_gang_may_move_to_another_node(planner, make, cluster):
    """The members fit on one node, with the pod of web: the other two nodes are not needed."""
    made = room_kept(planner(*cluster, *train(make, 2, cpu="1")))
    found = consolidated(made)
    assert len(found.removable) == 2
    moved = {move.workload for drain in found.plan.drains for move in drain.moves}
    assert "rs/default/train" not in moved
    assert (
        "The plan keeps room for the 2 waiting pods of rs/default/train, which start only with "
        "their gang; --ignore waiting-gangs does not."
    ) in consolidate_answer(found, made.model, "dump.json", ()).findings


def test_a_member_without_a_node_is_not_evicted(planner, make, cluster):
    """So its budget, its local storage and its missing controller keep no node."""
    local = {"volumes": [{"name": "scratch", "hostPath": {"path": "/scratch"}}]}
    owner, *pods = train(make, 2, cpu="1", **local)
    pods[0]["metadata"]["ownerReferences"] = []
    never = budget("train", maxUnavailable=0)
    never["spec"]["selector"] = {"matchLabels": {"app": "train"}}
    made = room_kept(planner(*cluster, owner, *pods, never))
    found = consolidated(made)
    assert [one for one in found.blockers if one.cause is not BlockCause.WAITING_GANG] == []
    assert [drain.lost for drain in found.plan.drains] == [()] * len(found.removable)
    assert len(found.removable) == 2


def test_a_gang_of_the_default_scheduler_that_does_not_fit_keeps_room(snapshot, make, cluster):
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    default = {
        "schedulerName": "default-scheduler",
        "schedulingGroup": {"podGroupName": "g"},
    }
    read = snapshot(*cluster, group, *train(make, 3, **default))
    model = ClusterModel(read, GANGS)
    place_waiting_pods(model)
    planner = room_kept(DrainPlanner(model, BudgetRoom(model.current_objects(), model.now)))
    kept = {one.node for one in consolidated(planner).blockers if one.cause is KEPT[0]}
    assert kept == {"b", "c"}


def test_a_gang_that_fits_as_a_whole_comes_first(planner, make):
    """Of two nodes, `big` needs three and `small` needs two."""
    small, big = train(make, 2), train(make, 3, priority=9)
    for one in big:
        one["metadata"]["name"] = one["metadata"]["name"].replace("train", "big")
    big[0]["metadata"]["uid"] = "big"
    for pod in big[1:]:
        pod["metadata"]["ownerReferences"][0] |= {"name": "big", "uid": "big"}
    made = planner(*map(make.node, "ab"), *big, *small)
    [kept] = place_waiting_gangs(made.model)
    assert (kept.workload, kept.waiting, len(kept.fitting)) == ("rs/default/train", 2, 2)
