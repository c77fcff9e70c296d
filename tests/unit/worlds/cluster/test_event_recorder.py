"""EventRecorder: the requests that write events."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.worlds.cluster.event_recorder import EventRecorder

POD = ObjectRef("Pod", "default", "web", "uid-web")
EVICTION = RecordEvent(POD, "Warning", "TaintManagerEviction", "", "Marking for deletion", "taint")
FAILURE = RecordEvent(
    POD, "Warning", "FailedScheduling", "Scheduling", "0/1 nodes are available", "scheduler"
)


@pytest.mark.parametrize("event", [EVICTION, FAILURE], ids=["core", "events.k8s.io"])
def test_an_equal_event_patches_the_first_one(event: RecordEvent) -> None:
    recorder = EventRecorder("host", {})
    first, second = recorder.request(event, seconds(0)), recorder.request(event, seconds(1))
    assert first is not None
    assert second is not None
    assert (first.request.method, second.request.method) == ("POST", "PATCH")
    assert second.path == first.path


@pytest.mark.parametrize("event", [EVICTION, FAILURE], ids=["core", "events.k8s.io"])
def test_an_event_that_the_server_does_not_have_is_created_again(event: RecordEvent) -> None:
    recorder = EventRecorder("host", {})
    first = recorder.request(event, seconds(0))
    assert first is not None
    recorder.forget(first.path)
    second = recorder.request(event, seconds(1))
    assert second is not None
    assert second.request.method == "POST"
    assert second.path != first.path
