"""The cost budget for the validation of a custom resource."""

from __future__ import annotations

import pytest

from fairlead.apiserver.apiextensions.definition.schema_validation import default_causes
from fairlead.apiserver.apiextensions.schema.structural import structural
from fairlead.apiserver.apiextensions.schema.value_validation import (
    VALIDATION_COST_MAX,
    value_causes,
)
from fairlead.cel.cost.runtime_cost import CostBudget, OutOfBudgetError
from fairlead.cel.program import OUT_OF_BUDGET

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({**TEXT, "pattern": "a" * 20_000}, "a" * 50_000),
        ({**TEXTS, "items": {**TEXT, "anyOf": [{"minLength": 1}] * 1_000}}, ["x"] * 200),
        ({"additionalProperties": TEXTS}, {"k" * 1_000_000: ["x"] * 5_000}),
    ],
)
def test_a_validation_above_the_budget_is_stopped(schema, value):
    with pytest.raises(OutOfBudgetError):
        list(value_causes(structural(schema), value, ""))


def test_a_default_whose_validation_exceeds_the_budget_is_refused():
    schema = {**TEXT, "pattern": "a" * 20_000, "default": "a" * 50_000}
    (cause,) = default_causes(schema, "schema")
    assert (cause.field, OUT_OF_BUDGET in cause.message) == ("schema.default", True)


def test_a_large_object_with_a_simple_schema_is_within_the_budget():
    schema = structural({"type": "object", "additionalProperties": TEXTS})
    value = {f"key-{at}": ["x"] * 10 for at in range(1_000)}
    budget = CostBudget(VALIDATION_COST_MAX)
    assert list(value_causes(schema, value, "spec.of.some.depth", budget=budget)) == []
