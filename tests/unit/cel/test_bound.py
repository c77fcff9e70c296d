"""What asking an expression may take, known before it is asked."""

from __future__ import annotations

import time

import pytest

from fairlead.cel.asking import BUDGET, Budget, OutOfBudgetError, Seen, program
from fairlead.cel.bound import LOOK
from fairlead.cel.expansion import ExpressionError
from fairlead.cel.library import environment
from fairlead.cel.problem import CALL_LIMIT

ENV = environment({"self": "dyn"})
ROWS = [{"name": f"n{at}", "v": at, "tags": ["a", "b"]} for at in range(1_000)]
TEXT = "a" * 1_000_000


def asked(text, value):
    return Seen(ENV, {"self": value}).ask(program(ENV, text), Budget())


def chain(step, times, start="['aaaa']"):
    return start + step * times + ".size() == 0"


ATTACKS = {
    "texts that double": (chain(".map(a, a+a+a+a+a+a+a+a+a+a+a+a)", 12), 1),
    "lists that double": (chain(".map(a, [a, a])", 27, "[1]"), 1),
    "maps that double": (chain(".map(a, {'x': a, 'y': a})", 27, "[1]"), 1),
    "a text in place of each character": ("self.replace('', self).size() > 0", TEXT),
    "texts within texts": ("self.split('').map(a, self).join('').size() > 0", TEXT[:9_000]),
    "a range": ("lists.range(9223372036854775807).size() > 0", 1),
    "a range of a computed length": ("lists.range(self * self * self).size() > 0", 1_000_000),
    "a pattern of many states": ("self.matches('((a?){100}){9}b')", TEXT),
    "what such a pattern finds": ("self.find('((a?){100}){9}b') == ''", TEXT),
    "matches at each character": ("self.all(x, x.findAll('').size() > 0)", [TEXT[:200]] * 2_000),
    "patterns that are values": ("self.all(x, x.matches(x))", ["(a?){1000}"] * 1_000),
    "a long list, made anew at each round": ("self.map(a, a).size() > 0", list(range(9_000))),
    "lists in lists": ("self.all(a, self.map(b, b).size() > 0)", list(range(400))),
    "comparing all with all": ("self.all(a, self == self)", ROWS * 4),
    "long texts that are nearly there": (f"self.contains('{'a' * 90_000}b')", TEXT),
    "sets": ("sets.equivalent(self, self)", ROWS * 5),
    "many looks": (f"self.all(x, {' && '.join(['x.v >= 0'] * 100)})", ROWS * 20),
    "three loops": ("self.all(a, self.all(b, self.all(c, true)))", list(range(300))),
    "what is printed": ("self.map(a, '%s'.format([self])).size() > 0", ROWS[:500]),
}


@pytest.mark.parametrize(("text", "value"), ATTACKS.values(), ids=ATTACKS)
def test_an_expression_that_would_take_too_much_is_not_asked(text, value):
    """Nor does it take long to find out."""
    began = time.process_time()
    assert asked(text, value).problem == CALL_LIMIT
    assert time.process_time() - began < 0.5


ROW = ".optMap(a, a + a)"


@pytest.mark.parametrize(
    "text",
    [
        f"optional.of(self){ROW * 26}.hasValue()",
        f"optional.of('a)(')\n {ROW * 26}.hasValue()",
        f"self.?b{'.optFlatMap(a, optional.of(a))' * 24}.hasValue()",
        f"1 + (optional.of(self){ROW * 12}){ROW * 12}.value()",
        "optional.of(" * 14 + "self" + f"){ROW}" * 14,
        "'" + "a" * 100_001 + "'",
    ],
)
def test_an_expression_that_would_become_too_long_is_not_read(text):
    """Its parser would say the beginning of each row twice, and that twice again."""
    with pytest.raises(ExpressionError, match="expression code point size exceeds limit"):
        program(ENV, text)


def test_rows_beside_each_other_are_read():
    answer = asked(" && ".join([f"optional.of(self){ROW}.hasValue()"] * 30), 1)
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
def test_what_people_write_is_asked(text, value):
    answer = asked(text, value)
    assert (answer.value, answer.problem) == (True, "")


def test_maps_of_many_entries_are_not_made_anew_for_each():
    """As the library does, which keeps them all until the end."""
    texts = {f"k{at}": "x" * 200 for at in range(2_000)}
    began = time.process_time()
    assert asked("self.transformMap(k, v, v + v).size() == 2000", texts).value is True
    assert asked("self.transformMapEntry(k, v, {v + k: k}).size() == 2000", texts).value is True
    assert time.process_time() - began < 0.5


class Counted:
    """An environment that counts how often it was given values."""

    def __init__(self):
        self.times = 0

    def Activation(self, values):  # noqa: N802 - the library's name
        self.times += 1
        return ENV.Activation(values)


@pytest.mark.parametrize(
    ("text", "times"), [("self.map(x, x.name).size() == 2000", 4), ("self[0].v == 0", 1)]
)
def test_what_was_made_is_let_go(text, times):
    """The library keeps it as long as it has the values."""
    counted = Counted()
    seen = Seen(counted, {"self": ROWS * 2})
    for _ in range(4):
        assert seen.ask(program(ENV, text), Budget()).value is True
    assert counted.times == times


def test_a_budget_ends():
    """For all questions about an object together."""
    seen, one = Seen(ENV, {"self": ROWS}), program(ENV, USUAL["names of a form"][0])
    budget = Budget()
    budget.take(BUDGET)
    with pytest.raises(OutOfBudgetError):
        seen.ask(one, budget)


def test_a_question_that_is_not_asked_counts_with_what_it_took_to_find_out():
    seen, budget = Seen(ENV, {"self": ["aaaa"] * 20_000}), Budget()
    one = program(ENV, "self.all(x, x.matches('((a?){100}){9}b'))")
    budget.take(BUDGET - 50_000 * LOOK)
    assert seen.ask(one, budget).problem == CALL_LIMIT
    with pytest.raises(OutOfBudgetError):
        seen.ask(one, budget)


@pytest.mark.parametrize("step", ["self == 1 ? a : a", "self == 1 ? a : [self][0]", "[a, a][0]"])
def test_values_that_are_the_same_in_many_ways(step):
    """What is known of them does not grow with each."""
    began = time.process_time()
    assert asked(f"[1]{f'.map(a, {step})' * 27}.size() == 1", 1).value is True
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("text", "is_light"),
    [
        ("self.a > 1 && self.b.c == 'x' || !has(self.d)", True),
        ("self.a in ['x', 'y'] ? self.b : self.c", True),
        ("self == self", False),
        ("'x' in self.a", False),
        ("self.a.size() > 1", False),
        ("self.all(x, x)", False),
        (" && ".join(["self.a"] * 30), False),
    ],
)
def test_what_takes_little_is_not_looked_through(text, is_light):
    assert program(ENV, text).is_light is is_light
