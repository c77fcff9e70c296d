"""The lists of pods in an answer."""

from __future__ import annotations

from msgspec.structs import replace
from rich.console import Console

from fairlead.cli.output.pod_summary import displaced, other_pods
from fairlead.engine.core.instant import seconds
from fairlead.whatif.outcome.comparison.difference import difference
from fairlead.whatif.outcome.run_outcome import Evicted, NodeEnd, PodEnd, RunOutcome
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


def test_pods_that_never_exist_with_the_change_are_not_removed():
    """Without the change, the workload gets a second pod 9 s later; with it, neither remains."""
    found = difference(outcome(pod("p", 0), pod("q", 9)), outcome())
    console = Console(record=True, width=100)
    for one in other_pods(found):
        if one.rows:
            one.show(console, one.rows)
    lines = [line.split() for line in console.export_text().splitlines()]
    assert list(filter(None, lines)) == [
        ["REMOVED", "(1)", "NODE"],
        ["ns/p", "a"],
        ["ONLY", "WITHOUT", "THE", "CHANGE", "(1)", "NODE"],
        ["ns/q", "a"],
    ]


def test_repeated_evictions_are_counted_separately_from_the_pods():
    found = pod("p", 0)
    twice = tuple(Evicted(pod=found, node=node, at=0, why="drain") for node in "bc")
    once = difference(outcome(found), replace(outcome(found), evicted=twice[:1]))
    again = difference(outcome(found), replace(outcome(found), evicted=twice))
    assert displaced(once, 0).title.startswith("1 pod evicted")
    assert displaced(again, 0).title.startswith("2 evictions of 1 pod")
