"""The writes after an unschedulable pod: each time an event, and the status if it changes."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import PatchStatus
from fairlead.engine.core.reporter import PodUnschedulable
from fairlead.engine.scheduling.decision import Failure
from fairlead.engine.scheduling.failure import failure_patch
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod

BIG = {"requests": {"cpu": "9"}}
TEXT = (
    "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, "
    "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
)
SCHEDULED_FALSE = {"type": "PodScheduled", "status": "False"}


def with_condition(text, reason="Unschedulable", name="a", **more):
    condition = SCHEDULED_FALSE | {"reason": reason, "message": text}
    return make_pod(name, **BIG, status={"conditions": [condition]}, **more)


def test_the_event_and_the_condition_have_the_reasons(stage):
    """The texts are upstream's."""
    scene = stage(make_node("n1"), make_node("n2"), make_pod("a", **BIG))
    assert scene.step() == [
        ("event", "a", "FailedScheduling", TEXT),
        ("patch", "a", {}, ("PodScheduled", "False", "Unschedulable", TEXT)),
    ]
    (record,) = scene.records
    assert isinstance(record, PodUnschedulable)
    assert (record.message, record.plugins, record.is_error) == (
        (TEXT, ("NodeResourcesFit",), False)
    )


def test_the_same_failure_again_writes_no_status(stage):
    """The event is recorded every time."""
    scene = stage(make_node("n1"), make_node("n2"), with_condition(TEXT))
    assert scene.step() == [("event", "a", "FailedScheduling", TEXT)]


def test_after_a_cycle_that_only_records_an_event_the_next_cycle_follows(stage):
    """Given failures that change no status, when one deadline is handled, all of them happen."""
    failing = [with_condition(TEXT, name=name) for name in "abc"]
    scene = stage(make_node("n1"), make_node("n2"), *failing, make_pod("d"), make_pod("e"))
    events = [("event", name, "FailedScheduling", TEXT) for name in "abc"]
    (*found, bind) = scene.step()
    assert found == events
    assert bind[:2] == ("bind", "d")
    assert scene.step()[0][:2] == ("bind", "e")


def test_a_series_of_cycles_is_limited(stage):
    """Other work of a real cluster waits for at most 16 cycles."""
    failing = [with_condition(TEXT, name=f"p{number}") for number in range(20)]
    scene = stage(make_node("n1"), make_node("n2"), *failing)
    assert [len(scene.step()), len(scene.step())] == [16, 4]


def test_the_next_cycle_waits_for_the_status_write(stage):
    """Upstream's loop continues only after its patch has succeeded or failed."""
    scene = stage(make_node("n1"), make_node("n2"), make_pod("a", **BIG), make_pod("b"))
    scene.step()
    assert scene.engine.next_deadline() is None
    scene.refused()
    assert scene.step()[0][:2] == ("bind", "b")


def test_a_pod_in_an_empty_cluster_backs_off(stage):
    """No plugin rejected the pod: it backs off as after an error, and is retried."""
    scene = stage(make_pod("a"))
    assert scene.step()[0] == (
        ("event", "a", "FailedScheduling", "no nodes available to schedule pods")
    )
    scene.done("patch")
    assert (scene.place("a"), scene.is_due()) == ("error_backoff", False)
    scene.put(make_node("n1"))
    assert not scene.is_due()
    assert scene.step(2) == [("bind", "a", "n1")]


def info(believed, pod):
    return PodInfo(pod, believed.shapes.shape_of(pod))


@pytest.mark.parametrize(
    ("pod", "nominated", "expected"),
    [
        (with_condition("t"), None, None),
        (with_condition("t"), "", None),
        (with_condition("t", nominated="n1"), "n1", None),
        (with_condition("t", nominated="n1"), None, None),
        (with_condition("t", nominated="n1"), "", ({"nominatedNodeName": None}, False)),
        (with_condition("t"), "n1", ({"nominatedNodeName": "n1"}, False)),
        (with_condition("t", nominated="n2"), "n1", ({"nominatedNodeName": "n1"}, False)),
        (with_condition("other"), None, ({}, True)),
        (with_condition("t", "SchedulerError"), None, ({}, True)),
        (make_pod("a"), "n1", ({"nominatedNodeName": "n1"}, True)),
    ],
    ids=[
        "nothing new",
        "no nomination to clear",
        "the same nomination",
        "a nomination to keep",
        "a nomination to clear",
        "a first nomination",
        "another nomination",
        "another text",
        "another reason",
        "a first failure",
    ],
)
def test_only_changed_fields_are_patched(waiting, pod, nominated, expected):
    """An equal condition is not written again."""
    failure = Failure("t", nominated_node=nominated)
    found = failure_patch(info(waiting.cluster, pod), failure)
    shown = [(dict(p.fields), bool(p.conditions)) for p in found if isinstance(p, PatchStatus)]
    assert shown == ([] if expected is None else [expected])
