"""Creation and update of CustomResourceDefinitions."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.registry.strategies.apiextensions import changed_definition, new_definition

WEBHOOK = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {"url": "https://127.0.0.1:9443/convert"},
        "conversionReviewVersions": ["v1"],
    },
}


def definition(rule, **spec):
    items = {"type": "array", "items": {"type": "string"}}
    inner = {**items, "x-kubernetes-validations": [{"rule": rule}]}
    raw = {"type": "object", "properties": {"spec": inner}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": raw}}
    names = {"plural": "xs", "singular": "x", "kind": "X", "listKind": "XList"}
    return {
        "metadata": {"name": "xs.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
            "conversion": {"strategy": "None"},
            **spec,
        },
    }


EACH = "self.all(x, self.exists_one(y, x == y))"


def test_a_rule_that_costs_too_much_is_refused():
    with pytest.raises(ApiError, match="exceeds budget by factor of more than 100x"):
        new_definition(definition(EACH), None)


def test_stored_rules_with_a_too_high_cost_are_kept():
    """A definition that was stored under other limits can be updated if its rules do not change."""
    before, after = definition(EACH), definition(EACH)
    after["metadata"]["labels"] = {"a": "b"}
    assert changed_definition(before, after, None)["metadata"]["labels"] == {"a": "b"}
    with pytest.raises(ApiError, match="exceeds budget"):
        changed_definition(definition("true"), after, None)


def converted(*, served):
    """Return a definition with a second version and a conversion webhook."""
    found = definition("true", conversion=WEBHOOK)
    (version,) = found["spec"]["versions"]
    found["spec"]["versions"].append({**version, "name": "v2", "served": served, "storage": False})
    return found


def test_a_conversion_webhook_that_would_be_called_is_refused():
    problem = (
        'spec.conversion.strategy: Invalid value: "Webhook": conversion webhooks are not called'
    )
    with pytest.raises(ApiError, match=problem) as refusal:
        new_definition(converted(served=True), None)
    assert refusal.value.code == 422
    with pytest.raises(ApiError, match=problem):
        changed_definition(converted(served=False), converted(served=True), None)


def test_a_conversion_webhook_that_is_not_called_is_accepted():
    assert new_definition(converted(served=False), None)["spec"]["conversion"] == WEBHOOK


def test_a_stored_definition_with_a_conversion_webhook_can_be_changed():
    changed = converted(served=True)
    changed["metadata"]["labels"] = {"a": "b"}
    assert changed_definition(converted(served=True), changed, None)["metadata"] == {
        "name": "xs.example.com",
        "labels": {"a": "b"},
    }
