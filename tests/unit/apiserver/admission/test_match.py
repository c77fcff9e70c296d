"""Match conditions of webhooks and policies."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.cel.environment import ExpressionContext
from fairlead.apiserver.admission.match import has_false_condition

# Costs 900 x 900 units, at a tenth of a unit for each character.
COSTLY = {"name": "costly", "expression": "object.text.contains(object.text)"}


@pytest.fixture
def context():
    return ExpressionContext({"object": {"text": "a" * 9_000}})


def test_conditions_have_a_quarter_of_the_budget_of_validations(context):
    """Three costly conditions fit into 2,500,000 units, four do not."""
    assert not has_false_condition([COSTLY] * 3, context)
    with pytest.raises(ValueError, match="running out of cost budget"):
        has_false_condition([COSTLY] * 4, context)


def test_conditions_leave_the_budget_of_validations_alone(context):
    """Twelve costly validations fit into 10,000,000 units."""
    assert not has_false_condition([COSTLY] * 3, context)
    found = [context.evaluate(COSTLY["expression"]) for _ in range(13)]
    assert [one.problem == "" for one in found] == [True] * 12 + [False]


def test_a_false_condition_takes_precedence_over_a_failed_condition(context):
    conditions = [{"expression": "object.missing"}, {"expression": "false"}]
    assert has_false_condition(conditions, context)
