"""Questions about rights that make no sense."""

from __future__ import annotations

import pytest

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
def test_what_cannot_be_asked(api, path, kind, spec, meta, fields):
    """One thing at a time, by somebody, without a name of its own."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec}
    refused = api.post(f"{REVIEWS}/{path}", body)
    assert refused.status == 422, refused.text
    found = [cause["field"].removeprefix("spec.") for cause in refused.json["details"]["causes"]]
    assert found == fields
