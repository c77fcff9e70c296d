"""Versions of a custom resource with different schemas."""

from __future__ import annotations

import pytest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/x.io/{}/namespaces/default/widgets"
V1, V2 = (WIDGETS.format(version) for version in ("v1", "v2"))


@pytest.fixture
def define(api):
    """Makes a definition whose v1 has the field `a`, and v2 also `b`; one version is stored."""

    def version(name, stored, *fields):
        spec = {"type": "object", "properties": {field: {"type": "string"} for field in fields}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        return {"name": name, "served": True, "storage": name == stored, "schema": schema}

    def defined(stored):
        spec = {
            "group": "x.io",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [version("v1", stored, "a"), version("v2", stored, "a", "b")],
        }
        body = {"metadata": {"name": "widgets.x.io"}, "spec": spec}
        assert api.post(DEFINITIONS, body).status == 201

    return defined


def spec(answer):
    return answer.json["spec"]


def test_fields_unknown_to_the_stored_version_are_pruned_by_a_write(api, define):
    define("v1")
    body = {"metadata": {"name": "w"}, "spec": {"a": "1", "b": "1"}}
    assert spec(api.post(V2, body)) == {"a": "1"}
    assert spec(api.post(f"{V2}?dryRun=All", {**body, "metadata": {"name": "x"}})) == {"a": "1"}
    assert spec(api.patch(f"{V2}/w", {"spec": {"b": "2"}})) == {"a": "1"}
    assert spec(api.get(f"{V2}/w")) == {"a": "1"}


def test_fields_unknown_to_the_requested_version_are_omitted(api, define):
    """A write in the requested version removes these fields."""
    define("v2")
    api.post(V2, {"metadata": {"name": "w"}, "spec": {"a": "1", "b": "1"}})
    assert spec(api.get(f"{V1}/w")) == {"a": "1"}
    assert [one["spec"] for one in api.get(V1).json["items"]] == [{"a": "1"}]
    assert spec(api.get(f"{V2}/w")) == {"a": "1", "b": "1"}
    assert spec(api.patch(f"{V1}/w", {"spec": {"a": "2"}})) == {"a": "2"}
    assert spec(api.get(f"{V2}/w")) == {"a": "2"}
