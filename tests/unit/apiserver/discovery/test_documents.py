"""Discovery, version and health documents: media types, methods and caching."""

from __future__ import annotations

import json

import pytest

from fairlead.apiserver.discovery.documents import Documents
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.request import Request

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
WIDGET = Kind("example.com", "v1", "Widget", "widgets", is_custom=True)


@pytest.fixture
def registry():
    return ServedKinds()


@pytest.fixture
def documents(registry):
    return Documents(registry, "10.0.0.1:6443", "0.1")


def ask(documents, path, accept="", *, method="GET", query=(), **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = Request(method, path, query, {"accept": accept, **named})
    return documents(request, 0)


def kind_of(response):
    return json.loads(b"".join(response.body))["kind"]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "APIGroupList"),
        ("application/json", "APIGroupList"),
        (V2, "APIGroupDiscoveryList"),
        (f"{V2},{V2BETA1},application/json", "APIGroupDiscoveryList"),
        (f"{V2BETA1},application/json", "APIGroupList"),
        (f"application/json,{V2}", "APIGroupList"),
        (f"{V2};profile=nopeer", "APIGroupDiscoveryList"),
    ],
)
def test_the_accept_header_selects_the_form_of_the_group_list(documents, accept, expected):
    assert kind_of(ask(documents, "/apis", accept)) == expected


def test_the_beta_form_of_aggregated_discovery_is_refused(documents):
    with pytest.raises(ApiError, match="only the following media types are accepted") as refused:
        ask(documents, "/apis", V2BETA1)
    assert refused.value.code == 406


def test_the_content_type_is_the_accepted_media_type(documents):
    assert ask(documents, "/api", V2).content_type == V2
    assert ask(documents, "/api").content_type == "application/json"


def test_a_document_with_a_known_etag_returns_304_until_it_changes(documents, registry):
    headers = dict(ask(documents, "/apis", V2).headers)
    assert headers["Vary"] == "Accept"
    assert headers["ETag"] == headers["ETag"].upper()
    again = ask(documents, "/apis", V2, if_none_match=headers["ETag"])
    assert (again.status, again.body) == (304, ())
    registry.define("widgets.example.com", [WIDGET])
    changed = ask(documents, "/apis", V2, if_none_match=headers["ETag"])
    assert changed.status == 200
    assert b"widgets" in changed.body[0]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/", "APIVersions"),
        ("/apis/", "APIGroupList"),
        ("/apis/apps", "APIGroup"),
        ("/api/v1/", "APIResourceList"),
        ("/apis/apps/v1", "APIResourceList"),
    ],
)
def test_a_trailing_slash_is_ignored(documents, path, expected):
    assert kind_of(ask(documents, path)) == expected


@pytest.mark.parametrize(
    "path", ["/nope", "/apis/nope", "/apis/nope/v1", "/readyz/etcd", "/healthz/"]
)
def test_unknown_paths_are_left_to_other_handlers(documents, path):
    assert ask(documents, path) is None


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", ["/apis/apps/v9", "/version/x"])
def test_unknown_paths_below_a_web_service_return_404(documents, path, method):
    with pytest.raises(ApiError) as refused:
        ask(documents, path, method=method)
    assert refused.value.code == 404


@pytest.mark.parametrize("method", ["POST", "HEAD"])
@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis/apps/v1", "/version"])
def test_documents_of_web_services_refuse_other_methods_than_get(documents, path, method):
    with pytest.raises(ApiError) as refused:
        ask(documents, path, method=method)
    assert refused.value.code == 405


@pytest.mark.parametrize(
    "path", ["/", "/index.html", "/healthz", "/livez/etcd", "/apis", "/apis/", "/apis/apps"]
)
def test_some_documents_accept_every_method(documents, path):
    assert ask(documents, path, method="POST").status == 200


def test_the_version_document_has_major_minor_and_git_version(documents):
    said = json.loads(ask(documents, "/version").body[0])
    assert (said["major"], said["minor"]) == ("1", "36")
    assert said["gitVersion"] == "v1.36.2+fairlead-0.1"


def test_health_is_reported_briefly_or_with_each_check(documents):
    assert ask(documents, "/readyz").body == (b"ok",)
    verbose = ask(documents, "/readyz", query=(("verbose", ""), ("exclude", "ping"))).body[0]
    assert verbose.startswith(b"[+]ping excluded: ok\n[+]log ok\n")
    assert verbose.endswith(b"[+]shutdown ok\nreadyz check passed\n")


def test_health_reports_a_problem_of_the_storage(registry):
    """/livez is not affected, because a restart of the process would not help."""
    problem = ["no space left on the disk"]
    documents = Documents(registry, "10.0.0.1:6443", "0.1", lambda: problem[0])
    for path in ("/healthz", "/readyz"):
        answer = ask(documents, path)
        assert answer.status == 500
        assert b"[-]etcd failed: no space left on the disk\n" in answer.body[0]
        assert answer.body[0].endswith(b"z check failed\n")
        assert ask(documents, path, query=(("exclude", "etcd"),)).body == (b"ok",)
    one = ask(documents, "/healthz/etcd")
    assert (one.status, one.body[0]) == (500, b"internal server error: no space left on the disk\n")
    assert ask(documents, "/livez").body == (b"ok",)
    problem[0] = ""
    assert ask(documents, "/healthz").body == (b"ok",)


@pytest.mark.parametrize(
    ("path", "accept", "code"),
    [
        ("/", "text/html", 200),
        ("/version", "application/yaml", 406),
        ("/version", "application/json;as=Table", 200),
        ("/apis/apps", "application/*", 200),
        ("/apis/apps/v1", "application/*", 406),
        ("/apis/apps", "application/json;as=Table;v=v1;g=meta.k8s.io", 406),
    ],
)
def test_each_document_handles_the_accept_header_as_upstream_does(documents, path, accept, code):
    try:
        found = ask(documents, path, accept).status
    except ApiError as refused:
        found = refused.code
    assert found == code
