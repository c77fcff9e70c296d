"""Admission webhooks: which requests call them, and the effects of their responses."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
from aiohttp import web

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.webhooks.plugin import (
    MutatingAdmissionWebhook,
    ValidatingAdmissionWebhook,
)
from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.http.webhook_client import call_webhook
from fairlead.apiserver.suspension import WebhookAnswer, WebhookCall

ALICE = authenticated("alice")
RULE = {
    "operations": ["CREATE"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["configmaps"],
}
REVIEW = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}


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
    """Makes gates with one validating webhook."""
    return lambda **hook: gate(ValidatingAdmissionWebhook()).has(configured(obj, **hook))


def needed(found, requested, **about):
    """Return the only webhook call that a request causes."""
    calls = []

    def fail(call):
        calls.append(call)
        return WebhookAnswer(failure="not here")

    with pytest.raises(ApiError):
        found.admits(requested, user=ALICE, call=fail, **about)
    [call] = calls
    return call


def answered(response=None, **review):
    """Return the arguments of a request whose webhook answers with this response."""

    def answer(call):
        uid = json.loads(call.body)["request"]["uid"]
        answer = {**REVIEW, **review, "response": {"uid": uid, **(response or {})}}
        return WebhookAnswer(body=json.dumps(answer).encode())

    return {"user": ALICE, "call": answer}


def unanswered(answer):
    """Return the arguments of a request whose webhook call ends with `answer`, no review."""
    return {"user": ALICE, "call": lambda _: answer}


def test_a_webhook_receives_the_request(validating, obj):
    call = needed(validating(), obj("ConfigMap"))
    assert (call.url, call.timeout_s) == ("https://127.0.0.1:1/v", 2)
    request = json.loads(call.body)["request"]
    assert request["object"] == obj("ConfigMap")
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (request["operation"], request["userInfo"]["username"]) == ("CREATE", "alice")
    assert request["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert request["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
    assert (request["oldObject"], request["dryRun"]) == (None, False)
    assert (request["name"], request["namespace"]) == ("x", "n")
    assert "subResource" not in request


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
def test_a_webhook_is_not_called_for_requests_that_it_does_not_match(validating, obj, hook):
    validating(**hook).admits(obj("ConfigMap"), user=ALICE)


def test_webhooks_are_not_called_for_writes_of_the_server_itself(validating, obj):
    validating().admits(obj("ConfigMap"))


def test_an_allowed_request_is_admitted_with_the_warnings_of_the_webhook(validating, obj):
    found = validating()
    response = {"allowed": True, "warnings": ["mind the gap"]}
    requested = obj("ConfigMap")
    assert found.admits(requested, **answered(response)) == requested
    assert found.warnings == ["mind the gap"]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({"message": "no"}, "denied the request: no"),
        ({"reason": "Because"}, "denied the request: Because"),
        ({}, "denied the request without explanation"),
    ],
)
def test_a_denied_request_is_refused_with_the_message_of_the_webhook(
    validating, obj, status, message
):
    found, requested = validating(), obj("ConfigMap")
    about = answered({"allowed": False, "status": status})
    assert found.refusal(requested, **about) == f'admission webhook "a.example.com" {message}'


def test_a_failed_call_refuses_the_request_unless_the_failure_policy_is_ignore(validating, obj):
    requested, found = obj("ConfigMap"), validating()
    why = "dial tcp 127.0.0.1:1: connect: connection refused"
    assert found.refusal(requested, **unanswered(WebhookAnswer(failure=why))) == (
        'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: '
        f'Post "https://127.0.0.1:1/v?timeout=2s": {why}'
    )
    found = validating(failurePolicy="Ignore")
    assert found.admits(requested, **unanswered(WebhookAnswer(failure=why))) == requested


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "failed to call webhook: couldn't get version/kind"),
        (b"[]", "failed to call webhook: couldn't get version/kind"),
        (b'{"response": null}', "received invalid webhook response: webhook response was absent"),
        (
            b'{"response": {"uid": "x"}}',
            'received invalid webhook response: expected response.uid="',
        ),
    ],
)
def test_a_malformed_response_is_a_failure(validating, obj, body, why):
    found, requested = validating(), obj("ConfigMap")
    refusal = found.refusal(requested, **unanswered(WebhookAnswer(body=body)))
    failed = 'Internal error occurred: failed calling webhook "a.example.com": '
    assert refusal.startswith(failed + why)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            {"apiVersion": "", "kind": ""},
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
        ),
        (
            {"patch": "W10=", "patchType": "JSONPatch"},
            "validating webhook may not return response.patch",
        ),
    ],
)
def test_a_response_must_be_an_admission_review_of_the_requested_version(
    validating, obj, answer, why
):
    found, requested = validating(), obj("ConfigMap")
    named = {key: answer[key] for key in answer if key in REVIEW}
    refusal = found.refusal(requested, **answered({"allowed": True, **answer}, **named))
    assert refusal.endswith(f"received invalid webhook response: {why}")


@pytest.mark.parametrize(
    ("expression", "is_called"),
    [
        ("object.metadata.name == 'x'", True),
        ("request.userInfo.username != 'alice'", False),
        ("has(object.data) && object.data.a == 'b'", False),
        ("oldObject == null && namespaceObject.metadata.name == 'n'", True),
    ],
)
def test_a_webhook_is_called_only_if_its_match_conditions_are_true(
    validating, obj, expression, is_called
):
    hook = {"matchConditions": [{"name": "c", "expression": expression}]}
    found = validating(**hook).has(obj("Namespace", "n", ""))
    if is_called:
        needed(found, obj("ConfigMap"))
    else:
        found.admits(obj("ConfigMap"), user=ALICE)


def test_a_failed_match_condition_is_handled_by_the_failure_policy(validating, obj):
    conditions = [{"name": "c", "expression": "object.data.a == 'b'"}]
    refusal = validating(matchConditions=conditions).refusal(obj("ConfigMap"), user=ALICE)
    assert refusal == (
        "configmaps \"x\" is forbidden: expression 'object.data.a == 'b'' resulted in error: "
        "no such key: data"
    )
    validating(matchConditions=conditions, failurePolicy="Ignore").admits(
        obj("ConfigMap"), user=ALICE
    )
    excluded = [*conditions, {"name": "d", "expression": "false"}]
    validating(matchConditions=excluded).admits(obj("ConfigMap"), user=ALICE)


def test_a_rule_matches_equivalent_versions_of_the_resource(validating, obj):
    rule = {**RULE, "apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"]}
    requested = obj("HorizontalPodAutoscaler", version="autoscaling/v2", spec={"maxReplicas": 3})
    request = json.loads(needed(validating(rules=[rule]), requested).body)["request"]
    assert request["kind"]["version"] == request["resource"]["version"] == "v1"
    assert request["requestKind"]["version"] == "v2"
    assert request["object"]["apiVersion"] == "autoscaling/v1"
    validating(rules=[rule], matchPolicy="Exact").admits(requested, user=ALICE)


def test_a_deletion_is_sent_with_the_old_object(validating, obj):
    found = validating(rules=[{**RULE, "operations": ["DELETE"]}])
    request = json.loads(needed(found, obj("ConfigMap"), operation=Operation.DELETE).body)[
        "request"
    ]
    assert (request["object"], request["oldObject"]["kind"]) == (None, "ConfigMap")
    assert request["options"]["kind"] == "DeleteOptions"


def test_a_subresource_request_is_sent_with_the_kind_of_the_subresource(validating, obj):
    found = validating(rules=[{**RULE, "resources": ["pods/binding"]}])
    body = {"metadata": {"name": "a", "namespace": "n"}, "target": {"name": "node-1"}}
    requested = {**obj("Pod"), **body}
    request = json.loads(needed(found, requested, subresource="binding").body)["request"]
    assert request["kind"] == {"group": "", "version": "v1", "kind": "Binding"}
    assert request["resource"]["resource"] == "pods"
    assert request["subResource"] == request["requestSubResource"] == "binding"


def test_a_webhook_is_called_with_an_admission_review_version_it_supports(validating, obj):
    found = validating(admissionReviewVersions=["v2", "v1beta1"])
    assert json.loads(needed(found, obj("ConfigMap")).body)["apiVersion"] == (
        "admission.k8s.io/v1beta1"
    )
    refusal = validating(admissionReviewVersions=["v2"]).refusal(obj("ConfigMap"), user=ALICE)
    assert "webhook does not accept known AdmissionReview versions (v1, v1beta1)" in refusal


def test_a_refusal_has_the_status_of_the_webhook(validating, obj):
    found, requested = validating(), obj("ConfigMap")
    details = {"causes": [{"field": "data", "message": "no"}]}
    status = {"code": 422, "reason": "Invalid", "message": "m", "details": details}
    about = answered({"allowed": False, "status": status})
    with pytest.raises(ApiError) as refused:
        found.admits(requested, **about)
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert refused.value.details == details


def test_the_patch_of_a_mutating_webhook_is_applied(gate, obj):
    found = gate(MutatingAdmissionWebhook()).has(configured(obj, "Mutating"))
    requested = obj("ConfigMap")
    patch = [{"op": "add", "path": "/data", "value": {"a": "b"}}]
    packed = base64.b64encode(json.dumps(patch).encode()).decode()
    response = {"allowed": True, "patch": packed, "patchType": "JSONPatch"}
    admitted = found.admits(requested, **answered(response))
    assert admitted == {**requested, "data": {"a": "b"}}


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        (
            [{"op": "remove", "path": "/data"}],
            (
                "error in remove for path: '/data': Unable to remove nonexistent key: data:"
                " missing value"
            ),
        ),
        (
            {"op": "remove"},
            (
                'failed calling webhook "a.example.com": received undecodable patch in webhook'
                " response: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
            ),
        ),
    ],
    ids=["absent path", "not a list"],
)
def test_the_problem_of_a_patch_is_stated(gate, obj, patch, problem):
    """Otherwise, the author of the webhook cannot find the wrong operation."""
    found = gate(MutatingAdmissionWebhook()).has(configured(obj, "Mutating"))
    packed = base64.b64encode(json.dumps(patch).encode()).decode()
    response = {"allowed": True, "patch": packed, "patchType": "JSONPatch"}
    refusal = found.refusal(obj("ConfigMap"), **answered(response))
    assert refusal == f"Internal error occurred: {problem}"


def test_a_dry_run_that_matches_a_webhook_with_side_effects_is_refused(validating, obj):
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
        return await call_webhook(WebhookCall(f"http://127.0.0.1:{port}{path}", "", 30, b"{}"))
    finally:
        await runner.cleanup()


def test_webhooks_are_called_over_http():
    async def handler(request):
        assert request.query["timeout"] == "30s"
        return web.json_response({"response": await request.json()})

    assert asyncio.run(_served(handler, "/v")).body == b'{"response": {}}'


def test_an_error_status_of_a_webhook_is_a_failure():
    async def handler(request):
        return web.Response(status=500, text="not now")

    answer = asyncio.run(_served(handler, "/v"))
    assert answer.is_reached
    assert (
        answer.failure
        == 'an error on the server ("not now") has prevented the request from succeeding'
    )


def test_an_unreachable_webhook_is_a_failure():
    call = WebhookCall("https://127.0.0.1:1/v", "", 5, b"{}")
    assert asyncio.run(call_webhook(call)).failure == (
        "dial tcp 127.0.0.1:1: connect: connection refused"
    )


def test_each_object_of_a_collection_request_has_its_own_review_uid(validating, obj):
    found = validating(rules=[{**RULE, "operations": ["DELETE"]}])
    calls = [
        needed(found, obj("ConfigMap", name), operation=Operation.DELETE) for name in ("x", "y")
    ]
    assert len({json.loads(call.body)["request"]["uid"] for call in calls}) == 2
