"""The evictions that an autoscaler reports."""

from __future__ import annotations

import pytest

from fairlead.engine.autoscaling.eviction_reporter import EvictionReporter
from fairlead.engine.core.command import Command, DeleteObject, EvictPod, ObjectRef
from fairlead.engine.core.reporter import PodEvicted, Record
from fairlead.testing.builders import make_pod

POD = ObjectRef("Pod", "default", "p", "uid-p")


class Reported:
    """An EvictionReporter, and its records."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.evictions = EvictionReporter(self)

    def report(self, record: Record) -> None:
        """Record `record`."""
        self.records.append(record)

    def send(self, command: Command, *, terminating: bool = False) -> None:
        """Send `command`, which is about a pod on node `n`."""
        pods = {"default/p": make_pod("p", node="n", terminating=terminating)}
        self.evictions.sent([command], pods.get)


@pytest.fixture
def reported() -> Reported:
    """An EvictionReporter that has received no command."""
    return Reported()


@pytest.mark.parametrize("command", [EvictPod(POD, "why"), DeleteObject(POD, why="why")])
def test_an_eviction_is_reported_once_when_it_has_succeeded(
    reported: Reported, command: EvictPod | DeleteObject
) -> None:
    reported.send(command)
    assert reported.records == []
    reported.evictions.succeeded(command, 5)
    reported.evictions.succeeded(command, 6)
    assert reported.records == [PodEvicted(POD, "n", "why", 5)]


def test_a_terminating_pod_is_not_evicted_again(reported: Reported) -> None:
    """Another controller may have evicted it after a refusal of the first attempt."""
    reported.send(EvictPod(POD, "why"))
    reported.send(EvictPod(POD, "why"), terminating=True)
    reported.evictions.succeeded(EvictPod(POD, "why"), 5)
    assert reported.records == []


def test_evictions_of_other_controllers_are_not_reported(reported: Reported) -> None:
    reported.send(EvictPod(POD, "why"))
    reported.evictions.succeeded(EvictPod(POD, "drain"), 5)
    assert reported.records == []
