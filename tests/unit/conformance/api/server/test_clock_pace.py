"""How time passes in a cluster that commands ask one after the other."""

from __future__ import annotations

import pytest

from fairlead.conformance.api.server.clock_pace import (
    ASKING,
    AT_ONCE,
    BEAT,
    LOOKED,
    QUIET,
    WAITING_MAX,
    WAITING_STEP,
    Pace,
)
from fairlead.engine.core.instant import seconds


@pytest.fixture
def pace():
    """At a full beat, with a command that has asked once."""
    pace = Pace(100 * BEAT)
    pace.ask(0)
    return pace


def test_work_takes_no_time(pace):
    """However slow the machine is between two requests, what follows is just later."""
    before = pace.now
    pace.ask(seconds(0.5))
    assert pace.now == before + ASKING


def test_a_sleep_takes_its_time(pace):
    before = pace.now
    pace.ask(seconds(5.1))
    assert pace.now == before + seconds(5) + ASKING


def test_who_waits_need_not_wait_long(pace):
    """Time passes quickly for a watch, but not before it has gone quiet and not for ever."""
    before = pace.now
    pace.wait(QUIET - 1)
    assert pace.now == before
    pace.wait(QUIET)
    assert pace.now == before + WAITING_STEP
    for _ in range(1_000):
        pace.wait(QUIET)
    assert pace.now == before + WAITING_MAX


def test_commands_begin_on_a_beat(pace):
    """That one waited a little longer does not shift those after it."""
    other = Pace(100 * BEAT)
    other.ask(0)
    other.wait(QUIET)
    pace.begin(LOOKED)
    other.begin(LOOKED)
    assert pace.now == other.now == 101 * BEAT


def test_what_is_on_its_way_can_be_seen(pace):
    before = pace.now
    pace.begin(AT_ONCE)
    assert pace.now == before + AT_ONCE


def test_time_can_be_told_but_not_turned_back(pace):
    before = pace.now
    pace.reach(before + 1)
    pace.reach(before)
    assert pace.now == before + 1


def test_the_clock_stops_at_its_latest_time(pace):
    """A slow machine does not carry a session past the time that the commands were recorded at."""
    pace.latest = pace.now + WAITING_STEP
    pace.begin(seconds(5))
    assert pace.now == pace.latest
    pace.ask(0)
    pace.ask(seconds(9))
    pace.wait(seconds(20))
    assert pace.now == pace.latest
    pace.latest = None
    pace.ask(seconds(21))
    assert pace.now > 100 * BEAT + WAITING_STEP
