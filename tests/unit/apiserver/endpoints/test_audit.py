"""Lines of the audit log."""

from __future__ import annotations

import json

import pytest

from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.endpoints.audit import AuditLevel, audit_line
from fairlead.apiserver.request import Request, Response, User

ALICE = authenticated("alice", ("dev",), "u-1")
NOW = 1_767_225_600_000_000_000


def line(method, path, *query, status=200, user=ALICE, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = Request(method, path, query, {"user-agent": "kubectl/v1", **named}, b"secret", user)
    text = audit_line(request, Response(status), NOW)
    assert text.endswith(b"\n")
    assert b"secret" not in text
    return json.loads(text)


def test_a_line_has_user_request_and_response_status():
    event = line("POST", "/api/v1/namespaces/n/pods/p/binding", ("dryRun", "All"), status=201)
    assert (event["kind"], event["apiVersion"], event["level"]) == (
        "Event",
        "audit.k8s.io/v1",
        "Metadata",
    )
    assert event["requestURI"] == "/api/v1/namespaces/n/pods/p/binding?dryRun=All"
    assert event["verb"] == "create"
    assert event["user"] == {
        "username": "alice",
        "groups": ["dev", "system:authenticated"],
        "uid": "u-1",
    }
    assert event["objectRef"] == {
        "resource": "pods",
        "namespace": "n",
        "name": "p",
        "apiVersion": "v1",
        "subresource": "binding",
    }
    assert event["responseStatus"]["code"] == 201


def test_get_list_and_watch_are_distinguished():
    assert line("GET", "/api/v1/nodes")["verb"] == "list"
    assert line("GET", "/api/v1/nodes/a")["verb"] == "get"
    assert line("GET", "/api/v1/nodes", ("watch", "true"))["verb"] == "watch"


def test_a_non_resource_request_has_no_object_reference():
    event = line("GET", "/healthz")
    assert (event["verb"], event.get("objectRef")) == ("get", None)


def test_the_impersonated_user_is_recorded():
    event = line("GET", "/healthz", impersonate_user="bob", impersonate_group="a\nb")
    assert event["user"]["username"] == "alice"
    assert event["impersonatedUser"] == {
        "username": "bob",
        "groups": ["a", "b", "system:authenticated"],
    }
    for more in ({"impersonate_user": ""}, {"user": User(name=""), "impersonate_user": "bob"}):
        assert "impersonatedUser" not in line("GET", "/healthz", **more)


def test_line_breaks_in_a_request_are_escaped():
    event = line("GET", "/x\n{}\u2028", ("a", "\n"), user_agent='"\r\n{}', impersonate_user="a\nb")
    assert event["userAgent"] == '"\r\n{}'


def bodies(method, path, sent, level, content_type="application/json"):
    """Return (level, requestObject, responseObject) of the line about a request."""
    request = Request(method, path, (), {"content-type": content_type}, sent, ALICE)
    event = json.loads(audit_line(request, Response(201, (b'{"b":', b" 2}")), NOW, level))
    return event["level"], event.get("requestObject"), event.get("responseObject")


PODS = "/api/v1/namespaces/n/pods"


@pytest.mark.parametrize(
    ("level", "found"),
    [
        ("Metadata", ("Metadata", None, None)),
        ("Request", ("Request", {"a": 1}, None)),
        ("RequestResponse", ("RequestResponse", {"a": 1}, {"b": 2})),
    ],
)
def test_the_level_decides_which_bodies_of_a_write_are_recorded(level, found):
    assert bodies("POST", PODS, b'{"a": 1}', AuditLevel(level)) == found


def test_a_body_in_yaml_or_protobuf_is_recorded_as_json():
    apply = "application/apply-patch+yaml"
    assert bodies("PATCH", f"{PODS}/p", b"a: [1]", AuditLevel.REQUEST, apply)[1] == {"a": [1]}
    encoded = b"k8s\0\n\x0d\n\x02v1\x12\x07Binding\x12\x07\n\x05\n\x03web"
    media_type = "application/vnd.kubernetes.protobuf"
    path = f"{PODS}/web/binding"
    assert bodies("POST", path, encoded, AuditLevel.REQUEST, media_type)[1] == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web"},
        "target": {},
    }
    assert bodies("POST", PODS, b"{", AuditLevel.REQUEST)[1] is None


def test_bodies_of_reads_and_secrets_are_never_recorded():
    for method, path in (
        ("GET", PODS),
        ("POST", "/api/v1/namespaces/n/secrets"),
        ("POST", "/api/v1/namespaces/n/serviceaccounts/a/token"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
    ):
        assert bodies(method, path, b"{}", AuditLevel.REQUEST_RESPONSE) == ("Metadata", None, None)
