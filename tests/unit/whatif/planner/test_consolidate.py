"""Consolidation: nodes that drains can remove without budget breaches, and what keeps others."""

from __future__ import annotations

import pytest
from msgspec import convert
from msgspec.structs import replace
from tests.unit.whatif.planner.conftest import (
    READY,
    budget,
    daemon_pod,
    deployment,
    least_cpu,
    overprovisioned,
)

from fairlead.api.objects import Pod, PodDisruptionBudget
from fairlead.api.timestamp import parse_timestamp
from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.tie_break import TieBreak
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.run_outcome import ObjectError
from fairlead.whatif.planner.consolidate import (
    ConsolidationSearch,
    consolidate_answer,
    consolidate_safely,
    machines,
)
from fairlead.whatif.planner.node.node_bound import NODE_GROUPS
from fairlead.whatif.planner.node_drain.autoscaler_rule import AutoscalerRules, IgnoredRule
from fairlead.whatif.planner.node_drain.drain_plan import run_plan
from fairlead.whatif.planner.node_drain.drain_planner import BlockCause
from fairlead.whatif.planner.node_drain.drain_run import DrainPace, DrainRun, DrainTimes
from fairlead.whatif.planner.removal_search import RemovalChoice
from fairlead.whatif.result.form.drain_form import ConsolidationForm
from fairlead.whatif.run.progress import NoProgress

NODES = ("a", "b", "c")
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def consolidated(planner, *, ignored=(), prices=None, of_karpenter=(), limit=None, names=None):
    model = planner.model
    budgets = [one for one in model.objects if isinstance(one, PodDisruptionBudget)]
    options = AutoscalingOptions()
    rules = AutoscalerRules(options, budgets, model.now, ignored, of_karpenter=of_karpenter)
    names = names or machines(model, [info.name for info in model.table.nodes()], "dump.json")
    return planned(planner, rules, names, prices, limit)


def planned(planner, rules, names, prices=None, limit=None):
    search = ConsolidationSearch(planner, rules, names, prices or {}, NoProgress())
    return search.explained(search.plan(limit))


def as_it_is(found):
    return found


def test_pods_that_may_run_on_cordoned_nodes_need_room_on_other_nodes(planner, make):
    """The removed nodes are deleted, so the pods cannot come back to them.

    The three pods exclude each other, so three nodes must stay.
    """
    names = ("a", "b", "c", "d")
    nodes = [make.node(name, **{HOSTNAME: name}) for name in names]
    selector = {"matchLabels": {"app": "web"}}
    required = [{"topologyKey": HOSTNAME, "labelSelector": selector}]
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    pods = {"tolerations": [{"operator": "Exists"}], "affinity": apart}
    found = consolidated(planner(*nodes, *deployment(make, "web", names[:3], **pods)))
    assert (len(found.removable), found.most) == (1, 1)
    targets = {move.target for drain in found.plan.drains for move in drain.moves}
    assert targets.isdisjoint(found.removable)
    assert found.blocker_by_node["a"].why == (
        "node(s) didn't match pod anti-affinity rules, node(s) were unschedulable (cordoned)"
    )


def kept(found):
    """Return (node, cause, owner) of the blockers."""
    return [(one.node, one.cause, one.owner) for one in found.blockers]


def test_pods_of_the_emptiest_nodes_move_to_the_other_nodes(planner, make):
    """Five cores on three nodes of four: two nodes are enough, one is not."""
    made = planner(*map(make.node, NODES), *deployment(make, "web", ["a", "a", "a", "b", "c"]))
    found = consolidated(made)
    assert (len(found.removable), found.most) == (1, 1)
    [move] = found.plan.drains[0].moves
    assert move.target not in found.removable
    assert found.blockers == []
    assert len(found.needed) == 2


def test_the_answer_names_the_workloads_that_stop(planner, experiment, make):
    """Both pods of web and the pod of one move; only one has no other ready pod."""
    objects = [*map(make.node, NODES[:2]), *deployment(make, "web", ["a", "b", "b"])]
    objects += deployment(make, "one", ["a"])
    made = planner(*objects)
    found = consolidated(made, limit=1)
    run_plan(found.plan, experiment(*objects), NoProgress())
    answer = consolidate_answer(found, made.model, "dump.json", ())
    assert answer.findings[:2] == (
        "Drain it. This takes 30s.",
        "deploy/default/one has one replica and will stop while its pod moves.",
    )


def test_a_chosen_node_that_cannot_be_emptied_is_not_called_blocked(planner, make):
    """Node c takes the pod of only one of the nodes; kubectl needs a flag for each of them."""
    nodes = [make.node(name, cpu="4") for name in "abc"]
    agents = [daemon_pod(make, name) for name in "ab"]
    made = planner(*nodes, *deployment(make, "web", ["a", "b"], cpu="3"), *agents)
    rules = AutoscalerRules(AutoscalingOptions(), [], made.model.now)
    search = ConsolidationSearch(made, rules, ["a", "b", "c"], {}, NoProgress())
    found = search.explained(search.plan_of(RemovalChoice(["a", "b"])))
    assert (found.removable, found.needed) == (["a"], ["b"])
    findings = consolidate_answer(found, made.model, "dump.json", ()).findings
    assert "kubectl drain needs --ignore-daemonsets (1 pod)." in findings


def test_advice_concerns_only_nodes_that_stay(planner, make):
    """Node a is removed, so its label does not help the pod on c; b stays for its own pod."""
    nodes = [make.node("a", kind="web"), make.node("b", kind="web"), make.node("c", pool="db")]
    web = deployment(make, "web", ["b"], nodeSelector={"kind": "web"})
    found = consolidated(
        planner(*nodes, *web, *deployment(make, "db", ["c"], nodeSelector={"pool": "db"}))
    )
    assert found.removable == ["a"]
    [blocker] = found.blockers
    assert blocker.edit == "label node b pool=db (then b takes a pod of deploy/default/db)"


def test_the_change_of_one_workload_does_not_free_a_node_that_two_workloads_keep(planner, make):
    """Both pods of a need a label of a: with only one of the labels on b, a must stay."""
    nodes = [make.node("a", kind="web", pool="db"), make.node("b")]
    web = deployment(make, "web", ["a"], nodeSelector={"kind": "web"})
    db = deployment(make, "db", ["a"], nodeSelector={"pool": "db"})
    other = deployment(make, "other", ["b"], nodeSelector={"x": "y"})
    made = planner(*nodes, *web, *db, *other)
    found = consolidated(made)
    owners = ["deploy/default/db", "deploy/default/web"]
    assert sorted(one.owner for one in found.blockers if one.node == "a") == owners
    answer = consolidate_answer(found, made.model, "dump.yaml", ()).to_json()
    assert [row["alone"] for row in answer["edits"] if row["helps"] == ["a"]] == [[], []]


@pytest.mark.parametrize("role", ["control-plane", "master"])
def test_a_node_that_runs_the_control_plane_stays(planner, make, role):
    """Its static pods are not moved, so it would seem to be empty."""
    nodes = [make.node("a", **{f"node-role.kubernetes.io/{role}": ""}), make.node("b")]
    found = consolidated(planner(*nodes, *deployment(make, "web", ["b"])))
    assert found.removable == ["b"]
    assert kept(found) == [("a", BlockCause.CONTROL_PLANE, "node/a")]


def test_a_node_that_is_being_deleted_stays(planner, make):
    """Its drain is under way; it does not matter that its pod fits no other node."""
    deleted = make.node("a", pool="x")
    deleted["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/hold"]}
    pods = deployment(make, "web", ["a"], nodeSelector={"pool": "x"})
    found = consolidated(planner(deleted, make.node("b"), *pods))
    assert found.removable == ["b"]
    assert kept(found) == [("a", BlockCause.DELETED, "node/a")]
    assert found.needed_anyway == []


@pytest.mark.parametrize(
    ("labels", "count", "left_out"),
    [
        ({"type": "virtual-kubelet"}, 2, "1 virtual node is left out."),
        ({"eks.amazonaws.com/compute-type": "fargate"}, 2, "1 virtual node is left out."),
        ({}, 3, None),
    ],
)
def test_virtual_nodes_do_not_count(planner, make, labels, count, left_out):
    """They have no machine that could be removed."""
    planner = planner(make.node("a", **labels), make.node("b"), make.node("c"))
    model = planner.model
    found = consolidated(planner, names=machines(model, ["a", "b", "c"], "--nodes"))
    answer = consolidate_answer(found, model, "dump.json", ())
    assert (found.total, found.candidates) == (count, count)
    assert [one for one in answer.findings if "left out" in one] == ([left_out] if left_out else [])
    assert answer.facts["virtual_nodes"] == 3 - count


def test_virtual_nodes_alone_are_no_candidates(planner, make):
    model = planner(make.node("a", type="virtual-kubelet"), make.node("b")).model
    with pytest.raises(InputError, match="--nodes: no node is left to remove; a: a virtual node"):
        machines(model, ["a"], "--nodes")


def test_no_advice_moves_a_pod_to_a_fargate_node(planner, make):
    """A Fargate node runs only its own pod, although a toleration would make another pod fit."""
    key, value = "eks.amazonaws.com/compute-type", "fargate"
    fargate = make.node("a", **{key: value})
    fargate["spec"] = {"taints": [{"key": key, "value": value, "effect": "NoSchedule"}]}
    found = consolidated(planner(fargate, make.node("b"), *deployment(make, "web", ["b"])))
    [blocker] = [one for one in found.blockers if one.node == "b"]
    assert blocker.edit == ""


@pytest.mark.parametrize(
    ("limit", "going", "blocked"),
    [
        pytest.param(0, 1, 2, id="the Job fails after one eviction"),
        pytest.param(1, 2, 0, id="the Job survives one eviction, but not two"),
        pytest.param(2, 3, 0, id="the Job survives both evictions"),
    ],
)
def test_no_plan_fails_a_job(planner, experiment, make, limit, going, blocked):
    """Nodes a and b have a pod of the Job each, c is empty, and d is full of other pods."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default", "uid": "train"},
        "spec": {
            "parallelism": 2, "completions": 2, "backoffLimit": limit,
            "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }  # fmt: skip
    pods = [make.pod(f"train-{name}", node_name=name, owner="train") for name in ("a", "b")]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "batch/v1", "kind": "Job"}
        pod["status"]["conditions"] = READY
    full = deployment(make, "web", ["d"], nodeSelector={"pool": "web"})
    nodes = [*map(make.node, NODES), make.node("d", pool="web")]
    objects = [*nodes, job, *pods, *full]
    found = consolidated(planner(*objects))
    run_plan(found.plan, experiment(*objects), NoProgress())
    assert (len(found.removable), found.plan.runs[0].is_safe) == (going, True)
    assert [one.cause for one in found.blockers].count(BlockCause.JOB) == blocked
    if limit == 1:
        [why] = found.blocker_by_node.values()
        assert why.owner == "job/default/train"


def test_no_plan_removes_a_node_whose_pods_the_api_server_would_refuse(planner, make):
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a", "b"], cpu="100m")]
    assert len(consolidated(planner(*objects)).removable) == 2
    found = consolidated(planner(*objects, least_cpu("200m")))
    assert len(found.removable) == 1
    assert {one.cause for one in found.blockers} == {BlockCause.REFUSED}
    assert found.blockers[0].why == (
        "the API server would refuse its new pod: minimum cpu usage per Container is 200m, but "
        "request is 100m"
    )


def test_an_empty_node_is_removed_with_its_daemonset_pods(planner, make):
    objects = [*map(make.node, NODES), *(daemon_pod(make, name) for name in NODES)]
    found = consolidated(planner(*objects, *deployment(make, "web", ["a"])))
    assert len(found.removable) == 2


PODSET = {
    "apiVersion": "core.strimzi.io/v1beta2",
    "kind": "StrimziPodSet",
    "name": "kafka",
    "uid": "1",
    "controller": True,
}


@pytest.mark.parametrize(
    ("change", "cause", "owner", "rule", "is_of_all"),
    [
        ({"annotations": {SAFE: "false"}}, BlockCause.ANNOTATION, "deploy/default/web",
         IgnoredRule.ANNOTATIONS, True),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, BlockCause.ANNOTATION,
         "deploy/default/web", IgnoredRule.ANNOTATIONS, True),
        ({"volumes": [{"name": "tmp", "emptyDir": {}}]}, BlockCause.LOCAL_STORAGE,
         "deploy/default/web", IgnoredRule.LOCAL_STORAGE, False),
        ({"ownerReferences": None}, BlockCause.NOT_REPLICATED, "pod/default/web-1-0",
         IgnoredRule.UNMANAGED, True),
        ({"ownerReferences": [PODSET]}, BlockCause.CUSTOM_CONTROLLER,
         "strimzipodset/default/kafka", IgnoredRule.UNMANAGED, False),
    ],
)  # fmt: skip
def test_a_rule_keeps_the_node_unless_an_option_ignores_the_rule(
    planner, make, change, cause, owner, rule, *, is_of_all
):
    """On nodes of Karpenter, only the rules apply that are not those of Cluster Autoscaler."""
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a"])]
    pod = objects[-1]
    if "volumes" in change:
        pod["spec"] |= change
    else:
        pod["metadata"] |= change
    assert kept(consolidated(planner(*objects))) == [("a", cause, owner)]
    assert kept(consolidated(planner(*objects), ignored=(rule,))) == []
    expected = [("a", cause, owner)] if is_of_all else []
    assert kept(consolidated(planner(*objects), of_karpenter="a")) == expected


@pytest.mark.parametrize("annotation", ["karpenter.sh/do-not-disrupt", SAFE])
def test_an_ignored_annotation_hides_no_other_rule(planner, make, annotation):
    """Each of the rules that keep the pod must be ignored."""
    value = "false" if annotation == SAFE else "true"
    bare = make.pod("bare", node_name="a")
    bare["metadata"]["annotations"] = {annotation: value}
    objects = [*map(make.node, NODES), bare]
    ignored = (IgnoredRule.ANNOTATIONS, IgnoredRule.UNMANAGED)
    for one, cause in zip(ignored, (BlockCause.NOT_REPLICATED, BlockCause.ANNOTATION), strict=True):
        found = kept(consolidated(planner(*objects), ignored=(one,)))
        assert found == [("a", cause, "pod/default/bare")]
    assert kept(consolidated(planner(*objects), ignored=ignored)) == []


DRIVER = {"apiVersion": "v1", "kind": "Pod", "name": "etl", "uid": "1", "controller": True}


@pytest.mark.parametrize(
    ("owner", "why"), [(PODSET, "of custom resources"), (DRIVER, "that a Pod controls")]
)
def test_the_reason_says_what_controls_a_pod_that_stays(planner, make, owner, why):
    pod = make.pod("x", node_name="a", owner="x")
    pod["metadata"]["ownerReferences"] = [owner]
    [blocker] = consolidated(planner(*map(make.node, NODES), pod)).blockers
    assert blocker.why == f"Cluster Autoscaler does not move pods {why}"


def test_a_system_pod_needs_a_budget(planner, make):
    pod = make.pod("dns", "kube-system", node_name="a", owner="dns-1")
    assert kept(consolidated(planner(*map(make.node, NODES), pod))) == [
        ("a", BlockCause.SYSTEM_POD, "rs/kube-system/dns-1")
    ]
    assert kept(consolidated(planner(*map(make.node, NODES), pod), of_karpenter="a")) == []


def test_the_answer_names_the_rule_to_ignore_and_one_edit_for_all(planner, make):
    """Local storage keeps both nodes, of which one could go; both owners need one annotation."""
    scratch = {"volumes": [{"name": "tmp", "emptyDir": {}}]}
    objects = [*map(make.node, NODES[:2])]
    objects += [make.pod(name, node_name=name, owner=f"rs-{name}", **scratch) for name in "ab"]
    made = planner(*objects)
    answer = consolidate_answer(consolidated(made), made.model, "dump.yaml", ()).to_json()
    assert (
        "The only cause for 1 node: the pod has local storage. --ignore local-storage plans "
        "without the rule."
    ) in answer["findings"]
    [edit] = answer["edits"]
    assert edit["edit"] == (
        "annotate the pods of rs/default/rs-a, rs/default/rs-b with "
        "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes=tmp"
    )
    assert len({row["edit"] for row in answer["blockers"]}) == 2


def test_an_annotation_keeps_a_node(planner, make):
    node = make.node("a")
    node["metadata"]["annotations"] = {
        "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"
    }
    found = consolidated(planner(node, make.node("b")))
    assert kept(found) == [("a", BlockCause.ANNOTATION, "node/a")]
    assert found.removable == ["b"]


def test_a_budget_keeps_the_nodes_of_its_pods(planner, make):
    objects = [*map(make.node, NODES), *deployment(make, "web", ["a", "b"])]
    found = consolidated(planner(*objects, budget("web", maxUnavailable=0)))
    assert [one[0] for one in kept(found)] == ["a", "b"]
    assert found.removable == ["c"]


@pytest.mark.parametrize("kind", ["budget", "annotation"])
def test_a_node_can_be_kept_by_a_rule_and_by_an_unplaced_pod(planner, make, kind):
    """Without its first blocker, node b stays for the pod that only its label admits."""
    objects = [make.node("a"), make.node("b", pool="db")]
    objects += deployment(make, "db", ["b"], nodeSelector={"pool": "db"})
    if kind == "budget":
        objects.append(budget("db", maxUnavailable=0))
    else:
        objects[-1]["metadata"]["annotations"] = {SAFE: "false"}
    made = planner(*objects)
    found = consolidated(made)
    assert [(one.node, one.owner) for one in found.blockers][1:] == [("b", "deploy/default/db")]
    answer = consolidate_answer(found, made.model, "dump.yaml", ()).to_json()
    assert [row["alone"] for row in answer["causes"]] == [0, 0]
    assert not any("--ignore" in one for one in answer["findings"])


def test_a_node_that_a_rule_keeps_may_be_needed_without_the_rule(planner, make):
    """b and c have local storage; only one of them could go, because the other takes its pod."""
    scratch = {"volumes": [{"name": "tmp", "emptyDir": {}}]}
    objects = [make.node(name) for name in "bc"]
    objects += [make.pod(name, cpu="2", node_name=name, owner=name, **scratch) for name in "bc"]
    made = planner(*objects)
    found = consolidated(made)
    answer = consolidate_answer(found, made.model, "dump.yaml", ()).to_json()
    assert found.needed_anyway == ["c"]
    assert [(row["nodes"], row["alone"]) for row in answer["causes"]] == [(2, 1)]
    assert (
        "c would have to stay even if nothing blocked it. After the removal of the others, its "
        "pods would not all fit elsewhere."
    ) in answer["findings"]
    [row] = answer["staying"]
    assert (row["where"], row["owner"], row["why"]) == (
        "c",
        "",
        "the nodes that stay do not have enough free cpu for its pods",
    )


def test_the_answer_names_pods_that_are_lost(planner, make):
    made = planner(make.node("a"), make.node("b"), make.pod("bare", node_name="a"))
    found = consolidated(made, ignored=(IgnoredRule.UNMANAGED,))
    answer = consolidate_answer(found, made.model, "dump.yaml", ()).to_json()
    assert answer["findings"] == [
        "kubectl drain needs --force (1 pod).",
        "default/bare has no controller and will be gone for good.",
        (
            "No plan can remove more than 2 nodes: the pods that controllers would create again "
            "need none of them."
        ),
    ]
    assert [(row["node"], row["pods"], row["lost"]) for row in answer["going"]] == [
        ("b", 0, []),
        ("a", 0, ["default/bare"]),
    ]


def test_a_plan_without_a_safe_pace_does_not_say_that_nodes_can_be_removed(planner, make):
    made = planner(make.node("a"), make.node("b"))
    found = consolidated(made)
    found.plan.runs = [DrainRun(DrainPace(1), 0, 0, 0, (), (), {"default/web": "why"}, (), 0)]
    answer = consolidate_answer(found, made.model, "dump.yaml", ()).to_json()
    assert answer["verdict"] == (
        "2 of 2 nodes could be removed (100%), but their drains are not safe."
    )
    assert answer["findings"][0] == "1 node at once: default/web has no node at the end."
    assert answer["pending"] == [{"pod": "default/web", "why": "why"}]
    assert answer["next_steps"] == []


def safe_run(at_once, minutes):
    return DrainRun(DrainPace(at_once), minutes * 60 * 10**9, 1, 0, (), (), {}, (), 0)


def commands(answer):
    return [one["command"] for one in answer["next_steps"]]


def test_the_answer_has_the_commands_that_remove_the_nodes_in_order(planner, make):
    """kubectl itself drains its nodes one after another."""
    agents = [daemon_pod(make, name) for name in "abc"]
    made = planner(*map(make.node, "abc"), *deployment(make, "web", ["a"], cpu="3"), *agents)
    found = consolidated(made)
    found.plan.runs = [safe_run(1, 1)]
    answer = consolidate_answer(found, made.model, "dump.yaml", ()).to_json()
    assert answer["findings"][0] == (
        "Cordon them all, then drain them one at a time in the order of the commands. "
        "This takes 1m00s."
    )
    names = " ".join(row["node"] for row in answer["going"])
    assert commands(answer) == [
        f"kubectl cordon {names}",
        f"kubectl drain {names} --ignore-daemonsets",
        f"kubectl delete node {names}",
    ]


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ("eks.amazonaws.com/nodegroup", "lower the desired size of its node group (x by 1)"),
        ("cloud.google.com/gke-nodepool", "lower the desired size of its node group (x by 1)"),
        ("karpenter.sh/nodepool", "delete the node; Karpenter then removes its machine"),
        ("team", "delete the node, and remove its machine"),
    ],
)
def test_a_node_group_gets_a_smaller_size_with_the_deletion(planner, make, label, says):
    """Otherwise its Auto Scaling group would start a new machine."""
    nodes = [make.node(name, **{label: "x"}) for name in "ab"]
    made = planner(*nodes, *deployment(make, "web", ["a"], cpu="3"))
    found = consolidated(made)
    found.plan.runs = [safe_run(1, 1)]
    answer = consolidate_answer(found, made.model, "dump.yaml", ())
    assert says in (answer.steps or ())[-1].words


def test_nodes_that_are_cordoned_already_are_not_cordoned_again(planner, make):
    nodes = {name: make.node(name) for name in "abc"}
    made = planner(*nodes.values(), *deployment(make, "web", ["a"], cpu="3"))
    first, second = consolidated(made).removable
    nodes[first]["spec"] = {"unschedulable": True}
    made = planner(*nodes.values(), *deployment(make, "web", ["a"], cpu="3"))
    found = consolidated(made)
    found.plan.runs = [safe_run(1, 1)]
    answer = consolidate_answer(found, made.model, "dump.yaml", ()).to_json()
    assert answer["findings"][0].startswith(
        "Cordon the 1 node that is not cordoned yet, then drain all 2 nodes "
    )
    assert commands(answer)[0] == f"kubectl cordon {second}"


def test_several_nodes_at_a_time_are_drained_by_several_processes(planner, make):
    made = planner(*map(make.node, "abcd"), *deployment(make, "web", ["a"], cpu="3"))
    found = consolidated(made)
    found.plan.runs = [safe_run(1, 2), safe_run(2, 1)]
    answer = consolidate_answer(found, made.model, "dump.yaml", ()).to_json()
    names = " ".join(row["node"] for row in answer["going"])
    assert commands(answer)[1] == f"echo {names} | xargs -n 1 -P 2 kubectl drain"


def test_the_search_ends_at_the_maximum(planner, make):
    """Three of four nodes are empty, and two are to be removed."""
    made = planner(*map(make.node, "abcd"), *deployment(make, "web", ["a"], cpu="3"))
    found = consolidated(made, limit=2)
    assert (len(found.removable), found.untried, found.most) == (2, 2, 3)
    findings = consolidate_answer(found, made.model, "dump.yaml", ()).findings
    assert "--max ended the search at 2 nodes; 2 nodes were not tried." in findings


@pytest.mark.parametrize("safe", [3, 0])
def test_a_plan_without_room_is_repeated_with_fewer_nodes(planner, make, safe):
    """Four nodes of five are empty. The simulations find room if at most `safe` are drained."""
    made = planner(*map(make.node, "abcde"), *deployment(make, "web", ["a"], cpu="3"))
    tried = []

    def simulated(limit):
        found = consolidated(made, limit=limit)
        count = len(found.removable)
        tried.append(count)
        times = tuple(DrainTimes(name, 0, 0, None) for name in found.removable)
        pending = {"default/web": "why"} if count > safe else {}
        found.plan.runs = [DrainRun(DrainPace(1), 0, 0, 0, (), (), pending, (), 0, times=times)]
        return found

    explained = []
    found = consolidate_safely(simulated, lambda plan: explained.append(plan) or plan, made, None)
    assert len(explained) == 1
    answer = consolidate_answer(found, made.model, "dump.yaml", ()).to_json()
    convert(answer, ConsolidationForm)
    assert tried == ([4, 3] if safe == 3 else [4, 3, 2])
    if safe == 3:
        assert (answer["can_go"], answer["too_many"]["nodes"]) == (3, 4)
        because = "default/web has no node at the end"
        assert f"Draining 4 nodes is not safe: {because}." in answer["findings"]
        assert answer["needed"] == ["a"]
    else:
        assert (answer["can_go"], answer["too_many"], answer["next_steps"]) == (4, None, [])


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param({"lost": ("default/bare",)}, id="a pod without a controller is preempted"),
        pytest.param(
            {"failed_jobs": (ObjectError("Job default/train", "why", is_failed_job=True),)},
            id="a preemption makes a Job fail",
        ),
        pytest.param({"breaches": 1}, id="a preemption breaches a budget"),
    ],
)
def test_a_plan_whose_pods_preempt_others_is_repeated_with_fewer_nodes(planner, make, damage):
    """Three nodes of four are empty. The drains of all three harm pods of the node that stays."""
    made = planner(*map(make.node, "abcd"), *deployment(make, "web", ["a"], cpu="3"))

    def simulated(limit):
        found = consolidated(made, limit=limit)
        run = DrainRun(DrainPace(1), 0, 0, 0, (), (), {}, (), 0)
        found.plan.runs = [replace(run, **damage) if len(found.removable) == 3 else run]
        return found

    found = consolidate_safely(simulated, as_it_is, made, None)
    assert (len(found.removable), found.unsafe is None) == (2, False)


def test_a_plan_is_not_repeated_if_only_its_fastest_run_lacks_room(planner, make):
    made = planner(*map(make.node, "abc"), *deployment(make, "web", ["a"], cpu="3"))
    tried = []

    def simulated(limit):
        tried.append(limit)
        found = consolidated(made, limit=limit)
        late = DrainRun(DrainPace(2), 1, 0, 0, (), (), {"default/web": "why"}, (), 0)
        found.plan.runs = [safe_run(1, 2), late]
        return found

    assert consolidate_safely(simulated, as_it_is, made, None).unsafe is None
    assert tried == [None]


def test_a_plan_whose_pods_need_an_order_is_repeated_without_orders(planner, make):
    """Its drains are not safe, because controllers create the pods in another order."""
    made = planner(*map(make.node, "abc"), *deployment(make, "web", ["a"], cpu="3"))
    tried = []

    def simulated(limit):
        tried.append(made.reorders)
        found = consolidated(made, limit=limit)
        pending = {"default/web": "why"} if made.reorders else {}
        found.plan.runs = [DrainRun(DrainPace(1), 0, 0, 0, (), (), pending, (), 0)]
        if made.reorders:
            found.plan.drains = [replace(one, first=("web",)) for one in found.plan.drains]
        return found

    assert consolidate_safely(simulated, as_it_is, made, None).plan.best is not None
    assert tried == [True, False]


def test_with_a_maximum_the_most_expensive_node_is_removed(planner, make):
    """Node b has the lowest load for its price, but a saves more."""
    objects = [*map(make.node, "abc"), *deployment(make, "web", ["a", "a", "a"])]
    found = consolidated(planner(*objects), prices={"a": 3.0, "b": 1.0, "c": 1.0}, limit=1)
    assert (found.removable, found.saving) == (["a"], 3.0)


@pytest.mark.parametrize("tolerations", [[], [{"operator": "Exists"}]])
def test_the_room_on_removed_nodes_does_not_count(planner, make, tolerations):
    """It does not count for pods that may run on cordoned nodes either."""
    pods = deployment(make, "web", ["a", "b", "c"], cpu="3", tolerations=tolerations)
    found = consolidated(planner(*map(make.node, "abcd"), *pods))
    assert found.removable == ["d"]
    assert found.blocker_by_node["a"].why == (
        "the nodes that stay do not have enough free cpu for its pods"
    )


def test_the_most_expensive_node_is_tried_first_in_one_of_the_attempts(planner, make):
    """Only one node can be removed. Node b has the lowest load, also for its price."""
    pods = deployment(make, "web", ["a", "a", "a", "b", "c"])
    found = consolidated(
        planner(*map(make.node, "abc"), *pods), prices={"a": 2.5, "b": 1.0, "c": 1.0}
    )
    assert (found.removable, found.saving) == (["a"], 2.5)


def test_one_node_is_not_drained_in_an_order(planner, make):
    objects = [make.node("a"), make.node("b"), *deployment(make, "web", ["a"], cpu="3")]
    made = planner(*objects)
    found = consolidated(made)
    found.plan.runs = [DrainRun(DrainPace(1), 30 * 10**9, 1, 0, (), (), {}, (), 0)]
    assert len(found.removable) == 1
    answer = consolidate_answer(found, made.model, "dump.yaml", ()).to_json()
    assert answer["findings"][0] == "Drain it. This takes 30s."


def test_the_more_expensive_node_is_removed(planner, make):
    """Either of two equal nodes can be removed; the price decides, and the answer has the cost."""
    made = planner(*map(make.node, NODES[:2]), *deployment(make, "web", ["a", "b"]))
    found = consolidated(made, prices={"a": 1.0, "b": 2.5})
    assert (found.removable, found.saving) == (["b"], 2.5)
    answer = consolidate_answer(found, made.model, "dump.yaml", ()).to_json()
    assert answer["verdict"] == (
        "1 of 2 nodes can be removed now (50%), which saves 2.50 per hour (1,825 per month)."
    )
    assert answer["moves"] == [{"pod": "default/web-1-1", "from": "b", "to": "a"}]


@pytest.mark.parametrize("seed", range(5))
def test_the_simulated_plan_removes_exactly_the_chosen_nodes(planner, experiment, make, seed):
    """On random clusters the drains of all chosen nodes end without a breach or a waiting pod."""
    pick = TieBreak(seed).pick
    names = [f"n{number}" for number in range(6)]
    objects = [make.node(name, cpu=str(4 + pick(4))) for name in names]
    for number in range(5):
        places = [names[(pick(6) + at) % 6] for at in range(1 + pick(3))]
        objects += deployment(make, f"w{number}", places, cpu=("500m", "1")[pick(2)])
        objects.append(budget(f"w{number}", maxUnavailable=1))
    made = planner(*objects)
    found = consolidated(made)
    assert found.removable
    assert len(found.removable) <= found.most
    made.model.table.validate()
    run_plan(found.plan, experiment(*objects), NoProgress())
    for run in found.plan.runs:
        assert (run.breaches, run.unfinished, run.pending) == (0, (), {})


def test_a_node_whose_pods_need_an_order_is_blocked_by_it(planner, make):
    """web would take the room on b that db needs; the run in which db moves first was not safe."""
    nodes = [make.node("a", pool="db"), make.node("b", pool="db"), make.node("c")]
    there = [*deployment(make, "x", ["b"]), *deployment(make, "y", ["c"], cpu="2")]
    web = deployment(make, "web", ["a"], cpu="2")
    db = deployment(make, "zdb", ["a"], cpu="2", nodeSelector={"pool": "db"})
    made = planner(*nodes, *there, *web, *db)
    made.reorders = False
    rules = AutoscalerRules(AutoscalingOptions(), [], made.model.now, ())
    found = planned(made, rules, ["a"])
    assert (found.removable, found.needed) == ([], [])
    assert kept(found) == [("a", BlockCause.ORDER, "deploy/default/zdb")]


def test_a_node_is_needed_for_room_only_if_it_could_be_removed_alone(planner, make):
    """Without c, web has no room; but a must stay in any case, because of db."""
    nodes = [make.node("a", pool="db"), *map(make.node, "bcd")]
    web = deployment(make, "web", ["a"], cpu="3")
    db = deployment(make, "zdb", ["a"], cpu="1", nodeSelector={"pool": "db"})
    others = deployment(make, "other", ["b", "d"], cpu="2100m", nodeSelector={"x": "y"})
    found = consolidated(planner(*nodes, *web, *db, *others))
    assert found.removable == ["c"]
    assert ("a", BlockCause.NO_PLACE, "deploy/default/zdb") in kept(found)
    assert "a" not in found.needed


def test_a_node_that_stays_has_the_reason_after_all_drains(planner, make):
    """After the drain of a1, node b has room for the pod of a2, but zone y would have 3 of 4."""
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    zones = {"a1": "x", "a2": "x", "b": "y"}
    nodes = [make.node(name, **{ZONE: zone}) for name, zone in zones.items()]
    web = deployment(make, "web", ["a1", "a2", "b", "b"], topologySpreadConstraints=[spread])
    made = planner(*nodes, *web)
    found = consolidated(made)
    answer = consolidate_answer(found, made.model, "dump.yaml", ()).to_json()
    assert found.removable == ["a1"]
    [row] = answer["staying"]
    spread_reason = "node(s) didn't match pod topology spread constraints"
    why = f"{spread_reason}, node(s) were unschedulable (cordoned)"
    assert (row["where"], row["owner"], row["why"]) == ("a2", "deploy/default/web", why)
    [row] = answer["blockers"]
    assert (row["where"], row["owner"]) == ("b", "deploy/default/web")
    stays = "1 must stay, because its pods would not all run elsewhere"
    limit = "the cpu requests of the pods need 1 node"
    assert answer["findings"][-2:] == [
        f"Of the others, 1 is blocked and {stays}.",
        f"No plan can remove more than 2 nodes: {limit}.",
    ]


def test_the_answer_says_that_all_other_nodes_must_stay(planner, make):
    """One of three nodes can be removed: each of the two pods needs a whole node."""
    made = planner(*map(make.node, "abc"), *deployment(make, "web", ["a", "b"], cpu="4"))
    answer = consolidate_answer(consolidated(made), made.model, "dump.yaml", ()).to_json()
    assert (
        "The other 2 nodes must stay, because their pods would not all run elsewhere."
    ) in answer["findings"]


def test_the_answer_says_that_all_nodes_are_blocked(planner, make):
    """Each pod needs a whole node, so no plan removes one."""
    made = planner(*map(make.node, "ab"), *deployment(make, "web", ["a", "b"], cpu="4"))
    answer = consolidate_answer(consolidated(made), made.model, "dump.yaml", ()).to_json()
    assert answer["verdict"] == "None of 2 nodes can be removed now."
    assert answer["findings"] == [
        "All 2 are blocked.",
        "No plan can remove a node: the cpu requests of the pods need 2 nodes.",
    ]


@pytest.mark.parametrize(
    ("names", "on", "limit"),
    [
        ("ab", "ac", "No plan can remove more than 1 node: {} 1 of the 2 nodes that {}."),
        ("a", "abc", "No plan can remove a node: {} the only node that {}."),
    ],
)
def test_the_limit_of_a_plan_for_some_nodes_is_about_these_nodes(planner, make, names, on, limit):
    """Each pod needs a whole node. Node c stays, whatever the pods need."""
    made = planner(*map(make.node, "abc"), *deployment(make, "web", list(on), cpu="4"))
    found = consolidated(made, names=list(names))
    answer = consolidate_answer(found, made.model, "", ()).to_json()
    expected = limit.format("the cpu requests of the pods need", "the plan may remove")
    assert expected in answer["findings"]


def test_the_limit_names_no_resource_if_it_is_a_sum_over_groups_of_nodes(planner, make):
    """Pool x lacks cpu, and pool y lacks memory; by its own sum, each resource needs two nodes."""
    nodes = [make.node(f"{pool}{number}", pool=pool) for pool in "xy" for number in (1, 2)]
    x = deployment(make, "x", ["x1", "x2"], cpu="3", nodeSelector={"pool": "x"})
    container = {"name": "c", "image": "i", "resources": {"requests": {"memory": "9Gi"}}}
    y = deployment(make, "y", ["y1", "y2"], nodeSelector={"pool": "y"}, containers=[container])
    made = planner(*nodes, *x, *y)
    answer = consolidate_answer(consolidated(made), made.model, "", ()).to_json()
    assert answer["bound_by"] == NODE_GROUPS
    assert answer["findings"][-1] == (
        "No plan can remove a node: node selectors and taints restrict pods to groups of nodes, so "
        "they need 4 nodes."
    )


TOGETHER = "because their pods would not all run elsewhere."


@pytest.mark.parametrize(
    ("names", "on", "verdict", "findings"),
    [
        ("a", "abcd", "a cannot be removed now.", ["It is blocked."]),
        ("a", "bcd", "a can be removed now (25% of all nodes).", []),
        ("ab", "abcd", "None of the 2 selected nodes can be removed now.", ["All 2 are blocked."]),
        (
            "abc",
            "acd",
            "1 of the 3 selected nodes can be removed now (25% of all nodes).",
            [f"The other 2 selected nodes must stay, {TOGETHER}"],
        ),
    ],
)
def test_the_answer_about_some_nodes_counts_these_nodes(
    planner, make, names, on, verdict, findings
):
    """Each pod needs a whole node."""
    made = planner(*map(make.node, "abcd"), *deployment(make, "web", list(on), cpu="4"))
    found = consolidated(made, names=list(names))
    answer = consolidate_answer(found, made.model, "", ()).to_json()
    assert answer["verdict"] == verdict
    left_out = ("No plan", "Drain it")
    assert [one for one in answer["findings"] if not one.startswith(left_out)] == findings


def test_a_plan_for_some_nodes_without_pods_has_no_limit(planner, make):
    made = planner(*map(make.node, "abc"), *deployment(make, "web", ["a", "b"], cpu="4"))
    found = consolidated(made, names=["c"])
    assert found.most == 1
    answer = consolidate_answer(found, made.model, "", ()).to_json()
    assert not [one for one in answer["findings"] if one.startswith("No plan")]


@pytest.mark.parametrize("is_assumed", [True, False], ids=["no autoscaler", "an autoscaler"])
def test_the_answer_says_what_a_drain_by_hand_could_remove(planner, make, is_assumed):
    """kubectl drain does not have Cluster Autoscaler's rule about local storage."""
    scratch = {"volumes": [{"name": "tmp", "emptyDir": {}}]}
    made = planner(*map(make.node, "abc"), *deployment(make, "web", ["a", "b", "c"], **scratch))
    rules = AutoscalerRules(AutoscalingOptions(), [], made.model.now, is_assumed=is_assumed)
    found = planned(made, rules, list("abc"))
    answer = consolidate_answer(found, made.model, "dump.yaml", ()).to_json()
    assert answer["verdict"] == (
        "None of 3 nodes can be removed now by the rules of Cluster Autoscaler; at least 2 could "
        "be drained by hand."
    )
    last = answer["findings"][-2]
    assert last.endswith(
        ". The drain deletes emptyDir volumes, and leaves the data of hostPath volumes behind."
    )
    assert last.startswith("The dump has no Cluster Autoscaler; its rules") == is_assumed


def test_nodes_that_several_rules_keep_are_freed_by_ignoring_all_of_them(planner, make):
    """Each node has a pod with local storage and a pod without a controller."""
    scratch = {"volumes": [{"name": "tmp", "emptyDir": {}}]}
    alone = [make.pod(f"alone-{name}", cpu="100m", node_name=name) for name in "ab"]
    made = planner(*map(make.node, "ab"), *deployment(make, "web", "ab", **scratch), *alone)
    answer = consolidate_answer(consolidated(made), made.model, "dump.yaml", ()).to_json()
    assert answer["verdict"] == "None of 2 nodes can be removed now."
    assert (
        "The only causes for 1 node: no controller would replace the pod, the pod has local "
        "storage. --ignore local-storage --ignore unmanaged plans without these rules."
    ) in answer["findings"]


def test_the_only_cause_for_nodes_comes_first(planner, make):
    """The answer recommends to ignore this cause, and a screen may show only the first causes."""
    scratch = {"volumes": [{"name": "tmp", "emptyDir": {}}]}
    alone = [make.pod(f"alone-{name}", cpu="100m", node_name=name) for name in "ab"]
    nodes = [make.node(name) for name in "abc"]
    nodes[2]["metadata"]["annotations"] = {
        "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"
    }
    made = planner(*nodes, *deployment(make, "web", "ab", **scratch), *alone)
    answer = consolidate_answer(consolidated(made), made.model, "dump.yaml", ()).to_json()
    assert [(row["cause"], row["nodes"], row["alone"]) for row in answer["causes"]] == [
        (BlockCause.ANNOTATION.value, 1, 1),
        (BlockCause.NOT_REPLICATED.value, 2, 0),
        (BlockCause.LOCAL_STORAGE.value, 2, 0),
    ]


def test_pods_of_removed_nodes_that_take_long_to_stop_are_named(planner, make):
    """Node a or node b is removed, and each has a pod of web."""
    web = deployment(make, "web", ["a", "b"], terminationGracePeriodSeconds=7200)
    made = planner(*map(make.node, "ab"), *web)
    answer = consolidate_answer(consolidated(made), made.model, "dump.yaml", ()).to_json()
    assert (
        "A drain waits up to 2h00m until pods of deploy/default/web have stopped "
        "(terminationGracePeriodSeconds)."
    ) in answer["findings"]


@pytest.mark.parametrize(("count", "where"), [(3, "n0, n1, n2"), (4, "4 nodes")])
def test_few_blocked_nodes_are_named(planner, make, count, where):
    """The details name more nodes than fit into a cell."""
    names = [f"n{number}" for number in range(count)]
    web = deployment(make, "web", names, cpu="4")
    made = planner(*map(make.node, names), *web, budget("web", maxUnavailable=0))
    answer = consolidate_answer(consolidated(made), made.model, "dump.yaml", ()).to_json()
    assert {row["where"] for row in answer["blockers"]} == {where}
    assert [row["node"] for row in answer["blocked_nodes"]] == (names if count > 3 else [])


def test_a_pod_that_is_being_deleted_keeps_no_node(planner, make):
    """Nothing replaces it, and it is deleted before the node is removed."""
    bare = make.pod("bare", node_name="a")
    assert kept(consolidated(planner(*map(make.node, NODES), bare))) != []
    bare["metadata"] |= {
        "deletionTimestamp": "2026-11-20T05:00:00Z",
        "deletionGracePeriodSeconds": 30,
    }
    assert kept(consolidated(planner(*map(make.node, NODES), bare))) == []


def test_pods_of_a_namespace_that_was_deleted_long_ago_stop(planner, make):
    """The namespace controller has not deleted the pod yet, so its kubelet was not told to stop."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default", "deletionTimestamp": "2020-01-01T00:00:00Z"},
    }
    node = make.node("a")
    node["status"]["conditions"] = READY
    pod = make.pod("web-1", node_name="a", owner="web")
    made = planner(namespace, node, make.node("b"), pod)
    assert made.refusals("a") == []
    [found] = [one for one in made.model.objects if isinstance(one, Pod)]
    stops = parse_timestamp(found.metadata.deletion_timestamp) - made.model.now
    assert stops == seconds(30)


@pytest.mark.parametrize("is_ending", [False, True])
def test_pods_of_an_ending_namespace_keep_no_node(planner, make, is_ending):
    """The namespace controller deletes them, and admission refuses their replacements."""
    meta = {"name": "default"}
    if is_ending:
        meta["deletionTimestamp"] = "2026-11-20T05:00:00Z"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
    full = deployment(make, "web", ["a", "b"], cpu="4")
    found = consolidated(planner(make.node("a"), make.node("b"), namespace, *full))
    assert bool(found.blockers) is not is_ending


def test_pods_with_a_negative_priority_keep_nodes(planner, make):
    """Placeholders keep spare nodes, which an autoscaler would add again for them."""
    found = consolidated(planner(*overprovisioned(make, -10)))
    assert found.removable == []
    assert "deploy/default/spare" in {one.owner for one in found.blockers}
