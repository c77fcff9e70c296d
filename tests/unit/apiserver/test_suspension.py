"""Requests that wait for a webhook while other requests are handled."""

from __future__ import annotations

import json

import pytest
from tests.unit.apiserver.endpoints.conftest import CountedIds

from fairlead.apiserver.admission.webhooks.plugin import ValidatingAdmissionWebhook
from fairlead.apiserver.endpoints.compose import complete_server
from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import Request
from fairlead.apiserver.suspension import WebhookAnswer, run_to_end

NOW = 1_767_225_600 * 10**9
CORE = "/api/v1/namespaces/default"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["*/*"]}
HOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/v"},
    "rules": [RULE],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}
SERVICE = {"spec": {"type": "NodePort", "ports": [{"port": 80}]}}
MERGE = {"content-type": "application/merge-patch+json"}


class Clients:
    """Sends requests; `meanwhile` is called once, when the webhook is called for the first time."""

    def __init__(self):
        store = Store(CountedIds(), admission=(ValidatingAdmissionWebhook(),), registry=API_SERVER)
        self.store = store
        self.server = complete_server(
            store, clock=lambda: NOW, address="127.0.0.1:6443", version="0"
        )
        self.calls = 0
        self.meanwhile = None
        config = {"metadata": {"name": "w"}, "webhooks": [HOOK]}
        assert self.send("POST", HOOKS, config)[0] == 201

    def send(self, method, path, body=None, headers=None):
        """Return (status code, decoded body, warnings) of the response."""
        raw = json.dumps(body).encode() if body is not None else b""
        request = Request(method, path, body=raw, headers=headers or {})
        answer = run_to_end(self.server.handle.steps(request, NOW), self._allow)
        return answer.status, json.loads(b"".join(answer.body)), answer.warnings

    def _allow(self, call):
        self.calls += 1
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        uid = json.loads(call.body)["request"]["uid"]
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
        review["response"] = {"uid": uid, "allowed": True, "warnings": ["careful"]}
        return WebhookAnswer(body=json.dumps(review).encode())

    def create(self, plural, name, **fields):
        """Create an object; return status code and body."""
        body = {"metadata": {"name": name}, **fields}
        return self.send("POST", f"{CORE}/{plural}", body)[:2]

    def patch(self, name, data):
        """Patch a ConfigMap."""
        return self.send("PATCH", f"{CORE}/configmaps/{name}", {"data": data}, MERGE)


@pytest.fixture
def clients():
    return Clients()


def test_a_patch_is_applied_again_if_the_object_was_patched_meanwhile(clients):
    clients.create("configmaps", "c", data={"a": "0"})
    clients.calls, clients.meanwhile = 0, lambda: clients.patch("c", {"b": "1"})
    status, body, warnings = clients.patch("c", {"c": "2"})
    assert (status, body["data"]) == (200, {"a": "0", "b": "1", "c": "2"})
    assert clients.calls == 3  # twice for this patch, once for the other
    assert warnings == ("careful",)


def test_an_update_with_a_resource_version_conflicts_with_a_concurrent_change(clients):
    _, sent = clients.create("configmaps", "c", data={"a": "0"})
    clients.meanwhile = lambda: clients.patch("c", {"b": "1"})
    status, body, _ = clients.send("PUT", f"{CORE}/configmaps/c", {**sent, "data": {"a": "2"}})
    assert (status, body["reason"]) == (409, "Conflict")


def test_a_creation_fails_if_the_name_was_taken_meanwhile(clients):
    clients.meanwhile = lambda: clients.create("configmaps", "c", data={"a": "0"})
    status, body = clients.create("configmaps", "c", data={"a": "1"})
    assert (status, body["reason"]) == (409, "AlreadyExists")


def test_concurrently_created_services_get_different_addresses_and_ports(clients):
    made = []
    clients.meanwhile = lambda: made.append(clients.create("services", "x", **SERVICE)[1])
    made.append(clients.create("services", "y", **SERVICE)[1])
    assert len({one["spec"]["clusterIP"] for one in made}) == 2
    assert len({one["spec"]["ports"][0]["nodePort"] for one in made}) == 2


def test_concurrently_updated_services_get_different_node_ports(clients):
    for name in ("x", "y"):
        clients.create("services", name, spec={"ports": [{"port": 80}]})

    def expose(name):
        path, body = f"{CORE}/services/{name}", {"spec": {"type": "NodePort"}}
        return clients.send("PATCH", path, body, MERGE)[1]

    made = []
    clients.meanwhile = lambda: made.append(expose("x"))
    made.append(expose("y"))
    assert len({one["spec"]["ports"][0]["nodePort"] for one in made}) == 2


def test_deleting_an_object_that_was_deleted_meanwhile_returns_404(clients):
    clients.create("configmaps", "c")
    clients.meanwhile = lambda: clients.send("DELETE", f"{CORE}/configmaps/c")
    assert clients.send("DELETE", f"{CORE}/configmaps/c")[0] == 404
    assert clients.store.list(find_kind("ConfigMap")) == []


def test_a_request_that_needs_a_webhook_raises_without_a_webhook_client(clients):
    request = Request("POST", f"{CORE}/configmaps", body=b'{"metadata": {"name": "c"}}')
    with pytest.raises(RuntimeError, match=r"https://127\.0\.0\.1:1/v"):
        clients.server.handle(request, NOW)
