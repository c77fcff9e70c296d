"""Upgrade checks: nodes are drained one by one, with surge nodes of their pool."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import (
    READY,
    budget,
    daemon_pod,
    deployment,
    overprovisioned,
    with_priority,
)

from fairlead.api.timestamp import parse_timestamp
from fairlead.api.well_known_label import ZONE
from fairlead.engine.core.instant import seconds
from fairlead.whatif.planner.node_drain.drain_plan import (
    command_findings,
    run_plan,
    unsafe_because,
)
from fairlead.whatif.planner.node_drain.drain_planner import BlockCause
from fairlead.whatif.planner.node_drain.upgrade_check import (
    budgets_on,
    check_nodes,
    pools_of,
    run_upgrade,
    surge_groups,
    upgrade_answer,
    upgrade_paces,
    upgrade_rounds,
)
from fairlead.whatif.planner.node_drain.upgrade_method import upgrade_method_notes
from fairlead.whatif.planner.node_drain.workload_stop import workload_stops
from fairlead.whatif.run.progress import NoProgress

SAFE = (
    "During the drains, every workload keeps a ready pod and no disruption budget is breached. "
    "After them, every evicted pod of a workload runs again."
)


def checked(planner, surge=1):
    groups = surge_groups(planner.model, pools_of(planner.model, ""), surge)
    names = [info.name for info in planner.model.table.nodes()]
    return check_nodes(planner, groups, names, "--nodes", NoProgress())


def surge_of(planner, label=""):
    """The surge nodes of all groups, one for each group."""
    found = surge_groups(planner.model, pools_of(planner.model, label), 1)
    return [one for group in found for one in group.surge]


def test_similar_nodes_are_a_pool(planner, make):
    made = planner(make.node("a", disk="ssd"), make.node("b", disk="ssd"), make.node("c", cpu="8"))
    pools = pools_of(made.model, "")
    assert [[info.name for info in found] for found in pools.values()] == [["a", "b"], ["c"]]
    assert list(pools_of(made.model, "disk")) == ["", "ssd"]


@pytest.mark.parametrize(
    ("resource", "amounts", "pools"),
    [
        ("memory", ["65011712Ki", "65010988Ki"], 1),
        ("ephemeral-storage", ["95491281146", "95491280000"], 1),
        ("memory", ["64Gi", "32Gi"], 2),
        ("cpu", ["16", "15900m"], 2),
        ("nvidia.com/gpu", ["8", "7"], 2),
    ],
)
def test_equal_machines_whose_memory_differs_slightly_are_a_pool(
    planner, make, resource, amounts, pools
):
    """The kernel of each machine reserves another amount of memory."""
    nodes = [make.node(name) for name in "ab"]
    for node, amount in zip(nodes, amounts, strict=True):
        node["status"]["allocatable"][resource] = amount
    assert len(pools_of(planner(*nodes).model, "")) == pools


def test_a_node_with_unhealthy_devices_stays_in_its_pool(planner, make):
    nodes = [make.node(name) for name in "ab"]
    for node, healthy in zip(nodes, ("8", "7"), strict=True):
        status = node["status"]
        status["capacity"] = {**status["allocatable"], "nvidia.com/gpu": "8"}
        status["allocatable"]["nvidia.com/gpu"] = healthy
    assert len(pools_of(planner(*nodes).model, "")) == 1


def test_node_groups_beside_karpenter_are_pools(planner, make):
    """In one pool, the surge node for the full node would be like the node with a GPU."""
    eks = "eks.amazonaws.com/nodegroup"
    nodes = [
        make.node("a", **{"karpenter.sh/nodepool": "default"}),
        make.node("b", **{eks: "web"}),
        make.node("c", **{eks: "gpu"}),
    ]
    pools = pools_of(planner(*nodes).model, "")
    assert {name: [info.name for info in found] for name, found in pools.items()} == {
        "default": ["a"],
        "gpu": ["c"],
        "web": ["b"],
    }


def test_notes_say_how_karpenter_and_providers_upgrade_nodes(snapshot, make):
    """A grace period of the NodeClaim ends the protection of the pods on node k2."""
    labels = {"karpenter.sh/nodepool": "general"}
    nodes = [make.node(name, **labels) for name in ("k1", "k2", "k3")]
    groups = {"eks.amazonaws.com/nodegroup": "sys"}, {"cloud.google.com/gke-nodepool": "p"}
    nodes += [make.node(f"m{index}", **group) for index, group in enumerate(groups)]
    pods = [make.pod(f"on-{name}", node_name=name, owner="rs") for name in ("k1", "k2")]
    for pod in pods:
        pod["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    claim = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"}}
    claim["spec"] = {"terminationGracePeriod": "1h"}
    claim["status"] = {"nodeName": "k2"}
    objects = snapshot(*nodes, *pods, claim).manifests
    drift, eks, gke = upgrade_method_notes(objects, ["k1", "k2", "k3", "m0", "m1"], 0)
    assert drift.startswith("Karpenter does not drain its 3 nodes for an upgrade as shown here: ")
    key = "karpenter.sh/do-not-disrupt"
    why = f"Karpenter does not replace k1, because of {key} on pod default/on-k1."
    assert why in drift
    assert "--set nodepool/general:spec.template.metadata.labels.upgrade=now" in drift
    assert drift.endswith("--nodes '!karpenter.sh/nodepool' checks only the 2 other nodes.")
    assert eks.startswith("EKS upgrades node group sys with surge nodes.")
    assert gke.endswith("--surge and --max-unavailable state them.")
    assert upgrade_method_notes(objects, ["m0"], 0) == (eks,)
    [only] = upgrade_method_notes(objects, ["k3"], 0)
    assert "do-not-disrupt" not in only
    assert "other node" not in only


def test_a_note_says_that_openshift_adds_no_surge_nodes(snapshot, make):
    nodes = [make.node("a"), make.node("b")]
    nodes[0]["metadata"]["annotations"] = {
        "machineconfiguration.openshift.io/currentConfig": "rendered-worker-1"
    }
    objects = snapshot(*nodes).manifests
    [note] = upgrade_method_notes(objects, ["a", "b"], 0)
    assert note.startswith("OpenShift upgrades its nodes in place, without surge nodes.")
    assert upgrade_method_notes(objects, ["b"], 0) == ()


def test_the_note_about_karpenter_reads_do_not_disrupt_as_karpenter(snapshot, make):
    """A duration ends at a time; a pod that has ended protects nothing; nodes can be annotated."""
    key = "karpenter.sh/do-not-disrupt"
    nodes = [make.node(f"k{number}", **{"karpenter.sh/nodepool": "p"}) for number in range(4)]
    nodes[3]["metadata"]["annotations"] = {key: "true"}
    pods = [make.pod(f"on-k{number}", node_name=f"k{number}", owner="rs") for number in range(3)]
    for pod, value in zip(pods, ("true", "1h", "3h"), strict=True):
        pod["metadata"]["annotations"] = {key: value}
        pod["status"] = {"phase": "Running", "startTime": "2026-01-01T10:00:00Z"}
    pods[0]["status"]["phase"] = "Succeeded"
    now = parse_timestamp("2026-01-01T12:00:00Z")
    names = [f"k{number}" for number in range(4)]
    [note] = upgrade_method_notes(snapshot(*nodes, *pods).manifests, names, now)
    kept = f"Karpenter does not replace k2, k3, because of {key} on node k3, pod default/on-k2."
    assert kept in note


def test_a_surge_node_adds_room_to_its_pool(planner, make):
    """Both nodes are full; the surge node takes the pods, and a pod of the DaemonSet.

    Without it, the pods wait until their node returns.
    """
    full = [make.node("a"), make.node("b"), daemon_pod(make, "a"), daemon_pod(make, "b")]
    full += deployment(make, "web", ["a", "a", "a", "b", "b", "b"])
    waiting = [len(drain.waits) for drain in checked(planner(*full), surge=0).drains]
    assert waiting == [3, 3]
    assert [drain.waits for drain in checked(planner(*full), surge=1).drains] == [{}, {}]


def test_pods_that_wait_take_the_room_on_surge_nodes_first(planner, make):
    """Only one of the four cores of the surge node is left for the three pods of a node."""
    full = [make.node("a"), make.node("b"), *deployment(make, "web", ["a"] * 3 + ["b"] * 3)]
    drains = checked(planner(*full, make.pod("waiting", cpu="3")), surge=1).drains
    assert [len(drain.waits) for drain in drains] == [1, 1]


def pinned_to_a(make, **spec):
    """Two nodes, and a pod that only node a takes."""
    pinned = {"kubernetes.io/hostname": "a"}
    first = make.node("a", **pinned)
    first["spec"] = spec
    second = make.node("b", **{"kubernetes.io/hostname": "b"})
    return [first, second, *deployment(make, "db", ["a"], nodeSelector=pinned)]


TAINTED = {"taints": [{"key": "example.com/broken", "effect": "NoSchedule"}]}


def test_a_pod_that_fits_no_surge_node_is_down_until_its_node_returns(planner, experiment, make):
    """Its eviction succeeds, and the returned node takes it: 30 s to stop, 5m away."""
    objects = pinned_to_a(make)
    plan = checked(planner(*objects))
    assert plan.blockers == []
    assert [list(drain.waits) for drain in plan.drains] == [["default/db-1-0"], []]
    run_plan(plan, experiment(*objects), NoProgress(), max_unavailable=1, away=seconds(300))
    found = upgrade_answer(plan, (), (), 0, "dump.yaml", ()).to_json()
    assert found["verdict"].endswith("completes in 10m30s.")
    down = "1 pod of deploy/default/db fits on no other node and is down until its node is back"
    assert f"When each node is checked alone, {down} (5m30s)." in found["findings"]
    [row] = found["waits"]
    assert (row["pods"], row["on"], row["down_s"]) == (["default/db-1-0"], ["a"], 330)
    assert row["why"].startswith("node(s) didn't match Pod's node affinity/selector")


UNCORDON = "uncordon a when it is back, because it was cordoned before"


@pytest.mark.parametrize(("spec", "edit"), [(TAINTED, ""), ({"unschedulable": True}, UNCORDON)])
def test_a_pod_that_does_not_fit_its_returned_node_is_named(planner, make, spec, edit):
    [blocker] = checked(planner(*pinned_to_a(make, **spec))).blockers
    assert (blocker.node, blocker.cause) == ("a", BlockCause.NO_PLACE)
    assert (blocker.edit == UNCORDON) is bool(edit)


def test_an_upgrade_under_way_has_cordoned_nodes_that_must_be_uncordoned(planner, make):
    """The pods of two workloads fit only on their own node; one change helps both."""
    more = deployment(make, "cache", ["a"], nodeSelector={"kubernetes.io/hostname": "a"})
    found = checked(planner(*pinned_to_a(make, unschedulable=True), *more)).blockers
    assert sorted((one.owner, one.edit) for one in found) == [
        ("deploy/default/cache", UNCORDON),
        ("deploy/default/db", UNCORDON),
    ]


def test_a_change_that_does_not_help_an_uncordoned_node_is_not_proposed(planner, make):
    """The node also has a taint that the pod does not tolerate."""
    [blocker] = checked(planner(*pinned_to_a(make, **TAINTED, unschedulable=True))).blockers
    assert blocker.edit != UNCORDON


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


@pytest.mark.parametrize(("surge", "even"), [(0, ""), (1, ", not even on a surge node,")])
def test_surge_nodes_are_named_only_if_there_are_any(planner, make, surge, even):
    plan = checked(planner(*pinned_to_a(make, **TAINTED)), surge=surge)
    found = upgrade_answer(plan, (), (), surge, "dump.yaml", ()).to_json()["findings"]
    where = f"no other node{even} and not on their own when it is back"
    assert f"The pods of deploy/default/db fit on {where}." in found


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
    groups = surge_groups(made.model, pools_of(made.model, ""), 1)
    plan = check_nodes(made, groups, ["a", "b"], "--nodes", NoProgress())
    run_plan(
        plan, experiment(*objects), NoProgress(), max_unavailable=1, away=seconds(300),
        rounds=upgrade_rounds(made.model, plan, groups),
    )  # fmt: skip
    stops = workload_stops(made, plan)
    found = upgrade_answer(plan, made.budgets.limits(), stops, 1, "dump.yaml", ()).to_json()
    assert found["verdict"] == (
        "An upgrade of 2 nodes one at a time, with 1 surge node, stops: 1 node cannot be drained "
        "(pdb/default/strict)."
    )
    assert found["findings"] == [
        (
            "Each node is down for 5m00s after its drain (--for). 1 surge node is added to each "
            "pool and zone (--surge; 0 adds none)."
        ),
        "1 budget never allows an eviction: default/strict.",
        "Draining the other node takes 5m30s.",
        "deploy/default/one has one replica and will stop while its pod moves.",
    ]
    assert [row["workloads"] for row in found["blockers"]] == [["deploy/default/strict"]]
    assert [row["pdb"] for row in found["never"]] == ["default/strict"]
    assert [row["workload"] for row in found["stopped"]] == ["deploy/default/one"]


def not_ready(node):
    """Return `node` with the state after its kubelet has stopped; it is the newest node."""
    node["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "Silent"}]
    return node


def test_a_node_whose_kubelet_does_not_answer_is_blocked(planner, experiment, make):
    """Its pods would never stop, and no node after it would be drained."""
    silent = not_ready(make.node("a"))
    objects = [silent, make.node("b"), *deployment(make, "web", ["a"])]
    objects += deployment(make, "other", ["b"])
    plan = checked(planner(*objects), surge=0)
    run_plan(plan, experiment(*objects), NoProgress(), max_unavailable=1, away=seconds(300))
    found = upgrade_answer(plan, (), (), 0, "dump.yaml", ()).to_json()
    assert found["verdict"].endswith("stops: 1 node cannot be drained (node/a).")
    assert "Draining the other node takes 5m30s." in found["findings"]
    [blocker] = found["blockers"]
    assert (blocker["owner"], blocker["on"]) == ("node/a", ["a"])
    assert blocker["why"] == "its kubelet does not answer, so evicted pods never stop"
    assert blocker["edit"].startswith("repair the kubelet of node/a, or delete the node")


def test_nodes_that_are_blocked_by_themselves_for_one_reason_share_a_row(planner, make):
    """A zone that fails would otherwise fill the table with one row for each node."""
    silent = [not_ready(make.node(name)) for name in "ab"]
    plan = checked(planner(*silent, *deployment(make, "web", ["a", "b"])), surge=0)
    [blocker] = upgrade_answer(plan, (), (), 0, "dump.yaml", ()).to_json()["blockers"]
    assert (blocker["owner"], blocker["on"]) == ("the node itself", ["a", "b"])


@pytest.mark.parametrize(
    ("labels", "finalizers", "said"),
    [
        ({"eks.amazonaws.com/compute-type": "fargate"}, None, "a Fargate node ends with its pod"),
        ({"type": "virtual-kubelet"}, None, "a virtual node has no machine of its own"),
        ({}, ["x/hold"], "it is being deleted, and waits for finalizer x/hold"),
    ],
)
def test_nodes_that_no_upgrade_drains_are_left_out(planner, make, labels, finalizers, said):
    node = make.node("a", **labels)
    if finalizers:
        deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}
        node["metadata"] |= deleted
    plan = checked(planner(node, make.node("b"), *deployment(make, "web", ["a"])), surge=0)
    assert [one.node for one in plan.drains] == ["b"]
    answer = upgrade_answer(plan, (), (), 0, "dump.yaml", ()).to_json()
    assert f"a is left out: {said}." in answer["findings"]
    assert (answer["nodes"], list(answer["left_out"])) == (1, ["a"])


def test_the_answer_names_pods_that_are_lost(planner, make):
    plan = checked(planner(make.node("a"), make.pod("bare", node_name="a")))
    assert upgrade_answer(plan, (), (), 1, "dump.yaml", ()).to_json()["findings"] == [
        "kubectl drain needs --force (1 pod).",
        "default/bare has no controller and will be gone for good.",
    ]


def test_pods_of_blocked_nodes_need_no_flags_of_kubectl(planner, make):
    pods = [daemon_pod(make, "a"), make.pod("bare", node_name="a")]
    assert checked(planner(not_ready(make.node("a")), *pods)).flags == ()


def test_flags_for_pods_of_blocked_nodes_are_counted_apart(planner, make):
    """They are necessary once the nodes are no longer blocked."""
    pods = [daemon_pod(make, name) for name in "ab"]
    pods.append(make.pod("bare", node_name="a"))
    plan = checked(planner(not_ready(make.node("a")), make.node("b"), *pods))
    assert next(command_findings(plan)) == (
        "kubectl drain needs --ignore-daemonsets (1 pod, 1 more on blocked nodes), --force (1 pod "
        "on blocked nodes)."
    )


def test_a_surge_node_is_a_copy_of_a_ready_node(planner, make):
    made = planner(make.node("a"), not_ready(make.node("b")), daemon_pod(make, "a"))
    [surge] = surge_of(made)
    assert [pod.metadata.name for pod in surge.own_pods] == ["agent-a-surge-pool-1-1"]


def test_a_surge_node_is_ready_even_if_no_node_of_its_pool_is(planner, make):
    made = planner(not_ready(make.node("b")))
    [surge] = surge_of(made)
    [condition] = surge.node.status.conditions
    assert (condition.status, condition.reason) == ("True", "KubeletReady")


def test_nodes_that_differ_only_in_zone_and_host_name_are_a_pool(planner, make):
    places = ({ZONE: "x", "disk": "ssd"}, {ZONE: "y", "disk": "ssd"}, {ZONE: "x"})
    nodes = [make.node(name, **labels) for name, labels in zip("abc", places, strict=True)]
    pools = pools_of(planner(*nodes).model, "")
    assert [[info.name for info in found] for found in pools.values()] == [["a", "b"], ["c"]]


def test_surge_nodes_have_valid_names(planner, make):
    """Label values may contain characters that node names must not contain."""
    made = planner(make.node("a", pool="Web_Pool.1"))
    [surge] = surge_of(made, "pool")
    assert surge.node.metadata.name == "surge-web-pool-1-1-1"


def in_two_zones(make, *, pods=1, **spec):
    """Two full nodes of a pool in two zones, with pods that run only in their zone."""
    objects = []
    for name, zone in (("a", "x"), ("b", "y")):
        objects.append(make.node(name, **{ZONE: zone}))
        keep = {"nodeSelector": {ZONE: zone}}
        objects += deployment(make, f"web-{zone}", [name] * pods, cpu="3", **keep, **spec)
    return objects


def test_a_surge_node_is_in_the_zone_of_the_drained_node(planner, make):
    """The pods fit no other zone, so a surge node in the other zone would not help."""
    made = planner(*in_two_zones(make))
    groups = surge_groups(made.model, pools_of(made.model, ""), 1)
    assert [(group.nodes, [one.node.metadata.name for one in group.surge]) for group in groups] == [
        (("a",), ["surge-pool-1-x-1"]), (("b",), ["surge-pool-1-y-1"])
    ]  # fmt: skip
    assert [one.node.metadata.labels[ZONE] for one in surge_of(made)] == ["x", "y"]
    assert [drain.waits for drain in checked(made).drains] == [{}, {}]
    assert all(drain.waits for drain in checked(made, surge=0).drains)


def upgrade_plan(made, experiment, objects, surge=1, at_once=1):
    """Return the plan of an upgrade of all nodes, and its simulation."""
    groups = surge_groups(made.model, pools_of(made.model, ""), surge)
    names = [info.name for info in made.model.table.nodes()]
    plan = check_nodes(made, groups, names, "--nodes", NoProgress())
    rounds = upgrade_rounds(made.model, plan, groups)
    run_plan(
        plan,
        experiment(*objects),
        NoProgress(),
        max_unavailable=at_once,
        away=seconds(300),
        rounds=rounds,
    )
    return plan


def upgraded(made, experiment, objects, surge=1, at_once=1):
    """The simulated upgrade of all nodes."""
    [run] = upgrade_plan(made, experiment, objects, surge, at_once).runs
    return run


def test_zones_are_upgraded_one_after_another(planner, experiment, make):
    """Before the second zone follows, the pod on the surge node of the first zone moves back.

    Each node is empty after 30 s and away for 5 minutes; the surge node is empty after 30 s.
    """
    objects = in_two_zones(make)
    run = upgraded(planner(*objects), experiment, objects, at_once=2)
    assert run.is_safe
    assert run.took == seconds(330 + 30 + 330 + 30)
    assert run.evicted == 4
    without = upgraded(planner(*objects), experiment, objects, surge=0, at_once=2)
    assert (without.took, without.evicted) == (seconds(330), 2)


def test_the_upgrade_ends_when_the_last_surge_node_is_empty(planner, experiment, make):
    """The node is overcommitted. When it is back, it does not take all pods of the surge node."""
    objects = [make.node("a"), *deployment(make, "web", ["a"] * 5)]
    run = upgraded(planner(*objects), experiment, objects)
    assert len(run.pending) == 1
    assert run.took == seconds(330 + 30)


@pytest.mark.parametrize("is_cordoned", [True, False])
def test_a_node_that_was_cordoned_before_may_make_room(planner, experiment, make, is_cordoned):
    """The surge node takes the pods, but it is deleted, and the node returns cordoned."""
    objects = [make.node("a"), make.node("b"), *deployment(make, "web", ["a"] * 3 + ["b"] * 3)]
    objects[1]["spec"] = {"unschedulable": is_cordoned}
    plan = upgrade_plan(planner(*objects), experiment, objects)
    assert plan.blockers == []
    found = upgrade_answer(plan, (), (), 1, "dump.yaml", ())
    hint = (
        "b was cordoned before, and returns cordoned: kubectl uncordon, when it is back, may make "
        "room for the pods without a node."
    )
    assert found.is_no is is_cordoned
    assert (hint in found.findings) is is_cordoned


def test_the_details_have_the_waits_for_budgets_and_the_times_of_nodes(planner, experiment, make):
    """The pods of web are evicted one after another; a replacement is ready after a second."""
    objects = [make.node("a"), make.node("b"), *deployment(make, "web", ["a", "a"])]
    objects.append(budget("web", maxUnavailable=1))
    plan = upgrade_plan(planner(*objects), experiment, objects, surge=0)
    found = upgrade_answer(plan, [], [], 0, "dump.yaml", ()).to_json()
    assert found["findings"][:3] == [
        SAFE,
        "Each node is down for 5m00s after its drain (--for). No node is added (--surge).",
        (
            "The nodes of a pool and zone are drained in the order of their names. In another "
            "order, the result may differ."
        ),
    ]
    [waits] = found["budget_waits"]
    assert (waits["budget"], waits["pods"]) == ("default/web", len(waits["names"]))
    assert waits["pods"] == found["paces"][0]["waited"] > 0
    [a, b] = found["node_times"]
    assert (a["node"], a["begins_s"], a["back_after_s"]) == ("a", 0, a["empty_after_s"] + 300)
    assert (b["node"], b["begins_s"]) == ("b", a["back_after_s"])


def test_the_nodes_after_a_drain_that_does_not_end_are_not_drained(planner, experiment, make):
    """A quota refuses the new pod of a, so the budget refuses the eviction of the pod of c."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": "default"},
        "spec": {"hard": {"requests.cpu": "1"}},
    }
    zones = {"a": "x", "c": "x", "b": "y"}
    nodes = [make.node(name, **{ZONE: zone}) for name, zone in zones.items()]
    web = [*deployment(make, "web", ["a", "c"]), budget("web", maxUnavailable=1)]
    objects = [*nodes, *web, *deployment(make, "other", ["b"], cpu="100m"), quota]
    made = planner(*objects)
    plan = checked(made, surge=0)
    run_plan(plan, experiment(*objects), NoProgress(), max_unavailable=1, away=seconds(300))
    findings = upgrade_answer(plan, (), (), 0, "dump.yaml", ()).to_json()["findings"]
    command = f"fairlead whatif {plan.snapshot} --drain a --drain c --drain b"
    assert f"{command} proposes limits with which the quota admits the pods." in findings
    run = upgraded(planner(*objects), experiment, objects)
    assert (run.took, run.unfinished) == (None, ("c", "b"))
    assert (run.unbegun, run.held_up_by) == (("b",), ("default/web",))
    reason = "c never becomes empty because of budget default/web, the drain of b never begins"
    assert unsafe_because(run).startswith(reason)


def guarded_control_plane(make):
    """Three control plane nodes of OpenShift, and the budget of their guard pods."""
    objects = [budget("guard", minAvailable=2)]
    for name in ("a", "b", "c"):
        guard = make.pod(f"etcd-guard-{name}", node_name=name)
        guard["metadata"]["labels"] = {"app": "guard"}
        guard["status"]["conditions"] = READY
        objects += [make.node(name), guard]
    return objects


def test_guard_pods_of_openshift_return_with_their_node(planner, experiment, make):
    """Their budget spares one at a time, so the drain of the second node needs the first pod."""
    objects = guarded_control_plane(make)
    plan = checked(planner(*objects), surge=0)
    run_plan(plan, experiment(*objects), NoProgress(), max_unavailable=1, away=seconds(300))
    [run] = plan.runs
    assert unsafe_because(run) == ""
    findings = upgrade_answer(plan, (), (), 0, "dump.yaml", ()).to_json()["findings"]
    assert "OpenShift creates 3 guard pods again on nodes that return to service." in findings
    assert not any("gone for good" in one for one in findings)


def test_a_percentage_of_each_pool_is_a_limit(planner, experiment, make):
    """Half of the nodes is two nodes of the one zone, and one node of the other."""
    nodes = {"a": "x", "b": "x", "c": "x", "d": "x", "e": "y"}
    objects = [make.node(name, **{ZONE: zone}) for name, zone in nodes.items()]
    for surge, words in ((0, "2 at a time, without"), (1, "up to 2 at a time, with 1")):
        plan = upgrade_plan(planner(*objects), experiment, objects, surge, at_once="50%")
        verdict = upgrade_answer(plan, [], [], surge, "dump.yaml", ()).to_json()["verdict"]
        assert verdict.startswith(f"An upgrade of 5 nodes {words}")


def faster(made, experiment, objects, surge, max_unavailable=None):
    """Return the verdict of an upgrade, and the findings about a faster pace."""
    groups = surge_groups(made.model, pools_of(made.model, ""), surge)
    names = [info.name for info in made.model.table.nodes()]
    plan = check_nodes(made, groups, names, "--nodes", NoProgress())
    rounds = upgrade_rounds(made.model, plan, groups)
    paces = upgrade_paces(rounds, surge, max_unavailable, seconds(300))
    run_upgrade(plan, experiment(*objects), rounds, paces, NoProgress())
    found = upgrade_answer(plan, (), (), surge, "dump.yaml", ()).to_json()
    return found["verdict"], [one for one in found["findings"] if "faster" in one]


@pytest.mark.parametrize(
    ("nodes", "options", "said"),
    [
        (20, (0, None), ["with --max-unavailable 10%, 2 at a time, it takes 50m00s."]),
        (20, (1, None), ["with --max-unavailable 10%, up to 2 at a time, it takes 50m00s."]),
        (19, (0, None), []),
        (20, (2, None), []),
        (20, (0, 1), []),
    ],
    ids=[
        "a tenth of all nodes",
        "a tenth of the nodes of a zone",
        "a tenth is one node",
        "a tenth is as many as the surge nodes",
        "the user states the pace",
    ],
)
def test_an_upgrade_is_also_tried_at_a_faster_pace(planner, experiment, make, nodes, options, said):
    objects = [make.node(f"n{number:02}") for number in range(nodes)]
    _, findings = faster(planner(*objects), experiment, objects, *options)
    assert findings == [f"A faster pace is safe, too: {words}" for words in said]


def test_the_answer_says_why_a_faster_pace_is_not_safe(planner, experiment, make):
    """The two nodes with pods are drained at the same time, and no budget protects the pods."""
    objects = [make.node(f"n{number:02}") for number in range(20)]
    web = make.workload("ReplicaSet", "web", replicas=2)
    web["metadata"]["uid"] = "web"
    pods = [make.pod(f"web-{at}", node_name=f"n0{at}", owner="web") for at in range(2)]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    cluster = [*objects, web, *pods]
    verdict, [finding] = faster(planner(*cluster), experiment, cluster, 0)
    assert verdict.startswith(
        "An upgrade of 20 nodes one at a time, without surge nodes, completes"
    )
    assert finding == (
        "A faster pace is not safe: with --max-unavailable 10%, 2 at a time, rs/default/web "
        "stops for a time."
    )


def test_pods_with_a_negative_priority_may_stop_in_an_upgrade(planner, experiment, make):
    """Both placeholders are drained at the same time, and wait until the nodes are back."""
    nodes = [make.node(name, cpu="2") for name in "ab"]
    objects = [*nodes, *with_priority(deployment(make, "spare", "ab", cpu="2"), -10)]
    plan = upgrade_plan(planner(*objects), experiment, objects, 0, at_once=2)
    assert [(run.stopped, run.is_safe) for run in plan.runs] == [((), True)]
    assert not any(drain.waits for drain in plan.drains)


def test_pods_with_a_negative_priority_do_not_make_an_upgrade_fail(planner, experiment, make):
    """The nodes are full, so the pods of web preempt placeholders, which wait for a node."""
    objects = overprovisioned(make, -10)
    plan = upgrade_plan(planner(*objects), experiment, objects, 0, at_once=1)
    assert (plan.blocked, [drain.waits for drain in plan.drains]) == ([], [{}, {}, {}])
    assert [run.is_safe for run in plan.runs] == [True]
