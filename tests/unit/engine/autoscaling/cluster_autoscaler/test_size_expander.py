"""The expanders that compare sizes: which options stay."""

from __future__ import annotations

from math import nan

import pytest

from fairlead.engine.autoscaling.cluster_autoscaler.expander.size import Lowest


@pytest.mark.parametrize(
    ("costs", "kept"),
    [
        ([2.0, 1.0, 1.0, 3.0], [1, 2]),
        ([1.0, nan, 1.0], [0, 2]),
        ([nan, 0.5], [0]),
    ],
)
def test_the_options_with_the_lowest_cost_stay(costs, kept):
    """Upstream compares in order, so nothing is lower than a first cost that is NaN."""
    assert Lowest(costs.__getitem__).best_options(range(len(costs))) == kept
