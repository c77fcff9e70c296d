"""Bodies of requests to subresources: evictions, bindings, token requests."""

from __future__ import annotations

import pytest

OTHER_NAMESPACE = (
    "the namespace of the provided object does not match the namespace sent on the request"
)
ELSE = (
    'Pod in version "v1" cannot be handled as a Eviction: converting (v1.Pod) to (policy.Eviction):'
    " unknown conversion"
)
NAMED = {"name": "a"}


@pytest.fixture
def posted(api, pods, pod):
    """Posts a body to a subresource of an existing pod."""
    api.post(pods, pod())
    return lambda part, body, query="": api.post(f"{pods}/a/{part}{query}", body)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"metadata": {**NAMED, "namespace": "other"}}, OTHER_NAMESPACE),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": NAMED},
            ELSE,
        ),
    ],
)
def test_a_body_of_another_kind_or_namespace_is_refused(posted, body, why):
    refused = posted("eviction", body)
    assert (refused.status, refused.message) == (400, why)


def test_an_eviction_in_version_v1beta1_is_accepted(posted):
    """Old clients send this version."""
    body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": NAMED}
    assert posted("eviction", body).status == 201


def test_an_eviction_can_have_a_resource_version_precondition(posted):
    options = {"preconditions": {"resourceVersion": "77"}}
    refused = posted("eviction", {"metadata": NAMED, "deleteOptions": options})
    assert (refused.status, "the ResourceVersion in the precondition (77)" in refused.message) == (
        409,
        True,
    )


def test_unknown_fields_are_reported(posted):
    body = {"metadata": NAMED, "target": {"name": "n"}, "x": 1}
    assert posted("binding", body).response.warnings == ('unknown field "x"',)
    strict = posted("binding", body, "?fieldValidation=Strict")
    assert strict.message == (
        'Binding in version "v1" cannot be handled as a Binding: strict decoding error: unknown '
        'field "x"'
    )


def test_all_errors_of_a_binding_target_are_reported(posted):
    refused = posted("binding", {"metadata": NAMED, "target": {"kind": "Zone"}})
    kind = 'target.kind: Unsupported value: "Zone": supported values: "Node", "<empty>"'
    assert refused.status == 500
    assert refused.message == f"[{kind}, target.name: Required value]"
