"""What webhooks make of requests: when they are asked, and what their answers mean."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
from aiohttp import web

from fairlead.apiserver.admission.plugin import Operation
from fairlead.apiserver.admission.webhook import (
    MutatingWebhooks,
    ValidatingWebhooks,
    WebhookCall,
    WebhookNeeded,
)
from fairlead.apiserver.auth.token import authenticated
from fairlead.apiserver.http.webhooks import ask_webhook
from fairlead.apiserver.request import WebhookAnswer

ALICE = authenticated("alice")
RULE = {
    "operations": ["CREATE"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["configmaps"],
}
KEY = "ValidatingWebhookConfiguration/w/a.example.com"


def configured(obj, kind="Validating", **hook):
    webhook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/v"},
        "rules": [RULE],
        "timeoutSeconds": 2,
        "sideEffects": "None",
        **hook,
    }
    group = "admissionregistration.k8s.io/v1"
    return obj(f"{kind}WebhookConfiguration", "w", "", group, webhooks=[webhook])


@pytest.fixture
def validating(gate, obj):
    """A gate with one webhook."""
    return lambda **hook: gate(ValidatingWebhooks()).has(configured(obj, **hook))


def needed(found, asked, **about):
    """The call that a request waits for."""
    with pytest.raises(WebhookNeeded) as waiting:
        found.admits(asked, user=ALICE, **about)
    return waiting.value.call


def answered(found, asked, response=None, *, failure="", key=KEY, **about):
    """The outcome when the webhook answers, or does not."""
    uid = json.loads(needed(found, asked).body)["request"]["uid"]
    body = json.dumps({"response": {"uid": uid, **(response or {})}}).encode()
    said = WebhookAnswer(failure=failure) if failure else WebhookAnswer(body=body)
    return {"user": ALICE, "webhooks": {key: said}, **about}


def test_a_webhook_is_asked_about_the_request(validating, obj):
    call = needed(validating(), obj("ConfigMap"))
    assert (call.key, call.url, call.timeout_s) == (KEY, "https://127.0.0.1:1/v", 2)
    request = json.loads(call.body)["request"]
    assert request["object"] == obj("ConfigMap")
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (request["operation"], request["userInfo"]["username"]) == ("CREATE", "alice")


@pytest.mark.parametrize(
    "hook",
    [
        {"rules": [{**RULE, "operations": ["UPDATE"]}]},
        {"rules": [{**RULE, "apiGroups": ["apps"]}]},
        {"rules": [{**RULE, "resources": ["pods", "configmaps/status"]}]},
        {"rules": [{**RULE, "scope": "Cluster"}]},
        {"objectSelector": {"matchLabels": {"a": "b"}}},
        {"namespaceSelector": {"matchLabels": {"a": "b"}}},
    ],
    ids=["operation", "group", "resource", "scope", "object", "namespace"],
)
def test_a_webhook_is_not_asked_about_what_it_does_not_care_for(validating, obj, hook):
    validating(**hook).admits(obj("ConfigMap"), user=ALICE)


def test_what_fairlead_itself_writes_is_not_asked_about(validating, obj):
    validating().admits(obj("ConfigMap"))


def test_what_a_webhook_allows_passes_with_its_warnings(validating, obj):
    found = validating()
    response = {"allowed": True, "warnings": ["mind the gap"]}
    asked = obj("ConfigMap")
    assert found.admits(asked, **answered(found, asked, response)) == asked
    assert found.warnings == ["mind the gap"]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({"message": "no"}, "denied the request: no"),
        ({"reason": "Because"}, "denied the request: Because"),
        ({}, "denied the request without explanation"),
    ],
)
def test_what_a_webhook_denies_is_refused(validating, obj, status, message):
    found, asked = validating(), obj("ConfigMap")
    about = answered(found, asked, {"allowed": False, "status": status})
    assert found.refusal(asked, **about) == f'admission webhook "a.example.com" {message}'


def test_a_webhook_that_fails_refuses_unless_it_may_be_ignored(validating, obj):
    asked, found = obj("ConfigMap"), validating()
    why = "dial tcp 127.0.0.1:1: connect: connection refused"
    assert found.refusal(asked, **answered(found, asked, failure=why)) == (
        'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: '
        f'Post "https://127.0.0.1:1/v?timeout=2s": {why}'
    )
    found = validating(failurePolicy="Ignore")
    assert found.admits(asked, **answered(found, asked, failure=why)) == asked


@pytest.mark.parametrize("body", [b"", b"[]", b'{"response": 3}', b'{"response": {"uid": "x"}}'])
def test_an_answer_that_is_none_is_a_failure(validating, obj, body):
    about = {"user": ALICE, "webhooks": {KEY: WebhookAnswer(body=body)}}
    assert "failed calling webhook" in validating().refusal(obj("ConfigMap"), **about)


def test_a_mutating_webhook_changes_what_it_is_asked_about(gate, obj):
    found = gate(MutatingWebhooks()).has(configured(obj, "Mutating"))
    asked = obj("ConfigMap")
    patch = [{"op": "add", "path": "/data", "value": {"a": "b"}}]
    packed = base64.b64encode(json.dumps(patch).encode()).decode()
    response = {"allowed": True, "patch": packed, "patchType": "JSONPatch"}
    key = "MutatingWebhookConfiguration/w/a.example.com"
    admitted = found.admits(asked, **answered(found, asked, response, key=key))
    assert admitted == {**asked, "data": {"a": "b"}}


def test_a_dry_run_is_not_for_webhooks_with_side_effects(validating, obj):
    found = validating(sideEffects="Some")
    refusal = found.refusal(obj("ConfigMap"), Operation.CREATE, user=ALICE, dry_run=True)
    assert refusal == 'admission webhook "a.example.com" does not support dry run'


async def _served(handler, path):
    app = web.Application()
    app.router.add_post(path, handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        return await ask_webhook(WebhookCall("k", f"http://127.0.0.1:{port}{path}", "", 5, b"{}"))
    finally:
        await runner.cleanup()


def test_webhooks_are_asked_over_http():
    async def handler(request):
        assert request.query["timeout"] == "5s"
        return web.json_response({"response": await request.json()})

    assert asyncio.run(_served(handler, "/v")).body == b'{"response": {}}'


def test_a_webhook_that_answers_with_an_error_has_failed():
    async def handler(request):
        return web.Response(status=503, text="not now")

    assert asyncio.run(_served(handler, "/v")).failure == "status 503: not now"


def test_a_webhook_that_is_not_there_has_failed():
    call = WebhookCall("k", "https://127.0.0.1:1/v", "", 5, b"{}")
    assert asyncio.run(ask_webhook(call)).failure == (
        "dial tcp 127.0.0.1:1: connect: connection refused"
    )
