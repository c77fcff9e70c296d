"""The affinity terms of a pod spec: their order, weights and namespaces."""

from __future__ import annotations

import pytest

from fairlead.engine.state.pod_class import PodClass
from fairlead.engine.state.pod_index.affinity_term import TermKind, affinity_terms
from fairlead.testing.builders import make_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(key="zone", **fields):
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}, **fields}


def terms_of(**affinity):
    spec = {"affinity": affinity} if affinity else {}
    return affinity_terms(make_pod("a", spec=spec).spec, "ns")


def test_a_pod_without_affinity_has_no_terms():
    """Neither has a pod with node affinity only."""
    assert terms_of() == ()
    assert terms_of(nodeAffinity={}) == ()


def test_required_terms_come_first_and_anti_affinity_has_a_negative_weight():
    def rules(*keys):
        required, preferred = keys
        weighted = {"weight": 7, "podAffinityTerm": term(preferred)}
        return {REQUIRED: [term(required)], PREFERRED: [weighted]}

    found = terms_of(podAffinity=rules("a", "b"), podAntiAffinity=rules("c", "d"))
    assert [(one.topology_key, one.kind, one.weight) for one in found] == [
        ("a", TermKind.REQUIRED_AFFINITY, 0),
        ("c", TermKind.REQUIRED_ANTI_AFFINITY, 0),
        ("b", TermKind.PREFERRED, 7),
        ("d", TermKind.PREFERRED, -7),
    ]


@pytest.mark.parametrize(
    ("fields", "matched"),
    [
        ({}, {"ns"}),
        ({"namespaces": ["x"]}, {"x"}),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, {"x", "y"}),
        ({"namespaceSelector": {}}, {"ns", "x", "y"}),
        (
            {"namespaces": ["ns"], "namespaceSelector": {"matchLabels": {"team": "a"}}},
            {"ns", "x", "y"},
        ),
    ],
    ids=["own", "named", "selected", "all", "named or selected"],
)
def test_the_namespaces_that_a_term_matches(fields, matched):
    """By default, the namespace of the pod."""
    (found,) = terms_of(podAffinity={REQUIRED: [term(**fields)]})
    labels = {"ns": {}, "x": {"team": "a"}, "y": {"team": "a"}}
    assert matched == {
        name
        for name, own in labels.items()
        if found.matches(PodClass(name, {"app": "web"}, terminating=False), own)
    }
    assert not found.matches(PodClass("ns", {"app": "db"}, terminating=False), {"team": "a"})
