"""Counts over time as a line of blocks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.cli.output.console.sparkline import StepFunction, axis, sparkline
from fairlead.engine.core.instant import seconds


def test_each_block_is_the_highest_count_of_its_slice():
    steps = StepFunction([0, 25, 50], [1, 4, 0])
    assert sparkline(steps, 0, 80, width=8) == "▂▂███···"


def test_zero_is_a_dot_and_any_other_count_is_a_block():
    steps = StepFunction([10, 20], [1, 1000])
    assert sparkline(steps, 0, 40, width=4) == "·▁██"


def test_a_count_from_before_the_start_is_shown_from_the_start():
    assert sparkline(StepFunction([-5], [3]), 0, 10, width=2) == "██"


def test_the_axis_counts_from_the_start_to_the_end():
    line = axis(0, seconds(1200), width=72)
    assert line.startswith("0s")
    assert line.endswith("20m00s")
    assert line.split() == ["0s", "4m00s", "8m00s", "12m00s", "16m00s", "20m00s"]
    assert len(line) == 72


@given(values=st.lists(st.integers(0, 10**6), min_size=1, max_size=30), width=st.integers(1, 100))
def test_a_sparkline_has_the_given_width_and_the_full_height(values, width):
    steps = StepFunction([number * 10 for number in range(len(values))], values)
    drawn = sparkline(steps, 0, 10 * len(values), width)
    assert len(drawn) == width
    assert ("█" in drawn) == (max(values) > 0)
