"""deletecollection requests that wait for a webhook for each object."""

from __future__ import annotations

import json

import pytest

from fairlead.apiserver.admission.webhooks.plugin import ValidatingAdmissionWebhook
from fairlead.apiserver.endpoints.compose import complete_server
from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import Request
from fairlead.apiserver.suspension import WebhookAnswer, run_to_end

CONFIG_MAP = find_kind("ConfigMap")
NOW = 1_767_225_600 * 10**9
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
HOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/v"},
    "rules": [
        {
            "operations": ["DELETE"],
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["configmaps"],
        }
    ],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}


class Ids:
    """An id source that always returns the same uid."""

    def new_uid(self, kind, namespace, name):
        return "uid"

    def new_suffix(self):
        return "bcdfg"


class Counted(Store):
    """A store that counts its lookups of ConfigMaps."""

    found = 0

    def find(self, kind, namespace, name):
        self.found += kind.kind == "ConfigMap"
        return super().find(kind, namespace, name)


@pytest.fixture
def store():
    """A store whose validating webhook is called for each deleted ConfigMap."""
    return Counted(Ids(), admission=(ValidatingAdmissionWebhook(),), registry=API_SERVER)


@pytest.fixture
def server(store):
    made = complete_server(store, clock=lambda: NOW, address="127.0.0.1:6443", version="0")
    for at in range(10):
        post(made, CONFIG_MAPS, {"metadata": {"name": f"c{at}"}})
    post(made, HOOKS, {"metadata": {"name": "w"}, "webhooks": [HOOK]})
    return made


def post(server, path, body):
    assert server.handle(Request("POST", path, body=json.dumps(body).encode()), NOW).status == 201


def answer(call, refused):
    request = json.loads(call.body)["request"]
    response = {
        "uid": request["uid"],
        "allowed": request["name"] != refused,
        "warnings": [f"{request['name']} goes"],
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}
    return WebhookAnswer(body=json.dumps(review).encode())


def swept(server, *query, refused="", meanwhile=lambda _: None):
    """Delete the collection; return the response and the names for which the webhook was called.

    `meanwhile` is called with each name before the webhook answers.
    """
    reviewed = []

    def call(webhook):
        reviewed.append(json.loads(webhook.body)["request"]["name"])
        meanwhile(reviewed[-1])
        return answer(webhook, refused)

    return run_to_end(
        server.handle.steps(Request("DELETE", CONFIG_MAPS, query), NOW), call
    ), reviewed


@pytest.mark.parametrize("query", [(), (("dryRun", "All"),)])
def test_the_response_has_all_objects_and_their_warnings(server, query):
    """This includes objects that no longer exist when the last webhook answers."""
    response, _ = swept(server, *query)
    items = json.loads(b"".join(response.body))["items"]
    assert [item["metadata"]["name"] for item in items] == [f"c{at}" for at in range(10)]
    assert response.warnings == tuple(f"c{at} goes" for at in range(10))


@pytest.mark.parametrize("query", [(), (("dryRun", "All"),)])
def test_each_object_is_looked_up_at_most_twice(server, store, query):
    """Each object is looked up before its webhook call and after it."""
    store.found = 0
    _, reviewed = swept(server, *query)
    assert reviewed == [f"c{at}" for at in range(10)]
    assert store.found <= 2 * 2 * 10


def test_the_first_refusal_ends_the_request(server):
    """The objects before the refused object are deleted."""
    response, _ = swept(server, refused="c2")
    assert response.status == 400
    left = json.loads(b"".join(server.handle(Request("GET", CONFIG_MAPS), NOW).body))["items"]
    assert [item["metadata"]["name"] for item in left] == [f"c{at}" for at in range(2, 10)]
    assert response.warnings == ("c0 goes", "c1 goes", "c2 goes")


def test_an_object_that_was_deleted_meanwhile_is_skipped(server, store):
    def delete(name):
        if name == "c0":
            for gone in ("c0", "c1"):
                store.delete(CONFIG_MAP, "default", gone, NOW)

    response, reviewed = swept(server, meanwhile=delete)
    assert response.status == 200
    assert reviewed == ["c0", *(f"c{at}" for at in range(2, 10))]
