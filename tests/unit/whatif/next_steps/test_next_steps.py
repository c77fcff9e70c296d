"""The steps that an answer suggests."""

from __future__ import annotations

import json
import os
import shlex
import threading

import pytest
from msgspec.structs import replace

from fairlead.api.codec import as_json
from fairlead.engine.core.instant import seconds
from fairlead.testing.device_builders import (
    make_claim_status,
    make_device_class,
    make_device_request,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions, conditions_of
from fairlead.whatif.configuration.autoscaling.autoscaler import AutoscaleOptions
from fairlead.whatif.next_steps.next_steps import next_steps
from fairlead.whatif.outcome.assessment.fail_on import check, parse_fail_on
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.question import what_if
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.snapshot.snapshot import read_snapshot

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
SPREAD_BY_ZONE = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def steps_of(answer):
    """Return the words of each step, with its options or its command."""
    return [(step.words, step.code) for step in answer.next_steps]


def budget(**rule):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **rule},
    }


@pytest.fixture
def web(make):
    """A ReplicaSet with a pod on node a and one on node b."""

    def pod(name, node):
        made = make.pod(name, node_name=node, owner="web")
        made["metadata"]["labels"] = {"app": "web"}
        made["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        return made

    replicaset = make.workload("ReplicaSet", "web", replicas=2)
    replicaset["metadata"]["uid"] = "web"
    return [replicaset, pod("web-1", "a"), pod("web-2", "b")]


def drained(snapshot, *objects, **conditions):
    return what_if(snapshot(*objects), ClusterChange(drain=("a",)), Conditions(**conditions))


def test_a_harmless_drain_ends_with_its_command(snapshot, make, web):
    answer = drained(snapshot, make.node("a"), make.node("b"), *web)
    assert steps_of(answer) == [("drain the node", "kubectl drain a")]


@pytest.mark.parametrize("unavailable", [1, "50%"])
def test_a_rolling_drain_ends_with_the_command_for_its_first_nodes(
    snapshot, make, web, unavailable
):
    """kubectl drain a b would cordon node b before pods of node a can move to it."""
    web[0]["spec"]["replicas"] = 3
    third = make.pod("web-3", node_name="c", owner="web")
    third["metadata"]["labels"] = {"app": "web"}
    change = ClusterChange(drain=("a", "b"), max_unavailable=unavailable)
    answer = what_if(snapshot(*map(make.node, "abc"), *web, third), change)
    words = "drain the first node, and the others as drained nodes return to service"
    assert (words, "kubectl drain a") in steps_of(answer)


def test_pods_without_room_suggest_a_node(snapshot, make, web):
    answer = drained(snapshot, make.node("a"), make.node("b", cpu="1"), *web)
    step = ("ask again with one more node like b", "--add-nodes 1 --like b")
    assert steps_of(answer) == [step]


def test_a_new_node_that_is_suggested_can_hold_the_pods(snapshot, make, web):
    """Node c is too small for a pod of 1 CPU; the pods need one node like a, or two like b."""
    web[0]["spec"]["replicas"] = 4
    nodes = [make.node("a"), make.node("b", cpu="2"), make.node("c", cpu="500m")]
    more = [make.pod(f"web-{n}", node_name="a", owner="web") for n in (3, 4)]
    for pod in more:
        pod["metadata"]["labels"] = {"app": "web"}
    full = make.pod("full", node_name="b", cpu="1")
    steps = steps_of(drained(snapshot, *nodes, *web, *more, full))
    step = ("ask again with one more node like a", "--add-nodes 1 --like a")
    assert step in steps


BLOCKERS_AFTER_CHANGES = (
    "list everything that blocks the drain after the other changes, and what would unblock it"
)
BLOCKERS = "list everything that blocks the drain, and what would unblock it"
LIKE_A = ("ask again with one more node like a", "--add-nodes 1 --like a")


def plan_of(answer):
    return f"fairlead drain-plan {answer.source} --nodes a"


@pytest.mark.parametrize(
    ("rule", "words", "options"),
    [
        (
            {"minAvailable": 2},
            "ask again with one more replica of rs/default/web",
            "--scale rs/default/web=3",
        ),
        (
            {"maxUnavailable": 0},
            "ask again with one more unavailable pod allowed by default/web",
            "--set pdb/default/web:spec.maxUnavailable=1",
        ),
        (
            {"maxUnavailable": "0%"},
            "ask again with one more unavailable pod allowed by default/web",
            "--set pdb/default/web:spec.maxUnavailable=1",
        ),
    ],
    ids=[
        "a minimum: another replica",
        "a maximum: one more unavailable pod",
        "a percentage: a number",
    ],
)
def test_a_blocking_budget_suggests_a_change_that_satisfies_it(
    snapshot, make, web, rule, words, options
):
    answer = drained(snapshot, make.node("a"), make.node("b"), *web, budget(**rule))
    assert steps_of(answer)[:1] == [(words, options)]


@pytest.mark.parametrize(
    ("least", "change"),
    [
        (1, ClusterChange(drain=("a",), apply=(budget(minAvailable=2),))),
        (1, ClusterChange(delete=("node/a",), set=("pdb/web:spec.minAvailable=2",))),
        (2, ClusterChange(delete=("node/a",), add_nodes=1, like="a")),
    ],
    ids=["applied object", "deleted node", "replaced node"],
)
def test_no_plan_of_a_drain_is_suggested_if_it_would_lack_a_part_of_the_change(
    snapshot, make, web, least, change
):
    """In the dump, the budget allows the eviction, or there is no new node."""
    objects = [make.node("a"), make.node("b"), *web, budget(minAvailable=least)]
    answer = what_if(snapshot(*objects), change)
    assert answer.verdict.first.kind in {OutcomeKind.UNDRAINED, OutcomeKind.BREACHED}
    assert not any("drain-plan" in step.command for step in answer.next_steps)


def test_the_plan_of_a_drain_contains_the_other_changes(snapshot, make, web, write):
    """In the dump, the budget allows the eviction."""
    cluster = snapshot(make.node("a"), make.node("b"), *web, budget(minAvailable=1))
    path = write("budget.json", json.dumps(budget(minAvailable=2)))
    edit = "pdb/web:spec.minAvailable=2"
    aim = "list everything that blocks the drain after the other changes, and what would unblock it"
    for change, words in (
        (
            ClusterChange(drain=("a",), set=(edit,), namespace="default"),
            f"--set {edit} --namespace default",
        ),
        (ClusterChange(drain=("a",), apply=(path,)), f"--apply {path}"),
    ):
        answer = what_if(cluster, change)
        assert answer.verdict.first.kind is OutcomeKind.UNDRAINED
        command = f"fairlead drain-plan {answer.source} --nodes a {words}"
        assert (aim, command) in steps_of(answer)


def test_a_budget_that_the_change_creates_is_not_explained_from_the_dump(snapshot, make):
    nodes = [make.node(name) for name in "abcd"]
    cluster = snapshot(*nodes, *members(make, (True, True, False)))
    change = ClusterChange(drain=("a",), apply=(budget(maxUnavailable=1),))
    answer = what_if(cluster, change)
    assert answer.changed.undrained
    assert not any("explain" in step.command for step in answer.next_steps)


def test_a_replica_without_room_is_not_suggested_for_a_blocked_drain(snapshot, make, web):
    """Node b has room for its pod only, so the budget refuses the eviction with a replica, too."""
    nodes = [make.node("a"), make.node("b", cpu="1")]
    answer = drained(snapshot, *nodes, *web, budget(minAvailable=2))
    assert answer.changed.undrained
    assert [step.code for step in answer.next_steps] == [plan_of(answer)]


def test_a_replica_that_takes_the_room_of_the_evicted_pod_is_not_suggested(snapshot, make, web):
    """With a replica, the budget allows the eviction, but node b is full."""
    nodes = [make.node("a"), make.node("b", cpu="2")]
    answer = drained(snapshot, *nodes, *web, budget(minAvailable=2))
    assert answer.changed.undrained
    assert not any("--scale" in step.code for step in answer.next_steps)


def test_a_minimum_of_which_pods_stay_unready_suggests_enough_replicas(snapshot, make, web):
    """With one more replica, two pods are healthy, but an eviction needs three."""
    web[-1]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    objects = [make.node("a"), make.node("b"), *web, budget(minAvailable=2)]
    first, *_ = drained(snapshot, *objects).next_steps
    assert first.code == "--scale rs/default/web=4"
    followed = ClusterChange(drain=("a",), scale=("rs/default/web=4",))
    assert not what_if(snapshot(*objects), followed).changed.undrained


def members(make, ready):
    """Return a StatefulSet of three pods on nodes a, b and c; `ready` tells which are ready."""
    owner = make.workload("StatefulSet", "web", replicas=3)
    owner["metadata"]["uid"] = "web"
    pods = []
    for number, node in enumerate("abc"):
        pod = make.pod(f"web-{number}", node_name=node, owner="web")
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "apps/v1", "kind": "StatefulSet"}
        pod["metadata"]["labels"] = {"app": "web"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": str(ready[number])}]
        pods.append(pod)
    return [owner, *pods]


def test_a_budget_that_unready_pods_exhaust_is_not_weakened(snapshot, make):
    """With maxUnavailable 2, one of three members would be ready, so the quorum would be lost."""
    nodes = [make.node(name) for name in "abcd"]
    answer = drained(
        snapshot, *nodes, *members(make, (True, True, False)), budget(maxUnavailable=1)
    )
    words = (
        "make 1 more pod ready for pdb/default/web, which would then allow an eviction; the "
        "command lists its unready pods"
    )
    command = f"fairlead explain {answer.source} pdb/default/web"
    assert steps_of(answer) == [(words, command), (BLOCKERS, plan_of(answer))]


def pair(make, name, **rule):
    """Return a ReplicaSet `name` with pods of 1 CPU on nodes a and b, and its budget."""
    owner = make.workload("ReplicaSet", name, replicas=2)
    owner["metadata"]["uid"] = name
    owner["spec"]["template"]["metadata"]["labels"] = {"app": name}
    pods = []
    for node in "ab":
        pod = make.pod(f"{name}-{node}", node_name=node, owner=name)
        pod["metadata"]["labels"] = {"app": name}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pods.append(pod)
    made = budget(**rule)
    made["metadata"] = {**made["metadata"], "name": name}
    made["spec"] = {**made["spec"], "selector": {"matchLabels": {"app": name}}}
    return [owner, *pods, made]


DB_RULE = "--set pdb/default/db:spec.maxUnavailable=1"
WEB_RULE = "--set pdb/default/web:spec.maxUnavailable=1"


@pytest.mark.parametrize(
    ("cpu", "options"),
    [("4", [f"{DB_RULE} {WEB_RULE}"]), ("3", [DB_RULE, WEB_RULE]), ("2", [])],
    ids=["both", "one of them", "none"],
)
def test_rules_of_several_budgets_are_changed_if_no_pod_waits_then(snapshot, make, cpu, options):
    """Node b has room for two more pods, for one more pod, and for none."""
    pairs = [*pair(make, "db", maxUnavailable=0), *pair(make, "web", maxUnavailable=0)]
    cluster = [make.node("a"), make.node("b", cpu=cpu), *pairs]
    answer = drained(snapshot, *cluster)
    assert [code for _, code in steps_of(answer) if "--set" in code] == options
    assert plan_of(answer) in [code for _, code in steps_of(answer)]
    partial = "; 1 of 2 pods then still blocks the drain"
    words = [words for words, code in steps_of(answer) if "--set" in code]
    assert [partial in one for one in words] == [len(options) == 2] * len(options)
    for edit in options:
        edits = tuple(shlex.split(edit)[1::2])
        followed = what_if(snapshot(*cluster), ClusterChange(drain=("a",), set=edits))
        assert len(followed.changed.undrained) == 2 - len(edits)
        assert not followed.difference.pending


def test_a_budget_of_a_single_pod_names_the_time_without_a_ready_pod(snapshot, make):
    cluster = [make.node("a"), make.node("b"), *single(make), budget(maxUnavailable=0)]
    first, *_ = drained(snapshot, *cluster).next_steps
    assert first.code == "--set pdb/default/web:spec.maxUnavailable=1"
    assert first.words.endswith("; rs/default/web then has no ready pod for a time")


def crash(pods):
    """Let the containers of `pods` crash again and again."""
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    for pod in pods:
        pod["status"]["conditions"] = [
            {"type": kind, "status": "False"} for kind in ("Ready", "ContainersReady")
        ]
        container = pod["spec"]["containers"][0]["name"]
        pod["status"]["containerStatuses"] = [{"name": container, "state": waiting}]


@pytest.mark.parametrize(
    "rule", [{"minAvailable": 2}, {"minAvailable": "50%"}, {"maxUnavailable": 1}]
)
def test_a_budget_of_pods_that_are_not_ready_always_allows_their_eviction(
    snapshot, make, web, rule
):
    """Other rules, or more replicas that crash too, would not help."""
    crash(web[1:])
    cluster = [make.node("a"), make.node("b"), *web]
    answer = drained(snapshot, *cluster, budget(**rule))
    words = "ask again with evictions of unready pods always allowed by default/web"
    options = "--set pdb/default/web:spec.unhealthyPodEvictionPolicy=AlwaysAllow"
    assert steps_of(answer)[:1] == [(words, options)]
    assert not any("--scale" in where for _, where in steps_of(answer))
    allowed = budget(**rule, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert not drained(snapshot, *cluster, allowed).changed.undrained


def test_a_step_that_lets_only_some_evictions_pass_says_so(snapshot, make, web):
    """The unready pod of the drained node can go, but two others keep the budget exhausted."""
    web[0]["spec"]["replicas"] = 4
    for name, node in (("web-3", "a"), ("web-4", "b")):
        web.append(make.pod(name, node_name=node, owner="web"))
        web[-1]["metadata"]["labels"] = {"app": "web"}
        web[-1]["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    crash([web[1], web[2], web[4]])
    cluster = [make.node("a"), make.node("b"), *web]
    answer = drained(snapshot, *cluster, budget(maxUnavailable=1))
    words = "ask again with evictions of unready pods always allowed by default/web"
    assert steps_of(answer)[0][0] == f"{words}; it then blocks 1 fewer of 2 pods"


def test_all_budgets_with_unready_pods_are_tried_in_one_simulation(snapshot, make, web):
    """A drain can be blocked by hundreds of such budgets."""
    crash(web[1:])
    text = json.dumps([*web, budget(maxUnavailable=1)])
    cluster = [make.node("a"), make.node("b")]
    for name in ("web", "api", "db"):
        cluster += json.loads(text.replace("web", name))
    answer, asked = drained(snapshot, *cluster), []

    def ask(change):
        asked.append(change)
        return what_if(snapshot(*cluster), change).effect

    manifests = snapshot(*cluster).manifests
    steps = next_steps(answer, manifests, lambda _: ask, NoProgress()).steps
    assert len(asked) == 1
    assert [one.words.rpartition("/")[2] for one in steps][1:4] == ["api", "db", "web"]
    # Each of these steps is about only one budget, so the plan of the drain comes first.
    assert steps[0].words == BLOCKERS
    assert steps[0].outcome is OutcomeKind.UNDRAINED


@pytest.mark.parametrize("rule", [{"maxUnavailable": 1}, {"minAvailable": "50%"}])
def test_a_budget_of_pods_without_a_controller_gets_a_number_as_min_available(
    snapshot, make, web, rule
):
    """Other limits count the replicas of controllers, so they would still allow no eviction."""
    pods = [{**one, "metadata": {**one["metadata"], "ownerReferences": []}} for one in web[1:]]
    nodes = [make.node("a"), make.node("b")]
    answer = drained(snapshot, *nodes, *pods, budget(**rule))
    words = (
        "ask again with a number as minAvailable of default/web; other limits count only pods with "
        "a controller"
    )
    options = (
        "--set pdb/default/web:spec.maxUnavailable=null --set pdb/default/web:spec.minAvailable=1"
    )
    assert steps_of(answer)[:1] == [(words, options)]
    number = budget(maxUnavailable=None, minAvailable=1)
    assert not drained(snapshot, *nodes, *pods, number).changed.undrained


def test_a_pod_of_several_budgets_suggests_to_delete_all_but_one(snapshot, make, web):
    """No rule of these budgets lets the API server evict the pod."""
    other = budget(maxUnavailable=1)
    other["metadata"] = {**other["metadata"], "name": "other"}
    cluster = [make.node("a"), make.node("b"), *web, budget(maxUnavailable=1), other]
    answer = drained(snapshot, *cluster)
    words = "ask again without default/web; a pod of several budgets cannot be evicted"
    assert steps_of(answer)[:1] == [(words, "--delete pdb/default/web")]
    assert not any("--set" in where for _, where in steps_of(answer))
    change = ClusterChange(drain=("a",), delete=("pdb/default/web",))
    assert not what_if(snapshot(*cluster), change).changed.undrained


def test_no_budget_is_deleted_if_its_pod_then_finds_no_node(snapshot, make, web):
    """Node b is full: the workload would have one ready pod less for the rest of the drain."""
    other = budget(maxUnavailable=1)
    other["metadata"] = {**other["metadata"], "name": "other"}
    nodes = [make.node("a"), make.node("b", cpu="1")]
    answer = drained(snapshot, *nodes, *web, budget(maxUnavailable=1), other)
    assert answer.changed.undrained
    assert [words for words, _ in steps_of(answer)] == [BLOCKERS]


def test_no_budget_is_deleted_if_the_other_budget_allows_no_eviction_either(snapshot, make, web):
    """Without one of the two budgets, the drain would wait for the other one."""
    other = budget(maxUnavailable=0)
    other["metadata"] = {**other["metadata"], "name": "other"}
    cluster = [make.node("a"), make.node("b"), *web, budget(maxUnavailable=0), other]
    answer = drained(snapshot, *cluster)
    assert answer.changed.undrained
    assert [words for words, _ in steps_of(answer)] == [BLOCKERS]


def test_only_budgets_of_pods_that_are_then_evicted_are_deleted(snapshot, make, web):
    """The pod of db can be evicted without one of its budgets, the pod of web cannot."""

    def named(name, app, disruptions):
        made = budget(maxUnavailable=disruptions)
        selector = {"matchLabels": {"app": app}}
        return {
            **made,
            "metadata": {**made["metadata"], "name": name},
            "spec": {**made["spec"], "selector": selector},
        }

    db = json.loads(json.dumps(web).replace("web", "db"))
    budgets = [
        named(f"{app}-{n}", app, most) for app, most in (("web", 0), ("db", 1)) for n in "12"
    ]
    answer = drained(snapshot, make.node("a"), make.node("b"), *web, *db, *budgets)
    assert {one.pod.key for one in answer.changed.undrained} == {"default/web-1", "default/db-1"}
    words = "ask again without default/db-2; a pod of several budgets cannot be evicted"
    assert (words, "--delete pdb/default/db-2") in steps_of(answer)


def test_a_budget_is_deleted_only_if_another_one_covers_the_pod(snapshot, make):
    """Without the budget of both pods, each pod has one budget."""
    cluster = [make.node("a"), make.node("b")]
    for name in "xy":
        labels = {"app": name, "both": "yes"}
        owner = make.workload("ReplicaSet", name, replicas=1)
        owner["metadata"]["uid"] = name
        owner["spec"]["template"]["metadata"]["labels"] = labels
        pod = make.pod(f"{name}-1", node_name="a", owner=name)
        pod["metadata"]["labels"] = labels
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        cluster += [owner, pod]
    for name, selected in (
        ("b-x", {"app": "x"}),
        ("c-both", {"both": "yes"}),
        ("d-y", {"app": "y"}),
    ):
        one = budget(maxUnavailable=1)
        one["metadata"]["name"], one["spec"]["selector"]["matchLabels"] = name, selected
        cluster.append(one)
    first = steps_of(drained(snapshot, *cluster))[0]
    assert first[1] == "--delete pdb/default/c-both"


@pytest.mark.parametrize(
    ("size", "lasts", "steps"),
    [
        pytest.param(
            "1",
            "2h",
            [
                (
                    "ask again with one more node like a; no pod then waits long for a node",
                    "--add-nodes 1 --like a",
                )
            ],
            id="no room on node b",
        ),
        pytest.param("1", "20m", [], id="the wait is short"),
        pytest.param("4", "2h", [], id="the pods do not wait"),
    ],
)
def test_pods_that_wait_for_hours_suggest_a_node(snapshot, make, web, size, lasts, steps):
    """The pods have nodes at the end, because the failed node is back."""
    web[0]["spec"]["replicas"] = 3
    third = make.pod("web-3", node_name="a", owner="web")
    third["metadata"]["labels"] = {"app": "web"}
    third["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    failures = Failures(fail_node=("a",))
    change = ClusterChange(failures=failures, lasts=lasts)
    objects = [make.node("a"), make.node("b", cpu=size), *web, third]
    answer = what_if(snapshot(*objects), change)
    assert not answer.difference.pending
    assert steps_of(answer) == steps


@pytest.mark.parametrize("selector", [{HOSTNAME: "a"}, {}], ids=["bound to node a", "free"])
def test_new_nodes_that_help_only_pods_of_a_negative_priority_are_not_suggested(
    snapshot, make, selector
):
    """Node b is full, so both pods of node a wait for its return."""
    objects = [make.node("a", **{HOSTNAME: "a"}), make.node("b", cpu="1", **{HOSTNAME: "b"})]
    objects.append(make.priority_class("low", -10))
    low = {"priorityClassName": "low", "priority": -10}
    for name, spec in (("web", {"nodeSelector": selector}), ("placeholder", low)):
        owner = make.workload("ReplicaSet", name, replicas=1, cpu="2", **spec)
        owner["metadata"]["uid"] = name
        pod = make.pod(f"{name}-0", node_name="a", owner=name, cpu="2", **spec)
        pod["metadata"]["labels"] = {"app": name}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        objects += [owner, pod]
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts="2h")
    answer = what_if(snapshot(*objects), change)
    assert len(answer.effect.waited) == 2
    has_nodes = any("--add-nodes" in step.code for step in answer.next_steps)
    assert has_nodes == (not selector)


def test_new_nodes_for_pods_that_wait_are_not_suggested_twice(snapshot, make, web):
    """The question adds a node already, but it is too small for a pod."""
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts="2h", add_nodes=1, like="c")
    objects = [make.node("a"), make.node("b", cpu="1"), make.node("c", cpu="500m"), *web]
    answer = what_if(snapshot(*objects), change)
    assert answer.effect.waited
    assert steps_of(answer) == []


@pytest.mark.parametrize(
    ("disks", "edits", "is_noted"),
    [
        pytest.param(["hdd", "nvme"], {}, True, id="no node has the label"),
        pytest.param(["hdd", "ssd"], {}, False, id="a full node has the label"),
        pytest.param(
            ["hdd", "nvme"],
            {"set": ("rs/web:spec.minReadySeconds=1",)},
            True,
            id="the change also edits the workload",
        ),
    ],
)
def test_labels_that_pending_pods_require_and_no_node_has_are_named(
    snapshot, make, disks, edits, is_noted
):
    """The change deletes the node that had the label."""
    owner = make.workload("ReplicaSet", replicas=1, cpu="3", nodeSelector={"disk": "ssd"})
    owner["metadata"]["uid"] = "web"
    pod = make.pod("web-0", node_name="a", owner="web", cpu="3", nodeSelector={"disk": "ssd"})
    pod["metadata"]["labels"] = {"app": "web"}
    others = [make.node(f"b{n}", cpu="2", disk=disk) for n, disk in enumerate(disks)]
    dump = snapshot(make.node("a", disk="ssd"), *others, owner, pod)
    answer = what_if(dump, ClusterChange(delete=("node/a",), **edits))
    assert answer.difference.pending
    note = (
        "Pods of rs/default/web are pending because of labels that they require. No node has "
        "disk=ssd; the values of disk are hdd (1 node) and nvme (1 node)."
    )
    assert (note in answer.changed.notes) is is_noted
    assert any("labels that they require" in one for one in answer.changed.notes) is is_noted


def test_labels_that_the_change_requires_and_no_node_has_are_named(snapshot, make):
    owner = make.workload(replicas=1)
    dump = snapshot(make.node("a", disk="hdd"), owner)
    edit = "deploy/web:spec.template.spec.nodeSelector={disk: ssd}"
    answer = what_if(dump, ClusterChange(set=(edit,)))
    note = (
        "Pods of deploy/default/web are pending because of labels that they require. No node has "
        "disk=ssd; the only value of disk is hdd (1 node)."
    )
    assert note in answer.changed.notes


@pytest.mark.parametrize(
    ("resources", "tainted_cpu", "problem"),
    [
        ("cpu=9", "4", "no node is large enough: a pod requests 9 cpu, and the largest has 4"),
        (
            "cpu=3900m",
            "4",
            (
                "no node is large enough: a pod requests 3900m cpu, and the largest has 3500m "
                "beside the pods of DaemonSets and static pods"
            ),
        ),
        (
            "cpu=9",
            "64",
            (
                "no node that admits them is large enough: a pod requests 9 cpu, and the largest "
                "has 4"
            ),
        ),
        ("cpu=3", "4", ""),
        ("nvidia.com/gpu=1", "4", "they request nvidia.com/gpu, which no node has"),
    ],
    ids=["larger", "with a daemon pod", "larger than untainted nodes", "full", "no such resource"],
)
def test_requests_that_exceed_the_size_of_every_node_are_named(
    snapshot, make, resources, tainted_cpu, problem
):
    """A copy of a node would not help such a pod, so no new node is suggested."""
    agents = [make.pod(f"agent-{name}", node_name=name, cpu="500m") for name in "ab"]
    for agent in agents:
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "ds"}
        agent["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    tainted = make.node("b", cpu=tainted_cpu)
    if tainted_cpu != "4":
        tainted["spec"] = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    filler = make.pod("filler", node_name="a", cpu="2")
    more = [make.pod("more", node_name="b", cpu="2")]
    web = make.workload(replicas=1, cpu="100m")
    dump = snapshot(make.node("a"), tainted, *agents, filler, *more, web)
    answer = what_if(dump, ClusterChange(set_resources=(f"deploy/web={resources}",)))
    assert answer.difference.pending
    notes = [one for one in answer.changed.notes if "are pending because" in one]
    expected = f"Pods of deploy/default/web are pending because {problem}."
    assert notes == ([expected] if problem else [])
    assert any("--add-nodes" in step.code for step in answer.next_steps) == (not problem)


def test_a_number_of_new_nodes_above_the_lower_bound_may_be_too_high(snapshot, make):
    """Pods of 3 CPU wait, and a small pod; each new node has 4 CPU."""
    nodes = [make.node("a", cpu="4"), make.node("b", cpu="2")]
    large, small = (
        make.workload("ReplicaSet", name, replicas=0, cpu=cpu)
        for name, cpu in (("web", "3"), ("small", "2"))
    )
    change = ClusterChange(scale=("rs/web=7", "rs/small=2"))
    steps = steps_of(what_if(snapshot(*nodes, large, small), change))
    assert steps[0] == (
        "ask again with 7 more nodes like a; fewer may be enough",
        "--add-nodes 7 --like a",
    )


def test_the_sum_of_the_requests_excludes_fewer_new_nodes(snapshot, make):
    """Three pods of 2 CPU wait, and only the first new node has room for two of them."""
    web = make.workload("ReplicaSet", "web", replicas=0, cpu="2")
    cluster = snapshot(make.node("a", cpu="4"), web)
    steps = steps_of(what_if(cluster, ClusterChange(scale=("rs/web=5",))))
    assert steps[0] == ("ask again with 2 more nodes like a", "--add-nodes 2 --like a")


def test_new_nodes_that_only_some_of_the_pods_may_use_say_so_after_two_failed_zones(make, snapshot):
    """The spread over zones shows only when the nodes have room, in the trial."""
    web = make.workload("ReplicaSet", "web", replicas=6, cpu="1")
    web["metadata"]["uid"] = "web"
    web["spec"]["template"]["spec"]["topologySpreadConstraints"] = [
        {**SPREAD_BY_ZONE, "maxSkew": 3}
    ]
    nodes = [make.node(name, cpu="2", **{ZONE: name}) for name in "abc"]
    pods = []
    for number, node in enumerate("aabbcc"):
        pod = make.pod(f"web-{number}", cpu="1", node_name=node, owner="web")
        pod["metadata"]["labels"] = {"app": "web"}
        pods.append(pod)
    change = ClusterChange(failures=Failures(fail_zone=("a", "b")))
    answer = what_if(snapshot(*nodes, web, *pods), change)
    assert len(answer.difference.pending) == 4
    words = "ask again with one more node like c; 1 of 4 pending pods then runs"
    assert (words, "--add-nodes 1 --like c") in steps_of(answer)


@pytest.mark.parametrize("is_spread", [True, False], ids=["spread", "kept apart"])
@pytest.mark.parametrize("has_room", [True, False])
@pytest.mark.parametrize(
    ("running", "likes"), [("", "a,b,c"), ("a", "b,c"), ("b", "a,c"), ("ab", "c")]
)
def test_pods_that_need_a_zone_each_get_new_nodes_in_the_zones_without_pods(
    make, snapshot, is_spread, has_room, running, likes
):
    """If the nodes with pods have room, the rule shows already without new nodes."""
    term = {"topologyKey": ZONE, "labelSelector": SPREAD_BY_ZONE["labelSelector"]}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    rule = {"topologySpreadConstraints": [SPREAD_BY_ZONE]} if is_spread else {"affinity": apart}
    web = make.workload("ReplicaSet", "web", replicas=len(running), cpu="2", **rule)
    web["metadata"]["uid"] = "web"
    objects = [web]
    for name in "abc":
        cpu = "8" if has_room and name in running else "2"
        objects.append(make.node(name, cpu=cpu, **{ZONE: name}))
        if name in running:
            pod = make.pod(f"web-{name}", cpu="2", node_name=name, owner="web", **rule)
            pod["metadata"]["labels"] = {"app": "web"}
        else:
            pod = make.pod(f"full-{name}", cpu="1", node_name=name)
        objects.append(pod)
    cluster = snapshot(*objects)
    answer = what_if(cluster, ClusterChange(scale=("rs/web=3",)))
    pending = 3 - len(running)
    assert len(answer.difference.pending) == pending
    assert steps_of(answer)[0][1] == f"--add-nodes {pending} --like {likes}"
    change = ClusterChange(scale=("rs/web=3",), add_nodes=pending, like=likes)
    assert not what_if(cluster, change).difference.pending


def test_further_nodes_may_be_of_zones_that_the_question_does_not_name(make, snapshot):
    """Each zone takes one pod of the six, and then one more if each zone has one."""
    web = make.workload("ReplicaSet", "web", replicas=0, topologySpreadConstraints=[SPREAD_BY_ZONE])
    nodes = [make.node(name, cpu="1", **{ZONE: name}) for name in "abc"]
    cluster = snapshot(*nodes, web)
    change = ClusterChange(scale=("rs/web=6",), add_nodes=1, like="a")
    answer = what_if(cluster, change)
    assert len(answer.difference.pending) == 2
    step = (
        "ask again with one more node like b and one more node like c; fewer may be enough",
        "--add-nodes 3 --like a,b,c",
    )
    assert step in steps_of(answer)
    assert not what_if(cluster, replace(change, add_nodes=3, like="a,b,c")).difference.pending


def test_failed_zones_that_are_back_do_not_exclude_new_nodes(make, snapshot):
    """Zone c is full and has no pod of web, so the other zones get one pod each."""
    web = make.workload("ReplicaSet", "web", replicas=4, topologySpreadConstraints=[SPREAD_BY_ZONE])
    web["metadata"]["uid"] = "web"
    pods = [make.pod(f"web-{at}", node_name=node, owner="web") for at, node in enumerate("aabb")]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
    nodes = [make.node(name, cpu="4", **{ZONE: name}) for name in "abc"]
    full = make.pod("full", cpu="4", node_name="c")
    failures = Failures(fail_zone=("a", "b"))
    change = ClusterChange(failures=failures, lasts="1h")
    cluster = snapshot(*nodes, web, *pods, full)
    answer = what_if(cluster, change)
    assert len(answer.difference.pending) == 2
    assert "--add-nodes 1 --like c" in [step.code for step in answer.next_steps]
    assert not what_if(cluster, replace(change, add_nodes=1, like="c")).difference.pending


def test_a_note_says_that_pods_repel_each_other_on_new_nodes_too(make, snapshot):
    term = {"topologyKey": ZONE, "labelSelector": SPREAD_BY_ZONE["labelSelector"]}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    web = make.workload("ReplicaSet", "web", replicas=0, cpu="1", affinity=apart)
    nodes = [make.node(name, **{ZONE: name}) for name in "ab"]
    answer = what_if(snapshot(*nodes, web), ClusterChange(scale=("rs/web=3",)))
    note = (
        "With one more node like a or one more node like b, the pod stays pending, too, because of "
        "required anti-affinity."
    )
    assert note in answer.changed.notes


def test_a_budget_whose_pods_are_pending_is_not_relaxed(snapshot, make, web):
    """The budget is exhausted because the first evicted pod finds no node."""
    third = make.pod("web-3", node_name="a", owner="web")
    third["metadata"]["labels"] = {"app": "web"}
    third["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    web[0]["spec"]["replicas"] = 3
    nodes = [make.node("a"), make.node("b", cpu="1")]
    answer = drained(snapshot, *nodes, *web, third, budget(maxUnavailable=1))
    assert answer.changed.undrained
    new_node = ("ask again with one more node like a", "--add-nodes 1 --like a")
    assert steps_of(answer) == [(BLOCKERS, plan_of(answer)), new_node]


@pytest.fixture
def spread(make):
    """Nodes a in zone 1, b and c in zone 2, and four pods of a ReplicaSet, spread over zones."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    replicaset = make.workload(
        "ReplicaSet", "web", replicas=4, topologySpreadConstraints=[constraint]
    )
    replicaset["metadata"]["uid"] = "web"
    pods = []
    for number, node in enumerate("aabc"):
        pod = make.pod(f"web-{number}", node_name=node, owner="web")
        pod["metadata"]["labels"] = {"app": "web"}
        pod["spec"]["topologySpreadConstraints"] = [constraint]
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pods.append(pod)
    zones = {"a": "1", "b": "2", "c": "2"}
    nodes = [make.node(name, **{constraint["topologyKey"]: zone}) for name, zone in zones.items()]
    return [*nodes, replicaset, *pods]


def test_pods_that_fit_only_the_drained_node_suggest_a_copy_of_that_node(snapshot, spread):
    """Another replica would be pending, too: the zone of the drained node has no other node."""
    answer = drained(snapshot, *spread, budget(minAvailable=3))
    first, second, edit = steps_of(answer)
    assert first == (BLOCKERS, plan_of(answer))
    assert second == LIKE_A
    assert edit[1] == edited(nodeTaintsPolicy="Honor")
    change = ClusterChange(drain=("a",), add_nodes=1, like="a")
    helped = what_if(snapshot(*spread, budget(minAvailable=3)), change)
    assert not helped.changed.undrained
    assert not helped.changed.pending


@pytest.mark.parametrize("arguments", [("SNAPSHOT",), ("my dumps",), ("--context", "prod")])
def test_the_plan_of_a_drain_reads_the_cluster_of_the_question(snapshot, spread, arguments):
    cluster = replace(snapshot(*spread, budget(minAvailable=3)), arguments=arguments)
    steps = steps_of(what_if(cluster, ClusterChange(drain=("a",))))
    words = shlex.join(arguments)
    assert (BLOCKERS, f"fairlead drain-plan {words} --nodes a") in steps


@pytest.mark.parametrize(
    ("share", "added", "likes"),
    [
        ("50%", None, set()),
        ("50%@1", None, {"c"}),
        ("100%@1", 1, set()),
        ("50%@2", None, {"a"}),
    ],
    ids=["of all nodes", "of a zone", "of a zone, with new nodes", "of the other zone"],
)
def test_new_nodes_do_not_change_which_nodes_a_fraction_selects(
    snapshot, make, share, added, likes
):
    """A copy of a node of zone 1 would make another node of zone 1 fail."""
    zones = {"a": "1", "b": "1", "c": "2", "d": "2"}
    nodes = [make.node(name, cpu="1", **{ZONE: zone}) for name, zone in zones.items()]
    owner = make.workload("ReplicaSet", "web", replicas=4)
    owner["metadata"]["uid"] = "web"
    pods = [make.pod(f"web-{name}", node_name=name, owner="web", cpu="1") for name in zones]
    failures = Failures(fail_fraction=(share,))
    change = ClusterChange(failures=failures, add_nodes=added, like="c" if added else "")
    answer = what_if(snapshot(*nodes, owner, *pods), change)
    assert answer.difference.pending
    named = [one.options for one in answer.next_steps if "--like" in one.options]
    assert {words.rpartition(" ")[2] for words in named} == likes
    noted = any("--fail-fraction would select other nodes" in one for one in answer.changed.notes)
    assert noted is not bool(likes)


def test_the_plan_of_a_drain_uses_the_scheduler_of_the_question(snapshot, spread, write):
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path = write("scheduler.yaml", json.dumps(kind))
    cluster = snapshot(*spread, budget(minAvailable=3))
    answer = what_if(cluster, ClusterChange(drain=("a",)), Conditions(config=path))
    command = f"fairlead drain-plan {answer.source} --config {path} --nodes a"
    assert (BLOCKERS, command) in steps_of(answer)


def test_the_plan_of_a_drain_follows_the_version_of_the_question(snapshot, spread):
    cluster = snapshot(*spread, budget(minAvailable=3))
    gates = {"NonPreemptingPriority": True, "LegacyNodeRoleBehavior": False}
    conditions = conditions_of(behave_like="1.19", feature_gates=gates)
    answer = what_if(cluster, ClusterChange(drain=("a",)), conditions)
    gates = "LegacyNodeRoleBehavior=false,NonPreemptingPriority=true"
    options = f"--behave-like 1.19 --feature-gates {gates}"
    command = f"fairlead drain-plan {answer.source} {options} --nodes a"
    assert (BLOCKERS, command) in steps_of(answer)


def test_the_arguments_of_a_snapshot_are_its_path(write, make, tmp_path):
    path = write("nodes.json", make.node("a"))
    assert read_snapshot(path).arguments == (path,)
    assert read_snapshot(tmp_path).words == str(tmp_path)


def test_pods_of_a_failed_node_suggest_a_copy_of_that_node(snapshot, spread):
    change = ClusterChange(failures=Failures(fail_node=("a",)))
    assert LIKE_A in steps_of(what_if(snapshot(*spread), change))


def test_pods_of_a_failed_zone_suggest_no_node_in_that_zone(snapshot, spread):
    """The new node would fail, too."""
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    answer = what_if(snapshot(*spread), change)
    assert answer.difference.pending
    assert not any("--add-nodes" in where for _, where in steps_of(answer))


def edited(**fields):
    """Return the option that sets these fields of the constraint of `spread`."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    value = json.dumps([constraint | fields], separators=(",", ":"))
    edit = f"rs/default/web:spec.template.spec.topologySpreadConstraints={value}"
    return shlex.join(("--set", edit))


def with_edit(change, step):
    """Return `change` with the edit of `step`, and with its --at."""
    _, edit, *at = shlex.split(step.code)
    failures = replace(change.failures, at=at[1]) if at else change.failures
    return replace(change, set=(edit,), failures=failures)


CONSTRAINT = (
    "its topology spread constraint (topology.kubernetes.io/zone, maxSkew 1, DoNotSchedule)"
)


def test_a_constraint_that_counts_failed_nodes_is_named(snapshot, spread):
    """All pods run with the suggested change."""
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    answer = what_if(snapshot(*spread), change)
    assert answer.changed.notes[:2] == (
        f"2 pods of rs/default/web stay pending although nodes have room, because of {CONSTRAINT}.",
        (
            "The failed nodes still count for the topology spread of rs/default/web, without pods, "
            "while their Node objects exist. With nodeTaintsPolicy: Honor, they do not count."
        ),
    )
    (step,) = [step for step in answer.next_steps if "--set" in step.code]
    assert step.code == f"{edited(nodeTaintsPolicy='Honor')} --at 10m"
    assert not what_if(snapshot(*spread), with_edit(change, step)).difference.pending


def test_trials_of_other_constraints_are_the_suggested_what_ifs(snapshot, spread):
    """The nodes fail when the rollout of the edited workload is over."""
    cluster = snapshot(*spread)
    answer = what_if(cluster, ClusterChange(failures=Failures(fail_zone=("1",))))
    asked = []
    next_steps(answer, cluster.manifests, lambda _: asked.append, NoProgress(), in_one_process=True)
    edits = [one for one in asked if one.set]
    assert [one.failures for one in edits] == [Failures(fail_zone=("1",), at="10m")] * 2


def copy_of(objects, name):
    """Return the workload of `spread` and its pods under another name."""
    text = json.dumps(objects[3:]).replace('"app": "web"', f'"app": "{name}"')
    return json.loads(text.replace('"web', f'"{name}'))


def test_one_step_changes_the_constraints_of_all_workloads_whose_pods_wait(snapshot, spread):
    """Two workloads have equal constraints, and each has two pods without a node."""
    objects = [*spread, *copy_of(spread, "api")]
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    answer = what_if(snapshot(*objects), change)
    (step,) = [step for step in answer.next_steps if "--set" in step.code]
    assert step.words.startswith(
        "ask again without the failed nodes in the topology spread of rs/default/api, "
        "rs/default/web (nodeTaintsPolicy"
    )
    *edits, option, at = shlex.split(step.code)
    assert (edits[::2], option, at) == (["--set", "--set"], "--at", "10m")
    helped = what_if(snapshot(*objects), replace(change, set=tuple(edits[1::2])))
    assert not helped.difference.pending


def test_a_step_that_changes_one_of_many_workloads_says_so(snapshot, spread):
    """The constraints of six workloads are too many for a command."""
    for node in spread[:3]:
        node["status"]["allocatable"]["cpu"] = "32"
    objects = [*spread, *(each for name in "abcde" for each in copy_of(spread, name))]
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    answer = what_if(snapshot(*objects), change)
    (step,) = [step for step in answer.next_steps if "--set" in step.code]
    assert step.code.count("--set") == 1
    assert "the topology spread of rs/default/a, 1 of 6 such workloads (nodeT" in step.words
    assert (
        "The failed nodes still count for the topology spread of rs/default/a, rs/default/b, "
        "rs/default/c and 3 more, without pods"
    ) in answer.causes[1]


def test_cordoned_nodes_that_count_for_topology_spread_may_have_pods(snapshot, spread):
    zone = spread[0]["metadata"]["labels"]["topology.kubernetes.io/zone"]
    nodes = (f"topology.kubernetes.io/zone={zone}",)
    change = ClusterChange(cordon=nodes, scale=("rs/default/web=9",))
    notes = what_if(snapshot(*spread), change).changed.notes
    assert (
        "The cordoned nodes still count for the topology spread of rs/default/web. "
        "With nodeTaintsPolicy: Honor, they do not count."
    ) in notes


def test_the_deletion_of_failed_nodes_ends_their_part_in_topology_spread(snapshot, spread):
    """Without the Node object of its only node, zone 1 does not count."""
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    step = what_if(snapshot(*spread), change).next_steps[0]
    assert step.words == (
        "if the failed node is shut down for good, delete its Node object; the 2 pending pods then "
        "run"
    )
    assert step.code == "kubectl delete nodes a"


def test_the_nodes_of_a_large_zone_are_deleted_by_their_label(make, snapshot, spread):
    more = [make.node(f"a{number}", **{ZONE: "1"}) for number in range(5)]
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    first = what_if(snapshot(*more, *spread), change).next_steps[0]
    assert first.words.startswith(
        "if the failed nodes are shut down for good, delete their Node objects"
    )
    assert first.code == f"kubectl delete nodes --selector {ZONE}=1"


@pytest.mark.parametrize(
    "change",
    [
        ClusterChange(failures=Failures(fail_zone=("1",)), lasts="30m"),
        ClusterChange(failures=Failures(fail_zone=("1",), how="not-ready")),
        ClusterChange(drain=("a",)),
    ],
    ids=["nodes that come back", "nodes whose kubelets work", "drained nodes"],
)
def test_other_nodes_are_not_deleted(snapshot, spread, change):
    codes = [step.code for step in what_if(snapshot(*spread), change).next_steps]
    assert codes
    assert not [code for code in codes if "delete" in code]


def test_a_constraint_for_which_pods_wait_until_the_nodes_return_is_named(snapshot, spread):
    """No pod is pending at the end, but with the suggested change, none waits, either."""
    change = ClusterChange(failures=Failures(fail_zone=("1",)), lasts="30m")
    answer = what_if(snapshot(*spread), change)
    assert not answer.difference.pending
    waits, still_count = answer.changed.notes[:2]
    assert waits.startswith("2 pods of rs/default/web wait up to 24m")
    assert waits.endswith(f"for a node although nodes have room, because of {CONSTRAINT}.")
    assert still_count.startswith("The failed nodes still count for the topology spread")
    (step,) = [step for step in answer.next_steps if "--set" in step.code]
    assert step.code == f"{edited(nodeTaintsPolicy='Honor')} --at 10m"
    assert not what_if(snapshot(*spread), with_edit(change, step)).effect.waited


def test_a_zone_with_a_full_node_in_service_counts_without_the_failed_node_too(
    make, snapshot, spread
):
    """Without the failed node, zone 1 still counts, because of its full node."""
    full = make.node("full", cpu="100m", **{ZONE: "1"})
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts="30m")
    answer = what_if(snapshot(*spread, full), change)
    assert answer.changed.notes[0].startswith("2 pods of rs/default/web wait up to 24m")
    assert not any("still count" in note for note in answer.changed.notes)
    assert not [step for step in answer.next_steps if "--set" in step.code]


@pytest.mark.parametrize("lasts", ["", "30m"], ids=["for good", "for 30 minutes"])
def test_min_domains_that_failed_nodes_leave_unmet_are_removed_too(snapshot, spread, lasts):
    """Without the failed nodes, one domain remains of two, so Honor alone would not help."""
    constraint = spread[3]["spec"]["template"]["spec"]["topologySpreadConstraints"][0]
    constraint["minDomains"] = 2
    change = ClusterChange(failures=Failures(fail_zone=("1",)), lasts=lasts)
    answer = what_if(snapshot(*spread), change)
    assert answer.changed.notes[1].endswith(
        "With nodeTaintsPolicy: Honor, they do not count, but fewer domains remain then than "
        "minDomains."
    )
    (step,) = [step for step in answer.next_steps if "--set" in step.code]
    fields = "nodeTaintsPolicy: Honor, without minDomains"
    assert step.words.endswith(f"({fields}), set 10m before the failure")
    assert step.code == f"{edited(nodeTaintsPolicy='Honor')} --at 10m"
    helped = what_if(snapshot(*spread), with_edit(change, step))
    assert not helped.difference.pending
    assert not helped.effect.waited


def test_many_workloads_with_equal_constraints_share_a_note(make, snapshot):
    """A failed zone makes one pod of each of five workloads wait."""
    zones = dict.fromkeys("12")
    nodes = [make.node(zone, **{"topology.kubernetes.io/zone": zone}) for zone in zones]
    objects = []
    for app in "abcde":
        constraint = {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }
        owner = make.workload(
            "ReplicaSet", app, replicas=2, cpu="100m", topologySpreadConstraints=[constraint]
        )
        owner["metadata"]["uid"] = app
        objects.append(owner)
        for zone in zones:
            pod = make.pod(f"{app}-{zone}", node_name=zone, owner=app, cpu="100m")
            pod["metadata"]["labels"] = {"app": app}
            pod["spec"]["topologySpreadConstraints"] = [constraint]
            pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
            objects.append(pod)
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    first, *others = what_if(snapshot(*nodes, *objects), change).changed.notes
    their = CONSTRAINT.replace("its", "their")
    assert first == (
        "5 pods of 5 workloads (rs/default/a, rs/default/b, rs/default/c and 2 more) stay pending "
        f"although nodes have room, because of {their}."
    )
    assert not [note for note in others if "although nodes have room" in note]


def test_a_constraint_that_counts_drained_nodes_is_named(snapshot, spread):
    zone = spread[0]["metadata"]["labels"]["topology.kubernetes.io/zone"]
    change = ClusterChange(drain=(f"topology.kubernetes.io/zone={zone}",))
    answer = what_if(snapshot(*spread), change)
    assert (
        "The cordoned nodes still count for the topology spread of rs/default/web, without pods. "
        "With nodeTaintsPolicy: Honor, they do not count."
    ) in answer.changed.notes
    (step,) = [step for step in answer.next_steps if "--set" in step.code]
    assert not what_if(snapshot(*spread), with_edit(change, step)).difference.pending


def test_new_nodes_that_a_constraint_rejects_are_not_suggested(make, snapshot):
    """The pods lack CPU on some nodes, but the failed zone keeps them off a copy, too."""
    zone = "topology.kubernetes.io/zone"
    rule = {
        "maxSkew": 1,
        "topologyKey": zone,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = make.workload(replicas=6, cpu="1", topologySpreadConstraints=[rule])
    nodes = [make.node(name, cpu="2", **{zone: name}) for name in "abc"]
    nodes.append(make.node("d", cpu="9", **{zone: "c"}))
    filler = make.pod("filler", cpu="7", node_name="d")
    change = ClusterChange(failures=Failures(fail_zone=("b",)))
    cluster = snapshot(*nodes, web, filler)
    answer = what_if(cluster, change)
    assert len(answer.difference.pending) == 2
    assert "Insufficient cpu" in answer.difference.pending[0].reason
    asked = []
    next_steps(answer, cluster.manifests, lambda _: asked.append, NoProgress(), in_one_process=True)
    assert asked
    assert not [one for one in asked if one.add_nodes]
    assert not [step for step in answer.next_steps if "--add-nodes" in step.code]


def test_failed_nodes_that_hold_up_pods_need_only_one_trial(make, snapshot, spread):
    """The trial shows that the failed nodes are the cause, so ignoring them is not tried."""
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    cluster = snapshot(*spread)
    answer = what_if(cluster, change)
    assert [step.code.split()[0] for step in answer.next_steps][:2] == ["kubectl", "--set"]
    asked = []

    def ask(change):
        asked.append(change)
        return what_if(cluster, change).effect

    next_steps(answer, cluster.manifests, lambda _: ask, NoProgress(), in_one_process=True)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("places", "full", "step"),
    [
        ("aabbc", "c", ("one more node like c", "--add-nodes 1 --like c")),
        (
            "aabbcc",
            "",
            ("3 more nodes like a, b, c; fewer may be enough", "--add-nodes 3 --like a,b,c"),
        ),
    ],
    ids=["the zone with the fewest pods", "one pod in each zone"],
)  # fmt: skip
def test_new_nodes_are_in_a_zone_in_which_topology_spread_admits_pods(
    make, snapshot, places, full, step
):
    """All nodes are full, so the scheduler's message has no word about the constraint."""
    web = make.workload(
        "ReplicaSet",
        "web",
        replicas=len(places),
        cpu="1",
        topologySpreadConstraints=[SPREAD_BY_ZONE],
    )
    web["metadata"]["uid"] = "web"
    cluster = [web, *(make.node(name, cpu="2", **{ZONE: name}) for name in "abc")]
    for number, node in enumerate(places):
        pod = make.pod(f"web-{number}", cpu="1", node_name=node, owner="web")
        pod["metadata"]["labels"] = {"app": "web"}
        pod["spec"]["topologySpreadConstraints"] = [SPREAD_BY_ZONE]
        cluster.append(pod)
    cluster += [make.pod("full", cpu="1", node_name=full)] if full else []
    more = 6 if full else 9
    change = ClusterChange(scale=(f"rs/web={more}",))
    answer = what_if(snapshot(*cluster), change)
    assert "Insufficient cpu" in answer.difference.pending[0].reason
    words, code = step
    assert (f"ask again with {words}", code) in steps_of(answer)
    _, count, _, like = code.split()
    helped = what_if(snapshot(*cluster), replace(change, add_nodes=int(count), like=like))
    assert len(answer.difference.pending) == (1 if full else 3)
    assert not helped.difference.pending


def test_new_nodes_are_in_several_zones_even_if_one_zone_admits_most_pods(make, snapshot):
    """With maxSkew 4, 3 new nodes in zone a would run 4 of 6 pods; one in each zone runs all."""
    rule = SPREAD_BY_ZONE | {"maxSkew": 4}
    web = make.workload("ReplicaSet", "web", replicas=3, cpu="1", topologySpreadConstraints=[rule])
    web["metadata"]["uid"] = "web"
    cluster = [web, *(make.node(name, cpu="2", **{ZONE: name}) for name in "abc")]
    for node in "abc":
        pod = make.pod(f"web-{node}", cpu="1", node_name=node, owner="web")
        pod["metadata"]["labels"] = {"app": "web"}
        pod["spec"]["topologySpreadConstraints"] = [rule]
        cluster += [pod, make.pod(f"full-{node}", cpu="1", node_name=node)]
    change = ClusterChange(scale=("rs/web=9",))
    answer = what_if(snapshot(*cluster), change)
    assert len(answer.difference.pending) == 6
    words = "ask again with 3 more nodes like a, b, c; fewer may be enough"
    assert (words, "--add-nodes 3 --like a,b,c") in steps_of(answer)
    helped = what_if(snapshot(*cluster), replace(change, add_nodes=3, like="a,b,c"))
    assert not helped.difference.pending


def test_new_nodes_are_in_all_zones_between_which_pods_are_spread(make, snapshot, write):
    """Zone c is full with 2 pods, so new nodes in zone b alone would get only a third pod.

    The nodes of zone a are larger, so it needs fewer of them.
    """
    web = make.workload(replicas=30, cpu="1", topologySpreadConstraints=[SPREAD_BY_ZONE])
    sizes = {"a": "6", "b": "2", "c": "2"}
    nodes = [make.node(name, cpu=cpu, **{ZONE: name}) for name, cpu in sizes.items()]
    answer = what_if(snapshot(*nodes), ClusterChange(apply=(str(write("web.json", web)),)))
    assert len(answer.difference.pending) == 23
    words = (
        "ask again with 2 more nodes like a, 4 more nodes like b and 4 more nodes like c; fewer "
        "may be enough"
    )
    assert (words, "--add-nodes 10 --like a,b:2,c:2") in steps_of(answer)
    change = ClusterChange(apply=(str(write("web.json", web)),), add_nodes=10, like="a,b:2,c:2")
    assert not what_if(snapshot(*nodes), change).difference.pending


def test_further_nodes_of_other_sizes_share_the_pods_of_all_zones(make, snapshot, write):
    """Zones a and b have room for 6 pods each, so zone c alone gets at most 7."""
    web = make.workload(replicas=30, cpu="1", topologySpreadConstraints=[SPREAD_BY_ZONE])
    sizes = {"a": "6", "b": "6", "c": "1"}
    nodes = [make.node(name, cpu=cpu, **{ZONE: name}) for name, cpu in sizes.items()]
    change = ClusterChange(apply=(str(write("web.json", web)),), add_nodes=1, like="c")
    answer = what_if(snapshot(*nodes), change)
    assert len(answer.difference.pending) == 22
    words = (
        "ask again with 2 more nodes like a, 2 more nodes like b and 8 more nodes like c; fewer "
        "may be enough"
    )
    assert (words, "--add-nodes 13 --like a:2,b:2,c:9") in steps_of(answer)


@pytest.mark.parametrize("is_edited", [False, True])
def test_new_nodes_reach_the_volumes_of_pods_that_are_created_again(make, snapshot, is_edited):
    """Two Deployments name a claim each, in two zones. Their new pods have other names."""
    objects = [make.node("c", cpu="4", **{ZONE: "c"})]
    for name in "ab":
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}
        web = make.workload("ReplicaSet", name, replicas=1, cpu="1", volumes=[claim])
        web["metadata"]["uid"] = name
        pod = make.pod(f"{name}-1", cpu="1", node_name=name, owner=name, volumes=[claim])
        pod["metadata"]["labels"] = {"app": name}
        node = make.node(name, cpu="4", **{ZONE: name})
        objects += [node, web, pod, *volume(f"data-{name}", ZONE, name)]
    edits = ("rs/a:spec.template.spec.hostname=web", "rs/b:spec.minReadySeconds=1")
    change = ClusterChange(drain=("a", "b"), set=edits if is_edited else ())
    cluster = snapshot(*objects)
    answer = what_if(cluster, change)
    assert len(answer.difference.pending) == 2
    assert "--add-nodes 2 --like a,b" in [step.code for step in answer.next_steps]
    assert not what_if(cluster, replace(change, add_nodes=2, like="a,b")).difference.pending


def test_new_nodes_are_in_the_zone_of_an_existing_volume(make, snapshot):
    """The claim of the new pod db-1 exists already; nodes of zone a come first by name."""
    db = make.workload("StatefulSet", "db", replicas=1, cpu="2")
    db["metadata"]["uid"] = "db"
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    db["spec"]["volumeClaimTemplates"] = [template]
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
    pod = make.pod("db-0", cpu="2", node_name="a", owner="db", volumes=[claim])
    pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    pod["metadata"]["labels"] = {"app": "db"}
    pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    volumes = [*volume("data-db-0", ZONE, "a"), *volume("data-db-1", ZONE, "b")]
    nodes = [make.node(name, cpu="2", **{ZONE: name}) for name in "ab"]
    full = make.pod("full", cpu="1", node_name="b")
    cluster = snapshot(*nodes, db, pod, full, *volumes)
    answer = what_if(cluster, ClusterChange(scale=("sts/db=2",)))
    assert ("ask again with one more node like b", "--add-nodes 1 --like b") in steps_of(answer)


@pytest.mark.parametrize(
    ("rules", "tries"),
    [
        ({}, 1),
        ({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE,
                                         "whenUnsatisfiable": "DoNotSchedule",
                                         "labelSelector": {"matchLabels": {"app": "web"}}}]}, 2),
        ({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}]}}}, 2),
    ],
    ids=["no rule", "topology spread", "affinity to pods"],
)  # fmt: skip
def test_new_nodes_of_several_zones_are_tried_for_pods_that_may_need_a_zone(
    make, snapshot, rules, tries
):
    """In a large cluster, each trial takes long. Without a result, both zones are tried."""
    web = make.workload("ReplicaSet", "web", replicas=0, cpu="2", **rules)
    nodes = [make.node(name, cpu="2", **{ZONE: name}) for name in "ab"]
    full = [make.pod(f"full-{name}", cpu="1", node_name=name) for name in "ab"]
    cluster = snapshot(*nodes, *full, web)
    answer = what_if(cluster, ClusterChange(scale=("rs/web=1",)))
    asked = []
    next_steps(answer, cluster.manifests, lambda _: asked.append, NoProgress(), in_one_process=True)
    assert len(asked) == tries


def test_rules_of_pods_that_no_new_node_helps_cause_no_trial_in_several_zones(make, snapshot):
    """The StatefulSet may need a zone, but waits for a label; the ReplicaSet has no such rule."""
    db = make.workload("StatefulSet", "db", replicas=0, nodeSelector={"disk": "ssd"})
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    db["spec"]["volumeClaimTemplates"] = [template]
    web = make.workload("ReplicaSet", "web", replicas=0, cpu="2")
    nodes = [make.node(name, cpu="2", **{ZONE: name}) for name in "ab"]
    full = [make.pod(f"full-{name}", cpu="1", node_name=name) for name in "ab"]
    cluster = snapshot(*nodes, *full, db, web)
    answer = what_if(cluster, ClusterChange(scale=("rs/web=1", "sts/db=1")))
    assert {pod.workload.name for pod in answer.difference.pending} == {"db", "web"}
    asked = []
    next_steps(answer, cluster.manifests, lambda _: asked.append, NoProgress(), in_one_process=True)
    assert [one.like for one in asked] == ["a"]
    words = "ask again with one more node like a; 1 of 2 pending pods then runs"
    assert answer.next_steps[0].words == words


def test_an_invalid_mixture_of_nodes_is_tried_once(make, snapshot, write):
    web = make.workload(replicas=30, cpu="1", topologySpreadConstraints=[SPREAD_BY_ZONE])
    sizes = {"a": "6", "b": "2", "c": "2"}
    nodes = [make.node(name, cpu=cpu, **{ZONE: name}) for name, cpu in sizes.items()]
    change = ClusterChange(apply=(str(write("web.json", web)),))
    cluster = snapshot(*nodes)
    answer = what_if(cluster, change)
    asked = []

    def ask(change):
        asked.append(change.like)
        return None if "," in change.like else what_if(cluster, change).effect

    next_steps(answer, cluster.manifests, lambda _: ask, NoProgress(), in_one_process=True)
    assert asked.count("a,b:2,c:2") == 1


@pytest.mark.parametrize(
    ("old", "added", "words", "options"),
    [
        pytest.param(
            1,
            {},
            "2 more nodes like a; default/old-0, pending anyway, takes room there",
            "--add-nodes 2 --like a",
            id="one pod",
        ),
        pytest.param(
            2,
            {},
            "3 more nodes like a; fewer may be enough; 2 pods of rs/default/old, pending anyway, "
            "take room there",
            "--add-nodes 3 --like a",
            id="pods of a workload",
        ),
        pytest.param(
            2,
            {"add_nodes": 1, "like": "a"},
            "2 more nodes like a; 2 pods of rs/default/old, pending anyway, take room there",
            "--add-nodes 3 --like a",
            id="new nodes of the question",
        ),
    ],
)
def test_new_nodes_have_room_for_pods_that_are_placed_first(
    make, snapshot, old, added, words, options
):
    """`old` waits without the change, too, has a higher priority, and takes the first new node.

    If a trial shows that one node less is not enough, the step does not say that it may be.
    """
    web = make.workload("ReplicaSet", "web", replicas=0, cpu="2")
    owner = make.workload("ReplicaSet", "old", replicas=old, cpu="2")
    owner["metadata"]["uid"] = "old"
    pods = [make.pod(f"old-{i}", cpu="2", priority=1000, owner="old") for i in range(old)]
    full = make.pod("full", cpu="2", node_name="a", priority=2000)
    cluster = snapshot(make.node("a", cpu="2"), full, owner, *pods, web)
    answer = what_if(cluster, ClusterChange(scale=("rs/web=1",), **added))
    steps = [one for one in steps_of(answer) if "--add-nodes" in one[1]]
    assert steps == [(f"ask again with {words}", options)]
    followed = ClusterChange(scale=("rs/web=1",), add_nodes=int(options.split()[1]), like="a")
    assert not what_if(cluster, followed).difference.pending


@pytest.mark.parametrize(("is_slow", "nodes"), [(False, [11, 12]), (True, [11])])
def test_slow_trials_end_if_few_more_nodes_would_help(make, snapshot, monkeypatch, is_slow, nodes):
    """`old` takes one of the 11 new nodes, so the last pod of `web` needs a twelfth node."""
    if is_slow:
        monkeypatch.setattr("fairlead.whatif.next_steps.step_context._EVICTED_PODS_MANY", -1)
    web = make.workload("ReplicaSet", "web", replicas=0, cpu="2")
    old = make.pod("old", cpu="2", priority=1000)
    full = make.pod("full", cpu="2", node_name="a", priority=2000)
    cluster = snapshot(make.node("a", cpu="2"), full, old, web)
    answer = what_if(cluster, ClusterChange(scale=("rs/web=11",)))
    asked = []

    def ask(change):
        asked.append(change.add_nodes)
        return what_if(cluster, change).effect

    found = next_steps(answer, cluster.manifests, lambda _: ask, NoProgress(), in_one_process=True)
    assert asked == nodes
    [step] = [step for step in found.steps if "--add-nodes" in step.code]
    words = "; 10 of 11 pending pods then run" if is_slow else ""
    rival = "; default/old, pending anyway, takes room there"
    assert step.words.startswith(f"ask again with {nodes[-1]} more nodes like a{words}")
    assert step.words.endswith(rival)


@pytest.mark.parametrize(
    ("zone", "failed", "which"),
    [("z", (), "like the present ones"), ("a", ("a",), "outside the failed zones")],
)
def test_a_note_says_that_no_zone_helps(make, snapshot, zone, failed, which):
    """The volume of the new pod is in a zone without nodes, or in a zone that fails."""
    db = make.workload("StatefulSet", "db", replicas=0, cpu="2")
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    db["spec"]["volumeClaimTemplates"] = [template]
    nodes = [make.node(name, cpu="2", **{ZONE: name}) for name in "ab"]
    full = [make.pod(f"full-{name}", cpu="1", node_name=name) for name in "ab"]
    cluster = snapshot(*nodes, *full, db, *volume("data-db-0", ZONE, zone))
    change = ClusterChange(scale=("sts/db=1",), failures=Failures(fail_zone=failed))
    answer = what_if(cluster, change)
    assert not [step for step in answer.next_steps if "--add-nodes" in step.code]
    note = f"New nodes {which} cannot use the volumes of default/db-0."
    assert note in answer.changed.notes


@pytest.mark.parametrize(
    ("key", "suggested"),
    [
        pytest.param(HOSTNAME, True, id="each node takes one pod"),
        pytest.param(ZONE, False, id="each zone takes one pod"),
    ],
)
def test_pods_that_repel_each_other_suggest_nodes_only_if_nodes_help(
    make, snapshot, key, suggested
):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    web = make.workload("ReplicaSet", "web", replicas=0, affinity=rule)
    nodes = [make.node(name, **{ZONE: name, HOSTNAME: name}) for name in "ab"]
    answer = what_if(snapshot(*nodes, web), ClusterChange(scale=("rs/web=4",)))
    found = [step.code for step in answer.next_steps if "--add-nodes" in step.code]
    assert found == (["--add-nodes 2 --like a"] if suggested else [])
    is_refused = any("stay pending, too" in note for note in answer.changed.notes)
    assert is_refused is not suggested


def test_pods_that_need_the_same_host_port_suggest_a_node_for_each(make, snapshot):
    ports = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    web = make.workload("ReplicaSet", "web", replicas=0, containers=ports)
    change = ClusterChange(scale=("rs/web=4",))
    steps = steps_of(what_if(snapshot(make.node("a"), make.node("b"), web), change))
    words = "ask again with 2 more nodes like a; fewer may be enough"
    assert (words, "--add-nodes 2 --like a") in steps


@pytest.mark.parametrize(
    ("key", "port", "zones"),
    [
        pytest.param(HOSTNAME, {}, 1, id="a new node repels no pod"),
        pytest.param(ZONE, {}, 2, id="a new node may be in the zone of another pod"),
        pytest.param("", {"hostPort": 80}, 2, id="pods of DaemonSets may use the port"),
    ],
)
def test_new_nodes_of_several_zones_are_tried_if_other_pods_may_keep_pods_off(
    make, snapshot, key, port, zones
):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term] if key else []}
    containers = [{"name": "c", "ports": [{"containerPort": 80, **port}]}]
    spec = {"affinity": {"podAntiAffinity": terms}, "containers": containers}
    web = make.workload("ReplicaSet", "web", replicas=0, **spec)
    nodes = [make.node(name, **{ZONE: name, HOSTNAME: name}) for name in "ab"]
    cluster = snapshot(*nodes, web)
    answer = what_if(cluster, ClusterChange(scale=("rs/web=4",)))
    assert len(answer.difference.pending) == 2
    asked = []
    next_steps(answer, cluster.manifests, lambda _: asked.append, NoProgress(), in_one_process=True)
    assert len({change.like for change in asked if change.add_nodes}) == zones


def test_pods_on_nodes_that_can_attach_no_further_volume_suggest_a_node(make, snapshot):
    """Each node can attach two volumes, and four of the six pods have a node."""
    db = make.workload("StatefulSet", "db", replicas=0)
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    db["spec"] |= {"volumeClaimTemplates": [template], "podManagementPolicy": "Parallel"}
    objects = [db]
    for name in "ab":
        driver = {"name": "d", "nodeID": name, "topologyKeys": [], "allocatable": {"count": 2}}
        csi_node = {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": [driver]}}
        objects += [make.node(name), {"apiVersion": "storage.k8s.io/v1", **csi_node}]
    for number in range(6):
        pv, claim = volume(f"data-db-{number}", "kubernetes.io/os", "linux")
        pv["spec"] |= {"csi": {"driver": "d", "volumeHandle": f"v{number}"}}
        pv["spec"].pop("nodeAffinity")
        objects += [pv, claim]
    answer = what_if(snapshot(*objects), ClusterChange(scale=("sts/db=6",)))
    assert len(answer.difference.pending) == 2
    assert LIKE_A in steps_of(answer)


IMAGE = "deploy/web:spec.template.spec.containers[c].image=new"
UNAVAILABLE = "deploy/default/web:spec.strategy.rollingUpdate.maxUnavailable=1"


@pytest.mark.parametrize(
    ("replicas", "price"),
    [(2, ""), (1, "; it then has no ready pod for a time")],
    ids=["other pods stay ready", "no other pod"],
)
def test_a_rollout_without_a_place_for_new_pods_may_delete_an_old_pod_first(
    make, snapshot, replicas, price
):
    """The nodes have one free host port for each pod."""
    containers = [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    deploy = make.workload(replicas=replicas, containers=containers)
    cluster = snapshot(*map(make.node, "ab"[:replicas]), deploy)
    answer = what_if(cluster, ClusterChange(set=(IMAGE,)))
    words = "ask again with one unavailable pod allowed during the rollout of deploy/default/web"
    assert steps_of(answer)[0] == (words + price, f"--set {UNAVAILABLE}")
    again = what_if(cluster, ClusterChange(set=(IMAGE, UNAVAILABLE)))
    assert not again.difference.pending


@pytest.mark.parametrize(
    ("replicas", "strategy", "is_tried"),
    [
        pytest.param(1, {}, True, id="25% of one replica is no pod"),
        pytest.param(1, {"rollingUpdate": {"maxUnavailable": 1}}, False, id="one pod, as a number"),
        pytest.param(4, {}, False, id="25% of four replicas is one pod"),
    ],
)
def test_one_unavailable_pod_is_tried_only_if_the_strategy_allows_none(
    make, snapshot, replicas, strategy, is_tried
):
    """The new pods are larger than the node, so the rollout stops with each strategy."""
    deploy = make.workload(replicas=replicas)
    deploy["spec"]["strategy"] = strategy
    cluster = snapshot(make.node("a", cpu="4"), deploy)
    cpu = "deploy/web:spec.template.spec.containers[c].resources.requests.cpu=9"
    answer = what_if(cluster, ClusterChange(set=(cpu,)))
    assert answer.difference.pending
    asked = []
    next_steps(answer, cluster.manifests, lambda _: asked.append, NoProgress(), in_one_process=True)
    assert any(UNAVAILABLE in change.set for change in asked) is is_tried


def test_a_rollout_for_which_no_node_has_room_keeps_its_strategy(make, snapshot):
    """The new pods are larger than the node, and the question sets a strategy itself."""
    deploy = make.workload(replicas=1)
    cluster = snapshot(make.node("a", cpu="2"), deploy)
    cpu = "deploy/web:spec.template.spec.containers[c].resources.requests.cpu=3"
    answer = what_if(cluster, ClusterChange(set=(cpu,)))
    assert answer.difference.pending
    assert not [step for step in answer.next_steps if "maxUnavailable" in step.code]
    fits = "deploy/web:spec.template.spec.containers[c].resources.requests.cpu=2"
    surge = "deploy/web:spec.strategy.rollingUpdate.maxSurge=1"
    answer = what_if(cluster, ClusterChange(set=(fits, surge)))
    assert answer.difference.pending
    assert not [step for step in answer.next_steps if "maxUnavailable" in step.code]


@pytest.mark.parametrize(
    ("ready", "finalizers", "is_suggested"),
    [
        pytest.param("True", [], True, id="in service"),
        pytest.param("Unknown", [], False, id="its pods would not stop in a drain"),
        pytest.param("True", ["karpenter.sh/termination"], False, id="its deletion is a drain"),
    ],
)
def test_the_deletion_of_a_node_suggests_a_drain_first(
    make, snapshot, web, ready, finalizers, is_suggested
):
    node = make.node("a")
    node["metadata"]["finalizers"] = finalizers
    node["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    if ready != "True":
        keys = [
            ("node.kubernetes.io/unreachable", effect) for effect in ("NoSchedule", "NoExecute")
        ]
        node["spec"] = {"taints": [{"key": key, "effect": effect} for key, effect in keys]}
    cluster = snapshot(node, make.node("b"), budget(minAvailable=2), *web)
    answer = what_if(cluster, ClusterChange(delete=("node/a",)))
    words = "plan a drain of the node before the deletion; it evicts pods within their budgets"
    assert ((words, plan_of(answer)) in steps_of(answer)) is is_suggested


def csi_nodes(*names):
    """Return the CSINodes of nodes whose volumes belong to the node's zone."""
    driver = {"name": "csi.example.com", "topologyKeys": [ZONE]}
    for name in names:
        spec = {"drivers": [{**driver, "nodeID": name}]}
        meta = {"name": name}
        yield {
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": meta, "spec": spec,
        }  # fmt: skip


def test_a_new_pod_with_another_name_in_the_trial_is_not_one_that_runs(make, snapshot):
    """The new pod needs a node of its own, where it waits for the volume of the other pod."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    web = make.workload("Deployment", "web", replicas=2)
    web["spec"]["template"]["spec"] |= {"affinity": apart, "volumes": volumes}
    objects = [make.node(name, **{ZONE: zone, HOSTNAME: name}) for name, zone in ("ax", "by")]
    daemon = make.workload("DaemonSet", "agent", cpu="100m")  # its new pod shifts the names
    del daemon["spec"]["replicas"]
    _, claim = volume("data", ZONE, "x")
    del claim["spec"]["volumeName"], claim["metadata"]["annotations"]
    claim["status"] = {"phase": "Pending"}
    on_demand = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "x"},
        "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer",
    }  # fmt: skip
    cluster = snapshot(*objects, daemon, claim, on_demand, *csi_nodes("a", "b"))
    answer = what_if(cluster, ClusterChange(apply=(web,)))
    [runs] = answer.difference.placed
    why = "because a volume that is used on one node cannot be used on another"
    note = f"With one more node like {runs.node}, the pod stays pending, too, {why}."
    assert note in answer.changed.notes


@pytest.mark.parametrize(
    ("deleted", "which"), [("a", "node"), ("pool in (old)", "nodes"), ("pool=old", "nodes")]
)
def test_the_drain_before_a_deletion_is_about_the_deleted_nodes(
    make, snapshot, web, deleted, which
):
    cluster = snapshot(make.node("a", pool="old"), make.node("b"), budget(minAvailable=2), *web)
    answer = what_if(cluster, ClusterChange(delete=(f"node/{deleted}",)))
    [words] = [step.words for step in answer.next_steps if "drain-plan" in step.command]
    assert words.startswith(f"plan a drain of the {which} before the deletion")


@pytest.mark.parametrize("has_selector", [True, False], ids=["stays pending", "moves"])
def test_no_drain_is_suggested_before_a_deletion_that_leaves_all_pods_pending(
    make, snapshot, web, has_selector
):
    """If the pod needs the label of node a, a drain would leave the pod pending, too."""
    for one in web if has_selector else ():
        spec = one["spec"] if one["kind"] == "Pod" else one["spec"]["template"]["spec"]
        spec["nodeSelector"] = {"pool": "old"}
    nodes = make.node("a", pool="old"), make.node("b")
    answer = what_if(
        snapshot(*nodes, budget(minAvailable=2), *web), ClusterChange(delete=("node/a",))
    )
    assert len(answer.difference.pending) == int(has_selector)
    suggested = [step.words for step in answer.next_steps if "drain-plan" in step.command]
    assert bool(suggested) is not has_selector


def zonal_members(make, label=ZONE):
    """Return a StatefulSet with a pod and a volume on each of the nodes a and b, which are full.

    Only nodes with the same value of `label` reach the volume of web-1.
    """
    owner = make.workload("StatefulSet", "web", replicas=2, cpu="2")
    owner["metadata"]["uid"] = "db"
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    owner["spec"]["volumeClaimTemplates"] = [template]
    objects = [make.node(name, cpu="2", **{ZONE: name}) for name in "ab"]
    for number, (zone, key) in enumerate((("a", ZONE), ("b", label))):
        claim = f"data-web-{number}"
        data = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
        pod = make.pod(f"web-{number}", cpu="2", node_name=zone, owner="web", volumes=[data])
        pod["metadata"]["labels"] = {"app": "web", "controller-revision-hash": "old"}
        pod["metadata"]["ownerReferences"][0].update(kind="StatefulSet", uid="db")
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        objects += [pod, *volume(claim, key, zone)]
    return [*objects, owner, budget(maxUnavailable=1)]


def test_nodes_of_each_zone_are_added_for_a_stateful_set_that_is_drained(make, snapshot):
    """The budget lets the drain evict the second pod only after the first one runs again."""
    cluster, change = snapshot(*zonal_members(make)), ClusterChange(drain=("a", "b"))
    step = (
        "ask again with 2 more nodes like a, b; fewer may be enough",
        "--add-nodes 2 --like a,b",
    )
    assert step in steps_of(what_if(cluster, change))
    followed = what_if(cluster, replace(change, add_nodes=2, like="a,b"))
    assert not followed.difference.pending
    assert not followed.changed.undrained


def test_nodes_of_the_zone_of_a_volume_are_added_to_the_nodes_of_the_question(make, snapshot):
    """Another node like b would not reach the volume of web-0."""
    change = ClusterChange(drain=("a", "b"), add_nodes=1, like="b")
    answer = what_if(snapshot(*zonal_members(make)), change)
    assert "--add-nodes 3 --like a,b:2" in [code for _, code in steps_of(answer)]
    followed = replace(change, add_nodes=3, like="a,b:2")
    assert not what_if(snapshot(*zonal_members(make)), followed).changed.undrained


def test_nodes_of_each_zone_are_added_for_the_rollout_of_a_stateful_set(make, snapshot):
    """With a node like b alone, web-1 would run, but web-0 would wait instead."""
    larger = [make.node(f"large-{name}", cpu="4", **{ZONE: name}) for name in "ab"]
    fillers = [make.pod(f"filler-{name}", cpu="3", node_name=f"large-{name}") for name in "ab"]
    cluster = snapshot(*zonal_members(make), *larger, *fillers)
    change = ClusterChange(set_resources=("sts/web=cpu=3",))
    answer = what_if(cluster, change)
    words = "ask again with 2 more nodes like large-a, large-b; fewer may be enough"
    options = "--add-nodes 2 --like large-a,large-b"
    assert (words, options) in steps_of(answer)
    followed = what_if(cluster, replace(change, add_nodes=2, like="large-a,large-b"))
    assert not followed.difference.pending
    assert not any(one.outdated for one in followed.effect.workloads)


def test_only_nodes_that_an_edited_template_admits_are_copied(make, snapshot):
    """The pods of web ran on small nodes until now; the new nodeSelector needs a large node."""
    objects = zonal_members(make)
    for node in objects[:2]:
        node["metadata"]["labels"]["size"] = "small"
    larger = [make.node(f"large-{name}", cpu="4", **{ZONE: name, "size": "large"}) for name in "ab"]
    fillers = [make.pod(f"filler-{name}", cpu="3", node_name=f"large-{name}") for name in "ab"]
    edit = "sts/web:spec.template.spec.nodeSelector={size: large}"
    answer = what_if(snapshot(*objects, *larger, *fillers), ClusterChange(set=(edit,)))
    assert "--add-nodes 2 --like large-a,large-b" in [code for _, code in steps_of(answer)]


def test_a_note_names_the_pod_that_waits_instead_with_a_new_node(make, snapshot):
    """No copy of node b reaches the volume of web-1, which is local to the node."""
    cluster, change = snapshot(*zonal_members(make, HOSTNAME)), ClusterChange(drain=("a", "b"))
    answer = what_if(cluster, change)
    [first] = answer.difference.pending
    assert "With one more node like a, the pod runs, but default/web-1 waits instead." in (
        answer.changed.notes
    )
    followed = what_if(cluster, replace(change, add_nodes=1, like="a"))
    assert [first.key, *(pod.key for pod in followed.difference.pending)] == [
        "default/web-0", "default/web-1",
    ]  # fmt: skip


@pytest.mark.parametrize(("cpu", "count"), [("3", 5), ("1500m", 2)])
def test_new_nodes_have_room_for_the_rest_of_a_rollout(make, snapshot, cpu, count):
    """Only the surge is pending, but the other pods need the same room.

    A pod of 3 CPU needs a node of its own; two pods of 1.5 CPU fit a node whose old pods are gone.
    """
    web = make.workload(replicas=6)
    web["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    cluster = snapshot(*(make.node(name, cpu="3") for name in "ab"), web)
    change = ClusterChange(set_resources=(f"deploy/web=cpu={cpu}",))
    answer = what_if(cluster, change)
    assert len(answer.difference.pending) == 1
    [options] = [code for _, code in steps_of(answer) if "--add-nodes" in code]
    assert options == f"--add-nodes {count} --like a"
    followed = what_if(cluster, replace(change, add_nodes=count, like="a"))
    assert not followed.difference.pending
    assert not any(one.outdated for one in followed.effect.workloads)


def test_more_nodes_are_tried_if_other_pods_fill_the_new_nodes_of_a_drained_zone(make, snapshot):
    """Topology spread keeps the pods off zone 2, but new nodes of zone 1 would take more of them.

    One new node has room for the four pods. The drained pods of `other` prefer it, too.
    """
    spread = {"topologySpreadConstraints": [SPREAD_BY_ZONE]}
    zone = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["1"]}]}
    preferred = [{"weight": 100, "preference": zone}]
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    rules = {"web": spread, "other": {"affinity": {"nodeAffinity": affinity}}}
    objects = [make.node(name, cpu="4", **{ZONE: "1"}) for name in ("a1", "a2")]
    objects.append(make.node("b", cpu="9", **{ZONE: "2"}))
    for name, nodes in (("web", ("a1", "a2", "b", "b")), ("other", ("a1", "a2"))):
        owner = make.workload("ReplicaSet", name, replicas=2 * len(nodes), **rules[name])
        owner["metadata"]["uid"] = name
        objects.append(owner)
        for number, node in enumerate(2 * nodes):
            objects.append(make.pod(f"{name}-{number}", node_name=node, owner=name, **rules[name]))
            objects[-1]["metadata"]["labels"] = {"app": name}
    cluster, change = snapshot(*objects), ClusterChange(drain=("a1", "a2"))
    answer = what_if(cluster, change)
    assert len(answer.difference.pending) == 4
    [options] = [code for _, code in steps_of(answer) if "--add-nodes" in code]
    assert options == "--add-nodes 2 --like a1"
    assert what_if(cluster, replace(change, add_nodes=1, like="a1")).difference.pending
    assert not what_if(cluster, replace(change, add_nodes=2, like="a1")).difference.pending


def test_a_question_with_nodes_of_another_zone_gets_copies_of_the_drained_nodes(make, snapshot):
    """A node of zone 2 does not help: topology spread keeps the pods off this zone.

    One copy of a1 has room for both pods, but the pods of `other` take it. The node of the question
    stays free, so further copies must be of zone 1 only.
    """
    spread = {"topologySpreadConstraints": [SPREAD_BY_ZONE]}
    zone = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["1"]}]}
    terms = {"nodeSelectorTerms": [zone]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    objects = [make.node("a1", cpu="2", **{ZONE: "1"}), make.node("b", cpu="9", **{ZONE: "2"})]
    high = make.priority_class("high", 10)
    rival = make.workload(
        "ReplicaSet", "rival", replicas=1, cpu="2", affinity=affinity, priorityClassName="high"
    )
    rival["spec"]["template"]["spec"]["preemptionPolicy"] = "Never"
    web = make.workload("ReplicaSet", "web", replicas=4, **spread)
    web["metadata"]["uid"] = "web"
    objects += [{**high, "preemptionPolicy": "Never"}, rival, web]
    for number, node in enumerate(("a1", "a1", "b", "b")):
        objects.append(make.pod(f"web-{number}", node_name=node, owner="web", **spread))
        objects[-1]["metadata"]["labels"] = {"app": "web"}
    cluster = snapshot(*objects)
    change = ClusterChange(drain=("a1",), add_nodes=1, like="b")
    answer = what_if(cluster, change)
    assert len(answer.difference.pending) == 2
    [(words, options)] = [step for step in steps_of(answer) if "--add-nodes" in step[1]]
    assert options == "--add-nodes 3 --like a1:2,b"
    assert words.startswith("ask again with 2 more nodes like a1; ")
    followed = what_if(cluster, replace(change, add_nodes=3, like="a1:2,b"))
    assert not followed.difference.pending


def test_copies_of_a_drained_node_are_tried_if_pods_are_spread_over_nodes(make, snapshot):
    """The cordoned node counts as a node without pods, so a new node takes only one pod.

    One new node has room for both pods, so a second one is tried only after that.
    """
    rule = {**SPREAD_BY_ZONE, "topologyKey": HOSTNAME}
    web = make.workload("ReplicaSet", "web", replicas=4, topologySpreadConstraints=[rule])
    web["metadata"]["uid"] = "web"
    objects = [*(make.node(name, **{HOSTNAME: name}) for name in "abc"), web]
    for number, node in enumerate("aabc"):
        pod = make.pod(
            f"web-{number}", node_name=node, owner="web", topologySpreadConstraints=[rule]
        )
        pod["metadata"]["labels"] = {"app": "web"}
        objects.append(pod)
    cluster = snapshot(*objects)
    answer = drained(snapshot, *objects)
    assert len(answer.difference.pending) == 2
    step = ("ask again with 2 more nodes like a", "--add-nodes 2 --like a")
    assert step in steps_of(answer)
    pending = [
        len(what_if(cluster, ClusterChange(drain=("a",), add_nodes=n, like="a")).difference.pending)
        for n in (1, 2)
    ]
    assert pending == [1, 0]


def test_a_note_about_further_nodes_leaves_out_the_nodes_of_the_question(make, snapshot):
    """Nodes like b are tried beside the node like a, which takes no pod of web."""
    rule = {**SPREAD_BY_ZONE, "topologyKey": "rack"}
    spec = {"nodeSelector": {"disk": "ssd"}, "topologySpreadConstraints": [rule]}
    web = make.workload("ReplicaSet", "web", replicas=2, cpu="2", **spec)
    racks = [make.node(name, cpu="2", disk="ssd", rack=name) for name in "bc"]
    cordoned = {**make.node("d", cpu="2", disk="ssd", rack="d"), "spec": {"unschedulable": True}}
    cluster = snapshot(make.node("a"), *racks, cordoned, web)
    change = ClusterChange(scale=("rs/web=6",), add_nodes=1, like="a")
    notes = what_if(cluster, change).changed.notes
    [note] = [note for note in notes if note.startswith("With ")]
    assert note.startswith("With 4 more nodes like b, "), note


def test_more_nodes_are_tried_although_topology_spread_keeps_another_pod_off(make, snapshot):
    """Pod `rival`, pending anyway, takes the first new node; `fill` needs a second one.

    The pod of web stays pending, because zone 1 still counts as a zone without pods.
    """
    spread = {"topologySpreadConstraints": [SPREAD_BY_ZONE]}
    objects = [make.node(name, cpu="4", **{ZONE: zone}) for name, zone in (("a", "1"), ("b", "2"))]
    rival = make.workload("ReplicaSet", "rival", replicas=1, cpu="3500m", priorityClassName="high")
    rival["spec"]["template"]["spec"]["preemptionPolicy"] = "Never"
    high = {**make.priority_class("high", 10), "preemptionPolicy": "Never"}
    objects += [rival, high]
    for name, cpu, rules in (("web", "100m", spread), ("fill", "3500m", {})):
        owner = make.workload("ReplicaSet", name, replicas=2, cpu=cpu, **rules)
        owner["metadata"]["uid"] = name
        objects.append(owner)
        for node in "ab":
            objects.append(make.pod(f"{name}-{node}", node_name=node, owner=name, cpu=cpu, **rules))
            objects[-1]["metadata"]["labels"] = {"app": name}
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    answer = what_if(snapshot(*objects), change)
    assert {pod.workload.name for pod in answer.difference.pending} == {"web", "fill"}
    [(words, options)] = [step for step in steps_of(answer) if "--add-nodes" in step[1]]
    assert options == "--add-nodes 2 --like b"
    assert words.startswith("ask again with 2 more nodes like b; 1 of 2 pending pods then runs; ")


def test_a_spread_constraint_whose_rollout_stops_is_not_edited(make, snapshot):
    """With nodeTaintsPolicy Honor, one more pod is ready, but the rollout needs more room."""
    spread = {"topologySpreadConstraints": [SPREAD_BY_ZONE]}
    web = make.workload(replicas=3, cpu="2", **spread)
    web["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    sizes = {"a": "2", "b": "5", "c": "4"}
    nodes = [make.node(name, cpu=cpu, **{ZONE: name}) for name, cpu in sizes.items()]
    full = make.pod("full", node_name="c", cpu="2")
    cluster = snapshot(*nodes, full, web)
    change = ClusterChange(drain=("c",))
    answer = what_if(cluster, change)
    assert len(answer.difference.pending) == 1
    for options in [code for _, code in steps_of(answer) if "SpreadConstraints" in code]:
        _, edit = shlex.split(options)
        followed = what_if(cluster, replace(change, set=(edit,)))
        assert not any(one.outdated for one in followed.effect.workloads)


@pytest.fixture
def victims(snapshot, make, spread):
    """Pods of high priority; the other zones have room for them only after a preemption."""
    for one in spread[4:]:
        one["spec"]["priority"] = 100
    spread[3]["spec"]["template"]["spec"]["priorityClassName"] = "high"
    fillers = [make.pod(f"low-{node}", node_name=node, cpu="3", priority=0) for node in "bc"]
    return snapshot(*spread, *fillers, make.priority_class("high", 100))


def test_a_constraint_that_keeps_pods_off_nodes_with_victims_is_named(victims):
    """The reason is only in the part of the scheduler's message that is about preemption."""
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    answer = what_if(victims, change)
    assert answer.changed.notes[0] == (
        "2 pods of rs/default/web stay pending although preemption would make room, because of "
        f"{CONSTRAINT}."
    )


@pytest.mark.parametrize("lasts", ["", "30m"])
def test_no_step_makes_room_by_a_preemption(victims, lasts):
    """Other pods would lose their nodes; the pods wait until the zone is back, or to the end."""
    change = ClusterChange(failures=Failures(fail_zone=("1",)), lasts=lasts)
    answer = what_if(victims, change)
    assert "preemption would make room" in answer.changed.notes[0]
    codes = [step.code for step in answer.next_steps]
    assert not [code for code in codes if "--set" in code or "delete" in code]


def test_new_nodes_are_tried_for_pods_that_need_a_preemption(victims):
    """The spread is not the only rule against them: the nodes lack room, too."""
    notes = what_if(victims, ClusterChange(failures=Failures(fail_zone=("1",)))).changed.notes
    assert (
        "With one more node like b, 2 pods stay pending, too, because of topology spread "
        "constraints."
    ) in notes


def test_a_constraint_is_made_a_preference_if_only_that_helps(snapshot, spread):
    """Failed nodes do not count, but zone 3 has no room, so zone 2 may run two of four pods."""
    spread[2]["metadata"]["labels"]["topology.kubernetes.io/zone"] = "3"
    spread[2]["status"]["allocatable"]["cpu"] = "1"
    constraint = spread[3]["spec"]["template"]["spec"]["topologySpreadConstraints"][0]
    constraint["nodeTaintsPolicy"] = "Honor"
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    answer = what_if(snapshot(*spread), change)
    assert answer.changed.notes[0] == (
        f"1 pod of rs/default/web stays pending although nodes have room, because of {CONSTRAINT}."
    )
    assert not any("still count" in note for note in answer.changed.notes)
    (step,) = [step for step in answer.next_steps if "--set" in step.code]
    edit = edited(whenUnsatisfiable="ScheduleAnyway", nodeTaintsPolicy="Honor")
    assert step.code == f"{edit} --at 10m"
    assert not what_if(snapshot(*spread), with_edit(change, step)).difference.pending


def test_a_constraint_that_needs_more_domains_than_remain_loses_min_domains(snapshot, spread):
    """Failed nodes do not count, but with minDomains 2 the remaining zone may run one pod."""
    constraint = spread[3]["spec"]["template"]["spec"]["topologySpreadConstraints"][0]
    constraint |= {"nodeTaintsPolicy": "Honor", "minDomains": 2}
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    answer = what_if(snapshot(*spread), change)
    assert (
        "(topology.kubernetes.io/zone, maxSkew 1, minDomains 2, DoNotSchedule)"
        in answer.changed.notes[0]
    )
    (step,) = [step for step in answer.next_steps if "--set" in step.code]
    assert step.words == (
        "ask again without minDomains in the topology spread of rs/default/web, set 10m before the "
        "failure"
    )
    assert step.code == f"{edited(nodeTaintsPolicy='Honor')} --at 10m"
    assert not what_if(snapshot(*spread), with_edit(change, step)).difference.pending


@pytest.mark.parametrize(
    ("replicas", "edits"), [(6, "api"), (2, "web")], ids=["more pods", "fewer pods"]
)
def test_the_constraint_with_the_most_pending_pods_is_edited(
    make, snapshot, spread, replicas, edits
):
    """Two pods of web stay pending, and half of the pods of api; notes name both constraints."""
    template = spread[3]["spec"]["template"]["spec"]["topologySpreadConstraints"][0]
    constraint = template | {"labelSelector": {"matchLabels": {"app": "api"}}}
    api = make.workload(
        "ReplicaSet", "api", replicas=replicas, cpu="100m", topologySpreadConstraints=[constraint]
    )
    api["metadata"]["uid"] = "api"
    pods = []
    for number, node in enumerate("abacab"[:replicas]):
        pod = make.pod(f"api-{number}", node_name=node, owner="api", cpu="100m")
        pod["metadata"]["labels"] = {"app": "api"}
        pod["spec"]["topologySpreadConstraints"] = [constraint]
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pods.append(pod)
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    answer = what_if(snapshot(*spread, api, *pods), change)
    named = [note for note in answer.changed.notes if "although nodes have room" in note]
    assert [note.split()[3] for note in named] == ["rs/default/api", "rs/default/web"]
    (step,) = [step for step in answer.next_steps if "--set" in step.code]
    assert f"rs/default/{edits}:spec" in step.code


def test_a_constraint_is_not_changed_if_no_node_has_room(snapshot, spread):
    for node in spread[1:3]:
        node["status"]["allocatable"]["cpu"] = "1"
    answer = what_if(snapshot(*spread), ClusterChange(failures=Failures(fail_zone=("1",))))
    assert len(answer.difference.pending) == 2
    assert not any("--set" in step.code for step in answer.next_steps)
    assert not any("have room" in note for note in answer.changed.notes)


@pytest.mark.parametrize(
    "spec",
    [
        [],
        {"template": {"spec": "x"}},
        {"template": {"spec": {"topologySpreadConstraints": "x", "affinity": "x"}}},
        {"template": {"spec": {"topologySpreadConstraints": ["x", {}, {"topologyKey": 3}]}}},
        {"template": {"spec": {"affinity": {"podAntiAffinity": [3]}}}},
    ],
)
def test_a_custom_resource_with_another_form_names_no_constraint(snapshot, spread, spec):
    """Its pod template need not be at spec.template, so the constraints are unknown."""
    nodes, pods = spread[:3], spread[4:]
    custom = {
        "apiVersion": "example.com/v1",
        "kind": "Web",
        "metadata": {"name": "web", "namespace": "default", "uid": "web"},
        "spec": spec,
    }
    for pod in pods:
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "example.com/v1", "kind": "Web"}
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    answer = what_if(snapshot(*nodes, custom, *pods), change)
    assert len(answer.difference.pending) == 2
    assert not any("have room" in note for note in answer.changed.notes)


def test_a_constraint_that_the_question_edits_is_not_edited_again(snapshot, spread):
    edit = "rs/default/web:spec.minReadySeconds=1"
    change = ClusterChange(failures=Failures(fail_zone=("1",)), set=(edit,))
    answer = what_if(snapshot(*spread), change)
    assert CONSTRAINT in answer.changed.notes[0]
    assert not any("--set" in step.code for step in answer.next_steps)


def test_spread_constraints_of_pods_with_a_negative_priority_are_edited_too(snapshot, spread):
    low = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": -10}
    low["metadata"] = {"name": "low"}
    for one in spread:
        if one["kind"] == "ReplicaSet":
            one["spec"]["template"]["spec"]["priorityClassName"] = "low"
        elif one["kind"] == "Pod":
            one["spec"] |= {"priorityClassName": "low", "priority": -10}
    change = ClusterChange(drain=("topology.kubernetes.io/zone=1",))
    answer = what_if(snapshot(*spread, low), change)
    assert answer.verdict.findings[0].kind is OutcomeKind.NEGATIVE_PRIORITY_PENDING
    (step,) = [step for step in answer.next_steps if "--set" in step.code]
    again = what_if(snapshot(*spread, low), with_edit(change, step))
    assert len(again.difference.pending) < len(answer.difference.pending)


def test_a_note_says_that_new_nodes_lack_the_pods_of_a_required_affinity(snapshot, make):
    """Each pod of web needs a pod of cache on its node, and node a is full."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "cache"}}}
    rule = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cache = make.pod("cache", node_name="a", cpu="1")
    cache["metadata"]["labels"] = {"app": "cache"}
    web = make.workload("ReplicaSet", "web", replicas=1, cpu="2", affinity=rule)
    nodes = [make.node(name, **{HOSTNAME: name}) for name in "ab"]
    answer = what_if(snapshot(*nodes, cache, web), ClusterChange(scale=("rs/web=3",)))
    assert len(answer.difference.pending) == 2
    assert (
        "With one more node like a, 2 pods stay pending, too, because of required affinity to "
        "other pods."
    ) in answer.changed.notes
    assert not answer.next_steps


def test_a_note_states_the_further_reason_why_a_new_node_does_not_help(snapshot, make):
    """The host port is taken on node a, and the new node has another name."""
    web = make.workload("ReplicaSet", "web", replicas=1, nodeSelector={HOSTNAME: "a"})
    web["spec"]["template"]["spec"]["containers"][0]["ports"] = [
        {"containerPort": 80, "hostPort": 80}
    ]
    answer = what_if(
        snapshot(make.node("a", **{HOSTNAME: "a"}), web), ClusterChange(scale=("rs/web=2",))
    )
    assert len(answer.difference.pending) == 1
    assert (
        "With one more node like a, the pod stays pending, too, for a further reason: node(s) "
        "didn't match Pod's node affinity/selector."
    ) in answer.changed.notes


def test_a_step_with_new_nodes_names_the_quota_that_refuses_the_other_pods(snapshot, make):
    """The StatefulSet creates db-2, which the quota refuses, only when db-1 has a node."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "2"}}}
    quota["metadata"] = {"name": "q", "namespace": "default"}
    db = make.workload("StatefulSet", "db", replicas=1, cpu="3")
    cluster = snapshot(make.node("a"), db, quota)
    answer = what_if(cluster, ClusterChange(scale=("sts/db=3",)))
    words = "ask again with one more node like a; 1 of 2 missing pods then runs"
    assert answer.next_steps[0].words == f"{words}; quota/default/q refuses pods"


def test_required_anti_affinity_that_keeps_pods_pending_is_named(snapshot, make):
    key, labels = "topology.kubernetes.io/zone", {"matchLabels": {"app": "web"}}
    term = {"topologyKey": key, "labelSelector": labels}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    replicaset = make.workload("ReplicaSet", "web", replicas=2, affinity=rule)
    replicaset["metadata"]["uid"] = "web"
    objects = [replicaset]
    for zone in ("a", "b"):
        pod = make.pod(f"web-{zone}", node_name=zone, owner="web", affinity=rule)
        pod["metadata"]["labels"] = {"app": "web"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        objects += [make.node(zone, **{key: zone}), pod]
    change = ClusterChange(failures=Failures(fail_zone=("a",)))
    answer = what_if(snapshot(*objects), change)
    assert answer.changed.notes[0] == (
        "1 pod of rs/default/web stays pending although nodes have room, because of its required "
        f"anti-affinity ({key})."
    )
    assert not any("--set" in step.code for step in answer.next_steps)


def test_a_budget_breached_by_an_outage_suggests_replicas_in_proportion(snapshot, spread):
    """Half of the replicas fail, also of the new ones, so two more leave only one more healthy."""
    failures = Failures(fail_zone=("1",))
    cluster = snapshot(*spread, budget(minAvailable=3))
    answer = what_if(cluster, ClusterChange(failures=failures, lasts="20m"))
    assert answer.verdict.first.sentence == (
        "Budget default/web is breached: 2 pods are displaced when it allows no more disruptions."
    )
    (found,) = answer.effect.budgets
    assert (found.breaches, found.needed - found.lowest_healthy) == (2, 1)
    assert found.words == "breached, 1 pod too few"
    words = "ask again with 2 more replicas of rs/default/web, created 10m before the failure"
    assert (words, "--scale rs/default/web=6 --at 10m") in steps_of(answer)
    later = replace(failures, at="10m")
    followed = ClusterChange(failures=later, lasts="20m", scale=("rs/default/web=6",))
    assert not what_if(cluster, followed).changed.pdb_breaches


@pytest.mark.parametrize(
    ("nodes", "steps"),
    [
        ("abc", []),
        ("abcd", ["--scale rs/default/web=4 --at 10m"]),
    ],
    ids=["a new replica fails, too", "both new replicas run"],
)
def test_replicas_are_suggested_only_if_the_budget_holds_with_them(
    snapshot, make, web, nodes, steps
):
    """Both pods leave failed nodes, whatever the budget says."""
    failures = Failures(fail_node=("a", "b"))
    cluster = snapshot(*map(make.node, nodes), *web, budget(minAvailable=2))
    answer = what_if(cluster, ClusterChange(failures=failures))
    assert answer.changed.pdb_breaches
    assert [where for _, where in steps_of(answer) if "--scale" in where] == steps
    later = replace(failures, at="10m")
    followed = what_if(cluster, ClusterChange(failures=later, scale=("rs/default/web=4",)))
    assert bool(followed.changed.pdb_breaches) is not bool(steps)


@pytest.mark.parametrize("rule", [{"minAvailable": "75%"}, {"maxUnavailable": 1}])
def test_a_note_says_that_no_number_of_replicas_helps(snapshot, spread, rule):
    """A third of the nodes fails, and two pods."""
    change = ClusterChange(failures=Failures(fail_zone=("1",)), lasts="20m")
    answer = what_if(snapshot(*spread, budget(**rule)), change)
    [(kind, amount)] = rule.items()
    note = (
        "More replicas, spread evenly over the nodes, would not prevent the breach of default/web "
        f"({kind} {amount}): more of them would fail than the budget allows."
    )
    assert note in answer.changed.notes
    assert not any("--scale" in where for _, where in steps_of(answer))


@pytest.mark.parametrize("rule", [{"minAvailable": "60%"}, {"maxUnavailable": "40%"}])
def test_more_replicas_help_a_percentage_above_the_share_of_failed_nodes(snapshot, make, web, rule):
    """Both pods fail, but only one node of ten; two of six pods may fail with both rules."""
    web[2]["spec"]["nodeName"] = "a"
    cluster = snapshot(*map(make.node, "abcdefghij"), *web, budget(**rule))
    failures = Failures(fail_node=("a",))
    answer = what_if(cluster, ClusterChange(failures=failures))
    assert answer.changed.pdb_breaches
    [(words, options)] = [one for one in steps_of(answer) if "--scale" in one[1]]
    assert (words, options) == (
        "ask again with 4 more replicas of rs/default/web, created 10m before the failure",
        "--scale rs/default/web=6 --at 10m",
    )
    followed = ClusterChange(failures=replace(failures, at="10m"), scale=("rs/default/web=6",))
    assert not what_if(cluster, followed).changed.pdb_breaches


def test_no_step_suggests_hundreds_of_replicas(snapshot, make):
    """Half of 200 replicas fail; with 400, as many as the budget needs would be left."""
    web = make.workload("ReplicaSet", "web", replicas=200, cpu="10m")
    web["metadata"]["uid"] = "web"
    pods = [make.pod(f"w{n}", cpu="10m", node_name="ab"[n % 2], owner="web") for n in range(200)]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "web"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    nodes = [make.node(name, cpu="16") for name in "abcd"]
    for node in nodes:
        node["status"]["allocatable"]["pods"] = "400"
    cluster = snapshot(*nodes, web, *pods, budget(minAvailable=200))
    answer = what_if(cluster, ClusterChange(failures=Failures(fail_node=("a",))))
    assert answer.changed.pdb_breaches
    assert not any("--scale" in where for _, where in steps_of(answer))


def test_a_breached_maximum_suggests_no_looser_budget(snapshot, make, web):
    """A budget that permits the losses of an outage would hold, but would not help."""
    nodes = [make.node(name) for name in "abc"]
    cluster = snapshot(*nodes, *web, budget(maxUnavailable="10%"))
    answer = what_if(cluster, ClusterChange(failures=Failures(fail_node=("a", "b"))))
    assert not any("--set" in where for _, where in steps_of(answer))


@pytest.fixture
def database(make):
    """A StatefulSet with a pod on node a, which can run only on nodes with the label disk=ssd."""
    db = make.workload("StatefulSet", "db", replicas=1, nodeSelector={"disk": "ssd"})
    db["metadata"]["uid"] = "db"
    pod = make.pod("db-0", node_name="a", owner="db", nodeSelector={"disk": "ssd"})
    pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    pod["metadata"]["labels"] = {"app": "db"}
    pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return [make.node("a", disk="ssd"), db, pod]


OUT_OF_SERVICE = (
    '[{"key": "node.kubernetes.io/out-of-service", "value": "x", "effect": "NoExecute"}]'
)
IF_SHUT_DOWN = (
    "if the failed node is shut down, have the pods replaced elsewhere; when the kubelet runs "
    "again, remove the taint"
)
SHUT_DOWN = (
    IF_SHUT_DOWN,
    "kubectl taint nodes a node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
)


def test_a_stateful_set_on_a_failed_node_suggests_to_taint_the_node(snapshot, make, database):
    change = ClusterChange(failures=Failures(fail_node=("a",)))
    answer = what_if(snapshot(make.node("b", disk="ssd"), *database), change)
    assert answer.verdict.first.sentence.startswith("sts/default/db has no ready pod to the end")
    assert steps_of(answer)[:1] == [SHUT_DOWN]


def test_a_pod_that_waits_for_devices_of_a_failed_node_needs_no_new_node(snapshot, make):
    """The old pod, which is being deleted, still uses the claim; node b has a free device."""
    objects, _ = with_claim(*single(make))
    change = ClusterChange(failures=Failures(fail_node=("a",)))
    answer = what_if(snapshot(make.node("a"), make.node("b"), *objects), change)
    assert steps_of(answer)[:1] == [SHUT_DOWN]
    assert not any("--add-nodes" in code for _, code in steps_of(answer))


def test_every_stateful_set_on_failed_nodes_may_be_helped_by_taints(snapshot, make, database):
    """The pod of `cache`, which comes first, has a local volume, so only `db` can move."""
    cache = make.workload("StatefulSet", "cache", replicas=2, nodeSelector={"disk": "local"})
    cache["metadata"]["uid"] = "cache"
    pods = []
    for n, node in enumerate("ac"):
        pod = make.pod(f"cache-{n}", node_name=node, owner="cache")
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        pod["metadata"]["labels"] = {"app": "cache"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pods.append(pod)
    nodes = [make.node("b", disk="ssd"), make.node("c")]
    change = ClusterChange(failures=Failures(fail_node=("a", "c")))
    answer = what_if(snapshot(*nodes, *database, cache, *pods), change)
    assert [one.workload.name for one in answer.effect.workloads] == ["cache", "db"]
    assert SHUT_DOWN in steps_of(answer)


def stateful_set_on(make, names):
    """A StatefulSet with a ready pod on each of the nodes `names`, and its pods."""
    cache = make.workload("StatefulSet", "cache", replicas=len(names))
    cache["metadata"]["uid"] = "cache"
    pods = [make.pod(f"cache-{n}", node_name=name, owner="cache") for n, name in enumerate(names)]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        pod["metadata"]["labels"] = {"app": "cache"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return [cache, *pods]


def test_a_command_that_taints_some_of_the_failed_nodes_says_so(snapshot, make, database):
    """The pods of `cache` are on too many nodes for a command that names them.

    Most nodes do not fail, so that evictions do not stop.
    """
    names = [f"c{number}" for number in range(6)]
    cache, *pods = stateful_set_on(make, names)
    healthy = [make.node(f"b{number}", disk="ssd") for number in range(10)]
    nodes = [*healthy, *map(make.node, names)]
    change = ClusterChange(failures=Failures(fail_node=("a", *names)))
    answer = what_if(snapshot(*nodes, *database, cache, *pods), change)
    [words] = [words for words, command in steps_of(answer) if command == SHUT_DOWN[1]]
    assert words == (
        "if the failed nodes are shut down, have the pods replaced elsewhere (the command taints "
        "1 of 7 nodes); when the kubelets run again, remove the taint"
    )


@pytest.mark.parametrize(
    ("failures", "selector"),
    [
        (Failures(fail_zone=("1",)), "-l topology.kubernetes.io/zone=1"),
        (Failures(fail_zone=("1", "2")), "-l 'topology.kubernetes.io/zone in (1,2)'"),
        (Failures(fail_node=("pool=old",)), "-l pool=old"),
        (Failures(fail_fraction=("100%@1",)), ""),
        (Failures(fail_node=("pool=old", "b0")), ""),
    ],
    ids=["a zone", "two zones", "a selector", "a fraction", "a selector and a name"],
)
def test_many_failed_nodes_are_tainted_by_their_labels(snapshot, make, failures, selector):
    """The pods of the StatefulSet are on more nodes than a command names."""
    old = [make.node(f"a{n}", pool="old", **{ZONE: "1"}) for n in range(6)]
    others = [make.node(f"b{n}", **{ZONE: "2" if n < 2 else "3"}) for n in range(12)]
    pods = stateful_set_on(make, [f"a{n}" for n in range(6)])
    answer = what_if(snapshot(*old, *others, *pods), ClusterChange(failures=failures))
    commands = [command for _, command in steps_of(answer) if "kubectl taint" in command]
    taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
    assert commands == ([f"kubectl taint nodes {selector} {taint}"] if selector else [])


def test_nodes_are_not_tainted_by_the_label_of_a_zone_that_other_regions_have(snapshot, make):
    old = [make.node(f"a{n}", **{ZONE: "1", REGION: "x"}) for n in range(6)]
    others = [make.node(f"b{n}", **{ZONE: "1", REGION: "y"}) for n in range(12)]
    pods = stateful_set_on(make, [f"a{n}" for n in range(6)])
    change = ClusterChange(failures=Failures(fail_zone=("x/1",)))
    answer = what_if(snapshot(*old, *others, *pods), change)
    assert OutcomeKind.DOWN in {one.kind for one in answer.verdict.findings}
    assert not any("kubectl taint" in where for _, where in steps_of(answer))


def test_nodes_are_not_tainted_by_a_label_that_new_nodes_have(snapshot, make):
    """The command would taint the new nodes, too."""
    old = [make.node(f"a{n}", pool="old") for n in range(6)]
    others = [make.node(f"b{n}") for n in range(12)]
    pods = stateful_set_on(make, [f"a{n}" for n in range(6)])
    failures = Failures(fail_node=("pool=old",))
    cluster = snapshot(*old, *others, *pods)
    for change, is_tainted in (
        (ClusterChange(failures=failures, add_nodes=1, like="b0"), True),
        (ClusterChange(failures=failures, add_nodes=1, like="a0"), False),
    ):
        steps = steps_of(what_if(cluster, change))
        assert any("kubectl taint" in command for _, command in steps) is is_tainted


def test_many_failed_nodes_are_not_tainted_if_no_other_node_takes_their_pods(snapshot, make):
    old = [make.node(f"a{n}", disk="ssd", **{ZONE: "1"}) for n in range(6)]
    others = [make.node(f"b{n}", disk="hdd", **{ZONE: "2"}) for n in range(12)]
    pods = stateful_set_on(make, [f"a{n}" for n in range(6)])
    pods[0]["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    answer = what_if(snapshot(*old, *others, *pods), change)
    assert not any("kubectl taint" in where for _, where in steps_of(answer))
    note = "If the failed nodes are marked as out of service, pods of sts/default/cache are created"
    assert any(one.startswith(note) for one in answer.changed.notes)


@pytest.mark.parametrize(
    ("disk", "change"),
    [
        ("hdd", {}),
        ("ssd", {"lasts": "20m"}),
        ("ssd", {"failures": Failures(fail_node=("a",), how="not-ready")}),
        ("ssd", {"failures": Failures(flap=("a",))}),
        ("ssd", {"set": (f"node/a:spec.taints={OUT_OF_SERVICE}",)}),
    ],
    ids=[
        "no other node admits the pod",
        "the node comes back",
        "the kubelet of the node works",
        "the node flaps",
        "the node has the taint",
    ],
)
def test_the_taint_is_suggested_only_for_nodes_that_are_shut_down_if_it_helps(
    snapshot, make, database, disk, change
):
    change = ClusterChange(**{"failures": Failures(fail_node=("a",)), **change})
    answer = what_if(snapshot(make.node("b", disk=disk), *database), change)
    assert not any("kubectl taint" in where for _, where in steps_of(answer))


def test_a_note_names_the_label_that_keeps_replaced_pods_of_a_failed_node_pending(
    snapshot, make, database
):
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    database[0]["metadata"]["labels"][ZONE] = "1"
    answer = what_if(snapshot(make.node("b", disk="hdd", **{ZONE: "2"}), *database), change)
    assert (
        "If the failed node is marked as out of service, pods of sts/default/db are created "
        "again, but stay pending: node(s) didn't match Pod's node affinity/selector, node(s) had "
        "untolerated taint(s). Among the other nodes, no node has disk=ssd; the only value of disk "
        "is hdd (1 node)."
    ) in answer.changed.notes


def test_a_budget_of_all_pods_suggests_no_replica(snapshot, make, web):
    answer = drained(snapshot, make.node("a"), make.node("b"), *web, budget(minAvailable="100%"))
    assert steps_of(answer) == [(BLOCKERS, plan_of(answer))]


def test_a_choice_among_equal_nodes_suggests_seeds_unless_seeds_were_set(snapshot, make, web):
    nodes = [make.node(name) for name in "abcd"]
    chance = ("ask which outcomes depend on the seed", "--seeds 20")
    assert chance in steps_of(drained(snapshot, *nodes, *web))
    assert chance not in steps_of(drained(snapshot, *nodes, *web, seeds=2))


def single(make):
    """Return a ReplicaSet with one pod, which is on node a."""
    replicaset = make.workload("ReplicaSet", "web", replicas=1)
    replicaset["metadata"]["uid"] = "web"
    pod = make.pod("web-1", node_name="a", owner="web")
    pod["metadata"]["labels"] = {"app": "web"}
    pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return [replicaset, pod]


def with_claim(workload, pod):
    """Return `workload` and its pod, which use a device of node a, and the claim's status."""
    pod["metadata"]["uid"] = "web-0"
    for spec in (workload["spec"]["template"]["spec"], pod["spec"]):
        spec.update(make_pod_resource_claims("gpu"))
    status = make_claim_status("a", "gpu-0", reserved_for=["web-0"])
    claim = make_resource_claim("gpu", make_device_request())
    devices = [make_device_class("gpu"), make_slice("a"), make_slice("b"), claim]
    dra = [
        {"apiVersion": "resource.k8s.io/v1", "kind": type(one).__name__, **as_json(one)}
        for one in devices
    ]
    dra[-1]["status"] = status
    return [workload, pod, *dra], status


def test_the_order_in_which_a_daemon_set_updates_its_pods_depends_on_the_seed(snapshot, make):
    """The update stops at the node without room for the larger pod, with whichever order."""
    agent = make.workload("DaemonSet", "agent")
    del agent["spec"]["replicas"]
    agent["metadata"]["uid"] = "agent"
    pods = []
    for name in "abc":
        pod = make.pod(f"agent-{name}", node_name=name, owner="agent")
        pod["metadata"]["labels"] = {"app": "agent", "controller-revision-hash": "1"}
        pod["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pods.append(pod)
    nodes = [make.node("a", cpu="1"), make.node("b"), make.node("c")]
    cluster = snapshot(*nodes, agent, *pods)
    change = ClusterChange(set_resources=("ds/agent=cpu=2",))
    step = ("ask which outcomes depend on the seed", "--seeds 20")
    assert step in steps_of(what_if(cluster, change))
    found = what_if(cluster, change, Conditions(seeds=20))
    [row] = [one for one in found.certainty if one.what == "outdated"]
    assert (row.words, row.most) == ("depends on the seed", 2)


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_more_replicas_are_not_suggested_if_a_stateful_set_waits_for_a_pod(snapshot, make, policy):
    """Pod web-0 never becomes ready. With OrderedReady, no pod is created before it is."""
    owner = make.workload("StatefulSet", "web", replicas=2)
    owner["metadata"]["uid"] = "web"
    owner["spec"]["podManagementPolicy"] = policy
    pods = []
    for number, (node, ready) in enumerate((("b", "False"), ("a", "True"))):
        pod = make.pod(f"web-{number}", node_name=node, owner="web")
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "apps/v1", "kind": "StatefulSet"}
        pod["metadata"]["labels"] = {"app": "web"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": ready}]
        pods.append(pod)
    nodes = [make.node(name) for name in "abc"]
    answer = drained(snapshot, *nodes, owner, *pods, budget(minAvailable=1))
    assert answer.verdict.first.kind is OutcomeKind.UNDRAINED
    suggested = any("--scale" in code for _, code in steps_of(answer))
    assert suggested == (policy == "Parallel")


def test_a_drain_of_the_only_pod_suggests_a_replica_before_the_drain(snapshot, make):
    """A replica that starts together with the drain is ready too late."""
    answer = drained(snapshot, make.node("a"), make.node("b"), *single(make))
    assert answer.verdict.first.sentence == "rs/default/web has no ready pod for 1s."
    words = "before the change, let one more replica of rs/default/web become ready on another node"
    command = "kubectl scale -n default replicaset/web --replicas=2"
    assert steps_of(answer) == [(words, command)]


@pytest.mark.parametrize(
    ("follows", "is_suggested"),
    [("cache", False), ("agent", True)],
    ids=["its pods must be on the drained node", "its pods may be on each node"],
)
def test_a_replica_that_only_the_drained_node_takes_is_not_suggested(
    snapshot, make, follows, is_suggested
):
    """The pod must be on a node with another pod: node a has both, and node b only an agent."""
    term = {
        "topologyKey": HOSTNAME,
        "labelSelector": {"matchLabels": {"f": follows}},
    }
    rule = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    replica_set, pod = single(make)
    for spec in (replica_set["spec"]["template"]["spec"], pod["spec"]):
        spec["affinity"] = rule
    cache = make.workload("ReplicaSet", "zone", replicas=1)
    cache["metadata"]["uid"] = "zone"
    cache["spec"]["template"]["metadata"]["labels"]["f"] = "cache"
    of_cache = make.pod("zone-1", node_name="a", owner="zone")
    of_cache["metadata"]["labels"] = {"app": "zone", "f": "cache"}
    others = [cache, of_cache] if follows == "cache" else []
    for node in "ab":
        agent = make.pod(f"agent-{node}", node_name=node)
        agent["metadata"]["labels"] = {"f": "agent"}
        others.append(agent)
    nodes = [make.node(name, **{HOSTNAME: name}) for name in "ab"]
    answer = drained(snapshot, *nodes, replica_set, pod, *others)
    scaled = [step for step in answer.next_steps if "replicaset/web" in step.command]
    assert bool(scaled) is is_suggested


@pytest.mark.parametrize(
    ("rule", "is_tried"),
    [
        ("requiredDuringSchedulingIgnoredDuringExecution", True),
        ("preferredDuringSchedulingIgnoredDuringExecution", False),
    ],
)
def test_a_replica_of_pods_that_only_prefer_nodes_is_not_tried(make, snapshot, rule, is_tried):
    """A trial takes as long as the question, and most charts prefer to spread pods."""
    term = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "NotIn", "values": ["x"]}]}
    rules = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}],
    }
    objects = [make.node("a"), make.node("b"), *single(make)]
    objects[2]["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": {rule: rules[rule]}}
    answer, asked = drained(snapshot, *objects), []
    manifests = snapshot(*objects).manifests
    next_steps(answer, manifests, lambda _: asked.append, NoProgress(), in_one_process=True)
    assert [change.scale for change in asked] == ([("rs/default/web=2",)] if is_tried else [])


@pytest.mark.parametrize(
    ("nodes", "option", "when"),
    [
        ("ab", {"add_nodes": 1, "like": "b"}, "when the new nodes are Ready, before the rest of"),
        ("ab", {"set": ("node/b:spec.unschedulable=false",)}, ""),
        ("abc", {"delete": ("pod/other",)}, "before the change"),
    ],
    ids=["room on the new node", "no room before the change", "room before the change"],
)
def test_a_replica_is_suggested_if_it_runs_before_the_change(snapshot, make, nodes, option, when):
    """Node a has only room for the pod that is drained, and node b is cordoned."""
    found = [make.node(name, cpu="1" if name == "a" else "4") for name in nodes]
    found[1]["spec"] = {"unschedulable": True}
    cluster = snapshot(*found, *single(make), make.pod("other", node_name="b"))
    steps = steps_of(what_if(cluster, ClusterChange(drain=("a",), **option)))
    words = [words for words, _ in steps if "one more replica" in words]
    assert [one.startswith(when) for one in words] == ([True] if when else [])


@pytest.mark.parametrize(("pods", "is_suggested"), [("1", False), ("2", True)])
def test_a_replica_that_a_quota_refuses_is_not_suggested(snapshot, make, pods, is_suggested):
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": pods}},
    }
    answer = drained(snapshot, make.node("a"), make.node("b"), *single(make), quota)
    assert any("one more replica" in words for words, _ in steps_of(answer)) is is_suggested


@pytest.mark.parametrize(
    ("mode", "attach", "is_suggested"),
    [
        ("ReadWriteOnce", True, False),
        ("ReadWriteMany", True, True),
        ("ReadWriteOnce", False, True),
    ],
    ids=["one node at a time", "many nodes", "a driver that attaches no volumes"],
)
def test_a_replica_on_another_node_needs_a_volume_of_many_nodes(
    snapshot, make, mode, attach, is_suggested
):
    workload, pod = single(make)
    disk, claim = volume("data", ZONE, "z", mode)
    disk["spec"]["csi"] = {"driver": "disk", "volumeHandle": "data"}
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
              "metadata": {"name": "disk"}, "spec": {"attachRequired": attach}}  # fmt: skip
    used = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    workload["spec"]["template"]["spec"]["volumes"] = pod["spec"]["volumes"] = used
    nodes = [make.node(name, **{ZONE: "z"}) for name in "ab"]
    answer = drained(snapshot, *nodes, workload, pod, disk, claim, driver)
    assert any("kubectl scale" in code for _, code in steps_of(answer)) == is_suggested


@pytest.mark.parametrize(
    ("racks", "is_suggested"),
    [("rs", False), ("rr", True)],
    ids=["devices of one node", "devices that both nodes can use"],
)
def test_a_replica_on_another_node_needs_devices_of_many_nodes(snapshot, make, racks, is_suggested):
    objects, status = with_claim(*single(make))
    rack = {"key": "rack", "operator": "In", "values": ["r"]}
    status["allocation"]["nodeSelector"]["nodeSelectorTerms"] = [{"matchExpressions": [rack]}]
    nodes = [make.node(name, rack=rack) for name, rack in zip("ab", racks, strict=True)]
    answer = drained(snapshot, *nodes, *objects)
    assert any("kubectl scale" in code for _, code in steps_of(answer)) == is_suggested


def test_the_failure_of_every_node_suggests_no_replica(snapshot, make):
    """Its pod would be on a failed node, too."""
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts="20m")
    cluster = [*single(make), make.node("a")]
    assert steps_of(what_if(snapshot(*cluster), change)) == []
    [(_, options)] = steps_of(what_if(snapshot(*cluster, make.node("b")), change))
    assert options == "--scale rs/default/web=2 --at 10m"
    later = replace(change, failures=replace(change.failures, at="5m"))
    [(_, options)] = steps_of(what_if(snapshot(*cluster, make.node("b")), later))
    assert options == "--scale rs/default/web=2"


def test_a_remedy_is_tried_for_each_workload_without_a_ready_pod(snapshot, make):
    """The dump lacks the owner of the first pod, so that only the second one can be scaled."""
    owned = make.pod("a", node_name="a", owner="absent")
    cluster = [owned, *single(make), make.node("a"), make.node("b")]
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts="20m")
    answer = what_if(snapshot(*cluster), change)
    assert [one.workload.name for one in answer.effect.workloads] == ["absent", "web"]
    assert [options for _, options in steps_of(answer)] == ["--scale rs/default/web=2 --at 10m"]


def test_a_replica_that_would_fail_with_the_nodes_is_not_suggested(snapshot, make):
    """The new replica starts on node c, which has most room and fails, too."""
    busy = make.pod("busy", cpu="2", node_name="b")
    cluster = snapshot(*map(make.node, "abc"), busy, *single(make))
    failures = Failures(fail_node=("a", "c"))
    answer = what_if(cluster, ClusterChange(failures=failures, lasts="20m"))
    assert answer.verdict.first.kind is OutcomeKind.UNAVAILABLE
    assert not any("--scale" in where for _, where in steps_of(answer))


def test_a_workload_that_is_not_in_the_dump_is_not_scaled(snapshot, make, web):
    """--scale refuses a workload that is known only as the owner of pods."""
    nodes = [make.node("a"), make.node("b")]
    answer = drained(snapshot, *nodes, *web[1:], budget(minAvailable=2))
    assert steps_of(answer) == [(BLOCKERS, plan_of(answer))]


def test_a_workload_that_an_autoscaler_scales_is_not_scaled(snapshot, make, web):
    """The autoscaler would set the number of replicas again."""
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "any", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"},
            "maxReplicas": 5,
        },
    }
    nodes = [make.node("a"), make.node("b")]
    answer = drained(snapshot, *nodes, *web, budget(minAvailable=2), autoscaler)
    assert steps_of(answer) == [(BLOCKERS, plan_of(answer))]


@pytest.mark.parametrize(
    ("rule", "edit"),
    [
        ({"minAvailable": 2}, {"scale": ("rs/web=2",)}),
        ({"maxUnavailable": 0}, {"set": ("pdb/web:spec.maxUnavailable=0",)}),
    ],
    ids=["replicas", "a budget"],
)
def test_a_field_that_the_question_sets_is_not_set_again(snapshot, make, web, rule, edit):
    cluster = snapshot(make.node("a"), make.node("b"), *web, budget(**rule))
    answer = what_if(cluster, ClusterChange(drain=("a",), **edit))
    assert answer.changed.undrained
    assert [words for words, _ in steps_of(answer)] == [BLOCKERS_AFTER_CHANGES]


def test_nodes_of_the_question_are_included_in_the_suggested_number(snapshot, make, web):
    """--add-nodes can be given only once."""
    cluster = snapshot(make.node("a", cpu="1"), make.node("b", cpu="1"), *web)
    answer = what_if(cluster, ClusterChange(add_nodes=1, like="b", scale=("rs/web=5",)))
    words = "ask again with 2 more nodes like b; fewer may be enough"
    assert steps_of(answer) == [(words, "--add-nodes 3 --like b")]


def test_nodes_are_not_suggested_again_if_other_pods_take_their_room(snapshot, make):
    """The scheduler places the six small pods first, and spreads them over all new nodes."""
    objects = [make.node("a", cpu="8"), make.node("b"), make.pod("full", cpu="4", node_name="b")]
    for name in ("s1", "s2", "s3", "s4", "s5", "s6", "tall"):
        cpu = "4" if name == "tall" else "500m"
        owner = make.workload("ReplicaSet", name, cpu=cpu)
        owner["metadata"]["uid"] = name
        pod = make.pod(f"{name}-0", cpu=cpu, node_name="a", owner=name)
        pod["metadata"]["labels"] = {"app": name}
        objects += [owner, pod]
    change = ClusterChange(drain=("a",), add_nodes=2, like="b")
    answer = what_if(snapshot(*objects), change)
    [pending] = answer.difference.pending
    assert pending.workload.name == "tall"
    assert not any("--add-nodes" in where for _, where in steps_of(answer))
    note = (
        "With one more node like b, the pod stays pending, too: other pods are placed on the new "
        "nodes first."
    )
    assert note in answer.changed.notes
    followed = what_if(snapshot(*objects), replace(change, add_nodes=3))
    assert len(followed.difference.pending) == 1


def test_new_nodes_of_an_autoscaler_are_suggested_as_a_higher_limit(snapshot, make, web, tmp_path):
    """Its limits are the reason why pods wait, and added nodes of a group count against them."""
    label = {"eks.amazonaws.com/nodegroup": "g"}
    cluster = snapshot(*(make.node(name, cpu="1", **label) for name in "ab"), *web)
    group = {"name": "g", "min": 1, "max": 2, "labels": label}
    groups = tmp_path / "groups.json"
    groups.write_text(json.dumps({"node-groups": [group]}))
    change = ClusterChange(scale=("rs/web=5",))
    autoscale = AutoscaleOptions("cluster-autoscaler", str(groups))
    scaled = what_if(cluster, change, Conditions(autoscale=autoscale))
    assert len(scaled.difference.pending) == 3
    [(words, options)] = steps_of(scaled)
    assert words.startswith("raise the maximum of node group g from 2 to 5 nodes, and ask again")
    assert options == "--add-nodes 3 --like a"
    assert steps_of(what_if(cluster, change)) != []


def test_a_refused_drain_suggests_the_flags_that_are_missing(snapshot, make):
    cluster = snapshot(make.node("a"), make.pod("bare", node_name="a"))
    answer = what_if(cluster, ClusterChange(drain=("a",), drain_as_kubectl=True))
    assert steps_of(answer) == [("ask again with the flag that the pods need", "--force")]


def test_a_drain_with_other_changes_comes_after_them(snapshot, make, web):
    cluster = snapshot(make.node("a"), make.node("b", cpu="1"), *web)
    answer = what_if(cluster, ClusterChange(drain=("a",), add_nodes=1, like="b"))
    assert steps_of(answer) == [("drain the node, after the other changes", "kubectl drain a")]


def test_a_drain_of_many_nodes_selects_them(snapshot, make):
    nodes = [make.node(f"n{number}", pool="old") for number in range(6)]
    answer = what_if(snapshot(*nodes, make.node("b")), ClusterChange(drain=("pool=old",)))
    assert steps_of(answer) == [("drain the nodes", "kubectl drain --selector pool=old")]


def test_a_condition_that_holds_removes_the_command_that_makes_the_change(snapshot, make, web):
    answer = drained(snapshot, make.node("a"), make.node("b"), *web)
    holds = check(parse_fail_on("moved>0"), answer.effect)
    holds_not = check(parse_fail_on("pending>0"), answer.effect)
    assert answer.next_steps_if([holds_not]) == answer.next_steps
    assert answer.next_steps_if([holds_not, holds]) == ()


def test_an_answer_without_effect_has_no_steps(snapshot, make, web):
    cluster = snapshot(*map(make.node, "abcd"), *web)
    assert steps_of(what_if(cluster, ClusterChange(cordon=("a",)))) == []


def test_pods_of_an_ordered_stateful_set_that_are_not_created_need_nodes_too(snapshot, make):
    """Only its first pod is pending; the second is created when the first one runs."""
    spec = {"nodeSelector": {"disk": "ssd"}}
    db = make.workload("StatefulSet", "db", replicas=2, cpu="3", **spec)
    db["metadata"]["uid"] = "db"
    pods = []
    for number, node in enumerate("ab"):
        pod = make.pod(f"db-{number}", cpu="3", node_name=node, owner="db", **spec)
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        pod["metadata"]["labels"] = {"app": "db"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pods.append(pod)
    nodes = [make.node("a", disk="ssd"), make.node("b", disk="ssd"), make.node("c")]
    cluster = snapshot(*nodes, db, *pods)
    answer = what_if(cluster, ClusterChange(drain=("a", "b")))
    assert answer.difference.not_created
    step = ("ask again with 2 more nodes like a; fewer may be enough", "--add-nodes 2 --like a")
    assert step in steps_of(answer)
    helped = what_if(cluster, ClusterChange(drain=("a", "b"), add_nodes=2, like="a"))
    assert not helped.difference.pending
    assert not helped.difference.not_created


@pytest.mark.parametrize(
    ("policy", "pending", "what"),
    [
        ("OrderedReady", 1, "1 pending: Insufficient cpu, 4 not created, 1 new"),
        ("Parallel", 5, "5 pending: Insufficient cpu, 1 new"),
    ],
)
def test_pods_that_a_new_stateful_set_creates_later_count(
    snapshot, make, write, policy, pending, what
):
    """The node has room for the first of six pods. An ordered StatefulSet waits for the second."""
    db = make.workload("StatefulSet", "db", replicas=6, cpu="3")
    db["spec"]["podManagementPolicy"] = policy
    cluster = snapshot(make.node("a"))
    change = ClusterChange(apply=(str(write("db.json", db)),))
    answer = what_if(cluster, change)
    assert len(answer.difference.pending) == pending
    [row] = answer.effect.workloads
    assert row.words == what
    later = (
        " sts/default/db creates 4 more pods only after its pending pod is ready (OrderedReady)."
    )
    assert answer.verdict.first.sentence.endswith(later) == (policy == "OrderedReady")
    assert "--add-nodes 5 --like a" in [code for _, code in steps_of(answer)]
    helped = what_if(cluster, replace(change, add_nodes=5, like="a"))
    assert not helped.difference.pending


LOCAL = "topology.topolvm.io/node"


def volume(name, label, value, mode="ReadWriteOnce"):
    """Return a volume that only nodes with a label reach, and its claim of the same name."""
    term = {"matchExpressions": [{"key": label, "operator": "In", "values": [value]}]}
    claim = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": name}
    spec = {"accessModes": [mode], "storageClassName": "x"}
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                **spec,
                "capacity": {"storage": "1Gi"},
                "claimRef": claim,
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
            "status": {"phase": "Bound"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": bound},
            "spec": {
                **spec,
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": name,
            },
            "status": {"phase": "Bound"},
        },
    ]


@pytest.mark.parametrize(
    ("label", "steps"),
    [
        (ZONE, [("ask again with one more node like b", "--add-nodes 1 --like b")]),
        (HOSTNAME, []),
        (LOCAL, []),
    ],
    ids=["a copy of the node in its zone", "no copy reaches a local volume", "a volume of TopoLVM"],
)
def test_new_nodes_reach_the_volumes_of_pending_pods(snapshot, make, label, steps):
    """The pod db-1 on node b becomes larger and is created again, but another pod needs the room.

    The scheduler's message has no word about the volume, because both nodes lack room.
    """
    db = make.workload("StatefulSet", "db", replicas=2, cpu="2")
    db["metadata"]["uid"] = "db"
    cluster = [db, make.pod("full", cpu="2", node_name="b")]
    for number, node in enumerate("ab"):
        labels = {HOSTNAME: node, LOCAL: node, ZONE: node}
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-db-{number}"}}
        pod = make.pod(f"db-{number}", cpu="2", node_name=node, owner="db", volumes=[claim])
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        pod["metadata"]["labels"] = {"app": "db"}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        cluster += [pod, make.node(node, **labels), *volume(f"data-db-{number}", label, node)]
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    db["spec"]["volumeClaimTemplates"] = [template]
    answer = what_if(snapshot(*cluster), ClusterChange(set_resources=("sts/db=cpu=3",)))
    [waiting] = answer.difference.pending
    assert waiting.reason.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert steps_of(answer) == steps


@pytest.mark.parametrize(("label", "returns"), [(HOSTNAME, True), (ZONE, False)])
def test_a_pod_with_a_local_volume_can_wait_for_its_drained_node(snapshot, make, label, returns):
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    nodes = [make.node(name, **{HOSTNAME: name, ZONE: name}) for name in "ab"]
    pod = make.pod("web-1", node_name="a", owner="web", volumes=[claim])
    cluster = snapshot(*nodes, pod, *volume("data", label, "a"))
    steps = steps_of(what_if(cluster, ClusterChange(drain=("a",))))
    step = (
        "ask again with drained nodes that return; pods have volumes that are local to them",
        "--max-unavailable 1 --for 10m",
    )
    assert (step in steps) is returns
    helped = what_if(cluster, ClusterChange(drain=("a",), max_unavailable=1, lasts="10m"))
    assert not helped.difference.pending


def test_copies_of_the_drained_node_are_not_for_volumes_in_another_zone(snapshot, make):
    """Pod y-0 restarts with a larger request; its volume is in the zone of node b."""
    cluster = []
    for name, node in (("x", "a"), ("y", "b")):
        owner = make.workload("StatefulSet", name, replicas=1)
        owner["metadata"]["uid"] = name
        owner["spec"]["volumeClaimTemplates"] = [
            {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
        ]
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}-0"}}
        pod = make.pod(f"{name}-0", node_name=node, owner=name, volumes=[claim])
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        pod["metadata"]["labels"] = {"app": name}
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        cluster += [owner, pod, *volume(f"data-{name}-0", ZONE, node)]
    nodes = [make.node(name, **{ZONE: name}) for name in "ab"]
    full = make.pod("full", node_name="b", cpu="2")
    change = ClusterChange(drain=("a",), set_resources=("sts/y=cpu=3",))
    answer = what_if(snapshot(*nodes, full, *cluster), change)
    assert [pod.name for pod in answer.difference.pending] == ["x-0", "y-0"]
    words = "ask again with 2 more nodes like a, b; fewer may be enough"
    assert steps_of(answer)[0] == (words, "--add-nodes 2 --like a,b")


def test_a_claim_that_a_pod_on_a_failed_node_uses_suggests_to_taint_the_node(snapshot, make):
    """The old pod exists until its node returns, so the claim of a single pod stays in use."""
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    workload, pod = single(make)
    workload["spec"]["template"]["spec"]["volumes"] = pod["spec"]["volumes"] = [claim]
    disk = volume("data", ZONE, "1", "ReadWriteOncePod")
    nodes = [make.node(name, **{ZONE: "1"}) for name in "ab"]
    change = ClusterChange(failures=Failures(fail_node=("a",)))
    answer = what_if(snapshot(*nodes, workload, pod, *disk), change)
    assert "ReadWriteOncePod" in answer.difference.pending[0].reason
    assert steps_of(answer) == [
        (
            IF_SHUT_DOWN,
            "kubectl taint nodes a node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
        ),
    ]


def test_a_copy_of_one_failed_node_takes_the_pods_of_equal_nodes_too(snapshot, make):
    """Node c has room, but not the label; a node like a takes three of the four pods."""
    spec = {"nodeSelector": {"pool": "spot"}}
    web = make.workload("ReplicaSet", replicas=4, cpu="1", **spec)
    web["metadata"]["uid"] = "web"
    pods = [
        make.pod(f"web-{n}", node_name="ab"[n % 2], owner="web", cpu="1", **spec) for n in range(4)
    ]
    nodes = [make.node("a", cpu="3", pool="spot"), make.node("b", cpu="3", pool="spot")]
    failures = Failures(fail_node=("pool=spot",))
    answer = what_if(snapshot(*nodes, make.node("c"), web, *pods), ClusterChange(failures=failures))
    assert len(answer.difference.pending) == 4
    step = ("ask again with 2 more nodes like a; fewer may be enough", "--add-nodes 2 --like a")
    assert step in steps_of(answer)


def test_members_of_a_gang_for_which_nodes_have_room_need_no_new_node(snapshot, make):
    """The drain evicts one of three members, and the gang then ends as a whole; node a is cordoned.

    The other two members fit on their former nodes, so the gang needs one node.
    """
    api = "scheduling.volcano.sh/v1beta1"
    meta = {"name": "g", "namespace": "default"}
    group = {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": {"minMember": 3}}
    members = [
        make.pod(f"g-{n}", node_name=node, owner="g", cpu="4", schedulerName="volcano")
        for n, node in enumerate("abc")
    ]
    for member in members:
        member["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
        member["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    answer = drained(snapshot, *map(make.node, "abc"), group, *members)
    assert len(answer.difference.pending) == 3
    assert [code for _, code in steps_of(answer)] == ["--add-nodes 1 --like a"]


def test_further_nodes_are_tried_if_another_gang_leaves_too_few_of_them(snapshot, make):
    """The oldest gang waits for two nodes and takes two of the five: g starts, h needs two.

    All nodes have a taint, and h never ran on a node of g, of which the new nodes are copies.
    """
    objects = []
    for name, where, hour in (("rival", ("", ""), 1), ("g", "ab", 2), ("h", "de", 3)):
        meta = {"name": name, "namespace": "default"}
        meta["creationTimestamp"] = f"2025-12-31T0{hour}:00:00Z"
        api, spec = "scheduling.volcano.sh/v1beta1", {"minMember": 2}
        objects.append({"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": spec})
        for number, node in enumerate(where):
            pod = make.pod(
                f"{name}-{number}", node_name=node, owner=name, cpu="4", schedulerName="volcano",
                tolerations=[{"key": "gpu", "operator": "Exists"}],
            )  # fmt: skip
            pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": name}
            pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}] if node else []
            objects.append(pod)
    nodes = [make.node(name) for name in "abcde"]
    for node in nodes:
        node["spec"] = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    answer = what_if(snapshot(*nodes, *objects), ClusterChange(drain=("a", "b", "d", "e")))
    assert len(answer.difference.pending) == 4
    rival = "default/rival-1, pending anyway, takes room there"
    step = f"ask again with 5 more nodes like a; fewer may be enough; {rival}"
    assert steps_of(answer) == [(step, "--add-nodes 5 --like a")]


@pytest.mark.parametrize(
    ("lasts", "horizon", "longer"),
    [
        ("10m", seconds(1200), "40m"),  # one of three nodes is back: 3 * 10m30s, and 10 %
        ("2h", seconds(1200), "7h"),  # no node is back, but a node is empty after 30 s
        ("2h", seconds(20), "7h"),  # no node is empty, but the pods on it stop after 30 s
    ],
)
def test_an_unfinished_rolling_drain_suggests_a_longer_horizon(
    snapshot, make, web, lasts, horizon, longer
):
    cluster = snapshot(*map(make.node, "abc"), *web)
    change = ClusterChange(drain=("a", "b", "c"), max_unavailable=1, lasts=lasts)
    answer = what_if(cluster, change, Conditions(horizon=horizon))
    step, plan = steps_of(answer)[:2]
    aim = "ask again with a simulation that includes the end of the drain"
    assert step == (aim, f"--horizon {longer}")
    assert plan[1].endswith(f"--nodes a --nodes b --nodes c --for {lasts}")


def test_a_rolling_drain_with_the_suggested_horizon_ends(snapshot, make, web):
    cluster = snapshot(*map(make.node, "abc"), *web)
    change = ClusterChange(drain=("a", "b", "c"), max_unavailable=1, lasts="10m")
    answer = what_if(cluster, change, Conditions(horizon=seconds(2400)))
    assert all(one.back_at is not None for one in answer.changed.drains)
    assert not any("--horizon" in code for _, code in steps_of(answer))


@pytest.mark.parametrize(("cores", "in_one_process"), [(2, False), (1, False), (2, True)])
def test_the_steps_do_not_depend_on_the_number_of_processes(
    monkeypatch, snapshot, make, database, cores, in_one_process
):
    """The failed node runs the only pod of a StatefulSet, and one for which nodes lack room."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    web = make.workload("ReplicaSet", "web", replicas=1, cpu="3")
    web["metadata"]["uid"] = "web"
    pod = make.pod("web-1", cpu="3", node_name="a", owner="web")
    pod["metadata"]["labels"] = {"app": "web"}
    cluster = snapshot(make.node("b", cpu="2", disk="ssd"), web, pod, *database)
    answer = what_if(cluster, ClusterChange(failures=Failures(fail_node=("a",))))
    here = []

    def ask(change):
        here.append(change)
        return what_if(cluster, change).effect

    found = next_steps(
        answer, cluster.manifests, lambda _: ask, NoProgress(), in_one_process=in_one_process
    )
    assert found.steps == answer.next_steps
    assert {one.outcome for one in found.steps} >= {OutcomeKind.PENDING, OutcomeKind.UNAVAILABLE}
    assert bool(here) is (cores == 1 or in_one_process)


def test_an_answer_can_do_without_next_steps(snapshot, make, database):
    cluster = snapshot(make.node("b", disk="ssd"), *database)
    change = ClusterChange(failures=Failures(fail_node=("a",)))
    full = what_if(cluster, change)
    short = what_if(cluster, change, Conditions(next_steps=False))
    assert full.next_steps
    assert not short.next_steps
    assert short.verdict == full.verdict


def quota(name="q", **hard):
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": {key.replace("_", "."): amount for key, amount in hard.items()}},
    }


def patch_of(name, hard):
    patch = json.dumps({"spec": {"hard": hard}}, separators=(",", ":"))
    return f"kubectl patch resourcequota -n default {name} -p '{patch}'"


@pytest.mark.parametrize(
    ("quotas", "replicas", "step"),
    [
        pytest.param(
            [quota(pods="3")],
            5,
            (
                "raise quota default/q to pods=5, which admits the 2 missing pods",
                patch_of("q", {"pods": "5"}),
            ),
            id="two pods are refused",
        ),
        pytest.param(
            [quota(pods="3", requests_cpu="3500m"), quota("r", requests_memory="1Gi")],
            4,
            (
                "raise quota default/q to pods=4, requests.cpu=4, which admits the missing pod",
                patch_of("q", {"pods": "4", "requests.cpu": "4"}),
            ),
            id="two limits of a quota are exceeded, and another quota has room",
        ),
        pytest.param(
            [quota(pods="3"), quota("r", requests_cpu="3500m")],
            4,
            (
                (
                    "raise quota default/q to pods=4 and quota default/r to requests.cpu=4, which "
                    "admit the missing pod"
                ),
                f"{patch_of('q', {'pods': '4'})} && {patch_of('r', {'requests.cpu': '4'})}",
            ),
            id="a second quota refuses the pods that the first one then admits",
        ),
        pytest.param(
            [quota(pods="3")],
            7,
            (
                (
                    "raise quota default/q to pods=7, which admits the 4 missing pods; 1 more pod "
                    "then waits for a node"
                ),
                patch_of("q", {"pods": "7"}),
            ),
            id="an admitted pod finds no node",
        ),
    ],
)
def test_refused_pods_suggest_the_smallest_quota_that_admits_them(
    snapshot, make, web, quotas, replicas, step
):
    container = web[0]["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["requests"] = {"cpu": "1", "memory": "1Mi"}
    cluster = snapshot(make.node("a", cpu="3"), make.node("b", cpu="3"), *web, *quotas)
    answer = what_if(cluster, ClusterChange(scale=(f"rs/web={replicas}",)))
    assert steps_of(answer)[0] == step
    assert answer.next_steps[0].outcome is OutcomeKind.ERROR


@pytest.mark.parametrize("present", [[], [quota(pods="9")]], ids=["new quota", "known quota"])
def test_a_quota_that_the_question_applies_is_raised_in_its_file(snapshot, make, web, present):
    """A command would find no quota, or the file would replace its limits again."""
    cluster = snapshot(make.node("a"), make.node("b"), *web, *present)
    change = ClusterChange(apply=(quota(pods="3"),), scale=("rs/web=5",))
    words, options = steps_of(what_if(cluster, change))[0]
    assert words == (
        "ask again, and raise quota default/q to pods=5, which admits the 2 missing pods; the "
        "applied file of default/q needs these limits"
    )
    assert options == "--set 'resourcequotas/default/q:spec.hard[pods]=5'"
    edit = shlex.split(options)[1]
    assert not what_if(cluster, replace(change, set=(edit,))).effect.lasting_errors


def test_a_quota_that_also_refuses_pods_without_the_change_is_raised_for_all(snapshot, make, web):
    """The pods of the other workload may take the room first."""
    other = make.workload("ReplicaSet", "other", replicas=2)
    cluster = snapshot(make.node("a"), make.node("b"), *web, other, quota(pods="3"))
    answer = what_if(cluster, ClusterChange(scale=("rs/web=3",)))
    assert steps_of(answer)[0][1] == patch_of("q", {"pods": "5"})


def test_refused_replacements_suggest_the_smallest_quota_that_admits_them(snapshot, make, web):
    """The change applies the quota. Each pod requests a core, as its replacement does."""
    for one in web[1:]:
        one["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    cluster = snapshot(make.node("a"), make.node("b"), *web)
    change = ClusterChange(apply=(quota(pods="1", requests_cpu="1500m"),))
    answer = what_if(cluster, change)
    words, options = steps_of(answer)[0]
    assert words == (
        "ask again, and raise quota default/q to pods=2, requests.cpu=2, which admits the "
        "replacements of pods of rs/default/web; the applied file of default/q needs these limits"
    )
    assert answer.next_steps[0].outcome is OutcomeKind.REPLACEMENTS_REFUSED
    edits = tuple(word for word in shlex.split(options) if word != "--set")
    assert not what_if(cluster, replace(change, set=edits)).effect.refused_replacements


def test_a_quota_that_admits_missing_pods_is_not_lowered_for_replacements(snapshot, make, web):
    """The limits for the missing pods also admit replacements; lower limits would undo them."""
    cluster = snapshot(make.node("a"), make.node("b"), *web)
    answer = what_if(cluster, ClusterChange(apply=(quota(pods="1"),), scale=("rs/web=4",)))
    assert answer.effect.refused_replacements
    steps = [options for _, options in steps_of(answer) if "resourcequotas" in (options or "")]
    assert steps == ["--set 'resourcequotas/default/q:spec.hard[pods]=4'"]


def test_a_quota_admits_replacements_that_request_more(snapshot, make):
    """A pod gets the new requests when a user deletes it. The quota has room for half of them."""
    owner = make.workload("StatefulSet", "db", cpu="1")
    owner["metadata"]["uid"] = "db"
    owner["spec"]["updateStrategy"] = {"type": "OnDelete"}
    pod = make.pod("db-0", node_name="a", owner="db", cpu="1")
    pod["metadata"]["ownerReferences"][0] |= {"kind": "StatefulSet", "uid": "db"}
    pod["metadata"]["labels"] = {"app": "db"}
    pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    cluster = snapshot(make.node("a"), owner, pod, quota(requests_cpu="1500m"))
    edit = "sts/db:spec.template.spec.containers[c].resources.requests.cpu=2"
    assert steps_of(what_if(cluster, ClusterChange(set=(edit,))))[0] == (
        (
            "raise quota default/q to requests.cpu=3, which admits the replacements of pods of "
            "sts/default/db"
        ),
        patch_of("q", {"requests.cpu": "3"}),
    )


@pytest.mark.parametrize(
    ("limits", "edits"),
    [
        pytest.param({"pods": "3"}, ("quota/q:spec.hard.pods=2",), id="the question edits it"),
        pytest.param({"limits_cpu": "9"}, (), id="the pods do not state the resource"),
    ],
)
def test_no_higher_quota_is_suggested(snapshot, make, web, limits, edits):
    cluster = snapshot(make.node("a"), make.node("b"), *web, quota(**limits))
    answer = what_if(cluster, ClusterChange(scale=("rs/web=4",), set=edits))
    assert answer.effect.lasting_errors
    assert not any("quota" in step.code for step in answer.next_steps)


CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: Exists}]}]
"""


@pytest.mark.parametrize("has_pool", [True, False])
def test_a_copy_of_a_node_that_the_scheduler_configuration_excludes_is_not_suggested(
    snapshot, make, write, has_pool
):
    """The pod ran on node a before the configuration had its added affinity."""
    old = make.node("a")
    if has_pool:
        old["metadata"]["labels"]["pool"] = "x"
    pod = make.pod("web-1", node_name="a", owner="web")
    owner = make.workload("ReplicaSet", "web", replicas=1)
    owner["metadata"]["uid"] = "web"
    answer = drained(snapshot, old, make.node("b"), owner, pod, config=write("added.yaml", CONFIG))
    assert [one.name for one in answer.difference.pending] == ["web-1"]
    options = [step.options for step in answer.next_steps if "--add-nodes" in step.options]
    assert options == (["--add-nodes 1 --like a"] if has_pool else [])
    no_help = "With one more node like a, the pod stays pending, too."
    assert (no_help in answer.changed.notes) is not has_pool
