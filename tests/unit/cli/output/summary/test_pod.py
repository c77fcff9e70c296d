"""The lists of pods in an answer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rich.console import Console

from fairlead.cli.output.summary.pod import NodeGroups, displaced, other_pods
from fairlead.engine.core.instant import seconds
from fairlead.whatif.outcome.comparison.difference import NotCreated, difference
from fairlead.whatif.outcome.run_outcome import (
    Evicted,
    NodeEnd,
    PodEnd,
    Preempted,
    RunOutcome,
)
from fairlead.whatif.outcome.workload import WorkloadRef

WEB = WorkloadRef("Deployment", "ns", "web")


def pod(name, started_s):
    return PodEnd(namespace="ns", name=name, node="a", started_at=seconds(started_s), owner=WEB)


def outcome(*pods):
    node = NodeEnd(name="a", zone="", unschedulable=False, allocatable={}, requested={}, pods=())
    return RunOutcome(
        started_at=0, ended_at=seconds(60), settled=True, pods={one.key: one for one in pods},
        preempted=(), evicted=(), pdb_breaches=(), undrained=(), skipped=(), errors=(),
        recurrences=(), nodes=(node,), allocations=(), priority_names={}, samples=(),
        choices_among_equals=0,
    )  # fmt: skip


def printed(sections, rows_max=100):
    """Return the words of each line, with at most `rows_max` rows of each section."""
    console = Console(record=True, width=100)
    for one in sections:
        if one.rows:
            one.show(console, min(one.rows, rows_max))
    lines = [line.split() for line in console.export_text().splitlines()]
    return list(filter(None, lines))


@pytest.mark.parametrize(
    ("zones", "rows_max", "lines"),
    [
        ({"a": "1", "b": "2"}, 3, [
            ["NEWLY", "PLACED", "(5)", "ZONE", "PODS", "NODES"],
            ["deploy/ns/web", "1", "2", "1"],
            ["deploy/ns/web", "2", "3", "1"],
        ]),
        ({}, 3, [
            ["NEWLY", "PLACED", "(5)", "PODS", "NODES"],
            ["deploy/ns/web", "5", "2"],
        ]),
        ({"a": "1", "b": "2"}, 5, [
            ["NEWLY", "PLACED", "(5)", "NODE"],
            *(["ns/p0", "a"], ["ns/p1", "b"], ["ns/p2", "b"], ["ns/p3", "a"], ["ns/p4", "b"]),
        ]),
    ],
    ids=["a long list has numbers by zone", "nodes without zones", "a short list has names"],
)  # fmt: skip
def test_new_pods_that_do_not_fit_on_the_screen_are_counted(zones, rows_max, lines):
    pods = [replace(pod(f"p{at}", 1), node=node) for at, node in enumerate("abbab")]
    changed = outcome(*pods)
    found = difference(outcome(), changed)
    assert printed(other_pods(found, changed, NodeGroups("ZONE", zones)), rows_max) == lines


def test_pods_that_never_exist_with_the_change_are_not_removed():
    """Without the change, the workload gets a second pod 9 s later; with it, neither remains."""
    changed = outcome()
    found = difference(outcome(pod("p", 0), pod("q", 9)), changed)
    assert printed(other_pods(found, changed, NodeGroups("ZONE", {}))) == [
        ["REMOVED", "(1)", "NODE"],
        ["ns/p", "a"],
        ["ONLY", "WITHOUT", "THE", "CHANGE", "(1)", "NODE"],
        ["ns/q", "a"],
    ]


def test_old_pods_that_only_the_other_run_removes_are_not_new():
    """For example, an autoscaler removes their node only without the change."""
    old = replace(pod("p", 0), is_initial=True, started_at=0)
    changed = outcome(old, pod("q", 1))
    found = difference(outcome(), changed)
    assert printed(other_pods(found, changed, NodeGroups("ZONE", {}))) == [
        ["NEWLY", "PLACED", "(1)", "NODE"],
        ["ns/q", "a"],
        ["REMOVED", "ONLY", "WITHOUT", "THE", "CHANGE", "(1)", "NODE"],
        ["ns/p", "a"],
    ]


@pytest.mark.parametrize(("quota", "waits_for"), [("quota/ns/q", "quota/ns/q"), ("", "-")])
def test_a_pod_that_is_not_created_again_waits_for_the_quota_that_refuses_it(quota, waits_for):
    missing = (NotCreated(pod("p", 0), quota=quota),)
    found = replace(difference(outcome(), outcome()), not_created=missing)
    assert printed(other_pods(found, outcome(), NodeGroups("ZONE", {}))) == [
        ["NOT", "CREATED", "AGAIN", "(1)", "NODE", "WAITS", "FOR"],
        ["ns/p", "a", waits_for],
    ]


def test_repeated_evictions_are_counted_separately_from_the_pods():
    found = pod("p", 0)
    twice = tuple(Evicted(pod=found, node=node, at=0, why="drain") for node in "bc")
    once = difference(outcome(found), replace(outcome(found), evicted=twice[:1]))
    again = difference(outcome(found), replace(outcome(found), evicted=twice))
    assert displaced(once, 0).title.startswith("1 pod evicted")
    assert displaced(again, 0).title.startswith("2 evictions of 1 pod")


def test_a_pod_that_moves_twice_goes_to_the_node_that_it_leaves_next():
    """The pod is evicted from a, preempted on b, and is on c at the end."""
    before, after = pod("p", 0), replace(pod("p", 0), node="c")
    victim = Preempted(
        pod=after, node="b", at=seconds(60), by="ns/q", by_priority=1, rule="", candidates=1
    )
    changed = replace(
        outcome(after),
        evicted=(Evicted(pod=after, node="a", at=0, why="drain"),),
        preempted=(victim,),
    )
    rows = printed([displaced(difference(outcome(before), changed), 0)])
    assert [row[:3] for row in rows if row[0] == "ns/p"] == [
        ["ns/p", "b", "c"],
        ["ns/p", "a", "b"],
    ]
