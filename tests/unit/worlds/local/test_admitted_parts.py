"""Admission of writes to subresources."""

from __future__ import annotations

import pytest

PODS = "/api/v1/namespaces/default/pods"
CONTAINER = {"name": "c", "image": "i"}
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture
def resized(cluster):
    """Changes the CPU of a pod's container; returns the response."""
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    container = {"name": "c", "image": "i", "resources": resources}
    cluster.ask("POST", PODS, {"metadata": {"name": "a"}, "spec": {"containers": [container]}})

    def act(cpu):
        wanted = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
        body = {"spec": {"containers": [{"name": "c", "resources": wanted}]}}
        return cluster.ask("PATCH", f"{PODS}/a/resize", body, STRATEGIC)

    return act


def test_pod_security_applies_to_ephemeral_containers(cluster):
    cluster.ask("POST", PODS, {"metadata": {"name": "a"}, "spec": {"containers": [CONTAINER]}})
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    namespace = "/api/v1/namespaces/default"
    cluster.ask("PATCH", namespace, {"metadata": {"labels": labels}}, STRATEGIC)
    debugger = {"name": "d", "image": "i", "securityContext": {"privileged": True}}
    body = {"spec": {"ephemeralContainers": [debugger]}}
    refused = cluster.ask("PATCH", f"{PODS}/a/ephemeralcontainers", body, STRATEGIC)
    assert refused["code"] == 403
    assert 'violates PodSecurity "baseline:latest": privileged' in refused["message"]


def test_a_resize_above_the_quota_is_refused(cluster, resized):
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "2"}}}
    cluster.ask("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    cluster.pass_time(1)
    assert resized("1500m")["kind"] == "Pod"
    assert resized("3")["message"] == (
        'pods "a" is forbidden: exceeded quota: q, requested: requests.cpu=1500m, '
        "used: requests.cpu=1500m, limited: requests.cpu=2"
    )


def test_a_resize_above_the_limit_range_is_refused(cluster, resized):
    limits = [{"type": "Container", "max": {"cpu": "2"}}]
    made = {"metadata": {"name": "l"}, "spec": {"limits": limits}}
    cluster.ask("POST", "/api/v1/namespaces/default/limitranges", made)
    assert resized("2")["kind"] == "Pod"
    assert "maximum cpu usage per Container is 2, but limit is 3" in resized("3")["message"]


@pytest.mark.parametrize(
    ("part", "body"),
    [
        ("ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}}),
        ("resize", {"spec": {"containers": [{"name": "c", "resources": {}}]}}),
    ],
)
def test_policies_apply_to_subresources(cluster, part, body):
    cluster.ask("POST", PODS, {"metadata": {"name": "a"}, "spec": {"containers": [CONTAINER]}})
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": [f"pods/{part}"]}]},
        "validations": [{"expression": "false", "message": "not here"}],
    }
    policy = {"metadata": {"name": "p"}, "spec": spec}
    cluster.ask("POST", f"{group}/validatingadmissionpolicies", policy)
    bound = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    cluster.ask("POST", f"{group}/validatingadmissionpolicybindings", bound)
    assert cluster.ask("PATCH", f"{PODS}/a/{part}", body, STRATEGIC)["message"].endswith("not here")


def test_policies_apply_to_token_requests(cluster):
    group, accounts = "/apis/admissionregistration.k8s.io/v1", "namespaces/default/serviceaccounts"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    short = "object.spec.expirationSeconds <= 3600"
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "resources": ["serviceaccounts/token"]}]},
        "validations": [{"expression": short, "message": "for an hour at most"}],
    }
    policy = {"metadata": {"name": "p"}, "spec": spec}
    cluster.ask("POST", f"{group}/validatingadmissionpolicies", policy)
    bound = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    cluster.ask("POST", f"{group}/validatingadmissionpolicybindings", bound)
    token = f"/api/v1/{accounts}/default/token"
    issued = cluster.ask("POST", token, {"spec": {"expirationSeconds": 3600}})
    assert issued["status"]["token"]
    refused = cluster.ask("POST", token, {"spec": {"expirationSeconds": 7200}})
    assert refused["message"].endswith("for an hour at most")
