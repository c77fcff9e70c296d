"""The steps that a report suggests after an answer."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.question import Conditions, what_if
from fairlead.whatif.report.next_step import next_steps


def steps_of(answer):
    """The words of each step, with its options, command or place."""
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


def test_pods_without_room_suggest_a_node(snapshot, make, web):
    answer = drained(snapshot, make.node("a"), make.node("b", cpu="1"), *web)
    assert steps_of(answer) == [
        ("See why no node takes these pods.", "pending"),
        ("Ask again with one more node:", "--add-nodes 1 --like a"),
    ]


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
            "Ask again with one more absence allowed by default/web:",
            "--set pdb/default/web:spec.maxUnavailable=1",
        ),
    ],
    ids=["a minimum: another replica", "a maximum: another absence"],
)
def test_a_budget_that_blocks_suggests_what_would_satisfy_it(
    snapshot, make, web, rule, words, options
):
    answer = drained(snapshot, make.node("a"), make.node("b"), *web, budget(**rule))
    assert steps_of(answer)[0] == (words, options)


def test_a_breached_budget_suggests_as_many_replicas_as_it_lacked(snapshot, make, web):
    """Both pods leave failed nodes, whatever the budget says."""
    nodes = [make.node(name) for name in "abc"]
    failures = Failures(fail_node=("a", "b"))
    cluster = snapshot(*nodes, *web, budget(minAvailable=2))
    steps = steps_of(what_if(cluster, ClusterChange(failures=failures)))
    assert steps[:2] == [
        ("See which pods were displaced against a budget: tab PDB breaches.", "changes"),
        ("Ask again with 2 more replicas of rs/default/web:", "--scale rs/default/web=4"),
    ]


def test_a_budget_of_all_pods_suggests_no_replica(snapshot, make, web):
    answer = drained(snapshot, make.node("a"), make.node("b"), *web, budget(minAvailable="100%"))
    assert steps_of(answer) == []


def test_a_choice_among_equals_suggests_more_seeds_unless_they_were_asked_for(snapshot, make, web):
    nodes = [make.node(name) for name in "abcd"]
    chance = ("Ask which outcomes depend on chance:", "--seeds 20")
    assert chance in steps_of(drained(snapshot, *nodes, *web))
    assert chance not in steps_of(drained(snapshot, *nodes, *web, seeds=2))
