"""Drain plans: blockers, edits that remove them, an order, and drains without budget breaches."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import (
    READY,
    budget,
    daemon_pod,
    deployment,
    job_of,
    least_cpu,
    overprovisioned,
    pod_quota,
    with_priority,
)

from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.release import ReleaseChoice
from fairlead.whatif.input.error import InputError
from fairlead.whatif.planner.baseline import baseline_experiment
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.node_drain.blocker_table import blocker_tables
from fairlead.whatif.planner.node_drain.drain_plan import (
    DrainPlan,
    NewNodesTrial,
    drain_answer,
    order_findings,
    paces_for,
    plan_drains,
    refusal_findings,
    run_plan,
    unsafe_because,
    wait_findings,
    wait_table,
)
from fairlead.whatif.planner.node_drain.drain_planner import (
    BlockCause,
    Blocker,
    DrainPlanner,
    PlannedDrain,
)
from fairlead.whatif.planner.node_drain.drain_run import DrainPace, DrainRound, run_drains
from fairlead.whatif.planner.node_drain.unplaced_pod import unplaced_blockers
from fairlead.whatif.planner.node_drain.workload_stop import workload_stops
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.snapshot import read_snapshot

NODES = ("a", "b", "c")
RELAXED = (
    "kubectl -n default patch pdb web --type merge -p "
    '\'{"spec":{"minAvailable":null,"maxUnavailable":1}}\''
)


def plan_of(planner, nodes, **how):
    return plan_drains(planner, nodes, NoProgress(), **how)


def blocked(planner, node):
    """Return (cause, owner, edit) of each blocker of the drain of a node."""
    found = plan_of(planner, [node]).blockers
    return [(one.cause, one.owner, one.edit) for one in found]


def test_pods_move_to_the_nodes_that_the_scheduler_chooses(planner, make):
    """Node c is the emptiest; the pod of a DaemonSet stays."""
    made = planner(
        *map(make.node, NODES),
        *deployment(make, "web", ["a", "b"]),
        daemon_pod(make, "a"),
    )
    [drain] = plan_of(made, ["a"]).drains
    assert [(move.pod, move.target) for move in drain.moves] == [("default/web-1-0", "c")]


def test_a_node_that_is_being_deleted_is_left_out(planner, make):
    """It is gone when its drain would begin."""
    deleted = make.node("a")
    deleted["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/hold"]}
    made = planner(deleted, make.node("b"), make.node("c"))
    plan = plan_of(made, ["a", "b"])
    assert (plan.nodes, list(plan.left_out)) == (("b",), ["a"])
    said = "it is being deleted, and waits for finalizer x/hold"
    assert f"a is left out: {said}." in drain_answer(plan, "dump.yaml", ()).findings
    with pytest.raises(InputError, match=f"no node is left to drain; a: {said}"):
        plan_of(made, ["a"])


def test_an_answer_about_several_nodes_says_which_blocked_nodes_could_be_drained_alone(
    planner, make
):
    """Node d takes the pod of only one node; the budget of `db` refuses in any case."""
    nodes = [make.node(name, cpu="4") for name in ("a", "b", "c", "d")]
    web, db = deployment(make, "web", ["a", "b"], cpu="3"), deployment(make, "db", ["c"], cpu="3")
    made = planner(*nodes, *web, *db, budget("db", minAvailable=1))
    plan = plan_of(made, ["a", "b", "c"])
    assert (set(plan.blocked), plan.alone) == ({"b", "c"}, ("b",))
    answer = drain_answer(plan, "", ())
    assert answer.facts["drainable_alone"] == ["b"]
    said = [one for one in answer.findings if one.startswith('"Blocked" assumes')]
    assert "too. Budgets and room would allow a drain of 1 of the 2 blocked nodes alone" in said[0]
    assert not plan_of(made, ["c"]).alone


def test_discarded_trials_do_not_change_later_choices(planner, make):
    """The scheduler chooses between equal nodes at random; a trial reverts its choices too."""
    names = [f"n{number}" for number in range(9)]
    objects = [*map(make.node, names), *deployment(make, "web", ["n0"] * 4)]
    tried, untried = planner(*objects), planner(*objects)
    assert isinstance(tried.drained_alone("n0", return_again=False), PlannedDrain)
    assert tried.empty("n0") == untried.empty("n0")


@pytest.mark.parametrize("reorders", [True, False])
@pytest.mark.parametrize("cpu", ["1", "2", "3"])
def test_try_empty_agrees_with_empty(planner, make, cpu, reorders):
    """Pods of 1 cpu fit, of 2 cpu fit if the large pod is placed first, of 3 cpu do not fit."""
    nodes = [make.node("a", cpu="9"), make.node("b", cpu="4"), make.node("c", cpu="3")]
    small = deployment(make, "small", ["a", "a"], cpu=cpu)
    objects = [*nodes, *small, *deployment(make, "zone", ["a"], cpu="3")]
    one, other = planner(*objects), planner(*objects)
    one.reorders = other.reorders = reorders
    found = one.empty("a")
    assert other.try_empty("a") in ((found, None) if isinstance(found, Blocker) else (found,))
    placed = [
        {info.name: len(info.pods) for info in made.model.table.nodes()} for made in (one, other)
    ]
    assert placed[0] == placed[1]


def test_pods_that_tolerate_a_cordon_find_room_on_cordoned_nodes(planner, make):
    cordoned = make.node("b")
    cordoned["spec"] = {"unschedulable": True}
    tolerant = deployment(make, "web", ["a"], tolerations=[{"operator": "Exists"}])
    strict = deployment(make, "web", ["a"])
    emptied = planner(make.node("a"), cordoned, *tolerant).try_empty("a")
    assert isinstance(emptied, PlannedDrain)
    assert planner(make.node("a"), cordoned, *strict).try_empty("a") is None


def test_planning_does_not_change_the_model(planner, make):
    made = planner(*map(make.node, NODES), *deployment(make, "web", ["a", "a", "b"]))
    before = {info.name: sorted(info.pods) for info in made.model.table.nodes()}
    plan_of(made, ["a", "b"])
    assert {info.name: sorted(info.pods) for info in made.model.table.nodes()} == before
    made.model.table.validate()
    assert not made.model.table.unschedulable.any()


@pytest.mark.parametrize(
    ("replicas", "limit", "edit"),
    [
        (1, {"minAvailable": 1}, "kubectl -n default scale deploy/web --replicas 2"),
        (2, {"minAvailable": 2}, RELAXED),
        (2, {"maxUnavailable": 0}, RELAXED),
        (3, {"minAvailable": "100%"}, RELAXED),
    ],
)  # fmt: skip
def test_a_budget_that_can_never_be_met_blocks_with_an_edit(planner, make, replicas, limit, edit):
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a"] * replicas)]
    found = blocked(planner(*objects, budget("web", **limit)), "a")
    assert found == [(BlockCause.BUDGET_NEVER, "pdb/default/web", edit)] * replicas


def test_an_edit_says_if_no_node_has_room_for_a_second_replica(planner, make):
    """The budget would still refuse the eviction while the second pod is pending."""
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a"], cpu="3")]
    full = deployment(make, "full", NODES[1:], cpu="3")
    [(_, _, edit), _] = blocked(planner(*objects, *full, budget("web", minAvailable=1)), "a")
    assert edit == (
        "first make room for a second pod (Insufficient cpu); "
        "kubectl -n default scale deploy/web --replicas 2"
    )


def test_an_edit_changes_the_autoscaler_of_a_single_replica(planner, make):
    """The autoscaler would revert the number of replicas that kubectl scale sets."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "grow", "namespace": "default"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3},
    }
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a"]), autoscaler]
    [(_, _, edit)] = blocked(planner(*objects, budget("web", minAvailable=1)), "a")
    assert edit == """kubectl -n default patch hpa grow -p '{"spec":{"minReplicas":2}}'"""


SCALE = "kubectl -n shop scale {} --replicas 2"


@pytest.mark.parametrize(
    ("owner", "replicas", "rule", "scaled"),
    [
        (("apps/v1", "StatefulSet"), 1, "minAvailable 1", SCALE.format("sts/web")),
        (("apps/v1", "ReplicaSet"), 1, "minAvailable 1", SCALE.format("rs/web")),
        pytest.param(("batch/v1", "Job"), 1, "minAvailable 1", "", id="a Job has no replicas"),
        pytest.param(None, 1, "minAvailable 1", "", id="a bare pod has no replicas"),
        pytest.param(
            ("apps/v1", "StatefulSet"), 1, "minAvailable 100%", "", id="the second would count too"
        ),
        pytest.param(
            ("apps/v1", "StatefulSet"), 1, "maxUnavailable 0", "", id="no number of replicas helps"
        ),
        pytest.param(
            ("apps/v1", "StatefulSet"), 3, "minAvailable 3", "", id="there are other replicas"
        ),
    ],
)
def test_only_a_single_replica_is_scaled_up(planner, make, owner, replicas, rule, scaled):
    """A budget with minAvailable 1 allows an eviction if the workload has a second replica."""
    pods = [make.pod(f"web-{at}", namespace="shop", node_name="a") for at in range(replicas)]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
        pod["status"]["conditions"] = READY
        if owner is not None:
            version, kind = owner
            by = {"apiVersion": version, "kind": kind, "name": "web", "uid": "w"}
            pod["metadata"]["ownerReferences"] = [{**by, "controller": True}]
    kinds = {"StatefulSet", "ReplicaSet"}.intersection(owner or ())
    owners = [make.workload(kind, "web", "shop", replicas=replicas) for kind in kinds]
    for one in owners:
        one["metadata"]["uid"] = "w"
    name, _, limit = rule.partition(" ")
    pdb = budget("web", **{name: limit if "%" in limit else int(limit)})
    pdb["metadata"]["namespace"] = "shop"
    found = blocked(planner(*map(make.node, NODES), *owners, *pods, pdb), "a")
    assert {cause for cause, _, _ in found} == {BlockCause.BUDGET_NEVER}
    assert [edit for _, _, edit in found if " scale " in edit] == ([scaled] if scaled else [])


@pytest.mark.parametrize("limit", [{"minAvailable": 1}, {"maxUnavailable": 0}])
def test_a_changed_budget_spares_a_pod_that_is_not_ready(planner, make, limit):
    """As many other pods are ready as are needed, so the pod itself need not become ready."""
    replicas = 1 if limit == {"minAvailable": 1} else 2
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a", "b"][:replicas])]
    objects[-replicas]["status"]["conditions"] = []  # not ready
    [(cause, _, _)] = blocked(planner(*objects, budget("web", **limit)), "a")
    assert cause is BlockCause.BUDGET_NEVER


def test_a_budget_blocks_the_last_pod_without_a_controller_that_it_cannot_spare(planner, make):
    """The first eviction is allowed, but nothing replaces the pod; so the second one never is."""
    pods = [make.pod(f"bare-{number}", node_name="a") for number in range(2)]
    for one in pods:
        one["metadata"]["labels"] = {"app": "web"}
        one["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    nodes = list(map(make.node, NODES))
    [blocker] = plan_of(planner(*nodes, *pods, budget("web", minAvailable=1)), ["a"]).blockers
    assert (blocker.pod, blocker.cause) == ("default/bare-1", BlockCause.BUDGET_NEVER)
    assert blocker.edit.endswith("""-p '{"spec":{"maxUnavailable":null,"minAvailable":0}}'""")
    relaxed = planner(*nodes, *pods, budget("web", minAvailable=0))
    assert not plan_of(relaxed, ["a"]).blockers


def test_no_change_drops_a_node_selector_that_a_runtime_class_adds_again(planner, make):
    """Node b is in another zone: only another node like a helps."""
    selector = {ZONE: "x"}
    pod = make.pod("web", node_name="a", owner="web", runtimeClassName="g", nodeSelector=selector)
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "g"},
        "handler": "g",
        "scheduling": {"nodeSelector": selector},
    }
    cluster = [make.node("a", **selector), make.node("b", **{ZONE: "y"}), pod]
    [blocker] = plan_of(planner(*cluster), ["a"]).blockers
    assert f"drop {ZONE} from the pod's nodeSelector" in blocker.edit
    [blocker] = plan_of(planner(*cluster, runtime), ["a"]).blockers
    assert blocker.edit == "add a node like a"


def test_an_edited_budget_blocks_no_more(planner, make):
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a", "b"])]
    assert blocked(planner(*objects, budget("web", maxUnavailable=1)), "a") == []


def test_a_budget_without_room_now_names_the_missing_pods(planner, make):
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a", "b", "c"])]
    objects[-1]["status"]["conditions"] = []  # not ready
    found = blocked(planner(*objects, budget("web", minAvailable=2)), "a")
    assert found == [
        (BlockCause.BUDGET_NOW, "pdb/default/web", "make 1 more pod ready for pdb/default/web")
    ]


def test_a_budget_that_is_relaxed_may_still_need_more_ready_pods(planner, make):
    """Two of four pods are ready. Even with maxUnavailable 1, three must be ready first."""
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a", "b", "c", "c"])]
    for pod in objects[-2:]:
        pod["status"]["conditions"] = []  # not ready
    made = planner(*objects, budget("web", maxUnavailable=0))
    assert plan_of(made, ["a"]).blockers[1].why == (
        "even after the other change, 2 ready, 3 needed (maxUnavailable 1)"
    )
    assert blocked(made, "a") == [
        (BlockCause.BUDGET_NEVER, "pdb/default/web", RELAXED),
        (BlockCause.BUDGET_NOW, "pdb/default/web", "make 2 more pods ready for pdb/default/web"),
    ]


@pytest.mark.parametrize("limit", [{"maxUnavailable": 1}, {"minAvailable": "50%"}])
def test_only_a_number_of_available_pods_lets_pods_without_a_controller_go(planner, make, limit):
    """For other limits, upstream counts the replicas of controllers, and allows no disruption."""
    pods = [make.pod(name, node_name="a") for name in ("web-1", "web-2")]
    for pod in pods:
        pod["metadata"] |= {"ownerReferences": [], "labels": {"app": "web"}}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    cluster = [*map(make.node, NODES), *pods]
    edit = RELAXED.replace(
        '"minAvailable":null,"maxUnavailable":1', '"maxUnavailable":null,"minAvailable":0'
    )
    found = blocked(planner(*cluster, budget("web", **limit)), "a")
    assert found == [(BlockCause.BUDGET_NEVER, "pdb/default/web", edit)] * 2
    assert blocked(planner(*cluster, budget("web", minAvailable=0)), "a") == []


def test_a_node_can_be_blocked_by_a_budget_and_by_an_unplaced_pod(planner, make):
    """Without the second blocker, the edit of the budget seems to be enough."""
    objects = [
        *(make.node("a", pool="db"), make.node("b"), make.node("c")),
        *deployment(make, "web", ["a", "b"]),
        *deployment(make, "db", ["a"], nodeSelector={"pool": "db"}),
    ]
    unplaced = (BlockCause.NO_PLACE, "deploy/default/db")
    for again, others in ((False, [unplaced]), (True, [])):  # the uncordoned node takes the pod
        made = planner(*objects, budget("web", maxUnavailable=0))
        found = plan_of(made, ["a", "c"], return_again=again)
        assert [(one.cause, one.owner) for one in found.blockers] == [
            (BlockCause.BUDGET_NEVER, "pdb/default/web"),
            *others,
        ]
        assert [drain.node for drain in found.drains] == ["c"]


def bound_to_its_pool(make):
    """Nodes a and b with a pod each that only these nodes take, and both are full; c is free."""
    nodes = [make.node("a", pool="db"), make.node("b", pool="db"), make.node("c")]
    return nodes + deployment(make, "db", ["a", "b"], cpu="3", nodeSelector={"pool": "db"})


def test_pods_without_another_node_wait_until_their_node_returns(planner, experiment, make):
    objects = [*bound_to_its_pool(make), *deployment(make, "web", ["a"])]
    objects += [budget("db", maxUnavailable=1)]  # the second drain waits for the ready pod
    assert plan_of(planner(*objects), ["a", "b"]).blocked == ["b", "a"]
    made = planner(*objects)
    before = {info.name: sorted(info.pods) for info in made.model.table.nodes()}
    plan = plan_of(made, ["a", "b"], return_again=True)
    assert {drain.node: list(drain.waits) for drain in plan.drains} == {
        "a": ["default/db-1-0"],
        "b": ["default/db-1-1"],
    }
    moves = {move.pod: move.target for drain in plan.drains for move in drain.moves}
    assert moves == {"default/db-1-0": "a", "default/db-1-1": "b", "default/web-1-0": "c"}
    assert {info.name: sorted(info.pods) for info in made.model.table.nodes()} == before
    made.model.table.validate()
    run_plan(plan, experiment(*objects), NoProgress(), away=seconds(300))
    found = drain_answer(plan, "dump.yaml", ()).to_json()
    assert found["verdict"] == "All nodes can be drained in 11m05s, one at a time."
    down = "2 pods of deploy/default/db fit on no other node and are down until their node is back"
    alone = "When each node is checked alone, "
    assert f"{alone}{down} (5m35s at most)." in found["findings"]
    one = plan_of(planner(*objects), ["a"], return_again=True)
    [words] = [
        found for found in drain_answer(one, "", ()).to_json()["findings"] if "down" in found
    ]
    assert words.startswith("1 pod of deploy/default/db fits on no other node")


def test_second_evictions_of_pods_are_named(planner, experiment, make):
    """The pod of node a moves to b, from where it is evicted again; all 3 evictions count."""
    objects = [
        *map(make.node, "ab"),
        *deployment(make, "web", ["a"]),
        *deployment(make, "x", ["b"]),
    ]
    plan = plan_of(planner(*objects), ["a", "b"], return_again=True)
    run_plan(plan, experiment(*objects), NoProgress(), away=seconds(60))
    found = drain_answer(plan, "dump.yaml", ()).to_json()
    [pace] = found["paces"]
    assert (pace["evicted"], pace["evicted_again"]) == (3, 1)
    second = "1 of the 3 evictions is the second eviction of a pod that moved to a node"
    assert f"{second} that is drained later." in found["findings"]


def test_pods_that_wait_at_the_same_time_can_make_a_pace_unsafe(planner, experiment, make):
    """No budget protects the two replicas if both nodes are drained at once."""
    objects = [*bound_to_its_pool(make), budget("other", maxUnavailable=1)]
    for limits, is_safe in (([], False), ([budget("db", maxUnavailable=1)], True)):
        plan = plan_of(planner(*objects, *limits), ["a", "b"], return_again=True)
        cluster = experiment(*objects, *limits)
        run_plan(plan, cluster, NoProgress(), max_unavailable=2, away=seconds(60))
        [run] = plan.runs
        assert (run.is_safe, run.breaches, run.pending) == (is_safe, 0, {})


def test_a_pod_that_would_preempt_is_not_down_until_its_node_is_back(planner, experiment, make):
    """The eviction happens although the pod would preempt; the preempted pod waits for the node."""
    nodes = [make.node("a", pool="db"), make.node("b", pool="db")]
    spec = {"nodeSelector": {"pool": "db"}, "priorityClassName": "high"}
    pods = [make.priority_class("high", 9), *deployment(make, "db", ["a"], cpu="3", **spec)]
    pods[-1]["spec"]["priority"] = 9
    objects = [*nodes, *pods, *deployment(make, "web", ["b"], cpu="2")]
    plan = plan_of(planner(*objects), ["a"], return_again=True)
    assert [(tuple(one.waits), one.preempts) for one in plan.drains] == [(("default/db-1-0",),) * 2]
    run_plan(plan, experiment(*objects), NoProgress(), away=seconds(300))
    found = drain_answer(plan, "dump.yaml", ()).to_json()
    assert found["verdict"] == "a can be drained in 5m30s."
    preempts = "fits on another node only if it preempts pods of lower priority"
    assert (
        f"1 pod of deploy/default/db {preempts}, which the simulation includes."
        in (found["findings"])
    )
    assert (found["waits"], " is down " in str(found["findings"])) == ([], False)
    assert found["order"][0]["waits"] == found["order"][0]["preempts"] == ["default/db-1-0"]
    stops = {str(one.workload): one.why for one in workload_stops(planner(*objects), plan)}
    assert stops["deploy/default/db"] == "its only pod is evicted"
    [blocker] = plan_of(planner(*objects), ["a"]).blockers
    assert (blocker.cause, blocker.preempts) == (BlockCause.NO_PLACE, True)


def test_an_unready_pod_is_evicted_if_its_budget_spares_it(planner, make):
    """IfHealthyBudget: two are healthy and two are needed, so the unready third may go."""
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a", "b", "c"])]
    objects[-1]["status"]["conditions"] = []
    assert blocked(planner(*objects, budget("web", minAvailable=2)), "c") == []


def several_budgets(*limits):
    """Budgets for the same pods, with the names web-1, web-2 and so on."""
    found = [budget("web", maxUnavailable=limit) for limit in limits]
    for number, one in enumerate(found, start=1):
        one["metadata"]["name"] = f"web-{number}"
    return found


@pytest.mark.parametrize(
    ("limits", "owner", "deleted"),
    [
        ((1, 1), "web-2", "web-2"),
        ((1, 1, 1), "web-3", "web-2 web-3"),
        ((0, 1, 0), "web-3", "web-1 web-3"),
        ((0, 1), "web-1", "web-1"),
    ],
)
def test_of_several_budgets_for_a_pod_one_that_allows_its_eviction_is_kept(
    planner, make, limits, owner, deleted
):
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a", "b"])]
    budgets = several_budgets(*limits)
    edit = f"kubectl -n default delete pdb {deleted}"
    found = blocked(planner(*objects, *budgets), "a")
    assert found == [(BlockCause.SEVERAL_BUDGETS, f"pdb/default/{owner}", edit)]
    kept = [one for one in budgets if one["metadata"]["name"] not in deleted.split()]
    assert blocked(planner(*objects, *kept), "a") == []


def test_the_budget_that_is_kept_may_also_need_a_change(planner, make):
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a", "b"])]
    found = blocked(planner(*objects, *several_budgets(0, 0)), "a")
    assert found == [
        (BlockCause.SEVERAL_BUDGETS, "pdb/default/web-2", "kubectl -n default delete pdb web-2"),
        (BlockCause.BUDGET_NEVER, "pdb/default/web-1", RELAXED.replace("pdb web", "pdb web-1")),
    ]


def test_an_unready_pod_keeps_a_budget_that_spares_it(planner, make):
    """The second budget allows no disruption, but permits evictions of pods that are not ready."""
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a", "b"])]
    objects[-2]["status"]["conditions"] = []
    budgets = several_budgets(0, 0)
    budgets[1]["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    found = blocked(planner(*objects, *budgets), "a")
    assert found == [
        (BlockCause.SEVERAL_BUDGETS, "pdb/default/web-1", "kubectl -n default delete pdb web-1")
    ]


def test_a_pod_that_fits_nowhere_else_blocks_with_a_remedy(planner, make):
    """Node b lacks the label; a change of one label is smaller than one more node."""
    objects = [
        make.node("a", pool="db"),
        make.node("b"),
        *deployment(make, "db", ["a"], nodeSelector={"pool": "db"}),
    ]
    [(cause, owner, edit)] = blocked(planner(*objects), "a")
    assert (cause, owner) == (BlockCause.NO_PLACE, "deploy/default/db")
    assert edit == "label node b pool=db (then b takes a pod of deploy/default/db)"


def spread(max_skew):
    """The spec of pods that are spread over the zones."""
    return {
        "topologySpreadConstraints": [
            {
                "maxSkew": max_skew,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    }


@pytest.mark.parametrize("max_skew", [1, 3])
def test_a_change_is_large_enough_for_all_pods_of_the_node(planner, make, max_skew):
    """The first of two pods makes a skew of 3, the second of 4."""
    nodes = [make.node("a", **{ZONE: "x"}), make.node("b", **{ZONE: "y"})]
    places = ["a", "a", "b", "b"]
    web = deployment(make, "web", places, **spread(max_skew))
    [(cause, owner, edit)] = blocked(planner(*nodes, *web), "b")
    assert (cause, owner) == (BlockCause.NO_PLACE, "deploy/default/web")
    assert edit == (
        f"deploy/default/web: raise maxSkew on {ZONE} from {max_skew} to 4 (then a takes 2 of its "
        "pods)"
    )
    assert blocked(planner(*nodes, *deployment(make, "web", places, **spread(4))), "b") == []


def test_a_node_is_drained_first_if_other_pods_would_take_its_room(planner, make):
    """The pod of a prefers c, the only node for the pod of b; it also fits on d."""
    made = planner(
        *(make.node("a"), make.node("b"), make.node("c", cpu="4"), make.node("d", cpu="2")),
        *deployment(make, "small", ["a"], cpu="2"),
        *deployment(make, "large", ["b"], cpu="3"),
    )
    plan = plan_of(made, ["a", "b"])
    assert plan.blockers == []
    assert [(drain.node, drain.moves[0].target) for drain in plan.drains] == [
        ("b", "c"),
        ("a", "d"),
    ]


def test_a_change_after_which_the_node_still_has_pods_is_not_proposed(planner, make):
    """With a request of 1 core, three of the four pods fit on b; a new node takes all."""
    nodes = [make.node("a", cpu="8"), make.node("b")]
    pods = [*deployment(make, "web", ["b"]), *deployment(make, "db", ["a"] * 4, cpu="2")]
    [(_, _, edit)] = blocked(planner(*nodes, *pods), "a")
    assert edit == "add a node like a"


@pytest.mark.parametrize("again", [False, True])
def test_all_workloads_that_keep_a_node_are_blockers(planner, make, again):
    """A new node takes the pods of both workloads. If b returns, the pods wait for it."""
    nodes = [make.node("a", **{ZONE: "x"}), make.node("b", pool="db", **{ZONE: "y"})]
    pods = [
        *deployment(make, "db", ["b"], nodeSelector={"pool": "db"}),
        *deployment(make, "other", ["b"], cpu="500m"),
        *deployment(make, "web", ["a", "b"], **spread(1)),
    ]
    found = plan_of(planner(*nodes, *pods), ["b"], return_again=again).blockers
    expected = ["deploy/default/db", "deploy/default/web"]
    assert sorted(one.owner for one in found) == ([] if again else expected)
    assert {one.edit for one in found} <= {"add a node like b"}


def test_each_blocker_has_its_own_change_if_no_node_helps_all(planner, make):
    """A copy of b has another host name, and each label is for the pods of one workload."""
    nodes = [make.node("a"), make.node("b", kind="web", pool="db", **{HOSTNAME: "b"})]
    bound = deployment(make, "bound", ["b"], nodeSelector={HOSTNAME: "b"})
    db = deployment(make, "db", ["b"], nodeSelector={"pool": "db"})
    found = blocked(planner(*nodes, *bound, *db), "b")
    assert sorted(found) == [
        (
            BlockCause.NO_PLACE,
            f"deploy/default/{name}",
            f"label node a {label} (then a takes a pod of deploy/default/{name})",
        )
        for name, label in (("bound", f"{HOSTNAME}=b"), ("db", "pool=db"))
    ]


def test_a_pod_that_returns_to_its_node_is_not_a_blocker(planner, make):
    """Node b returns for the pod of db, but no node has the label for the pod of web."""
    nodes = [make.node("a"), make.node("b", pool="db")]
    db = deployment(make, "db", ["b"], nodeSelector={"pool": "db"})
    web = deployment(make, "web", ["b"], nodeSelector={"kind": "web"})
    plan = plan_of(planner(*nodes, *db, *web), ["b"], return_again=True)
    assert [one.owner for one in plan.blockers] == ["deploy/default/web"]


@pytest.mark.parametrize("sign", ["condition", "taint"])
def test_no_remedy_uses_a_node_that_is_not_ready(planner, make, sign):
    """Node b, where no pod would start, needs one change.

    Node c, which is ready, needs two. Adding one node counts as a smaller change than these two.
    """
    dead = make.node("b", pool="db")
    key = "node.kubernetes.io/unreachable" if sign == "taint" else "example.com/broken"
    dead["spec"] = {"taints": [{"key": key, "effect": "NoSchedule"}]}
    if sign == "condition":
        dead["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    objects = [
        *(make.node("a", pool="db"), dead, make.node("c")),
        make.pod("other", node_name="c", cpu="3"),
        *deployment(make, "db", ["a"], cpu="2", nodeSelector={"pool": "db"}),
    ]
    [(_, _, edit)] = blocked(planner(*objects), "a")
    assert edit == "add a node like a"
    made = planner(*objects)
    [found] = unplaced_blockers(made, made.empty("a"), new_nodes=False)
    assert found.edit == (
        "deploy/default/db: label node c pool=db, then lower the cpu request from 2 to 1 (then c "
        "takes one of its pods)"
    )


@pytest.mark.parametrize("cpu", ["1", "2"])
def test_pods_that_wait_take_the_room_on_a_new_node_first(planner, make, cpu):
    """A new node has four cores; the pod that must leave node a needs three of them."""
    nodes = [make.node("a"), make.node("b", cpu="1")]
    db, full = deployment(make, "db", ["a"], cpu="3"), deployment(make, "full", ["b"])
    [(_, _, edit)] = blocked(planner(*nodes, *db, *full, make.pod("waiting", cpu=cpu)), "a")
    assert edit == ("add a node like a" if cpu == "1" else "")


@pytest.mark.parametrize("host", ["a", ""])
def test_one_more_node_helps_only_pods_that_fit_it(planner, make, host):
    """The copy of a is in the same zone, as the volume is, but has another host name."""
    first = make.node("a", **{"kubernetes.io/hostname": "a", ZONE: "west"})
    second = make.node("b", cpu="1", **{"kubernetes.io/hostname": "b", ZONE: "east"})
    selector = {ZONE: "west"} | ({"kubernetes.io/hostname": host} if host else {})
    pods = deployment(make, "db", ["a"], cpu="2", nodeSelector=selector)
    [(_, _, edit)] = blocked(planner(first, second, *pods), "a")
    assert (edit == "add a node like a") == (not host)


def test_every_blocked_node_has_its_own_change(planner, make):
    """The pods have the same reason, and each node needs another new node."""
    nodes = [make.node(name, pool=name) for name in ("a", "b")]
    pods = deployment(make, "db", ["a", "b"], cpu="4", nodeSelector={"size": "big"})
    third = [make.node("c", size="big"), make.pod("other", node_name="c", cpu="2")]
    plan = plan_of(planner(*nodes, *third, *pods), ["a", "b"])
    found = drain_answer(plan, "dump.yaml", ()).to_json()
    helped = {name for row in found["edits"] for name in row["helps"] + row["instead"]}
    assert helped == {"a", "b"}


def test_an_edit_that_is_not_sufficient_for_any_node_has_a_remark(planner, make):
    """On a, the pod of db has no other node either."""
    objects = [
        *(make.node("a", pool="db"), make.node("b"), make.node("c")),
        *deployment(make, "web", ["a", "b"]),
        *deployment(make, "db", ["a"], nodeSelector={"pool": "db"}),
        budget("web", maxUnavailable=0),
    ]
    for nodes, helps, alone in (
        (["a"], "a (not enough alone)", []),
        (["a", "b"], "2 nodes (enough alone for b)", ["b"]),
    ):
        found = drain_answer(plan_of(planner(*objects), nodes), "dump.yaml", ()).to_json()
        [row] = [row for row in found["edits"] if row["edit"] == RELAXED]
        assert (row["for"], row["alone"]) == (helps, alone)


def test_a_node_whose_pods_can_wait_for_its_return_is_named(planner, make):
    """A pod with a local volume fits only on its node, and no change makes it fit elsewhere."""
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]
    pinned = deployment(make, "db", ["a"], volumes=volumes)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}
    meta = {"namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    bound = (
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {**meta, "name": "d"},
         "spec": {**claim, "volumeName": "v", "storageClassName": "local"},
         "status": {"phase": "Bound"}},
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
         "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1"},
                  "claimRef": {"namespace": "default", "name": "d"}, "storageClassName": "local",
                  "local": {"path": "/d"},
                  "nodeAffinity": {"required": {
                      "nodeSelectorTerms": [{"matchExpressions": [term]}]}}},
         "status": {"phase": "Bound"}},
    )  # fmt: skip
    nodes = [make.node(name, **{"kubernetes.io/hostname": name}) for name in ("a", "b")]
    made = planner(*nodes, *pinned, *bound)
    plan = plan_of(made, ["a"])
    assert [one.cause for one in plan.blockers] == [BlockCause.NO_PLACE]
    found = drain_answer(plan, "dump.yaml", ()).findings
    assert found[-1] == (
        "If a returns after the drain, its pods can wait: ask again with --for 10m."
    )
    cordoned = {**nodes[0], "spec": {"unschedulable": True}}
    findings = drain_answer(
        plan_of(planner(cordoned, nodes[1], *pinned, *bound), ["a"]), "dump.yaml", ()
    ).findings
    assert not any("ask again" in one for one in findings)


def test_a_node_without_a_known_change_is_named():
    blockers = [Blocker("a", "default/x", BlockCause.NO_PLACE, "pod/default/x", "why", "edit")]
    blockers.append(Blocker("b", "default/y", BlockCause.NO_PLACE, "pod/default/y", "why"))
    found = drain_answer(DrainPlan(("a", "b"), [], blockers), "dump.yaml", ()).findings
    assert found[1:] == ("No single change was found that would unblock b.",)


@pytest.mark.parametrize(
    ("nodes", "where", "listed"),
    [
        (("a", "b", "c"), "a, b, c", 0),
        (("a", "b", "c", "d"), "4 nodes", 4),
        (("ip-10-0-12-33.ec2.internal",), "ip-10-0-12-33.ec2.internal", 0),
        (("ip-10-0-12-33.ec2.internal", "ip-10-0-12-7.ec2.internal"), "2 nodes", 2),
    ],
    ids=["a few short names", "too many names", "one long name", "long names"],
)
def test_a_row_names_its_nodes_if_that_is_short_and_otherwise_a_table_lists_them(
    nodes, where, listed
):
    blockers = [
        Blocker(node, f"default/{node}", BlockCause.NO_PLACE, "deploy/default/x", "why")
        for node in nodes
    ]
    answer = drain_answer(DrainPlan(nodes, [], blockers), "dump.yaml", ()).to_json()
    assert [row["where"] for row in answer["blockers"]] == [where]
    assert len(answer["blocked_nodes"]) == listed


def one_order(make):
    """Placed in queue order, app takes the room on b, the only other node for the pod of db."""
    return [
        *(make.node("a", pool="db"), make.node("b", pool="db"), make.node("c")),
        *deployment(make, "app", ["a"], cpu="2"),
        *deployment(make, "db", ["a"], cpu="3", nodeSelector={"pool": "db"}),
        *deployment(make, "web", ["c"], cpu="1"),
    ]


def test_pods_that_wait_run_before_the_first_drain(snapshot, make):
    """The budget needs two ready pods: the third, which is pending, will be ready by then."""
    *objects, waiting = deployment(make, "web", ["a", "b", ""])
    waiting["status"] = {"phase": "Pending"}
    nodes = [*map(make.node, NODES), budget("web", minAvailable=2)]
    made = DrainPlanner.at_rest(
        ClusterModel(snapshot(*nodes, *objects, waiting), SchedulerConfig())
    )
    [drain] = plan_of(made, ["a"]).drains
    assert [move.pod for move in drain.moves] == ["default/web-1-0"]


def test_pods_with_few_possible_nodes_are_placed_first_if_necessary(planner, make):
    plan = plan_of(planner(*one_order(make)), ["a"])
    [drain] = plan.drains
    assert {move.pod: move.target for move in drain.moves} == {
        "default/app-1-0": "c",
        "default/db-1-0": "b",
    }
    first = "evict the pods of deploy/default/db first"
    found = drain_answer(plan, "dump.yaml", ()).findings
    assert f"On a, {first}: other pods could take their room." in found


def test_workloads_to_evict_first_are_named_in_their_order():
    """The pods of web can take the room of db, and both can take the room of the other pods."""
    orders = {"a": ("web", "db"), "b": ("db",), "c": ("web", "db"), "d": ("x",), "e": ("y",)}
    drains = [
        PlannedDrain(node, (), first=first, first_commands=first) for node, first in orders.items()
    ]
    why = "other pods could take their room"
    assert list(order_findings(drains)) == [
        f"On a, c, evict the pods of web first, then those of db: {why}.",
        f"On b, evict the pods of db first: {why}.",
        f"On d, evict the pods of x first: {why}.",
        "1 more node needs an order of its evictions, too.",
    ]


def test_a_plan_that_is_unsafe_because_of_an_order_is_made_without_it(planner, experiment, make):
    """The drain evicts both pods at once, and app is placed first."""
    made = planner(*one_order(make))
    plan = plan_of(made, ["a"])
    assert not plan.is_order_unsafe  # the run has not failed yet
    run_plan(plan, experiment(*one_order(make)), NoProgress())
    assert plan.is_order_unsafe
    made.reorders = False
    [blocker] = plan_of(made, ["a"]).blockers
    assert (blocker.cause, blocker.owner) == (BlockCause.ORDER, "deploy/default/db")
    assert blocker.edit == (
        "evict the pods of deploy/default/db first: kubectl drain a --pod-selector app=db; drain a "
        "when they run again"
    )


def test_an_order_of_pods_also_blocks_a_node_that_a_budget_blocks(planner, make):
    """To relax the budget is not enough: then the pods still need the order."""
    made = planner(*one_order(make), budget("app", minAvailable=1))
    plan = plan_of(made, ["a"])
    assert [one.cause for one in plan.blockers] == [BlockCause.BUDGET_NEVER, BlockCause.ORDER]
    rows = next(one for one in blocker_tables(plan.blockers) if one.name == "edits").rows
    assert [row["alone"] for row in rows] == [[], []]


def order_of_a_safe_plan(make):
    """Placed in queue order, both pods of app take the room on b, the only other node for db.

    In the simulated drain, a budget delays the eviction of the second pod of app.
    """
    preferred = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": {"matchExpressions": [
                {"key": "pool", "operator": "In", "values": ["db"]}]}}
        ]
    }  # fmt: skip
    cpu = {"a": "8", "b": "6", "c": "2", "d": "2"}
    return [
        *(make.node(name, cpu=amount) for name, amount in cpu.items() if name != "b"),
        make.node("b", cpu=cpu["b"], pool="db"),
        make.node("e", cpu="1"),
        *deployment(make, "app", ["a", "a", "d"], cpu="2", affinity={"nodeAffinity": preferred}),
        *deployment(make, "db", ["a"], cpu="4"),
        budget("app", maxUnavailable=1),
    ]


def test_the_commands_of_a_plan_keep_its_order(planner, experiment, make):
    objects = order_of_a_safe_plan(make)
    plan = plan_of(planner(*objects), ["e", "a"])
    run_plan(plan, experiment(*objects), NoProgress())
    assert plan.best is not None
    assert [step.command for step in drain_answer(plan, "dump.yaml", ()).steps] == [
        "kubectl cordon e a",
        "kubectl drain e",
        "kubectl drain a --pod-selector app=db",
        "kubectl drain a",
    ]


def test_an_answer_says_that_no_command_keeps_the_order(planner, make):
    """All pods of the node have the same labels."""
    objects = one_order(make)
    for one in objects:
        one["metadata"].get("labels", {}).pop("app", None)
        one["metadata"].get("labels", {}).pop("pod-template-hash", None)
    found = drain_answer(plan_of(planner(*objects), ["a"]), "dump.yaml", ()).findings
    assert (
        "kubectl drain cannot evict them first on a: no label selector selects only these pods."
    ) in found


def test_the_command_for_an_order_selects_only_the_pods_of_the_workload(planner, make):
    """Pods of another workload on the node have the same label `app`."""
    objects = one_order(make)
    for one in objects:
        labels = one["metadata"].get("labels", {})
        if "app" in labels:
            labels |= {"app": "same", "tier": labels["app"]}
    made = planner(*objects)
    made.reorders = False
    [blocker] = plan_of(made, ["a"]).blockers
    assert "kubectl drain a --pod-selector tier=db;" in blocker.edit


def test_the_command_for_an_order_has_the_flags_that_its_pods_need(planner, make):
    """kubectl refuses pods with an emptyDir without a flag; the pod of app needs none."""
    objects = one_order(make)
    for one in objects:
        if one["kind"] == "Pod" and one["metadata"]["labels"]["app"] == "db":
            one["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    made = planner(*objects)
    made.reorders = False
    [blocker] = plan_of(made, ["a"]).blockers
    command = "kubectl drain a --pod-selector app=db --delete-emptydir-data; drain a when"
    assert command in blocker.edit


def test_an_order_that_several_nodes_need_helps_one_of_them(planner, make):
    """The pods of the other nodes may need the same room."""
    blockers = [
        Blocker(node, f"ns/p-{node}", BlockCause.ORDER, "deploy/ns/db", "no room",
                f"evict the pods of deploy/ns/db first: kubectl drain {node} --pod-selector a=b")
        for node in ("n2", "n1")
    ]  # fmt: skip
    [row] = next(one for one in blocker_tables(blockers) if one.name == "edits").rows
    assert (row["helps"], row["instead"]) == (["n2"], ["n1"])
    assert row["edit"].endswith("kubectl drain n2 --pod-selector a=b")


@pytest.mark.parametrize(("used", "is_proposed"), [("2", True), ("3", False)])
def test_no_change_lowers_a_request_by_more_than_half(planner, make, used, is_proposed):
    nodes = [make.node("a"), make.node("b"), make.pod("other", node_name="b", cpu=used)]
    made = planner(*nodes, *deployment(make, "db", ["a"], cpu="4"))
    [found] = unplaced_blockers(made, made.empty("a"), new_nodes=False)
    assert ("lower the cpu request" in found.edit) == is_proposed


@pytest.mark.parametrize(("least", "is_proposed"), [("2", True), ("3", False)])
def test_no_change_lowers_a_request_below_a_minimum(planner, make, least, is_proposed):
    nodes = [make.node("a"), make.node("b"), make.pod("other", node_name="b", cpu="2")]
    made = planner(*nodes, *deployment(make, "db", ["a"], cpu="4"), least_cpu(least))
    [found] = unplaced_blockers(made, made.empty("a"), new_nodes=False)
    assert ("lower the cpu request" in found.edit) == is_proposed


@pytest.mark.parametrize(("labels", "is_proposed"), [({}, True), ({"pool": "small"}, False)])
def test_no_change_gives_another_value_to_a_label_of_a_node(planner, make, labels, is_proposed):
    nodes = [make.node("a", pool="large"), make.node("b", **labels)]
    made = planner(*nodes, *deployment(make, "db", ["a"], nodeSelector={"pool": "large"}))
    [found] = unplaced_blockers(made, made.empty("a"), new_nodes=False)
    assert ("label node b" in found.edit) == is_proposed


def test_pods_that_fit_one_by_one_but_not_together_block(planner, make):
    """Either pod fits on b, the only other node, but not both."""
    pods = [*deployment(make, "app", ["a"], cpu="2"), *deployment(make, "db", ["a"], cpu="3")]
    plan = plan_of(planner(make.node("a", cpu="8"), make.node("b"), *pods), ["a"])
    assert [(one.cause, one.owner) for one in plan.blockers] == [
        (BlockCause.NO_ROOM, "deploy/default/db")
    ]
    [row] = drain_answer(plan, "dump.yaml", ()).to_json()["blockers"]
    assert (row["where"], row["why"]) == (
        "a",
        "Insufficient cpu, node(s) were unschedulable (cordoned) (after other pods of the node)",
    )


def test_an_edit_says_which_nodes_it_helps(planner, make):
    """The room for a pod without a place helps one node; a changed budget helps all its nodes."""
    labelled = [make.node(name, pool="db") for name in ("a", "b")]
    pods = deployment(make, "db", ["a", "b"], cpu="4", nodeSelector={"pool": "db"})
    plan = plan_of(planner(*labelled, make.node("c"), *pods), ["a", "b"])
    [edit] = drain_answer(plan, "dump.yaml", ()).to_json()["edits"]
    assert edit["edit"] == "label node c pool=db (then c takes a pod of deploy/default/db)"
    assert (edit["helps"], edit["instead"], edit["for"]) == (["a"], ["b"], "a or b")

    pods = deployment(make, "web", ["a", "b"])
    plan = plan_of(
        planner(*map(make.node, NODES), *pods, budget("web", minAvailable=2)), ["a", "b"]
    )
    [edit] = drain_answer(plan, "dump.yaml", ()).to_json()["edits"]
    assert (edit["helps"], edit["for"]) == (["a", "b"], "2 nodes")


def test_an_edit_helps_a_blocked_node_after_all_drains(planner, make):
    """Node a takes the pod of b. Then room on c for one pod is not enough to empty a."""
    nodes = [make.node("a", pool="db"), make.node("b", pool="db"), make.node("c", cpu="3")]
    pods = deployment(make, "db", ["a", "b"], cpu="2", nodeSelector={"pool": "db"})
    plan = plan_of(planner(*nodes, *pods), ["a", "b"])
    assert [drain.node for drain in plan.drains] == ["b"]
    [blocker] = plan.blockers
    assert (blocker.node, blocker.edit) == ("a", "add a node like a")


def test_an_edit_of_a_pod_names_its_workload_first(planner, make):
    """Node b has two cores free, and the pod requests three."""
    pods = [*deployment(make, "db", ["a"], cpu="3"), *deployment(make, "web", ["b"] * 2)]
    [(_, _, edit)] = blocked(planner(make.node("a"), make.node("b"), *pods), "a")
    lowered = "deploy/default/db: lower the cpu request from 3 to 2"
    assert edit == f"{lowered} (then b takes one of its pods)"


def test_nodes_that_do_not_return_share_the_remaining_room(planner, make):
    """The pods of a or those of b fit on c, but not both."""
    made = planner(*map(make.node, NODES), *deployment(make, "web", ["a", "a", "b", "b", "b"]))
    plan = plan_of(made, ["a", "b"])
    assert [drain.node for drain in plan.drains] == ["a"]
    assert plan.blocked == ["b"]
    made.model.table.validate()
    again = plan_of(made, ["a", "b"], return_again=True)
    assert [drain.node for drain in again.drains] == ["a", "b"]


def test_the_duration_depends_on_the_number_of_nodes_drained_at_once(planner, experiment, make):
    """Pods take 30 s to stop: three nodes one by one take 90 s, two at once 60 s."""
    objects = [*map(make.node, (*NODES, "d")), *deployment(make, "web", NODES)]
    plan = plan_of(planner(*objects), NODES)
    run_plan(plan, experiment(*objects), NoProgress())
    assert [(run.pace.max_unavailable, run.took, run.is_safe) for run in plan.runs] == [
        (1, seconds(90), True),
        (2, seconds(60), True),
    ]
    assert plan.best is plan.runs[1]


@pytest.mark.parametrize("cpu", ["4", "1500m"])
def test_runs_that_wait_for_the_first_run_have_the_same_results(experiment, make, cpu):
    """With 1500m, node d takes one of three pods: the run at the first pace is not safe."""
    nodes = [make.node(name, cpu=cpu) for name in (*NODES, "d")]
    base = experiment(*nodes, *deployment(make, "web", NODES))
    paces = [DrainPace(1), DrainPace(2), DrainPace(3)]
    runs = run_drains(base, [DrainRound(tuple(NODES))], paces, NoProgress())
    assert runs[0].is_safe == (cpu == "4")
    alone = run_drains(base, [DrainRound(tuple(NODES))], paces, NoProgress(), first_alone=True)
    assert alone == runs


def test_pods_that_are_pending_without_the_drain_do_not_make_it_unsafe(experiment, make):
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a"]), make.pod("big", cpu="9")]
    [run] = run_drains(experiment(*objects), [DrainRound(("a",))], [DrainPace(1)], NoProgress())
    assert run.is_safe


def test_of_the_pending_pods_of_a_workload_only_those_of_the_drain_count(experiment, make):
    """One of three replicas is pending without the drain of node a, two are pending with it."""
    nodes = [make.node(name, cpu="1") for name in ("a", "b")]
    *objects, waiting = deployment(make, "web", ["a", "b", ""])
    waiting["status"] = {"phase": "Pending"}
    [run] = run_drains(
        experiment(*nodes, *objects, waiting), [DrainRound(("a",))], [DrainPace(1)], NoProgress()
    )
    assert not run.is_safe
    assert len(run.pending) == 1


def test_a_pace_at_which_a_workload_stops_is_not_safe(planner, experiment, make):
    """Without a budget both replicas are evicted at once if both nodes are."""
    objects = [*map(make.node, (*NODES, "d")), *deployment(make, "web", ["a", "b"])]
    plan = plan_of(planner(*objects), NODES)
    run_plan(plan, experiment(*objects), NoProgress(), max_unavailable=2, away=0)
    [run] = plan.runs
    assert [str(one.workload) for one in run.stopped] == ["deploy/default/web"]
    assert not run.is_safe
    assert plan.best is None


def test_the_answer_begins_with_the_verdict(planner, experiment, make):
    objects = [
        *map(make.node, NODES),
        *deployment(make, "web", ["a", "b"]),
        *deployment(make, "one", ["b"]),
        budget("one", minAvailable=1),
        daemon_pod(make, "a"),
        make.pod("alone", node_name="a"),
    ]
    plan = plan_of(planner(*objects), ["a", "b"])
    run_plan(plan, experiment(*objects), NoProgress())
    found = drain_answer(plan, "dump.yaml", ()).to_json()
    assert found["verdict"] == ("1 of 2 nodes can be drained in 30s, one at a time; 1 is blocked.")
    assert found["findings"] == [
        (
            "During the drains, every workload keeps a ready pod and no disruption budget is "
            "breached. After them, every evicted pod of a workload runs again."
        ),
        "kubectl drain needs --ignore-daemonsets (1 pod), --force (1 pod).",
        "default/alone has no controller and will be gone for good.",
    ]
    assert found["blocked"] == ["b"]
    [edit] = found["edits"]
    assert edit["edit"] == "kubectl -n default scale deploy/one --replicas 2"
    assert edit["helps"] == ["b"]
    assert found["moves"] == [{"pod": "default/web-1-0", "from": "a", "to": "c"}]
    assert found["order"][0]["lost"] == ["default/alone"]


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        (["a"], "During the drains, every workload with several replicas keeps a ready pod"),
        (["b"], "kubectl drain needs"),  # no pod is evicted
    ],
    ids=["a workload with one replica stops", "only a DaemonSet's pod"],
)
def test_the_answer_says_what_a_safe_drain_guarantees(planner, experiment, make, nodes, says):
    objects = [*map(make.node, NODES), *deployment(make, "one", ["a"]), daemon_pod(make, "b")]
    plan = plan_of(planner(*objects), nodes)
    run_plan(plan, experiment(*objects), NoProgress())
    found = drain_answer(plan, "dump.yaml", ()).to_json()
    assert found["findings"][0].startswith(says)
    stops = "deploy/default/one has one replica and will stop while its pod moves."
    assert (stops in found["findings"]) == (nodes == ["a"])


@pytest.mark.parametrize(
    ("drained", "can"),
    [(3, "these nodes can all"), (0, "these nodes still cannot all"), (2, "a, b can")],
)
def test_new_nodes_for_several_blocked_nodes_are_tried_together(planner, make, drained, can):
    """The pods fit on no other node: node d is too small, and the others are full."""
    objects = [*map(make.node, NODES), make.node("d", cpu="100m")]
    for name in NODES:
        objects += deployment(make, f"web-{name}", [name], cpu="3")
    plan = plan_of(planner(*objects), NODES)
    assert {one.edit for one in plan.blockers} == {f"add a node like {name}" for name in NODES}
    assert plan.new_nodes == NewNodesTrial(NODES, NODES, 3, NODES)
    plan.new_nodes = NewNodesTrial(NODES, NODES, 3, NODES[:drained])
    says = f"With 3 new nodes, one like each of a, b, c, {can} be drained."
    answer = drain_answer(plan, "dump.yaml", ())
    assert says in answer.findings
    assert answer.verdict.startswith("None of 3 nodes can be drained without leaving pods pending:")
    assert answer.findings[0].startswith("3 nodes are blocked only because pods would stay pending")


def test_more_new_nodes_are_tried_if_pending_pods_take_the_room(planner, make):
    """The pods of the nodes could also move after a smaller request, but new nodes suffice."""
    objects = [*map(make.node, "ab"), make.pod("waits", cpu="3"), make.pod("waits-too", cpu="3")]
    for name in "ab":
        objects += deployment(make, f"web-{name}", [name], cpu="3")
    plan = plan_of(planner(*objects), ["a", "b"])
    assert plan.new_nodes == NewNodesTrial(("a", "b"), ("a", "b"), 4, ("a", "b"))
    says = "With 4 new nodes like a, b, these nodes can all be drained."
    assert says in drain_answer(plan, "dump.yaml", ()).findings


def test_no_copies_are_suggested_of_a_node_that_new_nodes_do_not_help(planner, make):
    """The pod of the small node a can run only there."""
    objects = [make.node("a", cpu="1"), *map(make.node, "bc")]
    objects += deployment(make, "pinned", ["a"], nodeSelector={"kubernetes.io/hostname": "a"})
    for name in "bc":
        objects += deployment(make, f"web-{name}", [name], cpu="3")
    plan = plan_of(planner(*objects), ["a", "b"])
    assert plan.new_nodes == NewNodesTrial(("a", "b"), ("b",), 1, ("b",))
    says = "With one new node like b, b can be drained."
    assert says in drain_answer(plan, "dump.yaml", ()).findings


def test_a_node_that_a_budget_blocks_is_not_blocked_only_by_missing_room():
    room = Blocker("a", "default/x", BlockCause.NO_PLACE, "pod/default/x", "why", "edit")
    budget = Blocker("b", "default/y", BlockCause.BUDGET_NEVER, "pdb/default/y", "why", "edit")
    answer = drain_answer(DrainPlan(("a", "b"), [], [room, budget]), "dump.yaml", ())
    assert answer.verdict.startswith("None of 2 nodes can be drained: blocked by")
    assert answer.findings[0].startswith("1 node is blocked only because pods would stay pending")


def test_the_new_node_of_a_single_blocked_node_needs_no_trial(planner, make):
    objects = [*map(make.node, "ab"), *deployment(make, "web", ["a"], cpu="3")]
    objects += deployment(make, "full", ["b"], cpu="3")
    plan = plan_of(planner(*objects), ["a"])
    assert [one.edit for one in plan.blockers] == ["add a node like a"]
    assert plan.new_nodes is None


def test_a_safe_drain_does_not_keep_pods_of_jobs_ready(planner, experiment, make):
    """The Job has no ready pod until its new pod is ready."""
    objects = [*map(make.node, NODES), *job_of(make, "a"), *deployment(make, "web", ["a", "b"])]
    objects[4]["status"]["conditions"] = READY
    plan = plan_of(planner(*objects), ["a"])
    run_plan(plan, experiment(*objects), NoProgress())
    found = drain_answer(plan, "dump.yaml", ()).to_json()
    assert found["findings"][0].startswith(
        "During the drains, every workload, except those whose pods end by themselves (such as "
        "Jobs), keeps a ready pod"
    )


def test_a_plan_without_the_blocked_nodes_cordons_only_the_others(planner, experiment, make):
    """The pod of a blocked node may run nowhere else, so the node stays in service."""
    objects = [
        *map(make.node, NODES),
        *deployment(make, "web", ["a", "c"]),
        *deployment(make, "one", ["b"]),
        budget("one", minAvailable=1),
    ]
    plan = plan_of(planner(*objects, make.node("d")), ["a", "b", "c"])
    run_plan(plan, experiment(*objects, make.node("d")), NoProgress())
    answer = drain_answer(plan, "dump.yaml", ()).to_json()
    names = [row["node"] for row in answer["order"]]
    assert sorted(names) == ["a", "c"]
    aim = "so that no pod moves twice; then drain them in this order"
    assert f"First cordon only these 2 nodes, {aim}: {', '.join(names)}." in answer["findings"]


@pytest.mark.parametrize(
    ("cordoned", "says", "command"),
    [
        ("a", "First cordon c (1 is cordoned already), so", "kubectl cordon c"),
        ("ac", "Drain only these 2 nodes in this order: ", None),
    ],
    ids=["one node", "all nodes"],
)
def test_cordoned_nodes_are_not_cordoned_again(planner, experiment, make, cordoned, says, command):
    objects = [
        *map(make.node, "abcd"),
        *deployment(make, "web", ["a", "c"]),
        *deployment(make, "one", ["b"]),
        budget("one", minAvailable=1),
    ]
    for node in objects:
        if node["kind"] == "Node" and node["metadata"]["name"] in cordoned:
            node["spec"] = {"unschedulable": True}
    plan = plan_of(planner(*objects), ["a", "b", "c"])
    run_plan(plan, experiment(*objects), NoProgress())
    answer = drain_answer(plan, "dump.yaml", ()).to_json()
    assert any(one.startswith(says) for one in answer["findings"])
    commands = [one["command"] for one in answer["next_steps"]]
    assert [one for one in commands if "cordon" in one] == ([command] if command else [])


def test_only_the_nodes_of_the_plan_need_flags_of_kubectl(planner, make):
    """Node b is not drained, so its pod without a controller is not lost."""
    objects = [
        *map(make.node, NODES),
        *deployment(make, "one", ["b"]),
        budget("one", minAvailable=1),
        *(daemon_pod(make, name) for name in ("a", "b")),
        make.pod("alone", node_name="b", volumes=[{"name": "v", "emptyDir": {}}]),
    ]
    plan = plan_of(planner(*objects), ["a", "b"])
    assert [(one.flag, one.pods) for one in plan.flags] == [
        ("--ignore-daemonsets", ("default/agent-a",))
    ]


def test_a_failed_pod_of_a_daemon_set_needs_a_flag_of_kubectl(planner, make):
    """The DaemonSet creates another pod, for example as soon as the node has enough memory."""
    failed = daemon_pod(make, "a")
    failed["status"] = {"phase": "Failed", "reason": "Evicted"}
    plan = plan_of(planner(*map(make.node, NODES), failed), ["a"])
    assert [(one.flag, one.pods) for one in plan.flags] == [
        ("--ignore-daemonsets", ("default/agent-a",))
    ]


@pytest.mark.parametrize(
    ("grace_s", "left_s", "waits"),
    [(7200, None, "2h00m"), (7200, 3600, "1h00m"), (600, None, ""), (7200, 300, "")],
    ids=["long", "terminating", "short", "almost over"],
)
def test_pods_that_take_long_to_stop_are_named(planner, make, grace_s, left_s, waits):
    """kubectl drain waits for them, also if they were deleted before."""
    objects = [
        *map(make.node, ("a", "b")),
        *deployment(make, "web", ["a"], terminationGracePeriodSeconds=grace_s),
        daemon_pod(make, "a"),
    ]
    objects[-1]["spec"]["terminationGracePeriodSeconds"] = 7200
    made = planner(*objects)
    if left_s is not None:
        end = format_timestamp(made.model.now + seconds(left_s))
        objects[-2]["metadata"] |= {"deletionTimestamp": end, "deletionGracePeriodSeconds": grace_s}
        made = planner(*objects)
    answer = drain_answer(plan_of(made, ["a"]), "dump.yaml", ())
    found = [one for one in answer.findings if one.startswith("A drain waits")]
    pods = "pods of deploy/default/web have stopped (terminationGracePeriodSeconds)."
    assert found == ([f"A drain waits up to {waits} until {pods}"] if waits else [])


def test_a_verdict_without_a_drain_names_the_blocker_of_most_pods(planner, make):
    objects = [
        *(make.node("a", pool="db"), make.node("b")),
        *deployment(make, "web", ["a", "a"]),
        *deployment(make, "one", ["b"]),
        *deployment(make, "db", ["a"], nodeSelector={"pool": "db"}),
        budget("web", maxUnavailable=0),
        budget("one", minAvailable=1),
    ]
    both = (
        "None of 2 nodes can be drained: blocked by pdb/default/web, deploy/default/db and 1 more."
    )
    verdicts = {
        ("b",): "b cannot be drained: blocked by pdb/default/one.",
        ("a", "b"): both,
        ("b", "a"): both,
    }
    for nodes, verdict in verdicts.items():
        plan = plan_of(planner(*objects), nodes)
        assert drain_answer(plan, "dump.yaml", ()).to_json()["verdict"] == verdict


@pytest.mark.parametrize("seed", range(6))
def test_a_simulated_plan_breaches_no_budget_and_empties_its_nodes(planner, experiment, make, seed):
    """On random clusters, at every pace: all planned nodes are emptied, and all pods run again."""
    pick = TieBreak(seed).pick
    names = [f"n{number}" for number in range(6)]
    objects = [make.node(name, cpu=str(4 + pick(5))) for name in names]
    for number in range(4):
        places = [names[(pick(6) + at) % 6] for at in range(1 + pick(4))]
        objects += deployment(make, f"w{number}", places, cpu=("500m", "1")[pick(2)])
        limits = ({"maxUnavailable": 1}, {"minAvailable": 1}, {"minAvailable": "50%"})
        objects.append(budget(f"w{number}", **limits[pick(3)]))
    chosen = [names[pick(2)], names[2 + pick(2)], names[4 + pick(2)]]
    plan = plan_of(planner(*objects), chosen)
    assert {drain.node for drain in plan.drains} | set(plan.blocked) == set(chosen)
    assert all(isinstance(drain, PlannedDrain) for drain in plan.drains)
    run_plan(plan, experiment(*objects), NoProgress())
    for run in plan.runs:
        assert (run.breaches, run.unfinished, run.pending) == (0, (), {})


def test_a_drain_that_breaks_a_gang_is_not_safe():
    """Two pods of a gang run; without the drained one the gang is below its minimum."""
    read = read_snapshot("examples/gangs/cluster.yaml")
    experiment = baseline_experiment(read, SchedulerConfig(), ReleaseChoice(), 0)
    [run] = run_drains(experiment, [DrainRound(("gpu-1",))], [DrainPace(1)], NoProgress())
    assert run.lost == ("default/forecast-1",)
    assert unsafe_because(run) == "1 pod on other nodes gone for good"


@pytest.mark.parametrize(
    ("kind", "edit"),
    [
        (
            "ReplicaSet",
            "rs/default/train: lower the cpu request from 3 to 2 (then b takes one of its pods)",
        ),
        ("Job", "add a node like a"),
    ],
)
def test_no_change_of_the_pods_of_a_job_is_proposed(planner, make, kind, edit):
    """The template of a Job is immutable."""
    pod = make.pod("train-1", cpu="3", node_name="a", owner="train")
    pod["metadata"]["ownerReferences"][0]["kind"] = kind
    other = make.pod("other", cpu="2", node_name="b")
    plan = plan_of(planner(make.node("a"), make.node("b"), pod, other), ["a"])
    assert [one.edit for one in plan.blockers] == [edit]


TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
TOLERATE = "tolerate taint k=v:NoSchedule (then b takes one of its pods)"


@pytest.mark.parametrize(
    ("cpu", "waiting", "edits"),
    [
        pytest.param(
            "4", "4", [f"deploy/default/{name}: {TOLERATE}" for name in "xy"], id="enough room"
        ),
        pytest.param("2", "4", ["add 2 nodes like a"] * 2, id="room for one of two workloads"),
        pytest.param("1", "2", ["add 2 nodes like a"] * 2, id="one new node is too few"),
        pytest.param("2", "0", ["add a node like a"] * 2, id="one new node is enough"),
    ],
)
def test_the_changes_for_several_workloads_are_enough_together(planner, make, cpu, waiting, edits):
    """Each workload alone fits on `b`, or beside the waiting pod on a new node."""
    small = make.node("b", cpu=cpu)
    small["spec"] = {"taints": [TAINT]}
    owned = [*deployment(make, "x", ["a"], cpu="2"), *deployment(make, "y", ["a"], cpu="2")]
    pending = [] if waiting == "0" else [make.pod("w", cpu=waiting)]
    blockers = plan_of(planner(make.node("a", cpu="4"), small, *owned, *pending), ["a"]).blockers
    assert [one.edit for one in blockers] == edits


@pytest.mark.parametrize(
    ("waiting", "edit"),
    [
        pytest.param(0, "add a node like a", id="one new node is enough"),
        pytest.param(1, "add 2 nodes like a", id="two new nodes are enough"),
        pytest.param(2, "", id="two new nodes are too few"),
    ],
)
@pytest.mark.parametrize("others", [1, 4])
def test_changes_are_tested_together_beside_workloads_without_a_change(
    planner, make, others, waiting, edit
):
    """Two workloads fit on `b`, but not both. No change helps the others, which are too large."""
    small = make.node("b", cpu="2", **{HOSTNAME: "b"})
    small["spec"] = {"taints": [TAINT]}
    owned = [*deployment(make, "x", ["a"], cpu="2"), *deployment(make, "y", ["a"], cpu="2")]
    for number in range(others):
        owned += deployment(make, f"z{number}", ["a"], cpu="6", nodeSelector={HOSTNAME: "a"})
    pending = [make.pod(f"w{number}", cpu="32") for number in range(waiting)]
    made = planner(make.node("a", cpu="32", **{HOSTNAME: "a"}), small, *owned, *pending)
    found = [one.edit for one in plan_of(made, ["a"]).blockers]
    assert found == [edit, edit, *[""] * others]


@pytest.mark.parametrize(
    ("cpu", "edits"),
    [
        pytest.param("2", ["add 2 nodes like a"] * 2, id="room for one of two workloads"),
        pytest.param(
            "8",
            [f"label node b pool=db (then b takes a pod of deploy/default/{one})" for one in "xy"],
            id="enough room",
        ),
    ],
)
def test_equal_changes_of_a_node_are_tested_together(planner, make, cpu, edits):
    """Both workloads need the same label of `b`. A pod that waits needs it, too."""
    nodes = [make.node("a", pool="db", cpu="4"), make.node("b", cpu=cpu)]
    pods = [
        pod
        for name in "xy"
        for pod in deployment(make, name, ["a"], cpu="2", nodeSelector={"pool": "db"})
    ]
    waiting = make.pod("w", cpu="4", nodeSelector={"pool": "db"})
    found = plan_of(planner(*nodes, *pods, waiting), ["a"]).blockers
    assert [one.edit for one in found] == edits


def test_a_drain_is_not_safe_if_a_quota_refuses_the_new_pod(planner, experiment, make):
    """The quota was lowered after its pods were created."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": "default"},
        "spec": {"hard": {"requests.cpu": "1"}},
    }
    nodes = [make.node("a"), make.node("b")]
    objects = [*nodes, *deployment(make, "web", ["a", "b"]), quota]
    plan = plan_of(planner(*objects), ["a"])
    run_plan(plan, experiment(*objects), NoProgress())
    found = drain_answer(plan, "dump.yaml", ()).to_json()
    assert found["verdict"] == "a can be drained, but not safely."
    [pace] = found["paces"]
    assert pace["uncreated"] == {"deploy/default/web": 1}
    assert pace["result"].startswith(
        "1 pod of deploy/default/web is not created again (exceeded quota: small, requested: "
    )
    command = f"fairlead whatif {plan.snapshot} --drain a"
    assert plan.snapshot.endswith("/snapshot.json")
    assert f"{command} proposes limits with which the quota admits the pods." in found["findings"]


def test_each_reason_why_new_pods_are_refused_is_named_once(planner, experiment, make):
    """A quota refuses the pod of web, and a LimitRange those of both small workloads."""
    nodes = [make.node("a"), make.node("b")]
    web = deployment(make, "web", ["a", "b"], cpu="2")
    small = [*deployment(make, "x", ["a"], cpu="100m"), *deployment(make, "y", ["a"], cpu="100m")]
    quota = {**pod_quota("9"), "spec": {"hard": {"requests.cpu": "3"}}}
    objects = [*nodes, *small, *web, quota, least_cpu("200m")]
    plan = plan_of(planner(*objects), ["a"])
    run_plan(plan, experiment(*objects), NoProgress())
    [run] = plan.runs
    assert str(run.uncreated[0].workload) == "deploy/default/web"
    [finding] = refusal_findings(plan)
    assert finding == (
        "Do not evict 2 pods of deploy/default/x and deploy/default/y yet: the API server would "
        "refuse their replacements, so nothing would create them again (minimum cpu usage per "
        "Container is 200m, but request is 100m)."
    )


def test_the_budget_of_a_crashing_pod_can_permit_its_eviction(planner, make):
    """No pod of the budget is ready, so only its policy for unhealthy pods helps."""
    web = deployment(make, "web", ["a", "a"])
    for pod in web[2:]:
        pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    nodes = [make.node("a"), make.node("b")]
    [blocker, _] = plan_of(planner(*nodes, *web, budget("web", minAvailable=1)), ["a"]).blockers
    assert blocker.why == "0 ready, 1 needed (minAvailable 1); the pod itself is not ready"
    patch = '{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}'
    assert blocker.edit == f"kubectl -n default patch pdb web --type merge -p '{patch}'"
    permitted = budget("web", minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert plan_of(planner(*nodes, *web, permitted), ["a"]).blockers == []


@pytest.mark.parametrize(
    ("policy", "is_safe"),
    [
        ({"backoffLimit": 0}, False),
        ({"backoffLimit": 1}, True),
        (
            {
                "backoffLimit": 0,
                "podFailurePolicy": {
                    "rules": [
                        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
                    ]
                },
            },
            True,
        ),
    ],
)
def test_a_drain_is_not_safe_if_a_job_fails_because_of_it(
    planner, experiment, make, policy, is_safe
):
    """When the Job fails, its controller also deletes the pod on the other node."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default", "uid": "train"},
        "spec": {"parallelism": 2, "completions": 2, "template": template, **policy},
    }
    pods = [
        make.pod(f"train-{node}", node_name=node, owner="train", restartPolicy="Never")
        for node in ("a", "b")
    ]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    objects = [make.node("a"), make.node("b"), job, *pods]
    plan = plan_of(planner(*objects), ["a"])
    run_plan(plan, experiment(*objects), NoProgress())
    [run] = plan.runs
    assert run.is_safe is is_safe
    why = "Job has reached the specified backoff limit (BackoffLimitExceeded)"
    assert unsafe_because(run) == ("" if is_safe else f"Job default/train fails: {why}")
    [pace] = drain_answer(plan, "dump.yaml", ()).to_json()["paces"]
    assert pace["failed_jobs"] == ([] if is_safe else ["default/train"])


@pytest.mark.parametrize(
    ("fields", "is_safe"),
    [
        ({"backoffLimitPerIndex": 0}, False),
        ({"backoffLimitPerIndex": 1}, True),
        ({"backoffLimitPerIndex": 0, "successPolicy": {"rules": [{"succeededCount": 1}]}}, True),
        ({"backoffLimitPerIndex": 0, "successPolicy": {"rules": [{"succeededIndexes": "0"}]}},
         False),
        ({"backoffLimitPerIndex": 0, "status": {"failedIndexes": "0"}}, True),
    ],
    ids=["no retry", "one retry", "one index is enough", "the index is needed", "failed already"],
)  # fmt: skip
def test_a_drain_that_makes_an_index_fail_is_not_safe(planner, experiment, make, fields, is_safe):
    """The other index continues, so that the Job fails only later."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    status = fields.pop("status", {})
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sum", "namespace": "default", "uid": "sum"},
        "spec": {
            "completionMode": "Indexed", "parallelism": 3, "completions": 3,
            "template": template, **fields,
        },
        "status": status,
    }  # fmt: skip
    pods = [
        make.pod(f"sum-{index}", node_name=node, owner="sum", restartPolicy="Never")
        for index, node in enumerate("abb")
        if not (status and index == 0)
    ]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
        pod["metadata"]["annotations"] = {
            "batch.kubernetes.io/job-completion-index": pod["metadata"]["name"][-1],
            "batch.kubernetes.io/job-index-failure-count": "0",
        }
    objects = [make.node("a"), make.node("b"), job, *pods]
    plan = plan_of(planner(*objects), ["a"])
    run_plan(plan, experiment(*objects), NoProgress())
    [run] = plan.runs
    why = "Job default/sum can only fail: index 0 has failed (backoffLimitPerIndex)"
    assert unsafe_because(run) == ("" if is_safe else why)
    assert run.is_safe is is_safe


def test_a_job_whose_deadline_passes_during_a_drain_fails_without_it_too(planner, experiment, make):
    """The node is away for longer than the simulation without the drain takes."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default", "uid": "train"},
        "spec": {"activeDeadlineSeconds": 600, "template": template},
    }
    pod = make.pod("train-b", node_name="b", owner="train", restartPolicy="Never")
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    objects = [make.node("a"), make.node("b"), job, pod]
    plan = plan_of(planner(*objects), ["a"], return_again=True)
    run_plan(plan, experiment(*objects), NoProgress(), away=seconds(1200))
    [run] = plan.runs
    assert run.failed_jobs == ()
    assert run.is_safe


def test_a_job_that_a_drain_fails_before_its_deadline_fails_because_of_the_drain(
    planner, experiment, make
):
    """Without the drain, the Job exceeds its deadline, because its pods run until then."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default", "uid": "train"},
        "spec": {"activeDeadlineSeconds": 600, "backoffLimit": 0, "template": template},
    }
    pod = make.pod("train-a", node_name="a", owner="train", restartPolicy="Never")
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
    objects = [make.node("a"), make.node("b"), job, pod]
    plan = plan_of(planner(*objects), ["a"], return_again=True)
    run_plan(plan, experiment(*objects), NoProgress(), away=seconds(1200))
    [run] = plan.runs
    assert [one.subject for one in run.failed_jobs] == ["Job default/train"]
    assert not run.is_safe


def test_a_drain_is_not_safe_if_a_stateful_set_waits_for_an_unready_pod(planner, experiment, make):
    """db-2 is created again only when db-0 is ready."""
    db = make.workload("StatefulSet", "db", replicas=3)
    db["metadata"]["uid"] = "db"
    pods = []
    for number, (node, ready) in enumerate([("a", "False"), ("c", "True"), ("b", "True")]):
        pod = make.pod(f"db-{number}", node_name=node, owner="db")
        pod["metadata"]["labels"] = {"app": "db"}
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        pod["status"]["conditions"] = [{"type": "Ready", "status": ready}]
        pods.append(pod)
    objects = [*map(make.node, "abc"), db, *pods]
    safe = {}
    for node in ("a", "b"):
        plan = plan_of(planner(*objects), [node])
        run_plan(plan, experiment(*objects), NoProgress())
        [run] = plan.runs
        safe[node] = unsafe_because(run)
    why = "the StatefulSet waits until its pods with lower ordinals are ready"
    assert safe == {"a": "", "b": f"1 pod of sts/default/db is not created again ({why})"}


@pytest.mark.parametrize(
    ("owner", "rule"),
    [
        pytest.param(("batch/v1", "Job"), '"maxUnavailable":null,"minAvailable":1', id="a Job"),
        pytest.param(
            ("core.strimzi.io/v1beta2", "StrimziPodSet"),
            '"maxUnavailable":null,"minAvailable":1',
            id="a custom resource",
        ),
        pytest.param(None, '"maxUnavailable":null,"minAvailable":1', id="no controller"),
        pytest.param(
            ("apps/v1", "StatefulSet"),
            '"minAvailable":null,"maxUnavailable":1',
            id="a controller with a scale",
        ),
    ],
)
def test_advice_for_pods_without_a_scale_is_a_lower_number(planner, make, owner, rule):
    """With maxUnavailable, such a budget never allows an eviction."""
    pods = []
    for number, node in enumerate(["a", "b"]):
        pod = make.pod(f"web-{number}", node_name=node, owner="web" if owner else None)
        pod["metadata"]["labels"] = {"app": "web"}
        if owner:
            api, kind = owner
            pod["metadata"]["ownerReferences"][0] |= {"apiVersion": api, "kind": kind}
        pod["status"]["conditions"] = READY
        pods.append(pod)
    made = planner(*map(make.node, NODES), *pods, budget("web", minAvailable=2))
    [(cause, _, edit)] = blocked(made, "a")
    assert cause is BlockCause.BUDGET_NEVER
    assert edit == f"kubectl -n default patch pdb web --type merge -p '{{\"spec\":{{{rule}}}}}'"


@pytest.mark.parametrize("api", ["longhorn.io/v1beta2", "apps/v1"])
def test_the_controller_of_a_pod_may_react_to_a_drain(planner, make, api):
    """Longhorn deletes the budget of an instance manager once its volumes are detached."""
    pod = make.pod("im-0", node_name="a", owner="im")
    pod["metadata"]["labels"] = {"app": "im"}
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": api, "kind": "InstanceManager"}
    made = planner(*map(make.node, NODES), pod, budget("im", minAvailable=1))
    blocker = plan_of(made, ["a"]).blockers[0]
    reacts = blocker.why.endswith("unless InstanceManager default/im reacts to the drain")
    assert reacts is (api != "apps/v1")


@pytest.mark.parametrize(
    ("api", "edit"),
    [
        ("longhorn.io/v1beta2", "cordon a: Longhorn then deletes the budget when the volumes"),
        ("postgresql.cnpg.io/v1", "cordon a: CloudNativePG then makes an instance on another"),
        ("kubevirt.io/v1", "drain a: KubeVirt then moves the virtual machine, if"),
        ("example.com/v1", "kubectl -n default patch pdb im --type merge -p "),
    ],
)
@pytest.mark.parametrize("is_owned", [True, False])
def test_known_operators_act_themselves(planner, make, api, edit, is_owned):
    """A patch of Longhorn's budget would let a drain remove the last replica of a volume."""
    pod = make.pod("im", node_name="a", owner="im")
    pod["metadata"]["labels"] = {"app": "im"}
    reference = {"apiVersion": api, "kind": "InstanceManager", "name": "im", "uid": "im"}
    pod["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    own = budget("im", minAvailable=1)
    if is_owned:
        own["metadata"]["ownerReferences"] = [reference]
    blocker = plan_of(planner(*map(make.node, NODES), pod, own), ["a"]).blockers[0]
    if is_owned and api == "example.com/v1":
        edit = "set minAvailable 0 for pdb/default/im in InstanceManager default/im"
    if not is_owned and "cnpg" in api:  # a budget of a user also covers an old primary
        edit = "kubectl -n default patch pdb im --type merge -p "
    assert blocker.edit.startswith(edit)


@pytest.mark.parametrize("controls", [True, False])
def test_the_budget_of_an_operator_is_changed_in_its_owner(planner, make, controls):
    """The operator would revert a patch of the budget, and create a deleted budget again."""
    owned = budget("web", minAvailable=2)
    owner = {"apiVersion": "x/v1", "kind": "Cluster", "name": "pg", "controller": controls}
    owned["metadata"]["ownerReferences"] = [{**owner, "uid": "pg-uid"}]
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a"] * 2), owned]
    blocker = plan_of(planner(*objects), ["a"]).blockers[0]
    assert blocker.why.endswith("all are ready, unless Cluster default/pg reacts to the drain")
    assert blocker.edit == (
        "set maxUnavailable 1 for pdb/default/web in Cluster default/pg, which owns the budget"
    )
    second = budget("web", minAvailable=2)
    second["metadata"]["name"] = "also"
    [several, *_] = blocked(planner(*objects, second), "a")
    assert several == (
        BlockCause.SEVERAL_BUDGETS,
        "pdb/default/also",
        "kubectl -n default delete pdb also",
    )


@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_a_pod_that_a_finalizer_keeps_blocks_its_node(planner, make, phase):
    """The deletion has begun; kubectl drain waits for it, even after the containers have ended."""
    kept = make.pod("kept", node_name="a", owner="web")
    kept["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["example.com/hold"],
    }
    kept["status"]["phase"] = phase
    [(cause, owner, edit)] = blocked(planner(*map(make.node, NODES), kept), "a")
    assert (cause, owner) == (BlockCause.FINALIZER, "pod/default/kept")
    assert edit.startswith("remove finalizer example.com/hold from pod/default/kept, or ")


def test_a_pod_in_its_grace_period_does_not_block_its_node(planner, make):
    """Its finalizer is removed after its end."""
    leaving = make.pod("leaving", node_name="a", owner="web")
    leaving["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:20Z",
        "finalizers": ["example.com/hold"],
    }
    assert not blocked(planner(*map(make.node, NODES), leaving), "a")


def test_a_run_names_the_finalizer_that_keeps_an_ended_pod(planner, experiment, make):
    """The program that should remove the finalizer has not done so."""
    web, kept = deployment(make, "web", ["a"]), make.pod("kept", node_name="a", owner="web")
    kept["metadata"] |= {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["example.com/hold"],
    }
    objects = [*map(make.node, NODES), *web]
    plan = plan_of(planner(*objects), ["a"])
    run_plan(plan, experiment(*objects, kept), NoProgress())
    assert unsafe_because(plan.runs[0]) == (
        "a never becomes empty because default/kept stays (finalizer example.com/hold keeps it "
        "after its end, as in the dump)"
    )
    verdict = drain_answer(plan, "dump.yaml", ()).to_json()["verdict"]
    assert verdict == "The drain of a does not complete."


def test_an_evicted_pod_leaves_its_node_with_a_finalizer_of_another_program(
    planner, experiment, make
):
    """In a cluster, that program removes the finalizer when the pod has ended."""
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a"])]
    objects[-1]["metadata"]["finalizers"] = ["kueue.x-k8s.io/managed"]
    plan = plan_of(planner(*objects), ["a"])
    run_plan(plan, experiment(*objects), NoProgress())
    assert not unsafe_because(plan.runs[0])


def test_a_percentage_is_a_part_of_the_nodes_of_each_round():
    """Half of the largest round are 3 nodes, and half of a round of 3 nodes is 1 node."""
    [pace] = paces_for(7, "50%", None)
    assert (pace.max_unavailable, pace.of(7), pace.of(3)) == (3, 3, 1)


def test_pods_with_a_negative_priority_block_no_drain(planner, experiment, make):
    """The pod of web preempts a placeholder, and the placeholder of the node stays pending."""
    objects = overprovisioned(make, -10)
    plan = plan_of(planner(*objects), ["a"])
    [drain] = plan.drains
    assert [move.workload for move in drain.moves] == ["deploy/default/web"]
    assert (drain.pending, len(drain.preempted)) == (("default/spare-1-0",), 1)
    run_plan(plan, experiment(*objects), NoProgress())
    assert plan.best is not None
    runs, pending, *_ = drain_answer(plan, "dump.yaml", ()).findings
    assert runs.endswith("pod of a workload runs again, except pods with a negative priority.")
    assert pending.startswith("2 pods with a negative priority are pending at the end")


def test_a_stateful_set_with_a_negative_priority_may_wait_for_room(planner, experiment, make):
    """It creates its second pod again only after the first, which stays pending."""
    nodes = [make.node(name, cpu="2") for name in NODES]
    spare = make.workload("StatefulSet", "spare", replicas=2)
    spare["metadata"]["uid"] = "spare"
    pods = [make.pod(f"spare-{number}", node_name="a", owner="spare") for number in (0, 1)]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0] |= {"kind": "StatefulSet", "uid": "spare"}
        pod["metadata"]["labels"] = spare["spec"]["selector"]["matchLabels"]
        pod["status"]["conditions"] = READY
    web = deployment(make, "web", ["b", "b", "c", "c"])
    objects = [*nodes, *web, *with_priority([spare, *pods], -10)]
    plan = plan_of(planner(*objects), ["a"])
    run_plan(plan, experiment(*objects), NoProgress())
    [run] = plan.runs
    assert (run.is_safe, run.uncreated) == (True, ())
    assert run.pending_negative == ("default/spare-0", "default/spare-1")


def test_a_run_can_count_pods_with_a_negative_priority(planner, experiment, make):
    """`consolidate` does so, because placeholders keep spare nodes."""
    objects = overprovisioned(make, -10)
    plan = plan_of(planner(*objects), ["a"])
    run_plan(plan, experiment(*objects), NoProgress(), ignores_negative=False)
    assert plan.best is None
    [run, *_] = plan.runs
    assert (len(run.pending), run.pending_negative) == (2, ())


def test_pods_without_a_negative_priority_block_a_drain(planner, make):
    """No pod of web preempts them in the plan, although their priority is lower."""
    objects = overprovisioned(make, 0)
    for one in objects:
        if one["kind"] == "Pod" and one["metadata"]["name"].startswith("web"):
            one["spec"]["priority"] = 5
    assert plan_of(planner(*objects), ["a"]).blocked == ["a"]


def test_pods_with_a_negative_priority_are_not_listed_as_down(planner, experiment, make):
    """Until the node returns, its placeholder and the placeholder that web preempts are pending."""
    objects = overprovisioned(make, -10)
    plan = plan_of(planner(*objects), ["a"], return_again=True)
    [drain] = plan.drains
    assert (drain.waits, drain.pending) == ({}, ("default/spare-1-0",))
    assert not list(wait_findings(plan))  # no run has shown that the node returns
    run_plan(plan, experiment(*objects), NoProgress(), away=seconds(600))
    [sentence] = wait_findings(plan)
    assert sentence == (
        "2 pods with a negative priority have no node until the drained node is back, because they "
        "give way to other pods."
    )
    assert wait_table(plan).rows == []


def test_a_workload_with_a_negative_priority_may_stop(planner, experiment, make):
    """Both placeholders are on the drained nodes, so none of them is ready at the end."""
    nodes = [make.node(name, cpu="2") for name in NODES]
    web = deployment(make, "web", ["c", "c"], cpu="1")
    objects = [*nodes, *web, *with_priority(deployment(make, "spare", ["a", "b"]), -1)]
    plan = plan_of(planner(*objects), ["a", "b"])
    run_plan(plan, experiment(*objects), NoProgress())
    assert (plan.blocked, [run.is_safe for run in plan.runs]) == ([], [True])
    runs = drain_answer(plan, "dump.yaml", ()).findings[0]
    assert runs.startswith(
        "During the drains, every workload, except those with a negative priority, keeps a ready "
    )
