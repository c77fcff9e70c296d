"""The steps that a report suggests after an answer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.question import what_if
from fairlead.whatif.report.next_step import next_steps


def steps_of(answer):
    """Return the words of each step, with its options, command or place."""
    return [
        (step["words"], step.get("options") or step.get("command") or step["place"])
        for step in next_steps(answer)
    ]


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
    assert steps_of(answer) == [
        ("See every displaced pod and its cause.", "changes"),
        ("Drain:", "kubectl drain a"),
    ]


def test_a_rolling_drain_ends_with_the_command_for_its_first_nodes(snapshot, make, web):
    """kubectl drain a b would cordon node b before pods of node a can move to it."""
    web[0]["spec"]["replicas"] = 3
    third = make.pod("web-3", node_name="c", owner="web")
    third["metadata"]["labels"] = {"app": "web"}
    change = ClusterChange(drain=("a", "b"), max_unavailable=1)
    answer = what_if(snapshot(*map(make.node, "abc"), *web, third), change)
    words = "Drain the first node, and the others as drained nodes return to service:"
    assert (words, "kubectl drain a") in steps_of(answer)


def test_pods_without_room_suggest_a_node(snapshot, make, web):
    answer = drained(snapshot, make.node("a"), make.node("b", cpu="1"), *web)
    assert steps_of(answer) == [
        ("See why no node takes these pods.", "pending"),
        ("Ask again with one more node like b:", "--add-nodes 1 --like b"),
    ]


def test_a_new_node_that_is_suggested_can_hold_the_pods(snapshot, make, web):
    """Node c is too small for a pod of 1 CPU, and the three pods need two nodes like b."""
    web[0]["spec"]["replicas"] = 4
    nodes = [make.node("a"), make.node("b", cpu="2"), make.node("c", cpu="500m")]
    more = [make.pod(f"web-{n}", node_name="a", owner="web") for n in (3, 4)]
    for pod in more:
        pod["metadata"]["labels"] = {"app": "web"}
    full = make.pod("full", node_name="b", cpu="1")
    steps = steps_of(drained(snapshot, *nodes, *web, *more, full))
    assert ("Ask again with 2 more nodes like b:", "--add-nodes 2 --like b") in steps


BLOCKERS = "List everything that blocks the drain, and what would unblock it:"
LIKE_A = ("Ask again with one more node like a:", "--add-nodes 1 --like a")


def plan_of(answer):
    return f"fairlead drain-plan {answer.source} --nodes a"


BLOCKED = ("See which pods cannot be evicted, and why.", "tab=undrained")


@pytest.mark.parametrize(
    ("rule", "words", "options"),
    [
        (
            {"minAvailable": 2},
            "Ask again with one more replica of rs/default/web:",
            "--scale rs/default/web=3",
        ),
        (
            {"maxUnavailable": 0},
            "Ask again with one more unavailable pod allowed by default/web:",
            "--set pdb/default/web:spec.maxUnavailable=1",
        ),
        (
            {"maxUnavailable": "0%"},
            "Ask again with one more unavailable pod allowed by default/web:",
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
    assert steps_of(answer)[:2] == [BLOCKED, (words, options)]


@pytest.mark.parametrize("rule", [{"maxUnavailable": 1}, {"minAvailable": "50%"}])
def test_a_budget_of_pods_without_a_controller_gets_a_number_as_min_available(
    snapshot, make, web, rule
):
    """Other limits count the replicas of controllers, so they would still allow no eviction."""
    pods = [{**one, "metadata": {**one["metadata"], "ownerReferences": []}} for one in web[1:]]
    nodes = [make.node("a"), make.node("b")]
    answer = drained(snapshot, *nodes, *pods, budget(**rule))
    words = (
        "Ask again with a number as minAvailable of default/web; other limits count only pods with "
        "a controller:"
    )
    options = (
        "--set pdb/default/web:spec.maxUnavailable=null --set pdb/default/web:spec.minAvailable=1"
    )
    assert steps_of(answer)[:2] == [BLOCKED, (words, options)]
    number = budget(maxUnavailable=None, minAvailable=1)
    assert not drained(snapshot, *nodes, *pods, number).changed.undrained


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
    assert steps_of(answer) == [
        BLOCKED,
        ("See why no node takes these pods.", "pending"),
        LIKE_A,
        (BLOCKERS, plan_of(answer)),
    ]
    change = ClusterChange(drain=("a",), add_nodes=1, like="a")
    helped = what_if(snapshot(*spread, budget(minAvailable=3)), change)
    assert not helped.changed.undrained
    assert not helped.changed.pending()


def test_the_plan_of_a_drain_needs_the_name_of_a_file(snapshot, spread):
    """The name of a running cluster, or standard input, is no argument of the command."""
    answer = drained(snapshot, *spread, budget(minAvailable=3))
    steps = steps_of(replace(answer, source="prod"))
    assert (BLOCKERS, "fairlead drain-plan SNAPSHOT --nodes a") in steps


def test_pods_of_a_failed_node_suggest_a_copy_of_that_node(snapshot, spread):
    change = ClusterChange(failures=Failures(fail_node=("a",)))
    assert LIKE_A in steps_of(what_if(snapshot(*spread), change))


def test_pods_of_a_failed_zone_suggest_no_node_in_that_zone(snapshot, spread):
    """The new node would fail, too."""
    change = ClusterChange(failures=Failures(fail_zone=("1",)))
    answer = what_if(snapshot(*spread), change)
    assert answer.difference.pending
    assert not any("--add-nodes" in where for _, where in steps_of(answer))


def test_a_budget_breached_by_more_pods_than_it_lacks_suggests_no_replica(snapshot, spread):
    """Two pods fail at once, and the budget lacks one pod then."""
    change = ClusterChange(failures=Failures(fail_zone=("1",)), lasts="20m")
    answer = what_if(snapshot(*spread, budget(minAvailable=3)), change)
    assert answer.verdict.first.sentence == "Budget default/web is breached by 2 pods."
    assert not any("--scale" in where for _, where in steps_of(answer))


def test_a_breached_budget_suggests_as_many_replicas_as_it_lacked(snapshot, make, web):
    """Both pods leave failed nodes, whatever the budget says."""
    nodes = [make.node(name) for name in "abc"]
    failures = Failures(fail_node=("a", "b"))
    cluster = snapshot(*nodes, *web, budget(minAvailable=2))
    steps = steps_of(what_if(cluster, ClusterChange(failures=failures)))
    assert steps[:4] == [
        ("See what happens to the pods of rs/default/web.", "pod=rs/default/web"),
        (
            "See which pods were displaced against default/web, and by what.",
            "tab=pdb_breaches&row=default/web",
        ),
        ("Ask again with 2 more replicas of rs/default/web:", "--scale rs/default/web=4"),
        ("See why budgets do not keep pods from leaving failed nodes.", "misconceptions"),
    ]


def test_a_breached_maximum_suggests_no_looser_budget(snapshot, make, web):
    """A budget that permits the losses of an outage would hold, but would not help."""
    nodes = [make.node(name) for name in "abc"]
    cluster = snapshot(*nodes, *web, budget(maxUnavailable="10%"))
    answer = what_if(cluster, ClusterChange(failures=Failures(fail_node=("a", "b"))))
    assert not any("--set" in where for _, where in steps_of(answer))


def test_a_stateful_set_on_a_failed_node_suggests_to_taint_the_node(snapshot, make):
    db = make.workload("StatefulSet", "db", replicas=1)
    db["metadata"]["uid"] = "db"
    pod = make.pod("db-0", node_name="a", owner="db")
    pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
    pod["metadata"]["labels"] = {"app": "db"}
    pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    change = ClusterChange(failures=Failures(fail_node=("a",)), lasts="20m")
    answer = what_if(snapshot(make.node("a"), make.node("b"), db, pod), change)
    assert answer.verdict.first.sentence == "sts/default/db has no ready pod for 20m01s."
    assert steps_of(answer)[:2] == [
        ("See what happens to the pods of sts/default/db.", "pod=sts/default/db"),
        (
            "If the failed node is shut down for good, have the pods replaced elsewhere:",
            "kubectl taint nodes a node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
        ),
    ]


def test_a_budget_of_all_pods_suggests_no_replica(snapshot, make, web):
    answer = drained(snapshot, make.node("a"), make.node("b"), *web, budget(minAvailable="100%"))
    assert steps_of(answer) == [BLOCKED, (BLOCKERS, plan_of(answer))]


def test_a_choice_among_equal_nodes_suggests_seeds_unless_seeds_were_set(snapshot, make, web):
    nodes = [make.node(name) for name in "abcd"]
    chance = ("Ask which outcomes depend on the seed:", "--seeds 20")
    assert chance in steps_of(drained(snapshot, *nodes, *web))
    assert chance not in steps_of(drained(snapshot, *nodes, *web, seeds=2))
