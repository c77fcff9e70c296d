"""RuntimeClass: the overhead and scheduling constraints that it adds to pods."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.plugins.runtime_class import RuntimeClass, RuntimeClassOverhead

OVERHEAD = {"podFixed": {"cpu": "250m"}}
NOT_READY = {"key": "a", "operator": "Exists", "effect": "NoExecute"}


@pytest.fixture
def classed(gate, obj):
    """Makes gates with one RuntimeClass."""

    def made(plugin=RuntimeClass, **fields):
        found = obj("RuntimeClass", "vm", "", "node.k8s.io/v1", handler="h", **fields)
        return gate(plugin()).has(found)

    return made


def test_a_pod_gets_overhead_node_selector_and_tolerations_of_its_class(classed, pod):
    """Tolerations that another toleration covers are dropped."""
    short = {**NOT_READY, "tolerationSeconds": 5}
    scheduling = {"nodeSelector": {"vm": "yes"}, "tolerations": [NOT_READY]}
    found = classed(overhead=OVERHEAD, scheduling=scheduling)
    made = pod(runtimeClassName="vm", nodeSelector={"b": "c"}, tolerations=[short])
    admitted = found.admits(made)["spec"]
    assert admitted["overhead"] == {"cpu": "250m"}
    assert admitted["nodeSelector"] == {"b": "c", "vm": "yes"}
    assert admitted["tolerations"] == [NOT_READY]


@pytest.mark.parametrize(
    ("fields", "spec", "why"),
    [
        ({}, {"runtimeClassName": "no"}, 'pod rejected: RuntimeClass "no" not found'),
        (
            {"overhead": OVERHEAD},
            {"runtimeClassName": "vm", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            {"scheduling": {"nodeSelector": {"a": "b"}}},
            {"runtimeClassName": "vm", "nodeSelector": {"a": "c"}},
            "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c",
        ),
    ],
)
def test_a_missing_or_contradicting_class_is_refused(classed, pod, fields, spec, why):
    """The class does not exist, or contradicts the pod's fields."""
    assert classed(**fields).refusal(pod(**spec)) == f'pods "x" is forbidden: {why}'


def test_an_overhead_that_differs_from_the_class_is_refused(classed, pod):
    """An overhead equal to that of the class is accepted, even if it is written differently."""
    found = classed(RuntimeClassOverhead, overhead=OVERHEAD)
    assert found.refusal(pod(overhead={"cpu": "1"})) == (
        'pods "x" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass '
        "defined Overhead"
    )
    same = pod(runtimeClassName="vm", overhead={"cpu": "0.25"})
    assert found.admits(same) == same
