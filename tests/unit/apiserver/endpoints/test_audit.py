"""Lines of the audit log."""

from __future__ import annotations

import json

from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.endpoints.audit import audit_line
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
