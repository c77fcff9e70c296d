"""Creation and update of CustomResourceDefinitions."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.registry.strategies.apiextensions import changed_definition, new_definition


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
