"""The contract between every world and the engine, for any clock and store."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import POD
from fairlead.engine.core.command import Bind, DeleteObject, ObjectRef, PatchObject, PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.issuer import KUBELET, SCHEDULER
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
)
from fairlead.engine.engine import Engine
from fairlead.engine.state.cluster import Cluster

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u-n"}}
PENDING = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "uid": "u-p"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
    "status": {"phase": "Pending"},
}
REF = ObjectRef("Pod", "default", "p", "u-p")


class Scripted:
    """A controller that issues given commands at given seconds after the start."""

    issuer = SCHEDULER

    def __init__(self, start, *script):
        self.script = [(start + seconds(at), commands) for at, *commands in script]
        self.called = []

    def handle(self, stimulus, now):
        return []

    def next_deadline(self):
        return self.script[0][0] if self.script else None

    def handle_deadline(self, now):
        self.called.append(now)
        return self.script.pop(0)[1]


def make(world_class, *script, objects=(NODE, PENDING)):
    scripted = Scripted(world_class.start, *script)
    world = world_class(Engine(Cluster(), [scripted]), objects)
    world.scripted = scripted
    return world


def outcomes(world):
    """Return the stimuli that the engine received after the load, in a short form."""
    return [short(stimulus) for stimulus, _ in world.engine.received[1:]]


def short(stimulus):
    match stimulus:
        case CommandSucceeded(command):
            return f"{type(command).__name__} succeeded"
        case CommandFailed(command, reason, _):
            return f"{type(command).__name__} failed: {reason}"
        case ObjectChanged(one):
            return f"{one.metadata.name} changed"
        case ObjectDeleted(one):
            return f"{one.metadata.name} deleted"


def test_existing_objects_are_loaded_first_in_one_stimulus(any_driven_world):
    world = make(any_driven_world)
    world.run(0)
    (first, _), *others = world.engine.received
    assert isinstance(first, ObjectsLoaded)
    assert {one.metadata.name for one in first.objects} >= {"n", "p"}
    assert others == []


def test_the_effect_of_a_command_is_delivered_before_its_outcome(any_driven_world):
    world = make(any_driven_world, (1, Bind(REF, "n")))
    world.run(2)
    assert outcomes(world) == ["p changed", "Bind succeeded"]
    assert world.engine.received[1][0].object.spec.node_name == "n"


def test_delivered_changes_are_stored(any_world):
    world = make(any_world, (1, Bind(REF, "n")))
    world.run(2)
    assert world.store.get(POD, "default", "p")["spec"]["nodeName"] == "n"


def test_commands_are_performed_in_the_order_of_issue(any_world):
    names = {"metadata": {"labels": {"a": "1"}}}
    world = make(any_world, (1, PatchObject(REF, names), Bind(REF, "n")))
    world.run(2)
    assert [one for one in outcomes(world) if "Succeeded" in one or "succeeded" in one] == [
        "PatchObject succeeded",
        "Bind succeeded",
    ]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (Bind(ObjectRef("Pod", "default", "x"), "n"), FailureReason.NOT_FOUND),
        (Bind(ObjectRef("Pod", "default", "p", "other"), "n"), FailureReason.CONFLICT),
        (PatchStatus(REF, {"phase": "Running"}, resource_version="77"), FailureReason.CONFLICT),
        (DeleteObject(ObjectRef("Pod", "default", "p", "other")), FailureReason.CONFLICT),
        (PatchObject(ObjectRef("Widget", "", "w"), {}), FailureReason.NOT_FOUND),
    ],
    ids=["no such pod", "another pod", "an old version", "another uid", "no such kind"],
)
def test_a_refusal_is_an_outcome(any_world, command, reason):
    world = make(any_world, (1, command))
    world.run(2)
    if isinstance(command, Bind) and command.pod.uid and getattr(world, "binds_by_name", False):
        assert sorted(outcomes(world)) == ["Bind succeeded", "p changed"]
        return
    assert outcomes(world) == [f"{type(command).__name__} failed: {reason}"]
    failure = world.engine.received[-1][0]
    assert failure.command is command
    assert failure.message


def test_a_command_without_an_object_is_refused(any_driven_world):
    world = make(any_driven_world, (1, Bind(ObjectRef("Pod", "default", "x"), "n")))
    world.run(2)
    assert outcomes(world) == [f"Bind failed: {FailureReason.NOT_FOUND}"]


def test_a_second_binding_is_a_conflict(any_world):
    world = make(any_world, (1, Bind(REF, "n")), (2, Bind(REF, "m")))
    world.run(3)
    assert outcomes(world)[-1] == "Bind failed: Conflict"


def test_a_deletion_is_delivered_before_its_outcome(any_driven_world):
    world = make(any_driven_world, (1, DeleteObject(REF, 0)))
    world.run(2)
    assert outcomes(world)[-2:] == ["p deleted", "DeleteObject succeeded"]


def test_deadlines_are_met_to_the_nanosecond(any_world):
    world = make(any_world, (1,), (2.5,), (2.5,), (9,))
    world.run(5)
    assert world.scripted.called == [world.start + seconds(at) for at in (1, 2.5, 2.5)]
    world.run(9)
    assert world.scripted.called[-1] == world.start + seconds(9)


def test_changes_of_other_clients_are_delivered_with_their_instant(any_world):
    world = make(any_world)
    world.at(3, lambda store, now: store.patch(POD, "default", "p", LABELLED, now))
    world.run(4)
    (stimulus, now), *others = world.engine.received[1:]
    assert (short(stimulus), now, others) == ("p changed", world.start + seconds(3), [])


LABELLED = {"metadata": {"labels": {"seen": "yes"}}}


def test_at_one_instant_changes_are_delivered_before_deadlines(any_world):
    """The engine acts on all changes that clients have made by then."""
    world = make(any_world, (3, PatchObject(REF, {"metadata": {"labels": {"by": "us"}}})))
    world.at(3, lambda store, now: store.patch(POD, "default", "p", LABELLED, now))
    world.run(4)
    first = world.engine.received[1][0]
    assert first.object.metadata.labels == {"seen": "yes"}


def test_every_command_has_its_issuer(any_driven_world):
    start = any_driven_world.start
    one, other = Scripted(start, (1, Bind(REF, "n"))), Scripted(start)
    other.issuer = KUBELET
    other.script = [(start + seconds(2), [PatchStatus(REF, {"phase": "Running"})])]
    world = any_driven_world(Engine(Cluster(), [one, other]), (NODE, PENDING))
    world.run(3)
    assert [issued.issuer for issued, _ in world.engine.issued] == [SCHEDULER, KUBELET]
