"""DisplacementGraph: cycles, starvation and wasted nominations."""

from __future__ import annotations

import pytest

from fairlead.engine.loop_detector import Displacement, DisplacementGraph, NominationHistory


def add(graph, *pairs):
    """Add `by>victim` pairs to the graph; return the findings."""
    found = []
    for at, pair in enumerate(pairs):
        by, victim = pair.split(">")
        found.append(graph.add(Displacement(by, victim, "rule", at)))
    return found


def test_two_workloads_that_preempt_each_other_are_a_cycle():
    """The second displacement closes a cycle of two."""
    first, second = add(DisplacementGraph(5), "a>b", "b>a")
    assert first.cycle is None
    assert second.cycle.workloads == ("a", "b")
    assert second.cycle.times == 1


def test_the_minimal_cycle_is_reported():
    """The shortest of several cycles."""
    *_, last = add(DisplacementGraph(9), "a>b", "b>c", "c>d", "a>d", "b>d", "d>a")
    assert last.cycle.workloads == ("a", "d")


def test_a_chain_of_displacements_is_no_cycle():
    """For any length."""
    assert all(f.cycle is None for f in add(DisplacementGraph(9), "a>b", "b>c", "c>d", "a>d"))


def test_a_workload_that_displaces_its_own_pods_is_no_cycle():
    """New pods displace pods with the old value of their PriorityClass, each of them once."""
    found = add(DisplacementGraph(5), "a>a", "a>a")
    assert [one.cycle for one in found] == [None, None]


def test_cycles_are_reported_again_when_their_count_doubles():
    """A loop that continues is reported at its repetitions 1, 2, 4 and 8."""
    found = add(DisplacementGraph(99), *["a>b", "b>a"] * 5)
    assert [f.cycle.times for f in found if f.cycle] == [1, 2, 4, 8]


def test_a_cycle_is_the_same_from_every_start():
    """a, b, c and b, c, a are the same cycle and counted together."""
    *_, sixth = add(DisplacementGraph(99), "a>b", "b>c", "c>a", "a>b")
    assert sixth.cycle.times == 2


def test_starvation_is_reported_above_each_multiple():
    """Displaced more than three times, then more than six times."""
    found = add(DisplacementGraph(3), *["x>poor"] * 7)
    assert [f.displaced_times for f in found if f.starving] == [4, 7]


def test_the_number_of_edges_is_bounded(monkeypatch):
    """The oldest edges are dropped, and with them the cycles that they would have closed."""
    monkeypatch.setattr("fairlead.engine.loop_detector._EDGES_MAX", 2)
    graph = DisplacementGraph(9)
    *_, last = add(graph, "a>b", "x>y", "y>z", "b>a")
    assert last.cycle is None


@pytest.mark.parametrize(
    ("story", "reported"),
    [
        ("P:n1 N:n1", []),
        ("P:n1 N:n2 P:n1 N:n2", [2]),
        ("P:n1 P:n1 P:n1", [2]),
        ("N:n1 N:n2", []),
        ("P:n1 N:n2 P:n1 N:n1 P:n1 N:n2", []),
    ],
    ids=[
        "a nomination that is used is not wasted",
        "going elsewhere twice is worth telling",
        "being promised again and again is waste too",
        "who was promised nothing wastes nothing",
        "a kept promise starts the count anew",
    ],
)
def test_every_second_wasted_nomination_in_a_row_is_reported(story, reported):
    """P is a nomination, N a placement."""
    ledger, found = NominationHistory(2), []
    for step in story.split():
        kind, node = step.split(":")
        times = ledger.nominated("p", node) if kind == "P" else ledger.placed("p", node)
        found += [times] if times else []
    assert found == reported
