"""Sampling of a time line keeps its first and last points and its peaks."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.whatif.report.sampling import SAMPLES_MAX, sampled

LONG = SAMPLES_MAX + 600


def run_of(pending, running, down=()):
    """A time line of one priority with a sample a second."""
    preempted = list(range(len(pending)))
    series = [{"priority": 1, "pending": pending, "running": running, "preempted": preempted}]
    if down:
        series[0]["down"] = down
    return {"t_s": list(range(len(pending))), "series": series}


def test_a_short_time_line_is_not_sampled():
    """A time line that fits the chart is unchanged."""
    timeline = run_of([1, 2, 3], [3, 2, 1])
    assert sampled(timeline) == {"recorded": 3, **timeline}


def test_zero_counts_are_left_out():
    """A count that stays zero is not stored."""
    assert sampled(run_of([0, 0], [0, 1]))["series"] == [
        {"priority": 1, "running": [0, 1], "preempted": [0, 1]}
    ]


@settings(max_examples=25)
@given(st.integers(0, LONG - 1), st.integers(0, LONG - 1))
def test_peaks_and_end_points_are_kept(spike, dip):
    """A single sample with many pending or few running pods is kept, as are both end points."""
    pending, running = [5] * LONG, [50] * LONG
    pending[spike], running[dip] = 99, 0
    thin = sampled(run_of(pending, running))
    kept = dict(zip(thin["t_s"], thin["series"][0]["pending"], strict=True))
    assert len(thin["t_s"]) <= SAMPLES_MAX
    assert thin["t_s"] == sorted(set(thin["t_s"]))
    assert (thin["t_s"][0], thin["t_s"][-1]) == (0, LONG - 1)
    assert kept[spike] == 99
    assert thin["series"][0]["running"][thin["t_s"].index(dip)] == 0
    assert thin["series"][0]["preempted"][-1] == LONG - 1


def test_a_peak_of_pods_on_failed_nodes_is_kept():
    """A node may be down for a moment only."""
    down = [0] * LONG
    down[7] = 3
    thin = sampled(run_of([5] * LONG, [50] * LONG, down))
    assert max(thin["series"][0]["down"]) == 3


def test_samples_at_one_instant_are_reduced():
    """Samples whose time span is zero are reduced without a division by zero."""
    timeline = run_of([1] * LONG, [2] * LONG)
    thin = sampled({**timeline, "t_s": [7.0] * LONG})
    assert thin["recorded"] == LONG
    assert 1 <= len(thin["t_s"]) <= SAMPLES_MAX
