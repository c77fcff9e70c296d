"""The cluster events of a changed node or pod, and their order."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.api.objects import PodCondition
from fairlead.engine.framework.cluster_event import (
    assigned_pod_events,
    node_events,
    waiting_pod_events,
)
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod

PLAIN = make_node("n")
CORDONED = make_node("n", unschedulable=True)
SHAPES = Cluster().shapes


def kinds(events):
    return [event.kind.name for event in events]


def ready(node, status, **more):
    ready = (PodCondition(type="Ready", status=status, **more),)
    return msgspec.structs.replace(
        node, status=msgspec.structs.replace(node.status, conditions=ready)
    )


def annotated(node):
    metadata = msgspec.structs.replace(node.metadata, annotations={"a": "b"})
    return msgspec.structs.replace(node, metadata=metadata)


def declaring(node):
    return msgspec.structs.replace(
        node, status=msgspec.structs.replace(node.status, declared_features=("F",))
    )


UP, DARK = ready(PLAIN, "True"), ready(PLAIN, "Unknown", reason="NodeStatusUnknown")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, PLAIN, ["NODE_ADD"]),
        (PLAIN, None, ["NODE_DELETE"]),
        (PLAIN, PLAIN, []),
        (UP, ready(PLAIN, "True", last_transition_time="now"), []),
        (UP, DARK, ["NODE_CONDITION"]),
        (PLAIN, annotated(PLAIN), ["NODE_ANNOTATION"]),
        (PLAIN, declaring(PLAIN), ["NODE_DECLARED_FEATURES"]),
        (PLAIN, CORDONED, []),
        (CORDONED, PLAIN, ["NODE_TAINT"]),
        (PLAIN, make_node("n", taints=["a:NoSchedule"]), ["NODE_TAINT"]),
        (PLAIN, make_node("n", labels={"a": "b"}), ["NODE_LABEL"]),
        (PLAIN, make_node("n", cpu="1"), ["NODE_ALLOCATABLE"]),
        (
            CORDONED,
            annotated(
                ready(make_node("n", cpu="9", labels={"a": "b"}, taints=["a:NoSchedule"]), "False")
            ),
            [
                "NODE_ALLOCATABLE",
                "NODE_LABEL",
                "NODE_TAINT",
                "NODE_CONDITION",
                "NODE_ANNOTATION",
            ],
        ),
    ],
    ids=[
        "new", "gone", "the same", "a heartbeat", "gone dark", "annotated", "declaring", "cordoned",
        "uncordoned", "tainted",
        "labelled", "resized", "everything at once",
    ],
)  # fmt: skip
def test_events_of_a_changed_node(old, new, expected):
    """Cordoning a node makes no pod schedulable, so it is no event."""
    assert kinds(node_events(old, new)) == expected


def info(**more):
    pod = make_pod("p", **more)
    return PodInfo(pod, SHAPES.shape_of(pod))


@pytest.mark.parametrize(
    ("old", "new", "assigned", "waiting"),
    [
        ({}, {}, [], []),
        ({}, {"labels": {"a": "b"}}, ["ASSIGNED_POD_LABEL"], ["POD_LABEL"]),
        (
            {"requests": {"cpu": "2", "memory": "1"}},
            {"requests": {"cpu": "1", "memory": "9"}},
            ["ASSIGNED_POD_SCALE_DOWN"],
            ["POD_SCALE_DOWN"],
        ),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}, [], []),
        ({}, {"terminating": True}, [], []),
        ({}, {"spec": {"tolerations": [{"key": "a"}]}}, [], ["POD_TOLERATION"]),
        ({"spec": {"schedulingGates": [{"name": "a"}]}}, {}, [], ["POD_GATES_GONE"]),
        (
            {},
            {"status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "b"}]}},
            [],
            ["POD_CLAIM_MADE"],
        ),
        (
            {},
            {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "b"}}},
            [],
            ["POD_CLAIM_MADE"],
        ),
        (
            {"spec": {"schedulingGates": [{"name": "a"}, {"name": "b"}]}},
            {"spec": {"schedulingGates": [{"name": "b"}]}},
            [],
            [],
        ),
    ],
    ids=[
        "the same", "labels", "less of something", "more", "told to go", "a toleration",
        "the last gate", "a claim was made", "a claim was made for extended resources",
        "one gate of two",
    ],
)  # fmt: skip
def test_events_of_a_changed_pod(old, new, assigned, waiting):
    """For assigned and pending pods; kinds that no plugin registers are left out."""
    before, after = info(**old), info(**new)
    assert kinds(assigned_pod_events(before, after)) == assigned
    assert kinds(waiting_pod_events(before, after)) == waiting
