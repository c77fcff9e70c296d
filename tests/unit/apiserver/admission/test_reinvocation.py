"""The order of mutating plugins and webhooks, and the reinvocation of webhooks."""

from __future__ import annotations

import base64
import json

import pytest

from fairlead.apiserver.admission.webhooks.plugin import MutatingAdmissionWebhook
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.suspension import WebhookAnswer, run_to_end

ALICE = authenticated("alice")
RULE = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["configmaps"]}


class Ids:
    """An id source with counted ids."""

    def __init__(self):
        self.count = 0

    def new_uid(self, kind, namespace, name):
        self.count += 1
        return f"uid-{self.count}"

    def new_suffix(self):
        self.count += 1
        return f"{self.count:05}"


class Labels:
    """A built-in mutating plugin that records the keys of each ConfigMap's data."""

    def __init__(self):
        self.seen = []

    def admit(self, attributes, storage):
        """See AdmissionPlugin."""
        if attributes.kind.kind == "ConfigMap":
            self.seen.append(sorted(attributes.obj.get("data") or {}))
        return attributes.obj


@pytest.fixture
def labels():
    return Labels()


@pytest.fixture
def store(labels):
    """A store with the webhooks a and b; only a has the reinvocationPolicy IfNeeded."""
    store = Store(Ids(), admission=(labels, MutatingAdmissionWebhook()))
    for name, policy in (("a", "IfNeeded"), ("b", "Never")):
        store.create(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "MutatingWebhookConfiguration",
                "metadata": {"name": name},
                "webhooks": [
                    {
                        "name": f"{name}.example.com",
                        "clientConfig": {"url": f"https://{name}"},
                        "rules": [RULE],
                        "sideEffects": "None",
                        "admissionReviewVersions": ["v1"],
                        "reinvocationPolicy": policy,
                    }
                ],
            },
            0,
        )
    return store


def answer(call, key):
    """Return a webhook's answer with a patch that adds `key` to the data, if it is missing."""
    request = json.loads(call.body)["request"]
    data = request["object"].get("data") or {}
    patch = [] if key in data else [{"op": "add", "path": "/data", "value": {**data, key: "x"}}]
    response = {"uid": request["uid"], "allowed": True}
    if patch:
        packed = base64.b64encode(json.dumps(patch).encode()).decode()
        response |= {"patch": packed, "patchType": "JSONPatch"}
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}
    return WebhookAnswer(body=json.dumps(review).encode())


def created(store, manifest):
    """Create an object; return it, and the names of the called webhooks in order."""
    calls = []

    def call(webhook):
        name = webhook.url[-1]
        calls.append(name)
        return answer(webhook, name)

    return run_to_end(store.create.steps(manifest, 0, write=Write(user=ALICE)), call), calls


def config_map(**meta):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "n", **meta},
    }


def test_a_webhook_with_reinvocation_if_needed_is_called_again_after_a_change(store):
    stored, calls = created(store, config_map())
    assert sorted(stored["data"]) == ["a", "b"]
    assert calls == ["a", "b", "a"]


def test_built_in_plugins_run_again_after_changes_by_webhooks(store, labels):
    created(store, config_map())
    assert labels.seen[-2:] == [[], ["a", "b"]]


def test_no_webhook_is_called_again_if_nothing_changed_after_its_call(store):
    _, calls = created(store, {**config_map(), "data": {"b": "x"}})
    assert calls == ["a", "b"]


def test_generated_names_stay_the_same_while_a_request_waits(store):
    made = config_map(generateName="x-")
    del made["metadata"]["name"]
    stored, _ = created(store, made)
    assert stored["metadata"]["name"] == "x-00003"
    assert store.list(find_kind("configmap")) == [stored]
