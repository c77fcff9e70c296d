"""PodEvictionMode: the pods that are deleted when the queue of a zone accepts their node."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import DeleteObject, ObjectRef, PatchStatus, RecordEvent
from fairlead.engine.core.reporter import NodeEmptied
from fairlead.engine.nodelifecycle.eviction.pod_eviction_mode import PodEvictionMode
from fairlead.engine.nodelifecycle.node_pods import NodePods

DAEMON = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}]}
LOST = {"reason": "NodeLost"}


class Zone:
    """The queue of a zone; it records which nodes are finished."""

    def __init__(self):
        self.finished = []

    def finish(self, name):
        self.finished.append(name)


@pytest.fixture
def process(given):
    """Process n1 with `pods`; returns (commands by type and name, records)."""

    def make(*pods, node=True):
        records, zone, known = [], Zone(), NodePods()

        class Records:
            report = staticmethod(records.append)

        for pod in pods:
            known.put(pod)
        found = given.node() if node else None
        mode = PodEvictionMode({"a": zone}, known, lambda _name: found, 0, Records())
        commands = mode.process("a", "n1", 5)
        assert zone.finished == ["n1"]
        return commands, records

    return make


def shown(commands):
    """Return the status patches and deletions by pod."""
    kinds = {PatchStatus: "lost", DeleteObject: "delete"}
    return [(kinds[type(c)], c.target.name) for c in commands if type(c) in kinds]


def test_every_pod_is_lost_and_deleted(given, process):
    """Pods of DaemonSets and terminating pods are only marked as lost."""
    pods = [
        given.pod("p1"),
        given.pod("p2", meta=DAEMON),
        given.pod("p3", meta={"deletionTimestamp": given.stamp(0)}),
        given.pod("p4", node="n2"),
    ]
    commands, _ = process(*pods)
    assert shown(commands) == [("lost", "p1"), ("delete", "p1"), ("lost", "p2"), ("lost", "p3")]


def test_a_pod_that_is_already_lost_is_only_deleted(given, process):
    commands, _ = process(given.pod(status=LOST))
    assert shown(commands) == [("delete", "p1")]


def test_the_pods_of_a_deleted_node_are_also_deleted(given, process):
    """The event names the node without its uid, and the node is not reported as emptied."""
    for node, ref, emptied in (
        (True, ObjectRef("Node", "", "n1", "uid-n1"), True),
        (False, ObjectRef("Node", "", "n1"), False),
    ):
        commands, records = process(given.pod(), node=node)
        assert shown(commands) == [("lost", "p1"), ("delete", "p1")]
        assert isinstance(commands[0], RecordEvent)
        assert (commands[0].reason, commands[0].regarding.name) == ("DeletingAllPods", ref.name)
        assert any(isinstance(one, NodeEmptied) for one in records) is emptied


def test_a_node_without_pods_needs_no_command(process):
    commands, records = process()
    assert commands == []
    assert [type(one) for one in records] == [NodeEmptied]
