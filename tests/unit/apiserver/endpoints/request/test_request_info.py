"""The resource and verb of a request."""

from __future__ import annotations

import pytest

from fairlead.apiserver.endpoints.request.request_info import RequestInfo, request_info_of, verb_of


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v1/pods", RequestInfo("", "v1", "pods")),
        ("/api/v1/namespaces", RequestInfo("", "v1", "namespaces")),
        ("/api/v1/namespaces/x", RequestInfo("", "v1", "namespaces", "x", "x")),
        ("/api/v1/namespaces/x/status", RequestInfo("", "v1", "namespaces", "x", "x", "status")),
        ("/api/v1/namespaces/x/pods", RequestInfo("", "v1", "pods", "x")),
        ("/api/v1/namespaces/x/pods/a/", RequestInfo("", "v1", "pods", "x", "a")),
        ("/api/v1/namespaces/x/pods/a/log", RequestInfo("", "v1", "pods", "x", "a", "log")),
        (
            "/api/v1/nodes/n/proxy/a/b",
            RequestInfo("", "v1", "nodes", "", "n", "proxy", "a/b"),
        ),
        ("/apis/apps/v1/deployments", RequestInfo("apps", "v1", "deployments")),
        (
            "/api/v1/watch/namespaces/x/pods/a",
            RequestInfo("", "v1", "pods", "x", "a", is_watch=True),
        ),
        ("/api/v1", None),
        ("/apis/apps/v1", None),
        ("/version", None),
        ("/", None),
        ("//api/v1/pods", None),
    ],
)
def test_a_path_is_parsed_to_a_resource_or_to_none(path, target):
    assert request_info_of(path) == target


@pytest.mark.parametrize(
    ("method", "path", "is_watch", "verb"),
    [
        ("GET", "/api/v1/pods", False, "list"),
        ("GET", "/api/v1/pods", True, "watch"),
        ("GET", "/api/v1/namespaces/x/pods/a", False, "get"),
        ("GET", "/api/v1/namespaces/x/pods/a", True, "get"),
        ("POST", "/api/v1/namespaces/x/pods", False, "create"),
        ("PUT", "/api/v1/namespaces/x/pods/a", False, "update"),
        ("PATCH", "/api/v1/namespaces/x/pods/a", False, "patch"),
        ("DELETE", "/api/v1/namespaces/x/pods/a", False, "delete"),
        ("DELETE", "/api/v1/namespaces/x/pods", False, "deletecollection"),
        ("FOO", "/api/v1/namespaces/x/pods", False, ""),
        ("GET", "/api/v1/watch/namespaces/x/pods/a", False, "watch"),
        ("DELETE", "/api/v1/watch/pods", False, "watch"),
    ],
)
def test_the_verb_of_a_request_is_the_rbac_verb(method, path, is_watch, verb):
    assert verb_of(method, request_info_of(path), is_watch=is_watch) == verb
