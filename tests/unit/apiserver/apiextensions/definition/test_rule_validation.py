"""Validation of the rules in a CustomResourceDefinition."""

from __future__ import annotations

import pytest

from fairlead.apiserver.apiextensions.definition.rule_cost import RuleCostTotal
from fairlead.apiserver.apiextensions.definition.rule_validation import (
    RuleContext,
    expression_causes,
    rule_field_causes,
)
from fairlead.apiserver.apiextensions.definition.schema_validation import default_causes

FIELDS = {"a": {"type": "integer"}, "b": {"type": "boolean"}, "text": {"type": "string"}}


def wrong(**rule):
    raw = {"type": "object", "properties": FIELDS, "x-kubernetes-validations": [rule]}
    found = list(rule_field_causes(raw, "s")) or expression_causes(
        raw, "s", RuleContext(RuleCostTotal())
    )
    return [(cause.field.partition("[0].")[2], cause.message) for cause in found]


@pytest.mark.parametrize(
    ("rule", "field", "said"),
    [
        ({"rule": " "}, "rule", "rule is not specified"),
        ({"rule": "true", "message": " "}, "message", "must be non-empty if specified"),
        ({"rule": "true", "message": "a\nb"}, "message", "must not contain line breaks"),
        ({"rule": "true &&\ntrue"}, "message", "must be specified if rule contains line breaks"),
        ({"rule": "true", "messageExpression": " "}, "messageExpression", "must be non-empty"),
        ({"rule": "true", "messageExpression": "1"}, "messageExpression", "evaluate to a string"),
        ({"rule": "true", "messageExpression": "'a"}, "messageExpression", "compilation failed"),
        ({"rule": "true", "reason": "Because"}, "reason", "supported values"),
        ({"rule": "1"}, "rule", "must evaluate to a bool"),
        ({"rule": "self.a +"}, "rule", "compilation failed"),
    ],
)
def test_invalid_rules_are_refused(rule, field, said):
    ((where, message),) = wrong(**rule)
    assert where == field
    assert said in message


@pytest.mark.parametrize(
    "rule",
    [
        {"rule": "self.a > oldSelf.a", "reason": "FieldValueForbidden"},
        {"rule": "true\n", "message": "m\n"},
        {"rule": "self.b", "messageExpression": "self.text"},
    ],
)
def test_valid_rules_are_accepted(rule):
    assert wrong(**rule) == []


def test_a_default_of_a_schema_with_an_invalid_rule_is_refused():
    raw = {"type": "object", "default": {}, "x-kubernetes-validations": [{"rule": "self >"}]}
    (cause,) = default_causes(raw, "s")
    assert cause.field == "s.default"
    assert cause.message.startswith(
        'Invalid value: "object": rule compile error: compilation failed: ERROR: <input>:1:7'
    )


@pytest.mark.parametrize(
    ("rule", "field", "said"),
    [
        (
            {"rule": "self.a == int('x')"},
            "rule",
            "program instantiation failed: type conversion error from 'string' to 'int'",
        ),
        (
            {"rule": "self.b", "messageExpression": "string(b'\\xff')"},
            "messageExpression",
            "messageExpression instantiation failed: invalid UTF-8 in bytes",
        ),
    ],
)
def test_constants_that_cannot_be_converted_are_refused(rule, field, said):
    """The error is reported when the rule is compiled, not when it is evaluated."""
    ((where, message),) = wrong(**rule)
    assert where == field
    assert said in message
