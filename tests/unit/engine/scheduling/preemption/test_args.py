"""DefaultPreemptionArgs: the limits that upstream refuses."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.engine.scheduling.preemption.args import DefaultPreemptionArgs


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        (
            {"minCandidateNodesPercentage": 101},
            "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
        ),
        (
            {"minCandidateNodesPercentage": -1},
            "minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]",
        ),
        (
            {"minCandidateNodesAbsolute": -1},
            "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
        ),
        (
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time",
        ),
    ],
)
def test_limits_outside_their_range_are_refused(limits, problem):
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(limits, DefaultPreemptionArgs)
    assert str(refused.value).startswith(problem)


@pytest.mark.parametrize("limits", [{"minCandidateNodesPercentage": 0}, {}])
def test_limits_at_the_edge_of_their_range_are_accepted(limits):
    assert msgspec.convert(limits, DefaultPreemptionArgs).are_set is bool(limits)
