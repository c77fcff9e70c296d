"""Controllers read and write custom resources as they are stored, without conversion webhooks."""

from __future__ import annotations

import json

import pytest
from tests.unit.apiserver.widget import DEFINITIONS, NEW, OLD, Webhook, definition, new, old

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.request import ADMIN, Request
from fairlead.apiserver.suspension import WebhookAnswer, run_to_end
from fairlead.worlds.perform import kind_in

WIDGET = Kind("example.com", "v1", "Widget", "widgets")
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def served(cluster):
    """A cluster without a webhook client: a call of the conversion webhook would be an error."""
    cluster.ask("POST", DEFINITIONS, definition())
    return cluster


def widgets(cluster):
    return [obj["metadata"]["name"] for obj in cluster.local.store.list(WIDGET)]


def owned_by(owner):
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    obj = new()
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [reference]}}


def test_the_garbage_collector_deletes_objects_that_a_webhook_converts(served):
    owner = served.ask("POST", CONFIG_MAPS, {"metadata": {"name": "c"}})
    served.ask("POST", NEW, owned_by(owner))
    served.ask("POST", NEW, new("other"))
    assert widgets(served) == ["other", "w"]
    served.ask("DELETE", f"{CONFIG_MAPS}/c")
    served.pass_time(5)
    assert widgets(served) == ["other"]


def test_a_controller_patches_the_stored_version(served):
    """The kind does not depend on the version in which a client created the first object."""
    local, webhook = served.local, Webhook()
    body = json.dumps(old()).encode()
    headers = {"content-type": "application/json"}
    steps = local.server.handle.steps(
        Request("POST", OLD, (), headers, body, ADMIN), served.clock.now()
    )
    answer = run_to_end(steps, lambda call: WebhookAnswer(body=webhook.answer_text(call.body)))
    assert answer.status == 201
    kind = kind_in(local.store, "Widget.example.com")
    assert (kind.version, kind.custom.scale.spec_text) == ("v1", ".spec.replicas")
    patch = {"metadata": {"labels": {"a": "b"}}}
    patched = local.store.patch(kind, "default", "w", patch, served.clock.now())
    assert patched["metadata"]["labels"] == {"a": "b"}
    assert patched["spec"] == {"host": "a", "port": 1}


def test_the_objects_of_a_deleted_namespace_are_deleted(served):
    served.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    obj = new()
    obj["metadata"]["namespace"] = "n"
    served.ask("POST", NEW.replace("/default/", "/n/"), obj)
    assert widgets(served) == ["w"]
    served.ask("DELETE", "/api/v1/namespaces/n")
    served.pass_time(30)
    assert widgets(served) == []
