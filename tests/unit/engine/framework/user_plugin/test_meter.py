"""Calls and time by plugin and extension point; a plugin's time is its own."""

from __future__ import annotations

import pytest

from fairlead.engine.framework.user_plugin.meter import Meter, PluginTime


class Clock:
    """Advances by what plugins say they took."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


class Filters:
    name = "Filters"
    locality = "kept"

    def __init__(self, clock):
        self.clock = clock

    def filter(self, state, pod, node):
        self.clock.now += 5
        return node

    def filter_columns(self, state, pod, table, rows):
        self.clock.now += 7
        raise RuntimeError("broken")


class Rooms:
    name = "Rooms"

    def __init__(self, clock, other):
        self.clock, self.other = clock, other

    def post_filter(self, state, pod, diagnosis):
        self.clock.now += 1
        self.other.filter(state, pod, "n")
        self.other.filter(state, pod, "n")
        self.clock.now += 2
        return "done"


def test_calls_and_time_are_added_up_even_where_a_plugin_raises(clock) -> None:
    meter = Meter(clock)
    measured = meter.measured(Filters(clock))
    assert measured.filter(None, None, "n") == "n"
    with pytest.raises(RuntimeError):
        measured.filter_columns(None, None, None, None)
    assert meter.times() == [PluginTime("Filters", "Filter", 2, 12)]


def test_what_others_take_counts_as_theirs(clock) -> None:
    meter = Meter(clock)
    rooms = meter.measured(Rooms(clock, meter.measured(Filters(clock))))
    assert rooms.post_filter(None, None, None) == "done"
    assert meter.times() == [
        PluginTime("Filters", "Filter", 2, 10),
        PluginTime("Rooms", "PostFilter", 1, 3),
    ]


def test_whoever_was_not_asked_is_not_listed(clock) -> None:
    meter = Meter(clock)
    meter.measured(Filters(clock))
    assert meter.times() == []


def test_a_measured_plugin_has_the_name_attributes_and_methods_of_its_own(clock) -> None:
    measured = Meter(clock).measured(Filters(clock))
    assert (measured.name, measured.locality) == ("Filters", "kept")
    assert not hasattr(measured, "score")
