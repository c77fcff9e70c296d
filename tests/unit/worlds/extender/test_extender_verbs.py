"""Responses of Fairlead's plugins to extender requests of kube-scheduler."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.extender import ProtocolError
from fairlead.engine.extender_backend import ExtenderBackend, ExtenderBackendError
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.testing.builders import make_node, make_pod
from fairlead.worlds.extender.extender_verbs import ExtenderVerbs

# As Go writes objects of informers: without kind and apiVersion, with explicit zero values.
POD = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u1", "creationTimestamp": None},
    "spec": {
        "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
        ]
    },
    "status": {},
}  # fmt: skip


def node(name, cpu="4", **labels):
    return {
        "metadata": {"name": name, "labels": labels, "creationTimestamp": None},
        "spec": {},
        "status": {"allocatable": {"cpu": cpu, "memory": "1Gi", "pods": "10"}},
    }


class Broken:
    """A plugin that always fails."""

    name = "Broken"

    def filter(self, state, pod, node):
        raise ValueError("out of order")


def make_verbs(*objects, plugins=(("NodeResourcesFit", 1), ("NodeUnschedulable", 0))):
    profile = Profile(plugins=(("PrioritySort", 0), *plugins, ("DefaultBinder", 0)))
    factories = {"Broken": lambda _handle, _args: Broken()}
    return ExtenderVerbs(
        ExtenderBackend(SchedulerConfig((profile,), out_of_tree=factories), objects)
    )


@pytest.fixture
def ask():
    """Makes extenders; each returns its answers as JSON values."""

    def make(*objects, **options):
        verbs = make_verbs(*objects, **options)

        def question(verb, **fields):
            return json.loads(verbs.by_verb[verb](json.dumps(fields).encode()))

        return question

    return make


def test_a_filter_request_with_nodes_returns_nodes(ask):
    big, small = node("a"), node("b", cpu="1")
    assert ask()("filter", Pod=POD, Nodes={"metadata": {}, "items": [big, small]}) == {
        "Nodes": {"items": [big]},
        "NodeNames": None,
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {"b": "Insufficient cpu"},
        "Error": "",
    }


def test_a_filter_request_with_node_names_returns_node_names(ask):
    full = make_pod("other", node="b", requests={"cpu": "3"})
    question = ask(make_node("a"), make_node("b"), full)
    assert question("filter", Pod=POD, Nodes=None, NodeNames=["b", "a", "c"]) == {
        "Nodes": None,
        "NodeNames": ["a"],
        "FailedNodes": {"b": "Insufficient cpu"},
        "FailedAndUnresolvableNodes": {"c": "node is not known to the extender"},
        "Error": "",
    }


def test_nodes_that_were_sent_once_can_be_referenced_by_name(ask):
    question = ask()
    question("filter", Pod=POD, Nodes={"items": [node("a"), node("b")]})
    question("filter", Pod=POD, Nodes={"items": [node("a", cpu="1")]})
    assert question("filter", Pod=POD, NodeNames=["a", "b"])["NodeNames"] == ["b"]


def test_a_node_is_decoded_once_per_resource_version(ask):
    question = ask()

    def fits(version, cpu):
        versioned = node("a", cpu=cpu)
        versioned["metadata"] |= {"uid": "u", "resourceVersion": version}
        return bool(question("filter", Pod=POD, Nodes={"items": [versioned]})["Nodes"]["items"])

    assert [fits("1", "4"), fits("1", "1"), fits("2", "1"), fits("3", "4")] == [
        True,
        True,
        False,
        True,
    ]


def test_scores_are_scaled_to_the_range_of_the_protocol(ask):
    nodes = {"items": [node("a", cpu="4"), node("b", cpu="8"), node("c", cpu="1")]}
    scores = ask()("prioritize", Pod=POD, Nodes=nodes)
    assert scores == [
        {"Host": "a", "Score": 7},
        {"Host": "b", "Score": 8},
        {"Host": "c", "Score": 0},
    ]


@pytest.mark.parametrize("is_meta", [True, False])
def test_preemption_keeps_only_candidates_where_it_helps(ask, is_meta):
    """Victims are pods or uids in the request, and uids in the answer."""
    pods = [
        make_pod("x", node="a", requests={"cpu": "3"}, uid="ux"),
        make_pod("y", node="b", requests={"cpu": "2"}, uid="uy"),
        make_pod("z", node="b", requests={"cpu": "2"}, uid="uz"),
        make_pod("w", node="b", requests={"cpu": "1"}, uid="uw"),
    ]
    question = ask(make_node("a"), make_node("b", cpu="5"), *pods)
    if is_meta:
        victims = {
            "NodeNameToMetaVictims": {
                "a": {"Pods": [{"UID": "ux"}], "NumPDBViolations": 2},
                "b": {"Pods": [{"UID": "uw"}], "NumPDBViolations": 0},
            }
        }
    else:
        whole = {uid: {"metadata": {"name": uid[1], "uid": uid}} for uid in ("ux", "uw")}
        victims = {
            "NodeNameToVictims": {
                "a": {"Pods": [whole["ux"]], "NumPDBViolations": 2},
                "b": {"Pods": [whole["uw"]], "NumPDBViolations": 0},
            }
        }
    assert question("preempt", Pod=POD, **victims) == {
        "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "ux"}], "NumPDBViolations": 2}}
    }


def test_a_failed_plugin_is_an_error_in_the_response_or_an_exception(ask):
    question = ask(make_node("a"), plugins=(("Broken", 1),))
    assert "out of order" in question("filter", Pod=POD, NodeNames=["a"])["Error"]
    with pytest.raises(ExtenderBackendError, match="out of order"):
        question("prioritize", Pod=POD, NodeNames=["a"])
    with pytest.raises(ExtenderBackendError, match="out of order"):
        question("preempt", Pod=POD, NodeNameToMetaVictims={"a": {"Pods": []}})


@pytest.mark.parametrize(
    ("verb", "question", "problem"),
    [
        ("filter", b"", "EOF"),
        ("filter", b"[]", "Expected object"),
        ("filter", b"{}", "Pod: is required"),
        ("filter", b"[" * 100_000, "nested too deeply"),
        ("filter", {"Pod": POD}, "one of Nodes and NodeNames is required"),
        ("filter", {"Pod": POD, "NodeNames": [1]}, "Expected str"),
        ("filter", {"Pod": POD | {"spec": {"containers": 1}}, "NodeNames": []}, "containers"),
        ("filter", {"Pod": {"metadata": 1}, "NodeNames": []}, "metadata"),
        ("filter", {"Pod": POD, "Nodes": {"items": [{}]}}, "metadata.name: must be a string"),
        ("filter", {"Pod": POD, "Nodes": {"items": [node("a", cpu="x")]}}, "allocatable"),
        ("filter", {"Pod": POD, "Nodes": {"items": [node("A B")]}}, "metadata.name"),
        ("prioritize", {"Pod": POD}, "one of Nodes and NodeNames is required"),
        ("preempt", {"Pod": POD}, "one of NodeNameToVictims and NodeNameToMetaVictims"),
        ("preempt", {"Pod": POD, "NodeNameToVictims": {"a": {"Pods": [{}]}}}, "metadata.uid"),
    ],
)
def test_an_invalid_request_is_refused(verb, question, problem):
    body = question if isinstance(question, bytes) else json.dumps(question).encode()
    with pytest.raises(ProtocolError, match=problem):
        make_verbs().by_verb[verb](body)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
PLACES = st.sampled_from(
    [
        ("metadata",), ("metadata", "name"), ("metadata", "labels"), ("metadata", "uid"), ("spec",),
        ("spec", "containers"), ("spec", "affinity"), ("spec", "tolerations"), ("spec", "priority"),
        ("spec", "taints"), ("status",), ("status", "allocatable"), ("spec", "nodeSelector"),
        ("spec", "topologySpreadConstraints"), ("status", "nominatedNodeName"),
    ]
)  # fmt: skip


@given(PLACES, VALUES, st.booleans())
def test_invalid_objects_cause_no_other_error_than_a_refusal(place, value, in_pod):
    """All default plugins run; no other exception occurs."""
    pod, one = json.loads(json.dumps((POD, node("a"))))
    spoiled = pod if in_pod else one
    *outer, last = place
    for key in outer:
        spoiled = spoiled.setdefault(key, {})
    spoiled[last] = value
    verbs = ExtenderVerbs(ExtenderBackend(SchedulerConfig()))
    body = json.dumps({"Pod": pod, "Nodes": {"items": [one]}}).encode()
    for verb in ("filter", "prioritize"):
        with suppress(ProtocolError):
            assert verbs.by_verb[verb](body)
