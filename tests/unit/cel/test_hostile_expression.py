"""Expressions written to exhaust the compiler: the time and size of its work are bounded."""

from __future__ import annotations

import pytest

from fairlead.cel.check.object_types import ObjectTypes
from fairlead.cel.check.types import DYN
from fairlead.cel.compiler import compiled
from fairlead.cel.cost.runtime_cost import CostBudget
from fairlead.cel.error import ExpressionError
from fairlead.cel.program import CelEnvironment

ENVIRONMENT = CelEnvironment({"self"})
TOO_DEEP = "ERROR: <input>:-1:0: expression recursion limit exceeded"
TOO_LONG = (
    "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
)


def first_line(expression):
    """The first line of the compiler's message; "" if the expression compiles."""
    try:
        compiled(expression, {"self": DYN}, ObjectTypes())
    except ExpressionError as cause:
        return str(cause).split("\n")[0]
    return ""


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("9" * 5_000, "ERROR: <input>:1:1: invalid int literal"),
        ("-" + "9" * 5_000, "ERROR: <input>:1:1: invalid int literal"),
        ("9" * 5_000 + "u", "ERROR: <input>:1:1: invalid uint literal"),
        ("0x" + "f" * 5_000, "ERROR: <input>:1:1: invalid int literal"),
        ("1e" + "9" * 5_000, "ERROR: <input>:1:1: invalid double literal"),
        ("0" * 5_000 + "7", ""),
        ("(" * 90_000, f"{TOO_DEEP}: 250"),
        ("[" * 90_000, f"{TOO_DEEP}: 250"),
        ("{" * 90_000, f"{TOO_DEEP}: 250"),
        ("true?1:" * 12_000 + "1", f"{TOO_DEEP}: 250"),
        ("1" + "+1" * 40_000, f"{TOO_DEEP}: 250"),
        ("self" + ".a" * 40_000, f"{TOO_DEEP}: 250"),
        ("!" * 90_000 + "true", ""),
        ("true" + "||true" * 2_000, ""),
        ("[1]" + ".map(x, {x: x})" * 40, TOO_DEEP),
        ("optional.of(1)" + ".optMap(x, {x: x})" * 40, TOO_DEEP),
        ("[1]" + ".map(x, [x, x])" * 200, TOO_DEEP),
        ("[1]" + ".map(x, [x, x])" * 100, ""),
        ("[" + ("[" * 50 + "]" * 50 + ",") * 50 + "]", ""),
        ("[" + "[]," * 2_000 + "]", ""),
        (
            "1" * 100_001,
            TOO_LONG,
        ),
    ],
    ids=[
        "a long integer", "a long negative integer", "a long unsigned integer",
        "a long hexadecimal", "a long exponent", "many leading zeros", "open parentheses",
        "open lists", "open maps", "conditionals", "sums", "fields", "negations", "alternatives",
        "types that double", "optional types that double", "types that nest",
        "types that nest within the limit", "deep lists", "many empty lists", "too long",
    ],
)  # fmt: skip
def test_a_hostile_expression_is_refused_with_a_short_message(expression, message):
    assert first_line(expression) == message


@pytest.mark.parametrize(
    ("text", "function", "wanted"),
    [("9" * 5_000, "int", "int"), ("9" * 5_000, "uint", "uint"), ("9" * 5_000, "double", "double")],
    ids=["int", "uint", "double"],
)
def test_a_string_of_many_digits_is_not_converted_to_a_number(text, function, wanted):
    """As in Go, where the parsers of numbers report a range error."""
    found = ENVIRONMENT.program(f"{function}(self)").evaluate({"self": text}, CostBudget())
    assert found.problem == f"type conversion error from 'string' to '{wanted}'"


@pytest.mark.parametrize("text", ["0" * 5_000 + "7", "-" + "0" * 5_000 + "7"])
def test_leading_zeros_are_ignored(text):
    found = ENVIRONMENT.program("int(self)").evaluate({"self": text}, CostBudget())
    assert abs(found.value) == 7


@pytest.mark.parametrize("text", ["inf", "-Infinity"])
def test_infinity_is_converted_to_a_double(text):
    found = ENVIRONMENT.program("string(double(self))").evaluate({"self": text}, CostBudget())
    assert found.value.lstrip("+-") == "Inf"


def test_an_expression_whose_type_grows_exponentially_is_refused():
    with pytest.raises(ExpressionError, match="expression recursion limit exceeded"):
        ENVIRONMENT.program("[1]" + ".map(x, {x: x})" * 40)
