"""Refusals of malformed bodies."""

from __future__ import annotations

import json

import pytest

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        (
            f"{AUTHORIZATION}/selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": "all"}},
            "SelfSubjectAccessReview.spec.resourceAttributes",
        ),
        (
            f"{AUTHORIZATION}/selfsubjectrulesreviews",
            {"spec": {"namespace": {"a": None}}},
            "SelfSubjectRulesReview.spec.namespace",
        ),
        (
            "/apis/authentication.k8s.io/v1/tokenreviews",
            {"spec": {"token": [{}]}},
            "TokenReview.spec.token",
        ),
        (
            "/api/v1/namespaces/default/serviceaccounts/default/token",
            {"spec": {"expirationSeconds": [[]]}},
            "TokenRequest.spec.expirationSeconds",
        ),
        (
            "/api/v1/namespaces/default/bindings",
            {"metadata": {"name": [None]}, "target": {"name": "n"}},
            "Binding.metadata.name",
        ),
        (
            "/api/v1/namespaces/default/pods/p/eviction",
            {"deleteOptions": {"gracePeriodSeconds": "soon"}},
            "Eviction.deleteOptions.gracePeriodSeconds",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else "",
)
def test_reviews_with_a_wrong_type_are_refused(api, path, body, where):
    """The fields of reviews, which are never stored, are type-checked; the refusal has the path."""
    answer = api.post(path, body)
    assert answer.status == 400
    kind, _, field = where.partition(".")
    assert f"cannot be handled as a {kind}: " in answer.message
    assert field in answer.message


@pytest.fixture
def deployment(api):
    """The response to the creation of a Deployment with one container."""
    pod = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": pod}
    return api.post(DEPLOYMENTS, {"metadata": {"name": "d", "finalizers": ["a.b/c"]}, "spec": spec})


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        (
            {"spec": {"template": {"spec": {"containers": [{"name": "c"}, ""]}}}},
            "list element types are not identical: ",
        ),
        ({"metadata": {"finalizers": [[None]]}}, "list element types are not identical: "),
        ({"metadata": {"finalizers": [None]}}, "list element types are not identical: "),
    ],
)
def test_a_patch_with_a_list_of_mixed_types_is_refused(api, deployment, patch, why):
    """All items of a list must have the same type."""
    answer = api.patch(f"{DEPLOYMENTS}/d", patch, STRATEGIC)
    assert (answer.status, deployment.status) == (500, 201)
    assert answer.message.startswith(why)


@pytest.mark.parametrize("metadata", [True, 1, "text", []])
def test_an_apply_with_invalid_metadata_is_refused(api, metadata):
    """The refusal contains the parts of the name that could be decoded."""
    config = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    answer = api.patch(f"{DEPLOYMENTS}/d?fieldManager=m", json.dumps(config), APPLY)
    assert answer.status == 500
    assert answer.message.startswith("failed to create typed patch object (/; apps/v1, Kind=")


def test_a_pod_without_containers_is_refused_in_a_namespace_with_a_limit_range(api):
    """The missing field is reported, although a LimitRange reads it."""
    limits = [{"type": "Container", "max": {"cpu": "1"}}]
    api.post(
        "/api/v1/namespaces/default/limitranges",
        {"metadata": {"name": "l"}, "spec": {"limits": limits}},
    )
    answer = api.post("/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}})
    assert answer.status == 422
    assert "spec.containers: Required value" in answer.message


NAMESPACE = "/api/v1/namespaces/default"


@pytest.mark.parametrize("field", ["apiVersion", "kind"])
@pytest.mark.parametrize(
    ("value", "called"),
    [([None], "array"), ({}, "object"), (1, "number"), (False, "bool"), ([], "array")],
)
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"{NAMESPACE}/pods", "Pod"),
        (f"{NAMESPACE}/bindings", "Binding"),
        (f"{NAMESPACE}/pods/p/eviction", "Eviction"),
        (f"{AUTHORIZATION}/selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ],
)
def test_api_version_and_kind_must_be_strings(api, path, expected, field, value, called):
    """The error about apiVersion or kind precedes all other errors."""
    answer = api.post(path, {field: value, "metadata": {"name": "a"}})
    assert answer.status == 400
    assert answer.message.startswith(
        f"the object provided is unrecognized (must be of type {expected}): couldn't get "
        f"version/kind; json parse error: json: cannot unmarshal {called} into Go struct field "
        f".{field} of type string ("
    )


def test_a_body_must_be_an_object(api):
    assert api.post(f"{NAMESPACE}/configmaps", []).message == (
        "the object provided is unrecognized (must be of type ConfigMap): couldn't get "
        "version/kind; json parse error: json: cannot unmarshal array into Go value of type struct "
        '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
        '"json:\\"kind,omitempty\\"" } (5b5d)'
    )
