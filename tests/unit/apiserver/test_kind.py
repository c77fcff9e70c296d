"""Kinds by all their names, and derived names of unknown kinds."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import DEPLOYMENT, KINDS, NODE, POD, Kind, find_kind, kind_of


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pod", "pods"),
        ("Pods", "pods"),
        ("po", "pods"),
        ("deploy", "deployments.apps"),
        ("Deployment", "deployments.apps"),
        ("deployments.apps", "deployments.apps"),
        ("pdb", "poddisruptionbudgets.policy"),
        ("pc", "priorityclasses.scheduling.k8s.io"),
        ("crds", "customresourcedefinitions.apiextensions.k8s.io"),
        ("ev", "events"),  # two groups serve the same Events
        ("events.events.k8s.io", "events"),
        ("hpa", "horizontalpodautoscalers.autoscaling"),
    ],
)
def test_a_kind_is_found_by_all_its_names(name, expected):
    assert find_kind(name).resource == expected


@pytest.mark.parametrize("name", ["", "podz", "deployments.extensions"])
def test_an_unknown_name_finds_nothing(name):
    assert find_kind(name) is None


def test_every_kind_is_found_by_its_type_and_names_are_distinguished_by_group():
    for kind in KINDS:
        obj = {"apiVersion": kind.api_version, "kind": kind.kind}
        assert kind_of(obj) is kind
        assert find_kind(f"{kind.plural}.{kind.group}").resource == kind.resource


def test_the_names_in_messages_carry_the_group():
    assert (POD.resource, POD.qualified, POD.api_version) == ("pods", "Pod", "v1")
    assert (DEPLOYMENT.resource, DEPLOYMENT.qualified) == ("deployments.apps", "Deployment.apps")
    assert DEPLOYMENT.api_version == "apps/v1"


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("PodGroup", "podgroups"),
        ("Policy", "policies"),
        ("Ingress", "ingresses"),
        ("Gateway", "gatewaies"),  # upstream guesses this, too, so custom resources declare plurals
    ],
)
def test_the_plural_of_an_unknown_kind_is_guessed(kind, plural):
    assert kind_of({"apiVersion": "x.io/v1", "kind": kind}).plural == plural


def test_an_unknown_kind_is_namespaced_if_its_object_has_a_namespace():
    here = {"apiVersion": "x.io/v1", "kind": "Queue", "metadata": {"name": "q", "namespace": "n"}}
    nowhere = {"apiVersion": "x.io/v1", "kind": "Queue", "metadata": {"name": "q"}}
    assert kind_of(here) == Kind("x.io", "v1", "Queue", "queues", has_generation=True)
    assert not kind_of(nowhere).namespaced


def test_nodes_are_cluster_scoped():
    assert POD.namespaced
    assert not NODE.namespaced
