"""The runtime cost of CEL expressions, and its limits."""

from __future__ import annotations

import time

import pytest

from fairlead.cel.cost.runtime_cost import BUDGET, CostBudget, OutOfBudgetError
from fairlead.cel.error import CALL_LIMIT, ExpressionError
from fairlead.cel.program import CelEnvironment

LANGUAGE = CelEnvironment({"self"})
ROWS = [{"name": f"n{at}", "v": at, "tags": ["a", "b"]} for at in range(1_000)]
TEXT = "a" * 1_000_000


def evaluated(text, value):
    return LANGUAGE.program(text).evaluate({"self": value}, CostBudget())


def chain(step, times, start="['aaaa']"):
    return start + step * times + ".size() == 0"


ATTACKS = {
    "texts that double": (chain(".map(a, a+a+a+a+a+a+a+a+a+a+a+a)", 12), 1),
    "a text in place of each character": ("self.replace('', self).size() > 0", TEXT),
    "texts within texts": ("self.split('').map(a, self).join('').size() > 0", TEXT[:9_000]),
    "a range": ("lists.range(9223372036854775807).size() > 0", 1),
    "a range of a computed length": ("lists.range(self * self * self).size() > 0", 1_000_000),
    "a pattern of many states": ("self.matches('((a?){100}){9}b')", TEXT),
    "what such a pattern finds": ("self.find('((a?){100}){9}b') == ''", TEXT),
    "matches at each character": ("self.all(x, x.findAll('').size() > 0)", [TEXT[:200]] * 2_000),
    "patterns that are values": ("self.all(x, x.matches(x))", ["(a?){1000}"] * 1_000),
    "lists in lists": ("self.all(a, self.map(b, b).size() > 0)", list(range(400))),
    "comparing all with all": ("self.all(a, self == self)", ROWS * 4),
    "long texts that are nearly there": (f"self.contains('{'a' * 90_000}b')", TEXT),
    "sets": ("sets.equivalent(self, self)", ROWS * 5),
    "many looks": (f"self.all(x, {' && '.join(['x.v >= 0'] * 100)})", ROWS * 20),
    "three loops": ("self.all(a, self.all(b, self.all(c, true)))", list(range(300))),
    "what is printed": ("self.map(a, '%s'.format([self])).size() > 0", ROWS[:500]),
}


@pytest.mark.parametrize(("text", "value"), ATTACKS.values(), ids=ATTACKS)
def test_an_expression_above_the_cost_limit_is_stopped_quickly(text, value):
    """Evaluation stops quickly at the limit."""
    began = time.process_time()
    assert evaluated(text, value).problem == CALL_LIMIT
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (chain(".map(a, [a, a])", 27, "[1]"), 1),
        (chain(".map(a, {'x': a, 'y': a})", 27, "[1]"), 1),
        ("self.map(a, a).size() > 0", list(range(9_000))),
    ],
)
def test_shared_values_are_evaluated_once(text, value):
    """Nested lists of shared lists contain few distinct lists, but have many paths."""
    began = time.process_time()
    assert evaluated(text, value).problem == ""
    assert time.process_time() - began < 0.5


def test_comparing_large_shared_values_is_stopped():
    twice = "[1]" + ".map(a, [a, a])" * 27
    began = time.process_time()
    assert evaluated(f"{twice} == {twice}", 1).problem == CALL_LIMIT
    assert time.process_time() - began < 0.5


ROW = ".optMap(a, a + a)"


def test_the_target_of_each_chained_macro_is_evaluated_once():
    """Each macro evaluates its target once."""
    began = time.process_time()
    assert evaluated(f"optional.of(self){ROW * 26}.value() == 67108864", 1).value is True
    assert time.process_time() - began < 0.5


def test_an_expression_that_is_too_long_is_refused():
    with pytest.raises(ExpressionError, match="expression code point size exceeds limit"):
        LANGUAGE.program("'" + "a" * 100_001 + "'")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 300 + "1" + ")" * 300,
        "[" * 300 + "]" * 300,
        "1" + " + 1" * 300,
        "self" + ".a" * 300,
        "self" + ".map(a, a)" * 300,
        "a ? b : " * 300 + "c",
        "f(" * 300 + ")" * 300,
    ],
)
def test_an_expression_that_is_nested_too_deeply_is_refused(text):
    with pytest.raises(ExpressionError, match="expression recursion limit exceeded"):
        LANGUAGE.program(text)


def test_many_chains_of_macros_in_one_expression_are_evaluated():
    answer = evaluated(" && ".join([f"optional.of(self){ROW}.hasValue()"] * 30), 1)
    assert (answer.value, answer.problem) == (True, "")


USUAL = {
    "unique names": ("self.all(x, self.exists_one(y, x.name == y.name))", ROWS[:90]),
    "names in order": ("self.map(x, x.name).size() == 1000", ROWS),
    "what is left of a list": ("self.filter(x, x.v > 3).map(x, x.name).exists(n, n == 'n5')", ROWS),
    "names of a form": ("self.all(x, x.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))", ROWS),
    "tags": ("self.all(x, x.tags.all(t, t.startsWith('a') || t in ['b']))", ROWS),
    "a long text": ("self.replace('a', 'bb').size() == 2000000", TEXT),
    "a sum": ("self.map(x, x.v).sum() > 0 && self.map(x, x.name).join(',').size() > 9", ROWS),
    "keys of a large map": (
        "self.names.all(n, n in self.texts)",
        {
            "names": [f"k{at}" for at in range(1_000)],
            "texts": {f"k{at}": TEXT[:200] for at in range(1_000)},
        },
    ),
    "numbers in names": ("self.all(x, x.name.findAll('[0-9]+').size() == 1)", ROWS),
    "quantities": ("self.all(x, quantity(string(x.v)).isInteger())", ROWS),
    "printed": ("self.all(x, '%s: %d'.format([x.name, x.v]).size() > 3)", ROWS),
}


@pytest.mark.parametrize(("text", "value"), USUAL.values(), ids=USUAL)
def test_usual_expressions_are_evaluated_within_the_limit(text, value):
    answer = evaluated(text, value)
    assert (answer.value, answer.problem) == (True, "")


def test_maps_are_built_in_linear_time():
    """Entries are added to the same map."""
    texts = {f"k{at}": "x" * 200 for at in range(2_000)}
    began = time.process_time()
    assert evaluated("self.transformMap(k, v, v + v).size() == 2000", texts).value is True
    assert evaluated("self.transformMapEntry(k, v, {v + k: k}).size() == 2000", texts).value is True
    assert time.process_time() - began < 0.5


def test_an_evaluation_without_remaining_budget_is_refused():
    """The budget is shared by all evaluations about an object."""
    program = LANGUAGE.program(USUAL["names of a form"][0])
    budget = CostBudget()
    budget.spend(BUDGET)
    with pytest.raises(OutOfBudgetError):
        program.evaluate({"self": ROWS}, budget)


def test_a_stopped_call_is_charged_to_the_budget():
    program, budget = LANGUAGE.program("self.exists(x, x.matches('((a?){100}){9}b'))"), CostBudget()
    budget.spend(BUDGET - 1_500_000)
    assert program.evaluate({"self": ["aaaa"] * 20_000}, budget).problem == CALL_LIMIT
    with pytest.raises(OutOfBudgetError):
        program.evaluate({"self": ["aaaa"] * 20_000}, budget)


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("1 + 1 == 2", 2),
        ("self.name == 'web-1'", 3),
        ("has(self.name) && self.size > 2", 4),
        ("'web-server-0'.contains('web')", 2),
        ("self.tags.all(t, t == 'a')", 3 + 2 * (3 + 2)),
        ("self.tags.map(t, t)", 2 + 2 * 13 + 1),
        ("self.tags[0]", 3),
        ("'a' in self.tags", 2 + 2),
        ("ip('10.0.0.1').family() == 4", 3),
        ("self.name.matches('^[a-z]+$')", 2 + 2 * 2),
    ],
)
def test_costs_equal_upstreams(text, cost):
    """By upstream's rules, a name, a field, an item and most calls cost one unit each."""
    value = {"name": "web-server-0", "size": 3, "tags": ["a", "a"]}
    assert evaluated(text, value).cost == cost
