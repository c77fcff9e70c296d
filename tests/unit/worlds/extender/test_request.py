"""Bodies of requests to extenders, as kube-scheduler encodes them."""

from __future__ import annotations

import json

import pytest

from fairlead.engine.core.command import CallExtender, ExtenderVerb, NodeVictims, ObjectRef
from fairlead.worlds.extender.request import request_body

POD = ObjectRef("Pod", "default", "p", "u1")
VICTIM = ObjectRef("Pod", "default", "v", "u2")
OBJECTS = {
    ("Pod", "p"): {"metadata": {"name": "p"}, "spec": {"containers": []}},
    ("Pod", "v"): {"metadata": {"name": "v"}},
    ("Node", "a"): {"metadata": {"name": "a"}, "status": {}},
}
P, V, A = OBJECTS.values()


@pytest.fixture
def body():
    """Return the body of a request, decoded from JSON."""

    def ask(verb, **about):
        call = CallExtender(0, verb, "http://e", POD, **about)
        return json.loads(request_body(call, lambda ref: OBJECTS.get((ref.kind, ref.name))))

    return ask


@pytest.mark.parametrize("verb", [ExtenderVerb.FILTER, ExtenderVerb.PRIORITIZE])
def test_nodes_are_sent_as_objects_or_names(body, verb):
    """upstream: extender.go: Filter, Prioritize."""
    assert body(verb, nodes=("a",)) == {"Pod": P, "Nodes": {"items": [A]}, "NodeNames": None}
    assert body(verb, nodes=("a",), by_name=True) == {"Pod": P, "Nodes": None, "NodeNames": ["a"]}


def test_victims_are_sent_as_objects_or_uids(body):
    """upstream: extender.go: ProcessPreemption."""
    victims = (NodeVictims("a", (VICTIM,), 3),)
    assert body(ExtenderVerb.PREEMPT, victims=victims) == {
        "Pod": P,
        "NodeNameToVictims": {"a": {"Pods": [V], "NumPDBViolations": 3}},
        "NodeNameToMetaVictims": None,
    }
    assert body(ExtenderVerb.PREEMPT, victims=victims, by_name=True) == {
        "Pod": P,
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u2"}], "NumPDBViolations": 3}},
    }


def test_a_binding_names_pod_and_node(body):
    assert body(ExtenderVerb.BIND, nodes=("a",)) == {
        "PodName": "p",
        "PodNamespace": "default",
        "PodUID": "u1",
        "Node": "a",
    }


def test_a_deleted_object_is_sent_with_its_name_only(body):
    assert body(ExtenderVerb.FILTER, nodes=("b",))["Nodes"] == {
        "items": [{"metadata": {"name": "b"}}]
    }
