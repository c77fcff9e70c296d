"""The number of nodes that are drained at a time: a number, or a percentage of the nodes."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.change_script import script_of_change
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.rolling_drain import nodes_at_once, require_pace
from fairlead.whatif.input.error import InputError


@pytest.mark.parametrize(
    ("unavailable", "total", "count"),
    [
        pytest.param(7, 3, 7, id="a number does not depend on the nodes"),
        pytest.param("50%", 5, 2, id="a part is rounded down"),
        pytest.param("5%", 3, 1, id="at least one node is drained"),
        pytest.param("29%", 100, 29, id="a percentage is not rounded as a float would be"),
        pytest.param("100%", 4, 4, id="all nodes"),
    ],
)
def test_a_percentage_counts_as_a_part_of_the_nodes(unavailable, total, count):
    require_pace("--max-unavailable", unavailable)
    assert nodes_at_once(unavailable, total) == count


@pytest.mark.parametrize(
    ("unavailable", "problem"),
    [
        (0, "0 is not from 1 to 1000000"),
        ("0%", "0% is not from 1% to 100%"),
        ("101%", "101% is not from 1% to 100%"),
        ("-5%", "'-5%' is neither an integer nor a percentage such as 5%"),
        ("1.5", "'1.5' is neither an integer nor a percentage such as 5%"),
        ("5", "'5' is text, not an integer"),
    ],
)
def test_other_values_are_refused(unavailable, problem):
    with pytest.raises(InputError) as refused:
        require_pace("day.yaml", unavailable, "events[0].max-unavailable")
    assert str(refused.value) == f"day.yaml: events[0].max-unavailable: {problem}"


@pytest.mark.parametrize(
    ("drained", "note"),
    [
        (("a", "b"), "a was cordoned before the drain, and it is still cordoned after it."),
        (("a", "c"), "a, c were cordoned before the drain, and they are still cordoned after it."),
        (("b",), None),
    ],
)
def test_nodes_that_were_cordoned_before_a_rolling_drain_stay_cordoned(
    snapshot, make, drained, note
):
    nodes = [make.node(name) for name in "abc"]
    for node in (nodes[0], nodes[2]):
        node["spec"] = {"unschedulable": True}
    script = script_of_change(ClusterChange(drain=drained, max_unavailable=1), snapshot(*nodes))
    assert script.notes == ((note,) if note else ())
    assert not script_of_change(ClusterChange(drain=drained), snapshot(*nodes)).notes
