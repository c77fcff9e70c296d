"""Upgrade checks: every node by itself, with surge nodes of its pool."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.whatif.planner.conftest import budget, daemon_pod, deployment

from fairlead.api.well_known_label import ZONE
from fairlead.engine.core.instant import seconds
from fairlead.whatif.planner.node_drain.drain_plan import run_plan
from fairlead.whatif.planner.node_drain.drain_planner import BlockCause
from fairlead.whatif.planner.node_drain.upgrade_check import (
    budgets_on,
    check_nodes,
    pools_of,
    surge_nodes,
    upgrade_answer,
)
from fairlead.whatif.run.progress import NoProgress


def checked(planner, surge=1):
    pools = pools_of(planner.model, "")
    names = [info.name for info in planner.model.table.nodes()]
    return check_nodes(planner, pools, surge_nodes(pools, surge), names, NoProgress())


def test_nodes_that_are_alike_are_a_pool(planner, make):
    made = planner(make.node("a", disk="ssd"), make.node("b", disk="ssd"), make.node("c", cpu="8"))
    pools = pools_of(made.model, "")
    assert [[info.name for info in found] for found in pools.values()] == [["a", "b"], ["c"]]
    assert list(pools_of(made.model, "disk")) == ["", "ssd"]


def test_a_surge_node_makes_room_in_its_own_pool(planner, make):
    """Both nodes are full; the surge node takes the pods, but for its DaemonSet's share.

    Without it, the pods wait until their node returns.
    """
    full = [make.node("a"), make.node("b"), daemon_pod(make, "a"), daemon_pod(make, "b")]
    full += deployment(make, "web", ["a", "a", "a", "b", "b", "b"])
    waiting = [len(drain.waits) for drain in checked(planner(*full), surge=0).drains]
    assert waiting == [3, 3]
    assert [drain.waits for drain in checked(planner(*full), surge=1).drains] == [(), ()]


def pinned_to_a(make, **spec):
    """Two nodes, and a pod that only node a takes."""
    pinned = {"kubernetes.io/hostname": "a"}
    first = make.node("a", **pinned)
    first["spec"] = spec
    second = make.node("b", **{"kubernetes.io/hostname": "b"})
    return [first, second, *deployment(make, "db", ["a"], nodeSelector=pinned)]


TAINTED = {"taints": [{"key": "example.com/broken", "effect": "NoSchedule"}]}


def test_a_pod_that_even_surge_cannot_place_is_down_until_its_node_is_back(
    planner, experiment, make
):
    """Its eviction succeeds, and the returned node takes it: 30 s to stop, 5m away."""
    objects = pinned_to_a(make)
    plan = checked(planner(*objects))
    assert plan.blockers == []
    assert [drain.waits for drain in plan.drains] == [("default/db-1-0",), ()]
    run_plan(plan, experiment(*objects), NoProgress(), at_once=1, away=seconds(300))
    found = upgrade_answer(plan, (), 0, "dump.yaml", ()).to_json()
    assert found["verdict"].endswith("passes in 10m30s.")
    down = "1 pod of deploy/default/db fits on no other node and is down until its node is back"
    assert f"{down} (5m30s)." in found["findings"]
    [row] = found["waits"]
    assert (row["pods"], row["on"], row["down_s"]) == (["default/db-1-0"], ["a"], 330)


@pytest.mark.parametrize("spec", [TAINTED, {"unschedulable": True}])
def test_a_pod_that_its_returned_node_does_not_take_is_named(planner, make, spec):
    [blocker] = checked(planner(*pinned_to_a(make, **spec))).blockers
    assert (blocker.node, blocker.cause) == ("a", BlockCause.NO_PLACE)


def test_only_budgets_of_pods_on_the_nodes_count(planner, make):
    made = planner(
        *(make.node("a"), make.node("b"), daemon_pod(make, "b")),
        *deployment(make, "web", ["a"]),
        *deployment(make, "one", ["b"]),
        *(budget("web", maxUnavailable=0), budget("one", maxUnavailable=1)),
        *(budget("none", maxUnavailable=0), budget("agent", maxUnavailable=0)),
    )
    assert [one.key for one in budgets_on(made, ["b"])] == ["default/one"]
    assert [one.key for one in budgets_on(made, ["b", "a"])] == ["default/one", "default/web"]


@pytest.mark.parametrize(("surge", "even"), [(0, ""), (1, ", even on surge nodes")])
def test_surge_nodes_are_named_only_if_there_are_any(planner, make, surge, even):
    plan = checked(planner(*pinned_to_a(make, **TAINTED)), surge=surge)
    found = upgrade_answer(plan, (), surge, "dump.yaml", ()).to_json()["findings"]
    assert f"The pods of 1 workload fit on no other node{even}." in found


def test_the_answer_names_budgets_single_replicas_and_time(planner, experiment, make):
    objects = [
        make.node("a"),
        make.node("b"),
        *deployment(make, "web", ["a", "b"]),
        *deployment(make, "one", ["a"]),
        *deployment(make, "strict", ["b"]),
        budget("strict", maxUnavailable=0),
    ]
    made = planner(*objects)
    pools = pools_of(made.model, "")
    surge = surge_nodes(pools, 1)
    plan = check_nodes(made, pools, surge, ["a", "b"], NoProgress())
    base = experiment(*objects)
    added = [
        manifest
        for found in surge.values()
        for one in found
        for manifest in one.manifests(made.model)
    ]
    run_plan(
        plan, replace(base, initial=(*base.initial, *added)), NoProgress(),
        at_once=1, away=seconds(300),
    )  # fmt: skip
    found = upgrade_answer(plan, made.budgets.limits(), 1, "dump.yaml", ()).to_json()
    assert found["verdict"] == (
        "An upgrade of 2 nodes one at a time, with 1 surge node in each pool, stops: 1 node cannot "
        "be drained."
    )
    assert found["findings"] == [
        "1 budget never allows an eviction: default/strict.",
        "Draining the other node takes 5m30s.",
        "1 workload with one replica will stop while its pod moves.",
    ]
    assert [row["pdb"] for row in found["never"]] == ["default/strict"]
    assert [row["workload"] for row in found["stopped"]] == ["deploy/default/one"]


def not_ready(node):
    """`node` as its controller leaves it when its kubelet is silent; it is the newest one."""
    node["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "Silent"}]
    return node


def test_the_answer_names_a_node_that_never_becomes_empty(planner, experiment, make):
    """The kubelet of a does not answer; b cannot be drained at all."""
    silent = not_ready(make.node("a"))
    objects = [silent, make.node("b"), *deployment(make, "web", ["a"])]
    objects += [*deployment(make, "strict", ["b"]), budget("strict", maxUnavailable=0)]
    plan = checked(planner(*objects), surge=0)
    run_plan(plan, experiment(*objects), NoProgress(), at_once=1, away=seconds(300))
    found = upgrade_answer(plan, (), 0, "dump.yaml", ()).to_json()
    because = "a never becomes empty (its kubelet does not answer, so pods never stop)"
    assert f"Draining the other node never ends: {because}." in found["findings"]
    [pace] = found["paces"]
    assert (pace["result"], pace["unfinished"], pace["silent"]) == (because, ["a"], ["a"])


def test_the_answer_names_pods_that_are_gone_for_good(planner, make):
    plan = checked(planner(make.node("a"), make.pod("bare", node_name="a")))
    assert upgrade_answer(plan, (), 1, "dump.yaml", ()).to_json()["findings"] == [
        "kubectl drain needs --force (1 pod).",
        "default/bare has no controller and will be gone for good.",
    ]


def test_a_surge_node_is_a_copy_of_a_ready_node(planner, make):
    made = planner(make.node("a"), not_ready(make.node("b")), daemon_pod(make, "a"))
    [[surge]] = surge_nodes(pools_of(made.model, ""), 1).values()
    assert [pod.metadata.name for pod in surge.daemon_pods] == ["agent-a-surge-pool-1-1"]


def test_a_surge_node_is_ready_even_if_no_node_of_its_pool_is(planner, make):
    made = planner(not_ready(make.node("b")))
    [[surge]] = surge_nodes(pools_of(made.model, ""), 1).values()
    [condition] = surge.node.status.conditions
    assert (condition.status, condition.reason) == ("True", "KubeletReady")


def test_nodes_that_differ_in_place_only_are_a_pool(planner, make):
    places = ({ZONE: "x", "disk": "ssd"}, {ZONE: "y", "disk": "ssd"}, {ZONE: "x"})
    nodes = [make.node(name, **labels) for name, labels in zip("abc", places, strict=True)]
    pools = pools_of(planner(*nodes).model, "")
    assert [[info.name for info in found] for found in pools.values()] == [["a", "b"], ["c"]]


def test_surge_nodes_have_valid_names(planner, make):
    """A label value may contain what the name of a node may not."""
    made = planner(make.node("a", pool="Web_Pool.1"))
    [[surge]] = surge_nodes(pools_of(made.model, "pool"), 1).values()
    assert surge.node.metadata.name == "surge-web-pool-1-1-1"
