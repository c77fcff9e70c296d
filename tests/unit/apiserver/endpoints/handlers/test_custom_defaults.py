"""Defaults of custom resources that are false, zero or empty."""

from __future__ import annotations

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(**properties):
    spec = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "singular": "widget"},
            "versions": [version],
        },
    }


def test_false_zero_and_empty_defaults_are_applied(api):
    properties = {
        "on": {"type": "boolean", "default": False},
        "count": {"type": "integer", "default": 0},
        "text": {"type": "string", "default": ""},
        "list": {"type": "array", "items": {"type": "string"}, "default": []},
    }
    stored = api.post(DEFINITIONS, definition(**properties)).json
    [version] = stored["spec"]["versions"]
    shown = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert {name: one["default"] for name, one in shown.items()} == {
        name: one["default"] for name, one in properties.items()
    }
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a"},
        "spec": {},
    }
    made = api.post("/apis/example.com/v1/namespaces/default/widgets", widget).json
    assert made["spec"] == {"on": False, "count": 0, "text": "", "list": []}


def test_additional_properties_false_is_kept(api):
    shut = {"type": "object", "additionalProperties": False}
    stored = api.post(DEFINITIONS, definition(shut=shut)).json
    [version] = stored["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["shut"] == shut
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a"},
        "spec": {"shut": {"a": 1}},
    }
    made = api.post("/apis/example.com/v1/namespaces/default/widgets", widget)
    assert (made.status, made.json["spec"]) == (201, {"shut": {}})
