"""The subresources exec, attach, portforward and proxy: admission of the operation CONNECT."""

from __future__ import annotations

import base64
import json

import pytest

from fairlead.apiserver.admission.plugins.service_account import ServiceAccount
from fairlead.apiserver.admission.policy.validating import ValidatingAdmissionPolicy
from fairlead.apiserver.admission.webhooks.plugin import (
    MutatingAdmissionWebhook,
    ValidatingAdmissionWebhook,
)
from fairlead.apiserver.request import ADMIN, Request
from fairlead.apiserver.suspension import WebhookAnswer, run_to_end

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
NOT_A = {"key": "a", "operator": "DoesNotExist"}
RULE = {
    "operations": ["CONNECT"],
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods/*", "services/proxy"],
}


@pytest.fixture
def policed(make_api, pods, pod):
    """Makes servers with a pod `a` and a policy for connections that requires `expression`."""

    def policed(expression):
        api = make_api(admission=(ServiceAccount(lambda: "abcde"), ValidatingAdmissionPolicy()))
        spec = {
            "matchConstraints": {"resourceRules": [RULE]},
            "validations": [{"expression": expression, "message": "no shells"}],
        }
        bound = {"policyName": "p", "validationActions": ["Deny"]}
        for plural, name, fields in (
            ("validatingadmissionpolicies", "p", spec),
            ("validatingadmissionpolicybindings", "b", bound),
        ):
            body = {"metadata": {"name": name}, "spec": fields}
            assert api.post(f"{REGISTRATION}/{plural}", body).status == 201
        api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        assert api.post(pods, pod(nodeName="n")).status == 201
        return api

    return policed


@pytest.mark.parametrize(
    ("url", "expression"),
    [
        ("a/exec?command=sh&command=-c&stdin=true", "object.command != ['sh', '-c']"),
        ("a/exec?command=ls&tty=false", "has(object.tty)"),
        ("a/attach?container=c&stdout=1", "object.container != 'c' || !object.stdout"),
        ("a/portforward?ports=80&ports=443", "object.ports != [80, 443]"),
        ("a/proxy/x/y", "object.path != '/x/y'"),
        ("a/exec", "object.kind != 'PodExecOptions' || has(object.metadata)"),
        ("a/exec", "request.operation != 'CONNECT' || request.subResource != 'exec'"),
        ("a/exec", "request.name != 'a' || request.namespace != 'default'"),
        ("a/exec", "request.kind.kind != 'PodExecOptions' || request.resource.resource != 'pods'"),
        ("a/exec", "oldObject != null || request.options != null"),
        ("absent/exec", "false"),
    ],
)
def test_a_policy_that_denies_a_connection_prevents_it(policed, pods, url, expression):
    """The expression of the policy is false for the connection."""
    refused = policed(expression).get(f"{pods}/{url}")
    name = url.partition("/")[0]
    denied = f"pods \"{name}\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied"
    assert (refused.status, refused.message) == (422, f"{denied} request: no shells")


def test_an_admitted_connection_fails_as_without_a_policy(policed, pods):
    refused = policed("object.command == ['ls']").get(f"{pods}/a/exec?command=ls")
    assert (refused.status, "containers are simulated" in refused.message) == (501, True)


@pytest.mark.parametrize("selector", [{"matchLabels": {}}, {"matchExpressions": [NOT_A]}])
def test_only_an_empty_object_selector_selects_connections(policed, pods, selector):
    """The options of a connection have no metadata, so they do not even match DoesNotExist."""
    api = policed("false")
    path = f"{REGISTRATION}/validatingadmissionpolicies/p"
    change = {"spec": {"matchConstraints": {"objectSelector": selector}}}
    assert api.patch(path, change).status == 200
    is_empty = "matchLabels" in selector
    assert api.get(f"{pods}/a/exec").status == (422 if is_empty else 501)


def test_a_port_that_is_not_a_number_is_refused(api, pods, pod):
    api.post(pods, pod(nodeName="n"))
    refused = api.post(f"{pods}/a/portforward?ports=web", None)
    assert (refused.status, "invalid syntax" in refused.message) == (400, True)


def test_webhooks_are_called_for_connections(make_api, pods, pod):
    """A patch of the options has no effect; the validating webhook denies the connection."""
    api = make_api(admission=(MutatingAdmissionWebhook(), ValidatingAdmissionWebhook()))
    api.post(pods, pod(nodeName="n"))
    for kind in ("mutating", "validating"):
        webhook = {
            "name": f"{kind}.example.com",
            "rules": [RULE],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": f"https://127.0.0.1/{kind}"},
        }
        body = {"metadata": {"name": kind}, "webhooks": [webhook]}
        assert api.post(f"{REGISTRATION}/{kind}webhookconfigurations", body).status == 201
    query = (("command", "sh"), ("stdin", "true"))
    request = Request("GET", f"{pods}/a/exec", query, user=ADMIN)
    reviews = []

    def answer(call):
        review = json.loads(call.body)
        reviews.append(review["request"])
        response = {"uid": review["request"]["uid"], "allowed": call.url.endswith("/mutating")}
        if response["allowed"]:
            patch = b'[{"op": "replace", "path": "/command", "value": ["ls"]}]'
            encoded = base64.b64encode(patch).decode()
            response |= {"patchType": "JSONPatch", "patch": encoded}
        return WebhookAnswer(body=json.dumps({**review, "response": response}).encode())

    refused = run_to_end(api.server.handle.steps(request, api.now), answer)
    assert b"validating.example.com" in b"".join(refused.body)
    options = {
        "kind": "PodExecOptions",
        "apiVersion": "v1",
        "stdin": True,
        "command": ["sh"],
    }
    assert [one["object"] for one in reviews] == [options, options]
    assert {one["operation"] for one in reviews} == {"CONNECT"}
