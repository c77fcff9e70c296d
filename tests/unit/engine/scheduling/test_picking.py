"""Which node a preemptor chooses and whom it gives up there: the ordered rules, one by one."""

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
    """What the preemptor `p`, who needs a whole node, decides."""
    nodes = sorted({pod.spec.node_name for pod in objects if getattr(pod.spec, "node_name", "")})
    preemptor = make_pod("p", priority=1000, requests={"cpu": "4"})
    scene = stage(*(make_node(name, cpu="4") for name in nodes), *objects, preemptor)
    scene.turn()
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
def test_the_rule_that_decides(stage, rule):
    """Each of them takes n2, where everything before it is even."""
    record = preempting(stage, *RULES[rule])
    assert (record.node, record.rule, record.candidates, record.equals) == ("n2", rule, 2, 1)


def test_a_pod_that_never_started_counts_as_started_now(stage):
    """It has the least work to lose."""
    record = preempting(stage, victim("x", "n1", start=59), victim("y", "n2"))
    assert (record.node, record.rule) == ("n2", "latest start of the most important victims")


def test_where_no_rule_decides_chance_does(stage):
    """Among all that are even, by the seed."""
    pods = [victim(f"v{i}", f"n{i}", start=1) for i in range(5)]
    record = preempting(stage, *pods, victim("w", "n9", 5, start=1))
    assert (record.rule, record.equals, record.candidates) == ("random among equals", 5, 6)


def test_one_candidate_needs_no_rule(stage):
    """Nodes without lesser pods are none."""
    record = preempting(stage, victim("x", "n1"), victim("y", "n2", 1000), victim("z", "n3", 2000))
    assert (record.node, record.rule, record.candidates) == ("n1", "only candidate", 1)


def keys(record):
    return [victim.name for victim in record.victims]


def test_as_few_as_possible_go_and_the_least_important(stage):
    """The more important are let back first, if the preemptor still fits."""
    pods = [victim("a", "n1", 3, "1"), victim("b", "n1", 2, "1"), victim("c", "n1", 1, "2")]
    preemptor = make_pod("p", priority=1000, requests={"cpu": "2"})
    scene = stage(make_node("n1", cpu="4"), *pods, preemptor)
    scene.turn()
    assert keys(scene.records.of(PodPreempting)[0]) == ["c"]


def test_equals_in_priority_are_kept_by_age(stage):
    """Who started first stays."""
    pods = [victim("young", "n1", 1, "2", 50), victim("old", "n1", 1, "2", 10)]
    scene = stage(make_node("n1", cpu="4"), *pods, make_pod("p", priority=9, requests={"cpu": "2"}))
    scene.turn()
    assert keys(scene.records.of(PodPreempting)[0]) == ["young"]


def test_a_breach_is_avoided_at_the_cost_of_someone_more_important(stage):
    """Whose loss would breach a budget is let back first."""
    pods = [victim("a", "n1", 1, "2", labels={"app": "guarded"}), victim("b", "n1", 5, "2")]
    preemptor = make_pod("p", priority=1000, requests={"cpu": "2"})
    scene = stage(make_node("n1", cpu="4"), GUARDED, *pods, preemptor)
    scene.turn()
    (record,) = scene.records.of(PodPreempting)
    assert (keys(record), record.pdb_violations) == (["b"], 0)


def test_victims_are_listed_by_importance(stage):
    """Those that breach a budget among the others."""
    pods = [
        victim("c", "n1", 1, "1"),
        victim("a", "n1", 7, "1", labels={"app": "guarded"}),
        victim("b", "n1", 5, "2"),
    ]
    record = preempting(stage, GUARDED, *pods)
    assert (keys(record), record.pdb_violations) == (["a", "b", "c"], 1)


# --- budgets ---------------------------------------------------------------------------------


def split(waiting, pods, budgets):
    """Names of the violating and of the others."""
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
def test_who_would_breach_a_budget(waiting, budgets, violating):
    """Budgets are charged in order of importance, also for those that breach another one."""
    pods = [guarded("x"), guarded("y", t="1"), guarded("z")]
    assert split(waiting, pods, budgets)[0] == violating


def test_a_pod_without_labels_is_guarded_by_no_budget(waiting):
    """Whatever the selector."""
    assert split(waiting, [make_pod("x")], [make_budget("b", {}, allowed=0)]) == ([], ["x"])
