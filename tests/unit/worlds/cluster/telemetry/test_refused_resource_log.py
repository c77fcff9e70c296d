"""The log has one line for the start and one for the end of an incident with any resources."""

from __future__ import annotations

from fairlead.worlds.cluster.telemetry.refused_resource_log import (
    QUIET_S,
    WAIT_S_MAX,
    RefusedResourceLog,
)
from fairlead.worlds.cluster.telemetry.run_log import RunLog


class Timer:
    """A call that is scheduled for a later time."""

    def __init__(self, due, call, timers):
        self.due, self.call, self._timers = due, call, timers

    def cancel(self):
        if self in self._timers:
            self._timers.remove(self)


class Timers:
    """A clock in seconds, and the calls that are scheduled."""

    def __init__(self):
        self.now = 0.0
        self.due = []

    def call_later(self, seconds, call):
        timer = Timer(self.now + seconds, call, self.due)
        self.due.append(timer)
        return timer

    def pass_time(self, seconds):
        self.now += seconds
        for timer in [one for one in self.due if one.due <= self.now]:
            timer.cancel()
            timer.call()


def new_log():
    timers, lines = Timers(), []
    log = RunLog(lambda entry, _now: lines.append(entry.message), lambda: 0)
    return RefusedResourceLog(log, timers.call_later, lambda: timers.now), timers, lines


def test_resources_that_are_refused_successively_share_a_line():
    log, timers, lines = new_log()
    for name in ("pods", "nodes", "services"):
        log.notice(name, "status 403")
        timers.pass_time(QUIET_S - 1)
    assert lines == []
    timers.pass_time(1)
    assert lines == [
        "3 resources cannot be read (status 403); the known objects are used: nodes, pods, services"
    ]


def test_a_short_incident_has_both_lines():
    log, timers, lines = new_log()
    for status in ("status 404", ""):
        for name in ("pods", "nodes"):
            log.notice(name, status)
    timers.pass_time(QUIET_S)
    assert lines == [
        "2 resources cannot be read (status 404); the known objects are used: nodes, pods",
        "2 resources can be read again",
    ]


def test_resources_that_are_still_refused_are_named():
    log, timers, lines = new_log()
    log.notice("pods", "status 403")
    log.notice("nodes", "status 403")
    timers.pass_time(QUIET_S)
    log.notice("pods", "")
    timers.pass_time(QUIET_S)
    assert lines[1:] == ["pods can be read again, but not nodes"]


def test_an_alternating_resource_is_reported_within_the_maximum_wait():
    log, timers, lines = new_log()
    for number in range(int(WAIT_S_MAX)):
        log.notice("pods", "status 403" * (number % 2 == 0))
        timers.pass_time(1)
    assert lines[0] == "pods cannot be read (status 403); the known objects are used"


def test_a_repeated_state_is_not_logged_again():
    log, timers, lines = new_log()
    for _ in range(2):
        log.notice("pods", "status 403")
        timers.pass_time(QUIET_S)
    assert len(lines) == 1
    log.flush()
    assert len(lines) == 1


def test_a_server_that_was_never_reached_has_no_known_objects():
    log, timers, lines = new_log()
    for name in ("pods", "nodes"):
        log.notice(name, "https://x: cannot connect: refused", is_known=False)
    timers.pass_time(QUIET_S)
    problem = "https://x: cannot connect: refused"
    assert lines == [f"2 resources cannot be read ({problem}); trying again: nodes, pods"]
