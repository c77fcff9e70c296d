"""Status writes of owners with many pods are combined for some time."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.controller import LARGE
from fairlead.engine.workloads.follow_up_pace import FollowUpPace

INTERVAL = 100


def test_the_first_change_is_handled_at_once_and_later_ones_together():
    pace = FollowUpPace(INTERVAL, lambda _: True)
    assert pace.due(["a"], 0) == ["a"]
    assert pace.due(["a"], 10) == pace.due(["a"], 99) == []
    assert pace.next_due() == 100
    assert pace.due(["b"], 50) == ["b"]
    assert pace.due([], 100) == ["a"]
    assert pace.next_due() is None
    assert pace.due(["a"], 200) == ["a"]


def test_changes_of_owners_that_wait_already_change_nothing():
    """Owners wait only if they are large and their last follow-up was within the interval."""
    pace = FollowUpPace(INTERVAL, lambda key: key != "small")
    pace.due(["a", "small"], 0)
    assert not pace.are_waiting({"a": None})
    pace.due(["a", "small"], 10)
    assert pace.are_waiting({"a": None})
    assert pace.are_waiting({})
    assert not pace.are_waiting({"a": None, "small": None})


def test_a_change_of_a_waiting_owner_makes_no_work_due(build, paced_world):
    """The deadline of the controller is the time of the owner's next follow-up."""
    world = paced_world(seconds(0.1))
    world.create(build.owned("ReplicaSet", "web", LARGE, uid="rs"))
    world.run(seconds(1))
    (workloads,) = world.controllers
    for name in list(world.pods())[:2]:  # the second change has to wait
        world.start(name)
        world.settle()
    world.start(list(world.pods())[2])
    workloads.handle(world.stimuli.popleft(), world.now)
    assert workloads.next_deadline() > world.now


def test_changes_of_owners_with_few_pods_are_not_delayed():
    pace = FollowUpPace(INTERVAL, lambda _: False)
    assert [pace.due(["a"], now) for now in range(3)] == [["a"]] * 3


def test_changes_are_no_longer_delayed_after_scaling_down():
    large = {"a"}
    pace = FollowUpPace(INTERVAL, large.__contains__)
    pace.due(["a"], 0)
    large.clear()
    assert pace.due(["a"], 1) == ["a"]


def test_the_deletion_of_an_owner_is_not_delayed():
    pace = FollowUpPace(INTERVAL, lambda _: True)
    pace.due(["a"], 0)
    pace.due(["a"], 1)
    pace.forget("a")
    assert pace.next_due() is None


@pytest.mark.parametrize(("size", "writes"), [(LARGE - 1, 10), (LARGE, 3)])
def test_the_status_of_a_large_replica_set_is_written_less_often(size, writes, build, paced_world):
    """One pod becomes ready every 20 ms; the last status has all of them."""
    world = paced_world(seconds(0.1))
    world.create(build.owned("ReplicaSet", "web", size, uid="rs"))
    world.run(seconds(1))
    before = len(world.sent(PatchStatus))
    for name in list(world.pods())[:10]:
        world.start(name)
        world.settle()
        world.run(seconds(0.02))
    world.run(seconds(0.1))
    written = world.sent(PatchStatus)[before:]
    assert len(written) == writes
    assert world.get("ReplicaSet", "web")["status"]["readyReplicas"] == 10
