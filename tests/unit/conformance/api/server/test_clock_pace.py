"""How the virtual clock advances while commands are replayed one after another."""

from __future__ import annotations

import pytest

from fairlead.conformance.api.server.clock_pace import (
    PAUSE_AFTER_READ,
    REQUEST_DURATION,
    START_INTERVAL,
    STARTUP_TIME,
    WAITING_MAX,
    WAITING_STEP,
    WATCH_PAUSE_MIN,
    Pace,
)
from fairlead.engine.core.instant import seconds


@pytest.fixture
def pace():
    """A pace at a multiple of the beat, with a command that has sent one request."""
    pace = Pace(100 * START_INTERVAL)
    pace.ask(0)
    return pace


def test_the_processing_time_of_requests_does_not_count(pace):
    """The clock advances by the same amount after each request, even on a slow machine."""
    before = pace.now
    pace.ask(seconds(0.5))
    assert pace.now == before + REQUEST_DURATION


def test_a_sleep_between_requests_advances_the_clock(pace):
    before = pace.now
    pace.ask(seconds(5.1))
    assert pace.now == before + seconds(5) + REQUEST_DURATION


def test_the_clock_advances_quickly_while_a_watch_is_idle(pace):
    """It advances after a period without events, and up to a maximum."""
    before = pace.now
    pace.wait(WATCH_PAUSE_MIN - 1)
    assert pace.now == before
    pace.wait(WATCH_PAUSE_MIN)
    assert pace.now == before + WAITING_STEP
    for _ in range(1_000):
        pace.wait(WATCH_PAUSE_MIN)
    assert pace.now == before + WAITING_MAX


def test_commands_begin_at_multiples_of_the_beat(pace):
    """A slightly longer wait of one command does not shift the commands after it."""
    other = Pace(100 * START_INTERVAL)
    other.ask(0)
    other.wait(WATCH_PAUSE_MIN)
    pace.begin(PAUSE_AFTER_READ)
    other.begin(PAUSE_AFTER_READ)
    assert pace.now == other.now == 101 * START_INTERVAL


def test_a_command_can_observe_changes_in_progress(pace):
    before = pace.now
    pace.begin(STARTUP_TIME)
    assert pace.now == before + STARTUP_TIME


def test_the_clock_can_be_set_forward_but_not_back(pace):
    before = pace.now
    pace.reach(before + 1)
    pace.reach(before)
    assert pace.now == before + 1


def test_the_clock_stops_at_its_latest_time(pace):
    """On a slow machine, the session stays within the recorded time of the commands."""
    pace.latest = pace.now + WAITING_STEP
    pace.begin(seconds(5))
    assert pace.now == pace.latest
    pace.ask(0)
    pace.ask(seconds(9))
    pace.wait(seconds(20))
    assert pace.now == pace.latest
    pace.latest = None
    pace.ask(seconds(21))
    assert pace.now > 100 * START_INTERVAL + WAITING_STEP
