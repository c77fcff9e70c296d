"""Validation rules: transition rules, list items, messages, errors and cost limits."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.cel import environment
from fairlead.apiserver.apiextensions.cel import rule
from fairlead.apiserver.apiextensions.cel.rule import RuleError, broken_rules, compiled
from fairlead.apiserver.apiextensions.schema.structural import ABSENT, structural
from fairlead.cel.error import CALL_LIMIT
from fairlead.cel.program import OUT_OF_BUDGET


def broken(schema, value, old=ABSENT):
    found = broken_rules(structural(schema), value, old, "spec")
    return [(cause.reason, cause.field, cause.message) for cause in found]


def ruled(rule, **schema):
    return {"type": "object", "x-kubernetes-validations": [{"rule": rule}], **schema}


NUMBER = {"type": "integer"}
NEW_YEAR = "2026-01-01T00:00:00Z"


def test_a_transition_rule_is_not_evaluated_without_an_old_value():
    schema = ruled("self.a >= oldSelf.a", properties={"a": NUMBER})
    assert broken(schema, {"a": 1}) == []
    assert broken(schema, {"a": 1}, {"a": 1}) == []
    assert broken(schema, {"a": 1}, {"a": 2}) == [
        ("FieldValueInvalid", "spec", "Invalid value: failed rule: self.a >= oldSelf.a")
    ]


def test_items_of_a_map_list_are_compared_with_their_old_values_by_key():
    item = ruled("self.n == oldSelf.n", properties={"k": NUMBER, "n": NUMBER})
    schema = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    before = [{"k": 1, "n": 1}, {"k": 2, "n": 2}]
    assert broken(schema, [{"k": 2, "n": 2}, {"k": 3, "n": 9}], before) == []
    assert [field for _, field, _ in broken(schema, [{"k": 2, "n": 7}], before)] == ["spec[0]"]


def test_reserved_field_names_are_escaped():
    schema = ruled(
        "self.__namespace__ == 'a' && self.x__dash__y == 1 && self.a__dot__b == 2",
        properties={"namespace": {"type": "string"}, "x-y": NUMBER, "a.b": NUMBER},
    )
    assert broken(schema, {"namespace": "a", "x-y": 1, "a.b": 2}) == []
    assert len(broken(schema, {"namespace": "b", "x-y": 1, "a.b": 2})) == 1


def test_a_whole_number_is_a_double_where_the_type_says_number():
    schema = ruled("self.ratio / 2.0 == 0.5", properties={"ratio": {"type": "number"}})
    assert broken(schema, {"ratio": 1}) == []


def test_rules_are_evaluated_for_map_values():
    schema = {"type": "object", "additionalProperties": {**NUMBER, **ruled("self > 0")}}
    assert [field for _, field, _ in broken(schema, {"a": 1, "b": 0})] == ["spec[b]"]


def test_an_unchanged_value_that_violates_a_rule_is_accepted():
    """This also holds for list items, whose old values cannot be identified."""
    inner = {"type": "array", "items": {**NUMBER, **ruled("self > 0")}}
    schema = {"type": "object", "properties": {"a": inner, "b": NUMBER}}
    assert broken(schema, {"a": [0], "b": 1}, {"a": [0]}) == []
    assert [field for _, field, _ in broken(schema, {"a": [0, 1]}, {"a": [0]})] == ["spec.a[0]"]


def test_an_evaluation_error_is_reported():
    ((_, _, message),) = broken(ruled("self.missing > 1"), {})
    assert "no such key" in message or "not found" in message.lower()
    assert message.endswith("evaluating rule: self.missing > 1")


def test_a_rule_above_its_cost_limit_is_stopped():
    """The same limit applies to a messageExpression; `message` is then used instead."""
    endless = "self.a.all(x, self.a.all(y, self.a.all(z, true)))"
    schema = ruled(endless, properties={"a": {"type": "array", "items": NUMBER}})
    why = "no further validation rules will be run due to call cost exceeds limit for rule"
    expected = [f"Invalid value: \"object\": '{CALL_LIMIT}': {why}: {endless}"]
    assert [said for _, _, said in broken(schema, {"a": list(range(300))})] == expected
    rule = {"rule": "self.a == []", "messageExpression": f"{endless} ? 'a' : 'b'", "message": "m"}
    schema["x-kubernetes-validations"] = [rule]
    assert [said for _, _, said in broken(schema, {"a": list(range(300))})] == ["Invalid value: m"]


def test_no_other_rule_is_evaluated_after_the_cost_limit_is_exceeded():
    endless = "self.a.all(x, self.a.all(y, self.a.all(z, true)))"
    field = {"type": "array", "items": NUMBER, "x-kubernetes-validations": [{"rule": "false"}]}
    schema = ruled(endless, properties={"a": field})
    schema["x-kubernetes-validations"] *= 100
    assert len(broken(schema, {"a": list(range(300))})) == 1


def test_rules_above_their_common_cost_limit_are_stopped():
    """Each rule is far below the limit for a single rule."""
    rule = "self.a.all(x, self.a.exists(y, x == y))"
    schema = ruled(rule, properties={"a": {"type": "array", "items": NUMBER}})
    schema["x-kubernetes-validations"] *= 300
    ((_, _, said),) = broken(schema, {"a": list(range(100))})
    assert said == f'Invalid value: "object": {OUT_OF_BUDGET}'


def test_a_stored_rule_that_no_longer_compiles_is_reported():
    """It was stored by a server that could compile it."""
    ((_, where, said),) = broken(ruled("self.a +"), {})
    assert where == "spec"
    assert said.startswith('Invalid value: "object": rule compile error: compilation failed: ERROR')


def test_a_blank_message_expression_is_replaced_by_the_message():
    rule = {"rule": "false", "messageExpression": "' '", "message": "m"}
    schema = {"type": "object", "x-kubernetes-validations": [rule]}
    assert broken(schema, {}) == [("FieldValueInvalid", "spec", "Invalid value: m")]


def test_a_rule_that_does_not_compile_raises_the_reason():
    with pytest.raises(RuleError, match="Syntax error"):
        compiled("self.a +")


@pytest.mark.parametrize(
    ("old", "kept"), [(ABSENT, True), ({"a": 1, "t": NEW_YEAR}, True), ({"a": 3}, False)]
)
def test_old_self_is_optional_if_optional_old_self_is_set(old, kept):
    rule = {
        "rule": "!oldSelf.hasValue() || oldSelf.value().a <= self.a",
        "messageExpression": "'was ' + string(oldSelf.value().a)",
        "optionalOldSelf": True,
    }
    moment = {"type": "string", "format": "date-time"}
    schema = {
        "type": "object",
        "properties": {"a": NUMBER, "t": moment},
        "x-kubernetes-validations": [rule],
    }
    messages = [message for _, _, message in broken(schema, {"a": 2}, old)]
    assert messages == ([] if kept else ["Invalid value: was 3"])


@pytest.mark.parametrize("expression", ["self.missing", "'a\\nb'", "''"])
def test_an_invalid_message_expression_is_replaced_by_the_message(expression):
    rule = {"rule": "false", "messageExpression": expression, "message": "m"}
    schema = {"type": "object", "x-kubernetes-validations": [rule]}
    assert broken(schema, {}) == [("FieldValueInvalid", "spec", "Invalid value: m")]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("' a\\n'", "a"),
        ("self.t", "é" * 2_560),
        ("self.t + 'a'", "m"),
    ],
    ids=["whitespace around it is removed", "5 KiB", "more than 5 KiB, counted in bytes"],
)
def test_a_message_expression_is_trimmed_and_at_most_5_kib_long(expression, message):
    rule = {"rule": "false", "messageExpression": expression, "message": "m"}
    properties = {"t": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "x-kubernetes-validations": [rule]}
    said = [said for _, _, said in broken(schema, {"t": "é" * 2_560})]
    assert said == [f"Invalid value: {message}"]


@pytest.mark.parametrize("compile_", [rule.compiled, environment.compiled])
def test_programs_of_long_expressions_are_not_kept(compile_):
    """Programs of a thousand long expressions would need gigabytes."""
    short, long = "1 == 1", f"1 in [{', '.join(['1'] * 1_000)}]"
    assert compile_(short) is compile_(short)
    assert compile_(long) is not compile_(long)
