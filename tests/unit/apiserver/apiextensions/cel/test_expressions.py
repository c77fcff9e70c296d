"""Validation rules of custom resources: results and estimated costs as in upstream 1.36.4.

The first line of `expressions.jsonl.gz` is a schema with a value. Each further line is a rule with
its compile error, or with its type, its estimated cost and its result for the value.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from fairlead.apiserver.apiextensions.cel.declared_type import declared, variables_of
from fairlead.apiserver.apiextensions.cel.rule import broken_rules
from fairlead.apiserver.apiextensions.definition.rule_cost import (
    CHARACTERS_MAX,
    ExpressionLengthBudget,
)
from fairlead.apiserver.apiextensions.definition.schema_validation import schema_causes
from fairlead.apiserver.apiextensions.schema.structural import ABSENT, structural
from fairlead.cel.compiler import compiled
from fairlead.cel.cost.expression_estimate import estimated_cost
from fairlead.cel.error import ExpressionError

RECORDED = Path(__file__).with_name("expressions.jsonl.gz")
HEAD, *RULES = map(json.loads, gzip.decompress(RECORDED.read_bytes()).splitlines())
KNOWN = declared(HEAD["schema"], is_object=True)
EVALUATED = [row for row in RULES if "said" in row]
OVERLOAD = "call arguments did not match a supported operator, function or macro signature for rule"
ADVICE = (
    " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)"
)


@pytest.mark.parametrize("row", RULES, ids=[row["rule"][:40] for row in RULES])
def test_the_type_error_and_cost_of_a_rule_are_upstreams(row):
    """The compile error, or the type and the estimated cost, equals the recorded one."""
    assert judged(row) == {key: row[key] for key in ("error", "type", "cost") if key in row}


def judged(row):
    """Return the compile error of a rule, or its type and its estimated cost."""
    variables = variables_of(KNOWN, {"optionalOldSelf": row.get("optional")})
    try:
        expression = compiled(row["rule"], variables, KNOWN.structures())
    except ExpressionError as cause:
        return {"error": str(cause)}
    return {
        "type": expression.type_.full_name,
        "cost": list(estimated_cost(expression, KNOWN.size_of)),
    }


@pytest.mark.parametrize("row", EVALUATED, ids=[row["rule"][:40] for row in EVALUATED])
def test_the_result_of_a_rule_is_upstreams(row):
    """The rule is valid or violated for the value, or fails with the recorded error."""
    rule = {"rule": row["rule"]}
    if row.get("optional"):
        rule["optionalOldSelf"] = True
    raw = {**HEAD["schema"], "x-kubernetes-validations": [rule]}
    old = HEAD["value"] if row.get("past") else ABSENT
    found = [cause.message for cause in broken_rules(structural(raw), HEAD["value"], old, "")]
    rule_text, said = row["rule"].strip(), row["said"]
    match said:
        case "true":
            assert found == []
        case "false":
            assert found == [f"Invalid value: failed rule: {rule_text}"]
        case _:
            plain = f'Invalid value: "object": {said} evaluating rule: {rule_text}'
            assert found in (
                [plain],
                [f"Invalid value: \"object\": '{said}': {OVERLOAD}: {rule_text}"],
            )


def text(**bounds):
    return {"type": "string", **bounds}


def schema(rule, items, **bounds):
    inner = {
        "type": "array",
        "items": items,
        **bounds,
        "x-kubernetes-validations": [{"rule": rule}],
    }
    return {"type": "object", "properties": {"spec": inner}}


EACH = "self.all(x, self.exists_one(y, x == y))"


@pytest.mark.parametrize(
    ("raw", "factor"),
    [
        (schema(EACH, text()), "more than 100x"),
        (schema(EACH, text(maxLength=100), maxItems=200), None),
        (schema(EACH, text(maxLength=100), maxItems=580), "1.480508x"),
        (schema(EACH, text(maxLength=100), maxItems=1000), "4.4x"),
        (schema("self.all(x, x.size() > 0)", text(maxLength=9), maxItems=99), None),
    ],
)
def test_a_rule_with_a_too_high_estimated_cost_is_refused(raw, factor):
    """`factor` is the quotient of the worst-case estimate and the limit."""
    found = [cause.message for cause in schema_causes(raw, "s", ExpressionLengthBudget())]
    wanted = f"Forbidden: estimated rule cost exceeds budget by factor of {factor}{ADVICE}"
    assert found[:1] == ([wanted] if factor else [])


def test_rules_with_a_too_high_total_cost_are_refused():
    """The most expensive rules are reported first, then the total."""
    raw = schema(EACH, text(maxLength=100), maxItems=1000)
    rules = [{"rule": EACH}] * 3
    raw["properties"]["spec"]["x-kubernetes-validations"] = rules
    found = [
        (cause.field, cause.message) for cause in schema_causes(raw, "s", ExpressionLengthBudget())
    ]
    named = [field for field, said in found if "contributed to" in said]
    assert named == [f"s.properties[spec].x-kubernetes-validations[{at}].rule" for at in range(3)]
    where, said = found[-1]
    assert where == "s"
    assert "cost total for entire OpenAPIv3 schema exceeds budget by factor of 1.320180x" in said


def test_rules_with_too_many_characters_together_are_refused():
    """Each rule is shorter than the limit for a single rule, but the sum is too long."""
    long = f"[{', '.join(['1'] * 100)}].size() > 0 && self.size() > 0"
    raw = schema(long, text(maxLength=9), maxItems=9)
    often = CHARACTERS_MAX // len(long)
    raw["properties"]["spec"]["x-kubernetes-validations"] *= often
    found = [cause.message for cause in schema_causes(raw, "s", ExpressionLengthBudget())]
    said = f"Forbidden: all rules may have {CHARACTERS_MAX} characters altogether"
    assert 0 < found.count(said) < often
    assert set(found) == {said}
    assert list(schema_causes(raw, "s")) == []
