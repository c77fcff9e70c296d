"""1 and true differ: a change from one to the other is stored and changes the field owner."""

from __future__ import annotations

import pytest

from fairlead.apiserver.json_equality import json_equal

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/x.io/v1/namespaces/default/widgets"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"


@pytest.fixture(name="widgets")
def _widgets(api):
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": "x.io",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [version],
    }
    api.post(DEFINITIONS, {"metadata": {"name": "widgets.x.io"}, "spec": spec})
    made = api.post(WIDGETS, {"metadata": {"name": "a"}, "spec": {"x": 1, "l": [1, 0]}})
    assert made.status == 201
    return f"{WIDGETS}/a"


@pytest.mark.parametrize("spec", [{"x": True}, {"l": [True, False]}])
def test_a_change_from_1_to_true_is_stored(api, widgets, spec):
    made = api.patch(widgets, {"spec": spec})
    assert (made.status, made.json["metadata"]["generation"]) == (200, 2)
    assert json_equal(api.get(widgets).json["spec"], {"x": 1, "l": [1, 0], **spec})


def test_applying_true_conflicts_with_applied_1(api, widgets):
    body = {"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "a"}}
    first = api.patch(f"{widgets}?fieldManager=m", {**body, "spec": {"x": 1}}, APPLY)
    assert first.status == 200
    other = api.patch(f"{widgets}?fieldManager=o", {**body, "spec": {"x": True}}, APPLY)
    assert (other.status, ".spec.x" in other.message) == (409, True)


@pytest.mark.parametrize(
    ("path", "value", "status"),
    [("x", 1, 200), ("x", True, 422), ("l", [1, 0], 200), ("l", [True, False], 422)],
)
def test_the_test_operation_of_a_json_patch_distinguishes_1_from_true(
    api, widgets, path, value, status
):
    patch = [{"op": "test", "path": f"/spec/{path}", "value": value}]
    assert api.patch(widgets, patch, JSON_PATCH).status == status
