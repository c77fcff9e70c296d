"""The sentence about the cost of the autoscaled nodes."""

from __future__ import annotations

import pytest

from fairlead.whatif.outcome.autoscaling.node_cost import node_cost_sentence
from fairlead.whatif.outcome.autoscaling.node_group import (
    AutoscalingOutcome,
    GroupOutcome,
    NodeTransition,
)


def outcome(per_hour, *moves, estimated=False):
    """Nodes that cost `per_hour` at the end; each of `moves` is the price of a removed node."""
    group = GroupOutcome("a", 0, None, 1, 1, 0, 0, 1.0, True, per_hour, per_hour, "t")
    gone = tuple(NodeTransition(0, "n", "a", came=False, price=price) for price in moves)
    prices = frozenset({"t"} if estimated else ())
    return AutoscalingOutcome("karpenter", (group,), gone, {}, {}, estimated_prices=prices)


@pytest.mark.parametrize(
    ("changed", "without", "end"),
    [
        (outcome(2), outcome(1), "cost 1,460 per month at the end, 730 more than without the"),
        (outcome(1), outcome(2), "cost 730 per month at the end, 730 less than without the"),
        (outcome(1), outcome(1.0001), "cost 730 per month at the end, as without the change."),
        (outcome(1), None, "cost 730 per month at the end."),
        (outcome(1), outcome(None), "cost 730 per month at the end."),
        (outcome(1, estimated=True), outcome(1), "cost an estimated 730 per month at the end, as"),
    ],
    ids=["more", "less", "equal", "one run", "an unknown cost", "estimated"],
)
def test_the_sentence_compares_both_runs(changed, without, end):
    found = node_cost_sentence(changed, without, is_changed=True)
    assert found.startswith(f"The autoscaled nodes {end}")


@pytest.mark.parametrize(
    ("changed", "end"),
    [
        (outcome(1, 0.5, 0.5), "cost 730 per month at the end, 730 less than in the dump."),
        (outcome(1), "cost 730 per month at the end, as in the dump."),
        (outcome(1, None), "cost 730 per month at the end."),
    ],
)
def test_the_sentence_compares_with_the_dump_without_a_change(changed, end):
    found = node_cost_sentence(changed, changed, is_changed=False)
    assert found == f"The autoscaled nodes {end}"


@pytest.mark.parametrize(
    "changed", [outcome(None), AutoscalingOutcome("karpenter", (), (), {}, {})]
)
def test_there_is_no_sentence_without_a_cost(changed):
    assert node_cost_sentence(changed, outcome(1), is_changed=True) == ""
