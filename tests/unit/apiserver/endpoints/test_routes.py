"""Routing of requests for built-in kinds and for custom resources."""

from __future__ import annotations

import pytest

from fairlead.apiserver.endpoints.routes import SUBRESOURCE_HANDLERS
from fairlead.apiserver.kind import KINDS

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/x.io/v1/namespaces/default/widgets"
TEXT = "404 page not found\n"
NO_RESOURCE = "the server could not find the requested resource"
NO_METHOD = "the server does not allow this method on the requested resource"


def test_every_subresource_has_a_handler():
    """OpenAPI and the table of kinds rely on this."""
    assert {
        part.name for kind in KINDS for part in kind.subresources
    } <= SUBRESOURCE_HANDLERS.keys()


def definition(plural, kind, scope):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": f"{plural}.x.io"},
        "spec": {
            "group": "x.io",
            "scope": scope,
            "names": {"plural": plural, "kind": kind},
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


@pytest.fixture
def custom(api):
    """A server with a namespaced and a cluster-scoped custom resource."""
    api.post(DEFINITIONS, definition("widgets", "Widget", "Namespaced"))
    api.post(DEFINITIONS, definition("racks", "Rack", "Cluster"))
    return api


def widget(name):
    return {"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": name}}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/apis/x.io/v2"),
        ("GET", "/apis/x.io/v2/widgets"),
        ("GET", "/apis/x.io/v1/nope"),
        ("GET", "/apis/x.io/v1/widgets/a"),
        ("DELETE", "/apis/x.io/v1/widgets"),
        ("GET", "/apis/x.io/v1/namespaces/default/racks"),
    ],
)
def test_unknown_paths_of_custom_groups_return_a_plain_text_404(custom, method, path):
    answer = custom.ask(method, path)
    assert (answer.status, answer.text) == (404, TEXT)


@pytest.mark.parametrize("path", ["/api/v1/nope", "/apis/apps/v9/deployments"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_unknown_paths_of_built_in_groups_return_a_status_404(api, method, path):
    answer = api.ask(method, path)
    assert (answer.status, answer.message) == (404, NO_RESOURCE)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default/pods/x/status/y",
        "/api/v1/watch/namespaces/default/pods/x/status",
        "/api/v1/watch/componentstatuses",
        "/api/v1/namespaces/default/nodes",
    ],
)
def test_a_path_without_a_route_returns_404_for_every_method(api, path):
    assert [api.ask(method, path).message for method in ("GET", "HEAD")] == [
        NO_RESOURCE,
        NO_RESOURCE,
    ]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("HEAD", "/api/v1/nodes"),
        ("POST", "/api/v1/watch/pods"),
        ("PUT", "/api/v1/nodes"),
        ("POST", "/api/v1/nodes/x"),
        ("POST", "/api/v1/pods"),
    ],
)
def test_a_route_refuses_other_methods(api, method, path):
    answer = api.ask(method, path)
    assert (answer.status, answer.message) == (405, NO_METHOD)


def test_a_custom_resource_can_be_posted_to_the_path_of_an_object(custom):
    assert custom.post(f"{WIDGETS}/b", widget("a")).json["metadata"]["name"] == "a"


def test_custom_resources_accept_the_method_head(custom):
    assert custom.ask("HEAD", WIDGETS).status == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_an_update_of_a_custom_resource_requires_a_name(custom, method):
    answer = custom.ask(method, WIDGETS)
    assert (answer.status, answer.message) == (400, "name must be provided")


@pytest.mark.parametrize(
    ("method", "path", "verb"),
    [("OPTIONS", WIDGETS, ""), ("DELETE", f"{WIDGETS}/a/status", "delete")],
)
def test_a_refusal_names_the_verb_that_custom_resources_do_not_support(custom, method, path, verb):
    answer = custom.ask(method, path)
    assert (answer.status, answer.message, answer.json["details"]) == (
        405,
        f'{verb} is not supported on resources of kind "widgets.x.io"',
        {"group": "x.io", "kind": "widgets"},
    )


def test_a_missing_subresource_of_a_custom_resource_returns_404_for_the_object(custom):
    answer = custom.ask("GET", f"{WIDGETS}/a/scale")
    assert (answer.status, answer.message) == (404, 'widgets.x.io "a" not found')


def test_no_custom_resource_is_created_while_its_definition_is_terminating(custom):
    held = {**widget("a"), "metadata": {"name": "a", "finalizers": ["x.io/held"]}}
    custom.post(WIDGETS, held)
    custom.delete(f"{DEFINITIONS}/widgets.x.io")
    answer = custom.post(WIDGETS, widget("b"))
    assert (answer.status, answer.message) == (
        405,
        "create not allowed while custom resource definition is terminating",
    )
    verbs = {one["name"]: one["verbs"] for one in custom.get("/apis/x.io/v1").json["resources"]}
    assert verbs["widgets"] == ["delete", "deletecollection", "get", "list", "watch"]
    assert custom.patch(f"{WIDGETS}/a", {"metadata": {"finalizers": []}}).status == 200
    assert custom.get(WIDGETS).text == TEXT


def test_a_terminating_definition_with_a_finalizer_still_serves_its_resource(custom):
    place = f"{DEFINITIONS}/widgets.x.io"
    custom.patch(place, {"metadata": {"finalizers": ["x.io/held"]}})
    custom.post(WIDGETS, widget("a"))
    custom.delete(place)
    assert custom.get(WIDGETS).json["items"] == []
    custom.patch(place, {"metadata": {"finalizers": []}})
    assert custom.get(WIDGETS).text == TEXT


def test_an_eviction_with_an_unsupported_accept_header_is_refused(api):
    answer = api.post("/api/v1/namespaces/default/pods/x/eviction", {}, accept="text/html")
    assert (answer.status, answer.json["reason"]) == (406, "NotAcceptable")


def test_the_log_route_accepts_plain_text_but_its_errors_do_not(api):
    path = "/api/v1/namespaces/default/pods/x/log"
    types = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    assert [api.get(path, accept=accept).message for accept in ("text/plain", "text/html")] == [
        f"only the following media types are accepted: {types}",
        f"406: Not Acceptable\n\nAvailable representations: text/plain, {types}",
    ]
    assert api.get(path, accept="application/json, */*").status == 404


def test_an_unknown_component_status_is_an_internal_error(api):
    answer = api.get("/api/v1/componentstatuses/x")
    assert (answer.status, answer.message) == (500, "Component not found: x")
    assert "reason" not in answer.json
