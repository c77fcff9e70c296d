"""Writes to views of nodes have the effects of writes to the store."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead.api.codec import decode
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.simulation import SimulatedAdmission
from fairlead.apiserver.kind import NODE
from fairlead.apiserver.registry.dump.object import DumpedObject
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import (
    Condition,
    IssuedCommand,
    ObjectRef,
    ObservedCondition,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.issuer import KUBELET
from fairlead.engine.core.stimulus import CommandSucceeded, ObjectChanged
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_000_000)
LATE = "1970-01-12T13:46:49Z"


def node(name, **spec):
    """Return a dumped node; its condition has a member that views do not contain."""
    cpu = {"cpu": "4"}
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": LATE, "x": 1}
    manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "resourceVersion": "1"},
        "spec": {"podCIDR": "10.0.0.0/24", **spec},
        "status": {"capacity": cpu, "allocatable": cpu, "conditions": [ready]},
    }
    return DumpedObject(NODE, decode(manifest), json.dumps(manifest).encode())


class NoEngine:
    """An engine that does nothing."""

    def handle(self, _stimulus, _now):
        return []

    def next_deadline(self):
        return None

    def handle_deadline(self, _now):
        return []


def new_world():
    world = SimulatedWorld(NoEngine(), start=START)
    world.load([node("a"), node("b", taints=[{"key": "old", "effect": "NoSchedule"}])])
    world.poll(START)
    return world


class Writes:
    """Performs commands on a world; if `on_store` is set, performs all of them on the store."""

    def __init__(self, *, on_store):
        self.world = new_world()
        if on_store:
            self.world._performed_on_view = lambda _command, _now: None
        self.seen = []

    def perform(self, command, now):
        before = self.world.store.version
        self.world.perform(IssuedCommand(command(self.version()), KUBELET), now)
        stimuli = self.world.poll(now)
        written = self.world.store.version - before
        self.seen.append((stimuli, written, self.world.last_change))

    def version(self):
        """Return the resourceVersion of node `a`, without making its JSON value."""
        newest = self.world._node_views.newest("a")
        return newest.metadata.resource_version

    def nodes(self):
        return json.dumps(self.world.store.list(NODE))


def ref(name="a", uid=None):
    return ObjectRef("Node", "", name, name if uid is None else uid)


def taint(patched, *, version=None, metadata=(), **more):
    """Return a function that makes a patch of the taints for a known version of the node."""

    def command(known):
        meta = {"resourceVersion": version or known, **dict(metadata)}
        return PatchObject(ref(), {"spec": {"taints": patched}, "metadata": meta, **more})

    return command


def annotated(annotations):
    """Return a function that makes a patch of the annotations; it does not state the uid."""
    return lambda _known: PatchObject(ref(uid=""), {"metadata": {"annotations": annotations}})


def status(*conditions, version="", fields=None):
    return lambda _known: PatchStatus(ref(), fields or {}, conditions, resource_version=version)


ONE = {"key": "k", "effect": "NoSchedule"}
TIMED = {"key": "k", "effect": "NoExecute", "timeAdded": LATE}
UNKNOWN = Condition("Ready", "Unknown", "NodeStatusUnknown", "gone")
COMMANDS = {
    "a taint": taint([ONE]),
    "two taints": taint([ONE, TIMED]),
    "no taints": taint(None),
    "an empty list": taint([]),
    "an outdated version": taint([ONE], version="1"),
    "an unknown version": taint([TIMED], version="99"),
    "an invalid effect": taint([{"key": "k", "effect": "Wrong"}]),
    "equal taints": taint([ONE, ONE]),
    "a taint of a wrong type": taint([{"key": 5, "effect": "NoSchedule"}]),
    "taints and a label": taint([ONE], metadata={"labels": {"x": "y"}}),
    "taints and a status": taint([TIMED], status={"capacity": None}),
    "a cordon": lambda _: PatchObject(ref(), {"spec": {"unschedulable": True}}),
    "an annotation": annotated({"a": "1"}),
    "two annotations": annotated({"a": "2", "b": "1"}),
    "no annotation a": annotated({"a": None}),
    "no annotations": annotated(None),
    "an annotation that is a number": annotated({"a": 1}),
    "an annotation and a label": lambda _: PatchObject(
        ref(uid=""), {"metadata": {"annotations": {"a": "3"}, "labels": {"x": "z"}}}
    ),
    "no spec": lambda known: PatchObject(
        ref(), {"spec": None, "metadata": {"resourceVersion": known}}
    ),
    "a missing node": lambda _: PatchStatus(ref("missing"), conditions=(UNKNOWN,)),
    "another node": lambda _: PatchStatus(ref(uid="other"), conditions=(UNKNOWN,)),
    "unknown": status(UNKNOWN),
    "unknown at an old version": status(UNKNOWN, version="1"),
    "two conditions": status(UNKNOWN, Condition("DiskPressure", "False")),
    "the same condition twice": status(UNKNOWN, Condition("Ready", "True")),
    "no conditions": status(),
    "no status": status(Condition("Ready", "")),
    "a heartbeat": status(Condition("Ready", "True", last_heartbeat_time="1970-01-12T14:00:00Z")),
    "ready": status(Condition("Ready", "True", "KubeletReady", last_heartbeat_time=LATE)),
    "a generation": status(ObservedCondition("Ready", "True", observed_generation=2)),
    "a field": status(UNKNOWN, fields={"capacity": {"cpu": "8"}}),
}  # fmt: skip


FREQUENT = ("a taint", "two taints", "an annotation", "unknown", "two conditions", "ready")


@given(st.lists(st.sampled_from(sorted(COMMANDS)), max_size=12))
@example(["a taint", "two taints", "unknown", "ready", "no taints"])
@example(["an annotation", "two annotations", "no annotation a", "no annotations"])
@example(["a heartbeat", "unknown", "a heartbeat", "a taint", "a heartbeat"])
@example(["a taint", "an outdated version", "no spec", "two taints", "no status", "unknown"])
def test_views_and_values_equal_those_of_writes_to_the_store(names):
    """The stimuli, versions and times of the last change are equal, too."""
    plain, fast = Writes(on_store=True), Writes(on_store=False)
    for second, name in enumerate(names):
        for writes in (plain, fast):
            writes.perform(COMMANDS[name], START + seconds(second))
    assert fast.seen == plain.seen
    assert fast.nodes() == plain.nodes()


@pytest.mark.parametrize("name", FREQUENT)
def test_no_value_is_made_for_a_frequent_write(name):
    """The value of the node is made when it is read, and then equals its view."""
    writes = Writes(on_store=False)
    writes.perform(COMMANDS[name], START)
    ((changed, outcome), _, _), storage = writes.seen[0], writes.world.store.storage
    assert isinstance(changed, ObjectChanged)
    assert isinstance(outcome, CommandSucceeded)
    assert type(storage.find_deferred(NODE, ("", "a"))) is not dict
    assert decode(storage.find(NODE, "", "a")) == changed.object


def test_a_script_entry_writes_without_making_a_value():
    """The engine receives the change, and the script receives the outcome."""
    world, outcomes = new_world(), []
    world.at(START, lambda _, now: outcomes.append(world.perform_scripted(command, now)))
    command = COMMANDS["an annotation"]("")
    (changed,) = world.poll(START)
    assert outcomes == [CommandSucceeded(command)]
    assert changed.object.metadata.annotations == {"a": "1"}
    assert type(world.store.storage.find_deferred(NODE, ("", "a"))) is not dict


def test_no_plugin_of_a_simulation_handles_the_update_of_a_node():
    """A plugin that read the node would raise KeyError, because the node is empty."""
    storage = Storage(0)
    plugins = SimulatedAdmission(lambda: "abcde", lambda _, obj: obj).plugins
    for subresource in ("", "status"):
        update = AdmissionAttributes(Operation.UPDATE, NODE, {}, {}, subresource)
        assert all(one.admit(update, storage) is update.obj for one in plugins)
