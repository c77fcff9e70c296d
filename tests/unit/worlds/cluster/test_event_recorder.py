"""EventRecorder: the requests that write events."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import ObjectChanged
from fairlead.testing.batch_builders import make_gang, make_queue
from fairlead.testing.batch_scene import BatchScene
from fairlead.testing.builders import make_node
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


def test_a_new_reason_of_a_batch_session_is_a_new_event() -> None:
    """In a series, the note would stay that of the first session."""
    configuration = 'actions: "allocate"\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]'
    scene = BatchScene(configuration, make_queue("default"), make_node("n1"), *make_gang("g", 5))
    recorder = EventRecorder("host", {})
    requests = []
    for now in (0, 1):
        scene.run(seconds(now))
        assert scene.outcome is not None
        events = [one for one in scene.outcome.commands if isinstance(one, RecordEvent)]
        about = next(one for one in events if one.reason == "FailedScheduling")
        requests.append(recorder.request(about, seconds(now)))
        scene.cluster.apply(ObjectChanged(make_node("n2", cpu="500m")))
    assert [one and one.request.method for one in requests] == ["POST", "POST"]
    assert all(one and one.path.startswith("/api/v1/") for one in requests)
