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
        self.requests = []

    async def exchange(self, request, _seconds):
        self.requests.append(request)
        answer = self._answers.pop(0)
        return ApiAnswer(201, request.body) if answer is None else answer


def held_by(holder, version="1"):
    lease = {"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": holder}}
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


CONFLICT = ApiAnswer(409)


def released_with(*answers, attempts=1):
    """Return the requests of a release after `attempts` attempts to take the Lease."""
    client = Client([ABSENT, None] * attempts + list(answers))
    state = LeaderElection(ElectionConfig(identity="me"), lambda: 0.0)
    election = Election(state, client, lambda: 0, lambda: None)
    for _ in range(attempts):
        asyncio.run(election._attempt())
    before = len(client.requests)
    asyncio.run(election.release())
    return client.requests[before:]


def test_a_release_frees_the_version_that_it_reads():
    read, write = released_with(held_by("me", "7"), None)
    assert (read.method, write.method) == ("GET", "PUT")
    lease = json.loads(write.body)
    assert lease["metadata"]["resourceVersion"] == "7"
    assert lease["spec"]["holderIdentity"] == ""


def test_a_release_is_tried_again_if_a_late_renewal_changes_the_lease():
    requests = released_with(held_by("me", "7"), CONFLICT, held_by("me", "8"), None)
    assert json.loads(requests[-1].body)["metadata"]["resourceVersion"] == "8"


def test_a_release_with_a_conflict_each_time_ends():
    assert len(released_with(*[held_by("me"), CONFLICT] * 9)) == 6


@pytest.mark.parametrize("answer", [held_by("other"), ABSENT, SILENT])
def test_a_release_writes_nothing_if_this_replica_does_not_hold_the_lease(answer):
    (read,) = released_with(answer)
    assert read.method == "GET"


def test_a_release_sends_nothing_if_this_replica_never_wrote_the_lease():
    assert released_with(attempts=0) == []
