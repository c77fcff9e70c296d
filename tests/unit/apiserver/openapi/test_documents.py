"""OpenAPI: the index, documents, their hashes, and v2."""

from __future__ import annotations

import json

import pytest

from fairlead.apiserver.apiextensions.served_kind import kinds_of
from fairlead.apiserver.openapi.documents import OpenApi
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.request import Request

POLICY = "/openapi/v3/apis/policy/v1"
WIDGETS = "/openapi/v3/apis/example.com/v1"
SPEC = {"type": "object", "properties": {"size": {"type": "integer"}}}
SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}}
WIDGET = {
    "group": "example.com",
    "scope": "Cluster",
    "names": {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList"},
    "versions": [{"name": "v1", "served": True, "storage": True, "schema": SCHEMA}],
}


@pytest.fixture(scope="module")
def shared():
    return OpenApi(ServedKinds(), "0.1")


def ask(documents, path, *, method="GET", **headers):
    path, _, query = path.partition("?")
    pairs = tuple(tuple(part.split("=")) for part in query.split("&") if part)
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return documents(Request(method, path, pairs, named), 0)


def body(response):
    return json.loads(b"".join(response.body))


def references(value):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from [item] if key == "$ref" and isinstance(item, str) else references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_every_document_in_the_index_exists(shared):
    index = ask(shared, "/openapi/v3")
    assert index.content_type == "text/plain; charset=utf-8"
    entries = body(index)["paths"]
    assert {"api/v1", "apis/apps", "apis/apps/v1", "version"} <= set(entries)
    for name, entry in entries.items():
        answer = ask(shared, entry["serverRelativeURL"])
        assert answer.status == 200, name
        assert ("Cache-Control", "public, immutable") in answer.headers
        assert body(answer)["openapi"] == "3.0.0"


def test_an_outdated_hash_redirects_to_the_current_document(shared):
    moved = ask(shared, f"{POLICY}?hash=DEADBEEF")
    assert moved.status == 301
    place = dict(moved.headers)["Location"]
    assert ask(shared, place).status == 200


def test_a_document_with_a_known_etag_returns_304(shared):
    etag = dict(ask(shared, POLICY).headers)["ETag"]
    assert ask(shared, POLICY, if_none_match=etag).status == 304


def test_a_document_requested_without_a_hash_is_not_cacheable(shared):
    assert "Cache-Control" not in dict(ask(shared, POLICY).headers)


@pytest.mark.parametrize("path", ["/openapi/v3/", "/openapi/v3/apis/nope/v1"])
def test_unknown_documents_return_404(shared, path):
    assert (ask(shared, path).status, ask(shared, path).body) == (404, ())


def test_other_paths_are_left_to_other_handlers(shared):
    assert ask(shared, "/apis") is None
    assert ask(shared, "/openapi/v1") is None


def test_documents_accept_every_method(shared):
    assert ask(shared, "/openapi/v3", method="POST").status == 200


@pytest.mark.parametrize("name", ["api/v1", "apis/apps/v1", "apis/autoscaling/v1", "apis/batch/v1"])
def test_every_referenced_schema_exists(shared, name):
    document = body(ask(shared, f"/openapi/v3/{name}"))
    types = document["components"]["schemas"]
    assert {one.rpartition("/")[2] for one in references(document)} <= set(types)


def test_every_operation_has_a_unique_id(shared):
    paths = body(ask(shared, "/openapi/v3/api/v1"))["paths"]
    names = [
        operation["operationId"]
        for item in paths.values()
        for verb, operation in item.items()
        if verb != "parameters"
    ]
    assert len(names) == len(set(names))


def test_writes_have_the_parameter_field_validation(shared):
    """Clients check for this parameter before they use it."""
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    patch = body(ask(shared, "/openapi/v3/apis/apps/v1"))["paths"][path]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]


def test_fields_have_descriptions(shared):
    types = body(ask(shared, POLICY))["components"]["schemas"]
    spec = types["io.k8s.api.policy.v1.PodDisruptionBudgetSpec"]["properties"]
    assert spec["minAvailable"]["description"].startswith("An eviction is allowed if")


def test_a_definition_adds_a_document_for_its_kinds():
    registry = ServedKinds()
    documents = OpenApi(registry, "0.1")
    before = dict(ask(documents, "/openapi/v2").headers)["ETag"]
    assert ask(documents, WIDGETS).status == 404
    registry.define("widgets.example.com", kinds_of({"spec": WIDGET}))
    document = body(ask(documents, WIDGETS))
    widget = document["components"]["schemas"]["com.example.v1.Widget"]
    assert widget["properties"]["spec"] == SPEC
    assert widget["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "kind": "Widget", "version": "v1"}
    ]
    assert "/apis/example.com/v1/widgets/{name}" in document["paths"]
    assert dict(ask(documents, "/openapi/v2").headers)["ETag"] != before


def test_embedded_resources_have_api_version_kind_and_metadata():
    """`kubectl explain` prints them. In v2, schemas that preserve unknown fields stay open."""
    open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    manifest = {**open_, "x-kubernetes-embedded-resource": True, "required": ["kind"]}
    spec = {
        "type": "object",
        "properties": {
            "manifests": {"type": "array", "items": manifest},
            "more": {"type": "object", "additionalProperties": {**manifest, "required": []}},
            "any": {"type": "object", "additionalProperties": True},
        },
    }
    version = {"name": "v1", "served": True, "storage": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    registry = ServedKinds()
    made = {**WIDGET, "versions": [{**version, "schema": schema}]}
    registry.define("widgets.example.com", kinds_of({"spec": made}))
    documents, name = OpenApi(registry, "0.1"), "com.example.v1.Widget"
    widget = body(ask(documents, WIDGETS))["components"]["schemas"][name]["properties"]
    found = widget["spec"]["properties"]
    embedded = found["manifests"]["items"]
    assert set(embedded["properties"]) == {"apiVersion", "kind", "metadata"}
    assert embedded["properties"]["metadata"] == widget["metadata"]
    assert embedded["required"] == ["kind", "apiVersion"]
    assert found["more"]["additionalProperties"] == embedded
    assert found["any"] == spec["properties"]["any"]
    old = body(ask(documents, "/openapi/v2"))["definitions"][name]["properties"]["spec"]
    assert old["properties"]["manifests"]["items"] == {
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-embedded-resource": True,
    }


def test_schemas_of_v2_refuse_no_null_and_no_unknown_field():
    """kubectl refuses values that differ from a schema of v2."""
    text, choice = {"type": "string"}, {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    open_ = {"x-kubernetes-preserve-unknown-fields": True}
    fields = {"type": "object", "properties": {"a": text}, "required": ["a"]}
    spec = {
        "type": "object",
        "required": ["open", "null", "list"],
        "properties": {
            "open": {**fields, **open_, **choice},
            "null": {**fields, "nullable": True},
            "list": {"type": "array", "items": {**text, "nullable": True}},
            "nulls": {"type": "array", "items": text, "nullable": True},
            "map": {**fields, "properties": {}, "additionalProperties": {**text, "nullable": True}},
        },
    }
    version = {"name": "v1", "served": True, "storage": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    registry = ServedKinds()
    made = {**WIDGET, "versions": [{**version, "schema": schema}]}
    registry.define("widgets.example.com", kinds_of({"spec": made}))
    answer = body(ask(OpenApi(registry, "0.1"), "/openapi/v2"))
    found = answer["definitions"]["com.example.v1.Widget"]["properties"]["spec"]
    assert found["required"] == ["open", "list"]
    assert found["properties"] == {
        "open": {**open_, "required": ["a"]},
        "null": {"required": ["a"]},
        "list": {"type": "array", "items": {}},
        "nulls": {},
        "map": {"type": "object", "properties": {}, "additionalProperties": {}},
    }


def test_custom_resources_have_descriptions_of_the_common_fields():
    """`kubectl explain` prints them; the texts are those of upstream's builder."""
    registry = ServedKinds()
    registry.define("widgets.example.com", kinds_of({"spec": WIDGET}))
    types = body(ask(OpenApi(registry, "0.1"), WIDGETS))["components"]["schemas"]
    widget = types["com.example.v1.Widget"]["properties"]
    assert widget["apiVersion"]["description"].startswith("APIVersion defines the versioned schema")
    assert widget["kind"]["description"].startswith("Kind is a string value representing the REST")
    assert widget["metadata"]["description"].startswith("Standard object's metadata. More info: ")
    listed = types["com.example.v1.WidgetList"]
    assert listed["description"] == "WidgetList is a list of Widget"
    assert listed["properties"]["metadata"]["description"].startswith("Standard list metadata.")
    assert listed["properties"]["items"]["description"].startswith("List of widgets. More info: ")


def test_openapi_v2_has_all_paths_and_definitions_in_one_document(shared):
    document = body(ask(shared, "/openapi/v2", accept="application/json"))
    assert document["swagger"] == "2.0"
    assert {one.rpartition("/")[2] for one in references(document)} <= set(document["definitions"])
    post = document["paths"]["/api/v1/namespaces/{namespace}/pods"]["post"]
    assert post["parameters"][0] == {
        "name": "body",
        "in": "body",
        "required": True,
        "schema": {"$ref": "#/definitions/io.k8s.api.core.v1.Pod"},
    }
    options = document["definitions"]["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]
    assert len(options["x-kubernetes-group-version-kind"]) >= 20


def test_openapi_v2_refuses_other_media_types(shared):
    refused = ask(shared, "/openapi/v2", accept="text/html")
    assert (refused.status, refused.body, refused.content_type) == (406, (), "")


@pytest.mark.parametrize(
    ("owner", "name", "default"),
    [
        ("ContainerPort", "protocol", "TCP"),
        ("ContainerPort", "containerPort", 0),
        ("ReplicationControllerSpec", "replicas", 1),
        ("LocalObjectReference", "name", ""),
        ("PodTemplateSpec", "spec", {}),
        ("Container", "imagePullPolicy", None),
    ],
)
def test_only_openapi_v3_contains_defaults(shared, owner, name, default):
    """Recorded from upstream 1.36.4's applied configurations."""
    definition = f"io.k8s.api.core.v1.{owner}"
    new = body(ask(shared, "/openapi/v3/api/v1"))["components"]["schemas"][definition]
    assert new["properties"][name].get("default") == default
    old = body(ask(shared, "/openapi/v2"))["definitions"][definition]
    assert "default" not in old["properties"][name]


def test_openapi_v2_keeps_fields_named_like_unsupported_keywords(shared):
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    fields = body(ask(shared, "/openapi/v2"))["definitions"][name]["properties"]
    assert {"oneOf", "anyOf", "not", "nullable", "default"} <= set(fields)
