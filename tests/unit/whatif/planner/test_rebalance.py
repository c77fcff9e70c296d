"""Rebalancing: few moves within budgets, each with a gain; pending pods have precedence."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import budget, deployment, least_cpu, rebalanced

from fairlead.api.well_known_label import ARCH, OS
from fairlead.engine.core.tie_break import TieBreak
from fairlead.whatif.outcome.image_platform import ImagePlatforms
from fairlead.whatif.planner.node_drain.autoscaler_rule import IgnoredRule
from fairlead.whatif.planner.rebalance import rebalance_answer


def moved(plan):
    return [(one.move.origin, one.move.target) for one in plan.moves]


def test_one_move_balances_two_nodes(planner, make):
    """Of four pods, one moves, so that each node has two; a second move would gain nothing."""
    made = planner(*map(make.node, ("a", "b")), *deployment(make, "web", ["a", "a", "a", "b"]))
    plan = rebalanced(made)
    assert moved(plan) == [("a", "b")]
    assert (plan.before.fullest, plan.after.fullest) == (0.75, 0.5)
    assert plan.after.deviation == 0
    assert plan.moves[0].gain == pytest.approx(0.75**2 + 0.25**2 - 2 * 0.5**2)


@pytest.mark.parametrize("size", [{"cpu": "0"}, {"cpu": "0", "memory": "0"}])
def test_a_node_without_cpu_or_memory_has_no_load(planner, make, size):
    """Its share would be infinite; the loads of the other nodes decide."""
    nodes = (make.node("a"), make.node("b"), make.node("empty", **size))
    plan = rebalanced(planner(*nodes, *deployment(make, "web", ["a", "a", "a", "b", "empty"])))
    assert moved(plan) == [("a", "b")]
    assert (plan.before.fullest, plan.after.fullest) == (0.75, 0.5)


def test_a_moved_pod_without_a_controller_is_named(planner, make):
    """Its eviction would lose it."""
    pods = [make.pod(name, cpu="2", node_name="a") for name in ("p", "q")]
    made = planner(make.node("a"), make.node("b"), *pods)
    plan = rebalanced(made, ignored=(IgnoredRule.UNMANAGED,))
    [one] = plan.moves
    found = rebalance_answer(plan, "dump.yaml", ()).to_json()["findings"]
    assert f"{one.move.pod} has no controller: create it again after the eviction." in found


def test_a_large_node_does_not_become_the_fullest(planner, make):
    """The large node is fuller than the small one, so a pod of the small node does not move."""
    made = planner(
        *(make.node("large", cpu="20"), make.node("small", cpu="4")),
        *deployment(make, "big", ["large"], cpu="15"),
        *deployment(make, "web", ["small", "small"]),
    )
    assert rebalanced(made).moves == []


def test_no_move_makes_its_target_fuller_than_its_origin_was(planner, make):
    """The pod is a tenth of the large node, but over half of the small one."""
    made = planner(
        *(make.node("large", cpu="20"), make.node("small", cpu="4")),
        *deployment(make, "web", ["large"] * 5, cpu="2300m"),
    )
    assert rebalanced(made).moves == []


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_a_node_that_is_not_ready_does_not_count(planner, make, ready):
    """It takes no pods, so its load says nothing about the room for pods."""
    lost = make.node("lost")
    lost["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    objects = [*map(make.node, ("a", "b")), *deployment(make, "web", ["lost"] * 4 + ["a", "b"])]
    plan = rebalanced(planner(lost, *objects))
    assert (plan.moves, plan.before.fullest, plan.before.deviation) == ([], 0.25, 0)


def test_a_virtual_node_does_not_count(planner, make):
    """Beside its thousands of cores, every other node would be full."""
    virtual = make.node("v", cpu="10k", type="virtual-kubelet")
    objects = [*map(make.node, ("a", "b")), *deployment(make, "web", ["a", "a", "b", "b"])]
    plan = rebalanced(planner(virtual, *objects))
    assert (plan.moves, plan.before.fullest, plan.before.deviation) == ([], 0.5, 0)


def test_no_pod_moves_to_a_cordoned_node_for_the_balance(planner, make):
    """The pods tolerate the cordon, and the loads of cordoned nodes do not count."""
    cordoned = make.node("c")
    cordoned["spec"] = {"unschedulable": True}
    tolerations = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    pods = deployment(make, "web", ["a", "a", "b", "b"], tolerations=tolerations)
    assert rebalanced(planner(cordoned, *map(make.node, "ab"), *pods)).moves == []


def test_no_pod_moves_from_a_node_whose_kubelet_does_not_answer(planner, make):
    """The evicted pod never stops, although another pod would have room in its place."""
    lost, pod = make.node("lost"), make.pod("big", cpu="4")
    objects = [lost, make.node("a", cpu="3"), *deployment(make, "web", ["lost"])]
    assert len(rebalanced(planner(*objects, pod)).moves) == 1
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert rebalanced(planner(*objects, pod)).moves == []


def test_even_nodes_need_no_move(planner, make):
    made = planner(*map(make.node, ("a", "b")), *deployment(make, "web", ["a", "b"]))
    assert rebalanced(made).moves == []


def test_a_waiting_pod_gets_room_by_one_move(planner, make):
    """Each node has two cores free; the waiting pod needs three, so a pod of one core moves."""
    made = planner(
        *map(make.node, ("a", "b")),
        *deployment(make, "web", ["a", "a", "b", "b"]),
        make.pod("big", cpu="3"),
    )
    plan = rebalanced(made, moves=1)
    assert [one.placed for one in plan.moves] == ["default/big"]
    assert (plan.before.waiting, plan.after.waiting) == (1, 0)


def test_a_budget_without_room_forbids_the_move(planner, make):
    objects = [*map(make.node, ("a", "b")), *deployment(make, "web", ["a", "a", "a", "b"])]
    assert rebalanced(planner(*objects, budget("web", maxUnavailable=0))).moves == []
    assert len(rebalanced(planner(*objects, budget("web", maxUnavailable=1))).moves) == 1


def test_an_annotation_forbids_the_move(planner, make):
    objects = [*map(make.node, ("a", "b")), *deployment(make, "web", ["a", "a", "a", "b"])]
    for pod in objects[-4:]:
        pod["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    assert rebalanced(planner(*objects)).moves == []


def test_the_number_of_moves_is_limited(planner, make):
    objects = [*map(make.node, ("a", "b", "c")), *deployment(make, "web", ["a"] * 4)]
    assert len(rebalanced(planner(*objects), moves=1).moves) == 1


@pytest.mark.parametrize("seed", range(5))
def test_every_move_gains_and_leaves_the_model_consistent(planner, make, seed):
    """On random clusters the deviation never rises, and no pod is lost."""
    pick = TieBreak(seed).pick
    names = [f"n{number}" for number in range(5)]
    objects = [make.node(name, cpu=str(6 + pick(4))) for name in names]
    for number in range(4):
        places = [names[pick(5)] for _ in range(1 + pick(4))]
        objects += deployment(make, f"w{number}", places, cpu=("500m", "1")[pick(2)])
    made = planner(*objects)
    before = sum(len(info.pods) for info in made.model.table.nodes())
    plan = rebalanced(made)
    assert all(one.gain > 0 for one in plan.moves)
    assert plan.after.fullest <= plan.before.fullest
    assert plan.after.deviation <= plan.before.deviation
    assert plan.after.squares <= plan.before.squares
    assert sum(len(info.pods) for info in made.model.table.nodes()) == before
    made.model.table.validate()


def test_the_answer_has_a_gain_for_each_move(planner, make):
    made = planner(*map(make.node, ("a", "b")), *deployment(make, "web", ["a", "a", "a", "b"]))
    found = rebalance_answer(rebalanced(made), "dump.yaml", ()).to_json()
    assert found["verdict"] == "1 move takes the fullest node from 75% to 50%."
    assert found["before"]["deviation"] == 0.25
    [row] = found["moves"]
    assert (row["from"], row["to"], row["points"]) == ("a", "b", "25.00")


def test_the_answer_says_which_rules_keep_pods(planner, make):
    objects = [*map(make.node, ("a", "b")), *deployment(make, "web", ["a", "a", "a", "b"])]
    for pod in objects[-4:]:
        pod["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    found = rebalance_answer(rebalanced(planner(*objects)), "dump.yaml", ())
    assert found.findings[-1] == (
        "4 pods stay where they are because of a rule that --ignore local-storage lifts."
    )
    assert found.verdict.startswith("No allowed move of one pod gives a waiting pod a place or")
    objects[-1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = rebalance_answer(rebalanced(planner(*objects)), "dump.yaml", ())
    assert found.findings[-1].startswith("3 pods stay")  # a pod that stops needs no move


IGNORE_DRAINS = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}],
}

FAILS_KILLED = {
    "rules": [{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}],
}


def training(make, annotations=None, **limits):
    """Two nodes, and a Job with four pods on the first one."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default", "uid": "train"},
        "spec": {"parallelism": 4, "completions": 4, "template": template, **limits},
    }
    pods = [
        make.pod(f"train-{number}", node_name="a", owner="train", restartPolicy="Never")
        for number in range(4)
    ]
    for pod in pods:
        pod["metadata"]["annotations"] = annotations or {}
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    return [make.node("a"), make.node("b"), job, *pods]


FAILS_137 = {
    "rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [137]}}],
}
TERMINATES_SOON = {
    "apiVersion": "kwok.x-k8s.io/v1alpha1",
    "kind": "Stage",
    "metadata": {"name": "delete"},
    "spec": {
        "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
        "selector": {
            "matchExpressions": [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}]
        },
        "delay": {"durationMilliseconds": 2000},
        "next": {"delete": True},
    },
}


@pytest.mark.parametrize(
    ("annotations", "stages", "moves"),
    [
        pytest.param({}, (), 0, id="killed after the grace period"),
        pytest.param({"fairlead.dev/stop-duration": "2s"}, (), 2, id="ends at SIGTERM"),
        pytest.param({"fairlead.dev/stop-duration": "40s"}, (), 0, id="ends too late"),
        pytest.param({}, (TERMINATES_SOON,), 2, id="a KWOK Stage ends it"),
    ],
)
def test_the_exit_code_of_an_evicted_pod_is_that_of_the_simulation(
    planner, make, annotations, stages, moves
):
    """SIGTERM and SIGKILL give the exit codes 143 and 137; the grace period is 30 s."""
    plan = rebalanced(
        planner(*training(make, podFailurePolicy=FAILS_137, annotations=annotations), *stages)
    )
    assert len(plan.moves) == moves


@pytest.mark.parametrize(
    ("limits", "moves"),
    [
        pytest.param({"backoffLimit": 0}, 0, id="the Job would fail"),
        pytest.param({"backoffLimit": 1}, 1, id="the Job survives one eviction, but not two"),
        pytest.param({}, 2, id="the default limit is 6"),
        pytest.param(
            {"backoffLimit": 0, "podFailurePolicy": IGNORE_DRAINS}, 2, id="evictions do not count"
        ),
        pytest.param({"podFailurePolicy": FAILS_KILLED}, 0, id="an exit code fails the Job"),
    ],
)
def test_no_move_fails_a_job(planner, make, limits, moves):
    """An evicted pod counts as failed; a failed Job does not replace it."""
    plan = rebalanced(planner(*training(make, **limits)))
    assert len(plan.moves) == moves
    findings = rebalance_answer(plan, "dump.yaml", ()).to_json()["findings"]
    kept = "4 pods stay where they are: their Jobs would not replace them."
    assert (kept in findings) is (moves == 0)


@pytest.mark.parametrize(
    ("hard", "moves"),
    [
        pytest.param({"requests.cpu": "4"}, 1, id="the quota has room when the old pod is gone"),
        pytest.param({"requests.cpu": "3"}, 0, id="the quota was lowered after the creation"),
        pytest.param({"limits.memory": "9Gi"}, 0, id="the containers have no memory limit"),
        pytest.param({"services": "1"}, 1, id="the quota does not count pods"),
    ],
)
def test_no_pod_moves_that_a_quota_would_not_admit_again(planner, make, hard, moves):
    """Otherwise the move would lose the pod."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": "default"},
        "spec": {"hard": hard},
    }
    objects = [*map(make.node, ("a", "b")), *deployment(make, "web", ["a", "a", "a", "b"])]
    plan = rebalanced(planner(*objects, quota))
    assert len(plan.moves) == moves
    findings = rebalance_answer(plan, "dump.yaml", ()).to_json()["findings"]
    why = "4 pods stay where they are: their controllers could not replace them ("
    assert any(one.startswith(why) for one in findings) is (moves == 0)


def test_no_pod_moves_that_the_api_server_would_refuse(planner, make):
    """The LimitRange is newer than the pods."""
    objects = [make.node("a"), make.node("b"), *deployment(make, "web", ["a", "a"])]
    assert len(rebalanced(planner(*objects)).moves) == 1
    plan = rebalanced(planner(*objects, least_cpu("2")))
    assert (plan.moves, len(plan.refused)) == ([], 2)


def test_a_quota_counts_the_pods_of_the_template_that_replace_resized_pods(planner, make):
    """After the first move, the quota has no room for a second pod of two cores."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": "default"},
        "spec": {"hard": {"requests.cpu": "5"}},
    }
    nodes = (make.node("a", cpu="8"), make.node("b", cpu="8"), make.node("c", cpu="8"))
    objects = deployment(make, "web", ["a"] * 4, cpu="2")
    for pod in objects[-4:]:
        pod["metadata"]["generation"] = 2
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    assert len(rebalanced(planner(*nodes, *objects)).moves) == 2
    assert len(rebalanced(planner(*nodes, *objects, quota)).moves) == 1


def test_a_waiting_pod_gets_no_place_on_a_platform_on_which_its_image_does_not_run(
    planner, snapshot, make
):
    """A pod of the only node with room for the waiting pod could move, but that node is Windows."""
    linux, windows = ({OS: os, ARCH: "amd64"} for os in ("linux", "windows"))
    nodes = [make.node("a", "5500m", **linux), make.node("w", **windows)]
    web = deployment(make, "web", ["a"], cpu="3")
    waiting = make.pod("web-1-1", cpu="3", owner="web-1")
    waiting["metadata"]["ownerReferences"][0]["uid"] = "web-1-uid"
    waiting["metadata"]["labels"] = web[-1]["metadata"]["labels"]
    open_pods = deployment(make, "open", ["w"], cpu="2")
    for pod in (*web, waiting):
        for spec in (pod["spec"], pod["spec"].get("template", {}).get("spec", {})):
            for container in spec.get("containers", ()):
                container["image"] = "web:1"
    objects = [*nodes, *web, waiting, *open_pods]
    ran_on_both = make.pod("ran", cpu="0", node_name="a")
    images = ImagePlatforms.of(snapshot(*objects, ran_on_both).manifests)
    assert moved(rebalanced(planner(*objects))) == [("w", "a")]
    plan = rebalanced(planner(*objects), images=images)
    assert moved(plan) == []
    assert plan.mismatched == ("deploy/default/web",)


@pytest.mark.parametrize(
    ("kind", "spec", "is_cordoned"),
    [
        ("ReplicaSet", {}, True),
        ("Job", {}, True),
        ("Job", {"podReplacementPolicy": "Failed"}, False),
        ("StatefulSet", {}, False),
    ],
)
def test_a_replacement_may_be_placed_while_the_old_pod_stops(
    planner, make, kind, spec, is_cordoned
):
    """Without a cordon, it stays on the large node, on which more cpu is free.

    If the old pod has stopped first, the waiting pod takes the large node.
    """
    pod = make.pod("web-1", node_name="a", owner="web", restartPolicy="Never")
    pod["metadata"]["ownerReferences"][0]["kind"] = kind
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "web", "namespace": "default", "uid": "web"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": []}}, **spec},
    }
    owners = [owner] if kind == "Job" else []
    waiting = make.pod("big", cpu="4")
    nodes = [make.node("a"), make.node("b", "1")]
    plan = rebalanced(planner(*nodes, *owners, pod, waiting))
    [one] = plan.moves
    assert (one.move.origin, one.move.target, one.placed) == ("a", "b", "default/big")
    assert one.is_cordoned is is_cordoned


@pytest.fixture
def half_full(make):
    """Node a has room for a pod of 3.5 cores if its pod moves; b is fuller, so it would stay."""
    web = deployment(make, "web", ["a", "b"])
    pinned = make.pod("pinned", cpu="2", node_name="b", nodeSelector={"pinned": "b"})
    return [make.node("a"), make.node("b", pinned="b"), *web, pinned]


def test_the_answer_names_the_node_to_cordon(planner, make, half_full):
    made = planner(*half_full, make.pod("big", cpu="3500m"))
    answer = rebalance_answer(rebalanced(made), "dump.yaml", ()).to_json()
    assert [(one["cordon"], one["to"]) for one in answer["moves"]] == [("a", "b")]
    assert answer["findings"][1].startswith("In step 1, cordon the node of the pod before the evic")
    assert not made.model.node("a").node.spec.unschedulable


def test_a_cordon_is_no_help_if_the_node_is_cordoned(planner, make, half_full):
    """The waiting pod could not be placed on it."""
    half_full[0]["spec"] = {"unschedulable": True}
    assert rebalanced(planner(*half_full, make.pod("big", cpu="3500m"))).moves == []


def test_a_pod_that_tolerates_cordons_is_not_moved_by_one(planner, make, half_full):
    for pod in half_full[2:]:
        spec = pod["spec"].get("template", pod)["spec"]
        spec["tolerations"] = [{"operator": "Exists"}]
    plan = rebalanced(planner(*half_full, make.pod("big", cpu="3500m")))
    assert [one.placed for one in plan.moves] == [""]  # a move that evens out the nodes


def test_a_replacement_that_fits_no_node_yet_waits_for_the_end_of_the_old_pod(planner, make):
    """Both pods exclude each other in the zone, and a pod that stops still counts."""
    rule = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    nodes = [make.node(name, zone="z") for name in "ab"]
    web = deployment(make, "web", ["a"], affinity=apart)
    plan = rebalanced(planner(*nodes, *web, *deployment(make, "full", ["a"], cpu="3")))
    assert moved(plan) == [("a", "b")]
