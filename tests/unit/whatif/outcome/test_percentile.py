"""Percentiles are values that occurred, by nearest rank."""

from __future__ import annotations

import pytest

from fairlead.whatif.outcome.percentile import percentile, percentile_of_all


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1), (1, 1), (10, 1), (11, 2), (50, 5), (95, 10), (100, 10)]
)
def test_a_percentile_is_the_smallest_value_that_enough_values_do_not_exceed(percent, expected):
    assert percentile(range(1, 11), percent) == expected


def test_values_that_are_not_known_are_the_largest():
    assert percentile_of_all([1, 2], 4, 50) == 2
    assert percentile_of_all([1, 2], 4, 51) is None
    assert percentile_of_all([], 1, 50) is None
