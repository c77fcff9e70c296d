"""The distribution of how long pods waited for a node."""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.engine.core.instant import seconds
from fairlead.whatif.outcome.autoscaling.waiting_time import (
    PodWait,
    WaitingTimes,
    waiting_times,
    waiting_times_by_workload,
    waits_so_far,
)
from fairlead.whatif.outcome.workload import WorkloadRef

WEB = WorkloadRef("Deployment", "shop", "web")
DB = WorkloadRef("StatefulSet", "shop", "db")


def wait(name, after_s, workload=WEB, since_s=10):
    until = None if after_s is None else seconds(since_s + after_s)
    return PodWait(f"shop/{name}", workload, seconds(since_s), until)


def test_without_waits_everything_is_zero():
    assert waiting_times([]) == WaitingTimes()


def test_the_median_and_the_95th_percentile_are_waits_that_happened():
    waits = [wait(f"web-{number}", number) for number in range(1, 21)]
    found = waiting_times(waits)
    assert (found.bound, found.median, found.p95) == (20, seconds(10), seconds(19))
    assert (found.longest, found.longest_pod) == (seconds(20), "shop/web-20")


def test_a_pod_that_still_waits_is_counted_but_its_time_is_not():
    found = waiting_times([wait("web-1", 5), wait("web-2", None)])
    assert (found.bound, found.still_waiting, found.longest) == (1, 1, seconds(5))


def test_workloads_are_ordered_by_waiting_pods_then_by_the_longest_wait():
    waits = [wait("web-1", 60), wait("db-0", 5, DB), wait("db-1", None, DB)]
    assert [workload for workload, _ in waiting_times_by_workload(waits)] == [DB, WEB]


def test_a_workload_whose_pods_were_bound_at_once_is_left_out():
    assert waiting_times_by_workload([wait("web-1", 0)]) == []


def test_a_pod_that_still_waits_has_waited_until_the_end():
    waits = [wait("web-1", None), wait("web-2", 5)]
    assert waits_so_far(waits, seconds(70)) == [seconds(5), seconds(60)]


def test_pods_with_a_negative_priority_may_wait():
    waits = [replace(wait("spare-1", None), priority=-10), wait("web-1", 5)]
    assert waits_so_far(waits, seconds(70)) == [seconds(5)]
