"""Leader election among replicas that share a Lease; the Lease is a dictionary here."""

from __future__ import annotations

import json

import pytest

from fairlead.client.leader_election import ElectionConfig, LeaderElection, WriteLease

SECOND = 1_000_000_000


class Lease:
    """The stored Lease, with optimistic concurrency."""

    def __init__(self):
        self.body = None
        self.version = 0

    def write(self, write):
        """Perform a write; return the stored object, None if the write is refused."""
        obj = json.loads(write.body)
        if write.creates != (self.body is None):
            return None
        if not write.creates and obj["metadata"]["resourceVersion"] != str(self.version):
            return None
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.body = json.dumps(obj).encode()
        return self.body

    @property
    def spec(self):
        return json.loads(self.body)["spec"]


def replica(name, **options):
    return LeaderElection(ElectionConfig(identity=name, **options), lambda: 0.0)


def attempt(state, lease, now):
    """Make one attempt of `state` with immediate answers; return whether it leads."""
    step = state.begin(now)
    if not isinstance(step, WriteLease):
        step = state.read(lease.body, now)
    if step is not None:
        written = lease.write(step)
        if written is None:
            state.failed()
        else:
            state.written(written, now)
    return state.is_leader(now)


def test_the_first_replica_leads_and_the_second_waits():
    lease, one, other = Lease(), replica("one"), replica("other")
    assert attempt(one, lease, 0)
    assert not attempt(other, lease, SECOND)
    assert (other.holder, lease.spec["holderIdentity"]) == ("one", "one")
    assert lease.spec["leaseDurationSeconds"] == 15


def test_a_leader_renews_and_keeps_its_acquire_time():
    lease, one = Lease(), replica("one")
    attempt(one, lease, 0)
    before = lease.spec
    assert attempt(one, lease, one.next_attempt())
    assert lease.spec["acquireTime"] == before["acquireTime"]
    assert lease.spec["renewTime"] > before["renewTime"]
    assert lease.spec["leaseTransitions"] == 0


def test_an_expired_lease_is_taken_over_by_the_observers_clock():
    lease, one, other = Lease(), replica("one"), replica("other")
    attempt(one, lease, 0)
    far = 1_000 * SECOND  # the clocks of replicas need not agree
    assert not attempt(other, lease, far)
    assert not attempt(other, lease, far + 14 * SECOND)
    assert attempt(other, lease, far + 15 * SECOND)
    assert lease.spec["leaseTransitions"] == 1


def test_a_holder_with_a_longer_duration_keeps_the_lease_for_this_duration():
    """For example, a kube-scheduler may still lead when this replica's own duration is over."""
    lease, other = Lease(), replica("other")
    one = replica("one", lease_duration=60 * SECOND, renew_deadline=40 * SECOND)
    attempt(one, lease, 0)
    assert not attempt(other, lease, SECOND)
    assert one.is_leader(39 * SECOND)
    assert not attempt(other, lease, 39 * SECOND)
    assert not attempt(other, lease, 61 * SECOND - 1)
    assert attempt(other, lease, 61 * SECOND)


def test_a_lease_with_a_shorter_duration_is_taken_over_sooner():
    lease, other = Lease(), replica("other")
    one = replica("one", lease_duration=4 * SECOND, renew_deadline=3 * SECOND)
    attempt(one, lease, 0)
    attempt(other, lease, 0)
    assert attempt(other, lease, 4 * SECOND)


@pytest.mark.parametrize("duration", [None, 0, -1, "15", [15], 1.5])
def test_a_lease_with_an_invalid_duration_gets_the_duration_of_the_observer(duration):
    lease, one = Lease(), replica("one")
    spec = {"holderIdentity": "x", "leaseDurationSeconds": duration}
    lease.body = json.dumps({"metadata": {"resourceVersion": "0"}, "spec": spec}).encode()
    assert not attempt(one, lease, 0)
    assert not attempt(one, lease, 15 * SECOND - 1)
    assert attempt(one, lease, 15 * SECOND)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"renewTime": "2999-01-01T00:00:00.000000Z"}, id="a clock in the future"),
        pytest.param({"renewTime": "1970-01-01T00:00:00.000000Z"}, id="a clock in the past"),
        pytest.param({"holderIdentity": ""}, id="freed by hand"),
        pytest.param({"leaseDurationSeconds": 2**31 - 1}, id="an extreme duration"),
    ],
)
def test_a_leader_continues_if_its_lease_is_edited(changed):
    lease, one = Lease(), replica("one")
    attempt(one, lease, 0)
    lease.version += 1
    stored = json.loads(lease.body)
    stored["metadata"]["resourceVersion"] = str(lease.version)
    stored["spec"] |= changed
    lease.body = json.dumps(stored).encode()
    attempt(one, lease, 2 * SECOND)  # a conflict
    assert attempt(one, lease, 4 * SECOND)
    assert one.deadline() == 14 * SECOND
    assert (lease.spec["holderIdentity"], lease.spec["leaseDurationSeconds"]) == ("one", 15)
    assert lease.spec["renewTime"] < "1970-01-01T00:00:05"


def test_a_leader_creates_its_deleted_lease_again():
    lease, one = Lease(), replica("one")
    attempt(one, lease, 0)
    lease.body = None
    attempt(one, lease, 2 * SECOND)  # not found
    assert attempt(one, lease, 4 * SECOND)
    assert one.deadline() == 14 * SECOND


def test_leadership_ends_before_another_replica_can_lead():
    lease, one = Lease(), replica("one")
    attempt(one, lease, 0)
    assert one.is_leader(10 * SECOND - 1)
    assert one.has_lost(10 * SECOND)
    assert not attempt(one, lease, 11 * SECOND)


def test_a_renewal_counts_from_the_start_of_its_request():
    """A slow response does not prolong leadership."""
    lease, one = Lease(), replica("one")
    attempt(one, lease, 0)
    step = one.begin(2 * SECOND)
    one.written(lease.write(step), 8 * SECOND)
    assert one.deadline() == 12 * SECOND


def test_a_leader_that_sees_another_holder_stops_at_once():
    lease, one, other = Lease(), replica("one"), replica("other")
    attempt(one, lease, 0)
    attempt(other, lease, 0)
    attempt(other, lease, 16 * SECOND)
    one.failed()
    one.begin(3 * SECOND)
    assert one.read(lease.body, 3 * SECOND) is None
    assert one.has_lost(3 * SECOND)


def test_a_conflict_is_followed_by_a_read():
    lease, one = Lease(), replica("one")
    attempt(one, lease, 0)
    lease.version += 1
    stored = json.loads(lease.body)
    stored["metadata"]["resourceVersion"] = str(lease.version)
    lease.body = json.dumps(stored).encode()
    attempt(one, lease, 2 * SECOND)
    assert attempt(one, lease, 4 * SECOND)
    assert one.deadline() == 14 * SECOND


def test_a_released_lease_is_taken_at_once():
    lease, one, other = Lease(), replica("one"), replica("other")
    attempt(one, lease, 0)
    attempt(other, lease, SECOND)
    lease.write(one.release(lease.body, 2 * SECOND))
    assert not one.is_leader(2 * SECOND)
    assert attempt(other, lease, 3 * SECOND)


def test_a_follower_has_nothing_to_release():
    lease, one, other = Lease(), replica("one"), replica("other")
    attempt(one, lease, 0)
    attempt(other, lease, SECOND)
    assert other.release(lease.body, 2 * SECOND) is None


def test_a_lease_is_released_after_a_renewal_without_an_answer():
    """The renewal was stored, so the version that the replica knows is an old one."""
    lease, one = Lease(), replica("one")
    attempt(one, lease, 0)
    lease.write(one.begin(2 * SECOND))
    assert lease.write(one.release(lease.body, 2 * SECOND))
    assert lease.spec["holderIdentity"] == ""


@pytest.mark.parametrize("body", [None, b"<html>"])
def test_a_lease_that_cannot_be_read_is_not_released(body):
    lease, one = Lease(), replica("one")
    attempt(one, lease, 0)
    assert one.release(body, 2 * SECOND) is None
    assert not one.is_leader(2 * SECOND)


def test_followers_try_at_different_times():
    lease = Lease()
    attempt(replica("one"), lease, 0)
    late = LeaderElection(ElectionConfig(identity="late"), lambda: 0.5)
    attempt(late, lease, 0)
    assert late.next_attempt() == int(3.2 * SECOND)


@pytest.mark.parametrize(
    ("durations", "problem"),
    [
        ({}, ""),
        ({"lease_duration": 10 * SECOND}, "leaseDuration must be greater than renewDeadline"),
        ({"retry_period": 9 * SECOND}, "renewDeadline must be greater than retryPeriod*1.2"),
        ({"retry_period": 0}, "retryPeriod must be greater than zero"),
    ],
)
def test_durations_are_checked(durations, problem):
    assert ElectionConfig(identity="x", **durations).problem() == problem


@pytest.mark.parametrize("transitions", ["many", None, [1], 1.5])
def test_a_lease_with_an_invalid_number_of_transitions_is_taken_over(transitions):
    lease, one = Lease(), replica("one")
    spec = {"holderIdentity": "", "leaseTransitions": transitions}
    lease.body = json.dumps({"metadata": {"resourceVersion": "0"}, "spec": spec}).encode()
    assert attempt(one, lease, SECOND)
    assert lease.spec["leaseTransitions"] == 1


def test_a_response_that_is_nested_too_deeply_is_not_a_lease():
    one = replica("one")
    one.begin(0)
    assert one.read(b'{"spec":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 0) is None
