"""Access reviews: invalid reviews, and reviews with field selectors."""

from __future__ import annotations

import pytest

from fairlead.apiserver.auth.authorization.node_authorizer import NodeAuthorizer
from fairlead.apiserver.auth.authorization.rbac import Rbac
from fairlead.apiserver.auth.authorizer import Identity
from fairlead.apiserver.endpoints.compose import complete_server

REVIEWS = "/apis/authorization.k8s.io/v1"
LOCAL = "namespaces/default/localsubjectaccessreviews"


@pytest.mark.parametrize(
    ("path", "kind", "spec", "meta", "fields"),
    [
        ("selfsubjectaccessreviews", "SelfSubjectAccessReview", {}, {}, ["resourceAttributes"]),
        (
            "selfsubjectaccessreviews",
            "SelfSubjectAccessReview",
            {"resourceAttributes": {}, "nonResourceAttributes": {}},
            {"labels": {"a": "b"}},
            ["nonResourceAttributes", "metadata"],
        ),
        (
            "subjectaccessreviews",
            "SubjectAccessReview",
            {"resourceAttributes": {}},
            {"name": "x"},
            ["user", "metadata"],
        ),
        (
            LOCAL,
            "LocalSubjectAccessReview",
            {"user": "a", "resourceAttributes": {"namespace": "other"}},
            {"namespace": "default"},
            ["resourceAttributes.namespace"],
        ),
        (
            LOCAL,
            "LocalSubjectAccessReview",
            {"user": "a", "nonResourceAttributes": {"path": "/"}},
            {"namespace": "default"},
            ["nonResourceAttributes"],
        ),
    ],
)
def test_invalid_reviews_are_refused(api, path, kind, spec, meta, fields):
    """A review must have exactly one question and a user, and no name."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec}
    refused = api.post(f"{REVIEWS}/{path}", body)
    assert refused.status == 422, refused.text
    found = [cause["field"].removeprefix("spec.") for cause in refused.json["details"]["causes"]]
    assert found == fields


def no_user(*_):
    return None


@pytest.mark.parametrize(
    ("verb", "selector", "is_allowed"),
    [
        ("list", {"rawSelector": "spec.nodeName=n"}, True),
        ("list", {"rawSelector": "spec.nodeName=m"}, False),
        (
            "watch",
            {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n"]}]},
            True,
        ),
        (
            "watch",
            {"requirements": [{"key": "spec.nodeName", "operator": "NotIn", "values": ["n"]}]},
            False,
        ),
        ("get", {"rawSelector": "spec.nodeName=n"}, False),
        ("list", {}, False),
    ],
)
def test_a_review_can_have_a_field_selector(api, verb, selector, is_allowed):
    """A kubelet may list the pods of its own node."""
    storage = api.store.storage
    rights = Rbac(storage, (NodeAuthorizer(storage),))
    identity = Identity(rights=rights, recognize=no_user, issue=no_user, keys=())
    api.server = complete_server(
        api.store, clock=lambda: api.now, address="127.0.0.1:6443", version="0", identity=identity
    )
    about = {"verb": verb, "resource": "pods", "fieldSelector": selector}
    spec = {"user": "system:node:n", "groups": ["system:nodes"], "resourceAttributes": about}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    answer = api.post(f"{REVIEWS}/subjectaccessreviews", body)
    assert answer.json["status"]["allowed"] is is_allowed, answer.text
