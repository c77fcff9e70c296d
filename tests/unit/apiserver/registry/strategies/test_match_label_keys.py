"""matchLabelKeys and mismatchLabelKeys are merged into the stored selector."""

from __future__ import annotations

import pytest

from fairlead.apiserver.registry.strategies.core.match_label_keys import with_label_keys

IN = {"key": "app", "operator": "In", "values": ["web"]}
NOT_IN = {"key": "tenant", "operator": "NotIn", "values": ["t1"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod(**spec):
    return {"metadata": {"labels": {"app": "web", "tenant": "t1"}}, "spec": spec}


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_keys_of_required_terms_are_merged(kind):
    term = {
        "labelSelector": {"matchLabels": {"x": "y"}},
        "matchLabelKeys": ["app", "absent"],
        "mismatchLabelKeys": ["tenant"],
        "topologyKey": "zone",
    }
    given = {kind: {REQUIRED: [term]}}
    merged = with_label_keys(pod(affinity=given))
    assert given == {kind: {REQUIRED: [term]}}
    assert merged["spec"]["affinity"][kind][REQUIRED] == [
        {**term, "labelSelector": {"matchLabels": {"x": "y"}, "matchExpressions": [IN, NOT_IN]}}
    ]


def test_keys_of_preferred_terms_are_merged():
    term = {"labelSelector": {}, "mismatchLabelKeys": ["tenant"], "topologyKey": "zone"}
    preferred = [{"weight": 7, "podAffinityTerm": term}]
    merged = with_label_keys(pod(affinity={"podAffinity": {PREFERRED: preferred}}))
    [weighted] = merged["spec"]["affinity"]["podAffinity"][PREFERRED]
    assert weighted["weight"] == 7
    assert weighted["podAffinityTerm"]["labelSelector"] == {"matchExpressions": [NOT_IN]}


def test_keys_of_spread_constraints_are_added_after_existing_expressions():
    other = {"key": "z", "operator": "Exists"}
    selector = {"matchExpressions": [other]}
    constraint = {"labelSelector": selector, "matchLabelKeys": ["app"]}
    merged = with_label_keys(pod(topologySpreadConstraints=[constraint]))
    [stored] = merged["spec"]["topologySpreadConstraints"]
    assert stored["labelSelector"] == {"matchExpressions": [other, IN]}
    assert selector == {"matchExpressions": [other]}


def test_merging_again_changes_nothing():
    constraint = {"labelSelector": {}, "matchLabelKeys": ["app"]}
    once = with_label_keys(pod(topologySpreadConstraints=[constraint]))
    assert with_label_keys(once) is once


@pytest.mark.parametrize(
    "constraint",
    [
        {"matchLabelKeys": ["app"]},
        {"labelSelector": {}},
        {"labelSelector": {}, "matchLabelKeys": ["no"]},
    ],
    ids=["an absent selector stays absent", "no keys", "no such label"],
)
def test_a_constraint_without_keys_to_merge_is_unchanged(constraint):
    one = pod(topologySpreadConstraints=[constraint])
    assert with_label_keys(one) is one


def test_a_new_pod_is_stored_with_its_keys_merged(store, now):
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["app"],
    }
    sent = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "topologySpreadConstraints": [constraint],
        },
    }
    [stored] = store.create(sent, now)["spec"]["topologySpreadConstraints"]
    assert stored["labelSelector"] == {"matchExpressions": [IN]}
    [loaded] = store.put_as_is(sent, now)["spec"]["topologySpreadConstraints"]
    assert loaded["labelSelector"] == {"matchExpressions": [IN]}
