"""The node that a preemptor chooses and the victims on this node: the ordered rules."""

from __future__ import annotations

import pytest

from fairlead.engine.core.reporter import PodPreempting
from fairlead.engine.framework.preemption.disruption_budget import split_by_budget
from fairlead.testing.builders import make_budget, make_node, make_pod

LOWEST = -(1 << 31)


def victim(name, node, priority=0, cpu="4", start=None, **more):
    status = {} if start is None else {"startTime": f"2026-01-01T00:00:{start:02}Z"}
    return make_pod(
        name, node=node, priority=priority, requests={"cpu": cpu}, status=status, **more
    )


def preempting(stage, *objects):
    """Return the decision about the preemptor `p`, which needs a whole node."""
    nodes = sorted({pod.spec.node_name for pod in objects if getattr(pod.spec, "node_name", "")})
    preemptor = make_pod("p", priority=1000, requests={"cpu": "4"})
    scene = stage(*(make_node(name, cpu="4") for name in nodes), *objects, preemptor)
    scene.step()
    (record,) = scene.records.of(PodPreempting)
    return record


GUARDED = make_budget("b", {"app": "guarded"}, allowed=0)
RULES = {
    "fewest PDB violations": [
        GUARDED, victim("x", "n1", 1, labels={"app": "guarded"}), victim("y", "n2", 900),
    ],
    "lowest highest victim priority": [
        victim("x", "n1", 10, "2"), victim("x2", "n1", 0, "2"),
        victim("y", "n2", 9, "1"), victim("y2", "n2", 9, "3"),
    ],
    "lowest sum of victim priorities": [
        victim("x", "n1", 9, "1"), victim("x2", "n1", 9, "1"), victim("x3", "n1", 1, "2"),
        victim("y", "n2", 9, "3"), victim("y2", "n2", 9, "1"),
    ],
    "fewest victims": [
        victim("x", "n1", 9, "3"), victim("x2", "n1", LOWEST, "1"), victim("y", "n2", 9),
    ],
    "latest start of the most important victims": [
        victim("x", "n1", 9, "2", 30), victim("x2", "n1", 9, "2", 10),
        victim("y", "n2", 9, "2", 20), victim("y2", "n2", 9, "2", 20),
    ],
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_decides_if_all_earlier_rules_are_equal(stage, rule):
    """Each rule chooses n2, and all earlier rules give equal costs."""
    record = preempting(stage, *RULES[rule])
    assert (record.node, record.rule, record.candidates, record.equals) == ("n2", rule, 2, 1)


def test_a_pod_that_never_started_counts_as_started_now(stage):
    """It has run for the shortest time."""
    record = preempting(stage, victim("x", "n1", start=59), victim("y", "n2"))
    assert (record.node, record.rule) == ("n2", "latest start of the most important victims")


def test_ties_of_all_rules_are_broken_at_random(stage):
    """Among all candidates of equal cost, by the seed."""
    pods = [victim(f"v{i}", f"n{i}", start=1) for i in range(5)]
    record = preempting(stage, *pods, victim("w", "n9", 5, start=1))
    assert (record.rule, record.equals, record.candidates) == ("random among equals", 5, 6)


def test_a_single_candidate_is_chosen_without_a_rule(stage):
    """Nodes without pods of lower priority are not candidates."""
    record = preempting(stage, victim("x", "n1"), victim("y", "n2", 1000), victim("z", "n3", 2000))
    assert (record.node, record.rule, record.candidates) == ("n1", "only candidate", 1)


def keys(record):
    return [victim.name for victim in record.victims]


def test_the_fewest_and_least_important_pods_are_victims(stage):
    """More important pods are reprieved first, if the preemptor still fits."""
    pods = [victim("a", "n1", 3, "1"), victim("b", "n1", 2, "1"), victim("c", "n1", 1, "2")]
    preemptor = make_pod("p", priority=1000, requests={"cpu": "2"})
    scene = stage(make_node("n1", cpu="4"), *pods, preemptor)
    scene.step()
    assert keys(scene.records.of(PodPreempting)[0]) == ["c"]


def test_pods_of_equal_priority_are_reprieved_by_age(stage):
    """The pod that started first is reprieved first."""
    pods = [victim("young", "n1", 1, "2", 50), victim("old", "n1", 1, "2", 10)]
    scene = stage(make_node("n1", cpu="4"), *pods, make_pod("p", priority=9, requests={"cpu": "2"}))
    scene.step()
    assert keys(scene.records.of(PodPreempting)[0]) == ["young"]


def test_budget_violations_are_avoided_before_higher_priorities(stage):
    """Pods whose eviction would violate a budget are reprieved first."""
    pods = [victim("a", "n1", 1, "2", labels={"app": "guarded"}), victim("b", "n1", 5, "2")]
    preemptor = make_pod("p", priority=1000, requests={"cpu": "2"})
    scene = stage(make_node("n1", cpu="4"), GUARDED, *pods, preemptor)
    scene.step()
    (record,) = scene.records.of(PodPreempting)
    assert (keys(record), record.pdb_violations) == (["b"], 0)


def test_victims_are_listed_by_importance(stage):
    """Victims that violate a budget are sorted among the others."""
    pods = [
        victim("c", "n1", 1, "1"),
        victim("a", "n1", 7, "1", labels={"app": "guarded"}),
        victim("b", "n1", 5, "2"),
    ]
    record = preempting(stage, GUARDED, *pods)
    assert (keys(record), record.pdb_violations) == (["a", "b", "c"], 1)


# --- budgets ---------------------------------------------------------------------------------


def split(waiting, pods, budgets):
    """Return the names of the pods that violate a budget, and of the others."""
    found = split_by_budget([waiting.info(pod) for pod in pods], budgets)
    return tuple([one.pod.metadata.name for one in group] for group in found)


def guarded(name, **labels):
    return make_pod(name, labels={"app": "a"} | labels)


@pytest.mark.parametrize(
    ("budgets", "violating"),
    [
        ([], []),
        ([make_budget("b", {"app": "a"}, allowed=2)], ["z"]),
        ([make_budget("b", {"app": "a"}, allowed=0)], ["x", "y", "z"]),
        ([make_budget("b", {"app": "a"}, allowed=0, namespace="other")], []),
        ([make_budget("b", {}, allowed=0)], []),
        ([make_budget("b", {"app": "a"}, allowed=1, disrupted=["x"])], ["z"]),
        ([make_budget("b", {"app": "a"}, allowed=1), make_budget("c", {"t": "1"}, allowed=0)],
         ["y", "z"]),
        ([make_budget("b", {"app": "a"}, allowed=3), make_budget("c", {"t": "1"}, allowed=0)],
         ["y"]),
    ],
    ids=[
        "none", "room for two", "no room", "another namespace", "an empty selector",
        "one already counted", "every budget is charged for everybody", "two budgets",
    ],
)  # fmt: skip
def test_which_pods_violate_a_budget(waiting, budgets, violating):
    """Budgets are charged in order of importance, also for pods that violate another one."""
    pods = [guarded("x"), guarded("y", t="1"), guarded("z")]
    assert split(waiting, pods, budgets)[0] == violating


def test_a_pod_without_labels_is_guarded_by_no_budget(waiting):
    """No selector of a budget matches it."""
    assert split(waiting, [make_pod("x")], [make_budget("b", {}, allowed=0)]) == ([], ["x"])
