"""Patches that change apiVersion and kind."""

from __future__ import annotations

import pytest

MERGE = "application/merge-patch+json"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENT = {
    "metadata": {"name": "x"},
    "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": POD},
}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/x.io/v1/namespaces/default/widgets"
UNPARSED = "couldn't get version/kind; json parse error: json: cannot unmarshal"


@pytest.mark.parametrize("patch", [{"kind": None}, {"apiVersion": None}, {"kind": ""}])
def test_removing_the_kind_by_a_patch_has_no_effect(api, patch):
    api.post(DEPLOYMENTS, DEPLOYMENT)
    made = api.patch(f"{DEPLOYMENTS}/x", patch, MERGE)
    assert made.status == 200
    assert (made.json["apiVersion"], made.json["kind"]) == ("apps/v1", "Deployment")


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ({"kind": "Nope"}, 'no kind "Nope" is registered for version "apps/v1" in scheme'),
        ({"apiVersion": "apps/v9"}, 'no kind "Deployment" is registered for version "apps/v9"'),
        (
            {"apiVersion": "v1", "kind": "Pod"},
            "converting (v1.Pod) to (apps.Deployment): unknown conversion",
        ),
        ({"kind": 5}, f"{UNPARSED} number into Go struct field .kind of type string"),
        ({"apiVersion": []}, f"{UNPARSED} array into Go struct field .apiVersion of type string"),
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
    ],
)
def test_the_kind_of_an_object_cannot_be_changed(api, patch, why):
    api.post(DEPLOYMENTS, DEPLOYMENT)
    refused = api.patch(f"{DEPLOYMENTS}/x", patch, MERGE)
    assert (refused.status, why in refused.message) == (422, True)
    assert refused.json["details"]["causes"][0]["field"] == "patch"


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ({"kind": None}, "Object 'Kind' is missing in '{"),
        ({"kind": 5}, f"{UNPARSED} number into Go struct field .kind of type string"),
        (
            {"apiVersion": "y.io/v1"},
            'Widget.y.io "x" is invalid: apiVersion: Invalid value: "y.io/v1": must be x.io/v1',
        ),
        (
            {"apiVersion": "x.io/v2"},
            'Widget.x.io "x" is invalid: apiVersion: Invalid value: "x.io/v2": must be x.io/v1',
        ),
        ({"kind": "Gadget"}, 'kind: Invalid value: "Gadget": must be Widget'),
    ],
)
def test_the_kind_of_a_custom_resource_cannot_be_changed(api, patch, why):
    _define_widgets(api)
    assert api.post(WIDGETS, {"metadata": {"name": "x"}}).status == 201
    refused = api.patch(f"{WIDGETS}/x", patch, MERGE)
    assert (refused.status, why in refused.message) == (422, True), refused.message


def test_a_custom_resource_without_a_version_is_an_error(api):
    _define_widgets(api)
    api.post(WIDGETS, {"metadata": {"name": "x"}})
    failed = api.patch(f"{WIDGETS}/x", {"apiVersion": None}, MERGE)
    assert (failed.status, "'apiVersion' is missing" in failed.message) == (500, True)


def _define_widgets(api):
    """Define Widgets with two served versions."""
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema}
        for name in ("v1", "v2")
    ]
    spec = {
        "group": "x.io",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": versions,
    }
    assert api.post(DEFINITIONS, {"metadata": {"name": "widgets.x.io"}, "spec": spec}).status == 201
