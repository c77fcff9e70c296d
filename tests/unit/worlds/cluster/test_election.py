"""The log lines about failed elections; the client is a scripted one."""

from __future__ import annotations

import asyncio
import json

import pytest

from fairlead.client.leader_election import ElectionConfig, LeaderElection
from fairlead.client.rest_client import ApiAnswer
from fairlead.worlds.cluster.election import Election
from fairlead.worlds.cluster.telemetry.run_log import RunLog

SECOND = 1_000_000_000
FORBIDDEN = ApiAnswer(403, message='leases "kube-scheduler" is forbidden')
SILENT = ApiAnswer(0, message="the server did not answer in time")
ABSENT = ApiAnswer(404)


class Client:
    """Returns its answers in order; None is the answer of a server that stores the Lease."""

    def __init__(self, answers):
        self._answers = list(answers)

    async def exchange(self, request, _seconds):
        answer = self._answers.pop(0)
        return ApiAnswer(201, request.body) if answer is None else answer


def held_by(holder):
    lease = {"metadata": {"resourceVersion": "1"}, "spec": {"holderIdentity": holder}}
    return ApiAnswer(200, json.dumps(lease).encode())


def lines_after(*answers, attempts):
    """Return the lines that are logged during `attempts` attempts, one per second."""
    lines, now = [], 0
    config = ElectionConfig(identity="me")
    state = LeaderElection(config, lambda: 0.0)
    log = RunLog(lambda entry, _now: lines.append(entry.message), lambda: 0)
    election = Election(state, Client(answers), lambda: now, lambda: None, log)
    for _ in range(attempts):
        asyncio.run(election._attempt())
        now += SECOND
    return lines


LEASE = "the Lease kube-system/kube-scheduler"


def test_a_lease_that_cannot_be_read_is_logged_once():
    expected = [f'{LEASE} cannot be read: leases "kube-scheduler" is forbidden; trying again']
    assert lines_after(*[FORBIDDEN] * 5, attempts=5) == expected


def test_a_lease_that_cannot_be_created_is_logged_once():
    expected = [f'{LEASE} cannot be written: leases "kube-scheduler" is forbidden; trying again']
    assert lines_after(*[ABSENT, FORBIDDEN] * 5, attempts=5) == expected


def test_a_single_failure_is_not_logged():
    """A single failure may be a conflict with another replica."""
    assert lines_after(SILENT, held_by(""), None, attempts=2) == []


def test_alternating_failures_are_logged_once_each():
    assert len(lines_after(*[FORBIDDEN, SILENT] * 5, attempts=10)) == 2


def test_a_failure_after_a_success_is_logged_again():
    answers = [FORBIDDEN, FORBIDDEN, ABSENT, None, FORBIDDEN, FORBIDDEN]
    assert len(lines_after(*answers, attempts=5)) == 2


@pytest.mark.parametrize(("holder", "shown"), [("other", "other"), ("a\nb", "'a\\nb'")])
def test_the_leader_is_logged_once(holder, shown):
    expected = [f"{LEASE} is held by {shown}; waiting for it"]
    assert lines_after(*[held_by(holder)] * 5, attempts=5) == expected


def test_a_response_that_is_not_a_lease_is_logged():
    expected = [f"{LEASE} cannot be read: the answer is not a Lease; trying again"]
    assert lines_after(*[ApiAnswer(200, b"<html>")] * 5, attempts=5) == expected


def test_a_leader_is_told_that_a_response_is_not_a_lease():
    """It does not wait for itself."""
    page = ApiAnswer(200, b"<html>")
    expected = [
        f"{LEASE} cannot be read: the answer is not a Lease; trying again",
    ]
    assert lines_after(ABSENT, None, page, page, page, attempts=4) == expected


def test_a_written_lease_that_is_answered_with_something_else_is_logged():
    page = ApiAnswer(200, b"<html>")
    expected = [f"{LEASE} cannot be written: the answer is not a Lease; trying again"]
    assert lines_after(*[ABSENT, page] * 4, attempts=4) == expected
