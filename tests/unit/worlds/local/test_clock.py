"""The clock of a local cluster."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.worlds.local.clock import LocalClock


class Outside:
    """The time of the machine."""

    def __init__(self):
        self.now = 1_000

    def __call__(self):
        return self.now


@pytest.fixture
def outside():
    return Outside()


def test_time_passes_as_on_the_machine(outside):
    clock = LocalClock(50, monotonic=outside)
    outside.now += 7
    assert clock.now() == 57


def test_time_can_run_faster(outside):
    clock = LocalClock(0, speed=60, monotonic=outside)
    outside.now += seconds(1)
    assert clock.now() == seconds(60)
    assert clock.seconds_until(seconds(120)) == pytest.approx(1.0)


def test_a_paused_clock_changes_only_by_jumps(outside):
    clock = LocalClock(5, paused=True, monotonic=outside)
    outside.now += seconds(1)
    assert (clock.now(), clock.seconds_until(9)) == (5, None)
    clock.jump_to(8)
    clock.jump_to(3)
    assert clock.now() == 8


def test_changing_the_speed_never_sets_time_back(outside):
    clock = LocalClock(0, speed=10, monotonic=outside)
    outside.now += 5
    clock.control(speed=1)
    outside.now += 5
    clock.control(paused=True)
    outside.now += 5
    assert (clock.now(), clock.speed, clock.is_paused) == (55, 1, True)
    clock.control(paused=False)
    outside.now += 1
    assert clock.now() == 56


def test_a_held_clock_stops_at_its_limit(outside):
    """It continues from there, and never goes back."""
    clock = LocalClock(0, speed=10, monotonic=outside)
    clock.hold(30)
    outside.now += 5
    assert clock.now() == 30
    clock.hold(20)
    assert clock.now() == 30
    clock.jump_to(40)
    assert clock.now() == 40
    clock.hold(None)
    outside.now += 5
    assert clock.now() == 90


def test_the_clock_can_be_set_back_before_the_cluster_starts(outside):
    clock = LocalClock(50, monotonic=outside)
    outside.now += 7
    clock.set_to(20)
    outside.now += 1
    assert clock.now() == 21
