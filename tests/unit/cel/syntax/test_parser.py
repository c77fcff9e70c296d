"""Syntax errors of CEL expressions, as reported by upstream's parser."""

from __future__ import annotations

import pytest

from fairlead.cel.error import ExpressionError
from fairlead.cel.syntax.parser import parsed

OPERAND = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, "
    "STRING, BYTES, IDENTIFIER}"
)


def problems(text):
    """Return the messages of problems, without their source excerpts."""
    with pytest.raises(ExpressionError) as caught:
        parsed(text)
    lines = [line for line in str(caught.value).split("\n") if line.startswith("ERROR: <input>:")]
    return [line.removeprefix("ERROR: <input>:").replace(OPERAND, "OPERAND") for line in lines]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 2", ["1:3: Syntax error: extraneous input '2' expecting <EOF>"]),
        ("1 2 3", ["1:3: Syntax error: mismatched input '2' expecting <EOF>"]),
        ("(1 2)", ["1:4: Syntax error: extraneous input '2' expecting ')'"]),
        ("(1", ["1:3: Syntax error: missing ')' at '<EOF>'"]),
        ("[1 2]", ["1:4: Syntax error: extraneous input '2' expecting {']', ','}"]),
        ("[1,,2]", ["1:4: Syntax error: mismatched input ',' expecting ']'"]),
        ("[1", ["1:3: Syntax error: mismatched input '<EOF>' expecting {']', ','}"]),
        ("{1 2}", ["1:4: Syntax error: missing ':' at '2'"]),
        ("{1:2", ["1:5: Syntax error: mismatched input '<EOF>' expecting {'}', ','}"]),
        ("a ? b", ["1:6: Syntax error: mismatched input '<EOF>' expecting ':'"]),
        ("a ? b :", ["1:8: Syntax error: mismatched input '<EOF>' expecting OPERAND"]),
        (
            "a.?",
            ["1:4: Syntax error: mismatched input '<EOF>' expecting {IDENTIFIER, ESC_IDENTIFIER}"],
        ),
        ("a..b", ["1:3: Syntax error: no viable alternative at input '..'"]),
        ("a.'b'", ["1:3: Syntax error: no viable alternative at input '.'b''"]),
        ("-!a", ["1:2: Syntax error: no viable alternative at input '-!'"]),
        ("1 + * 2", ["1:5: Syntax error: extraneous input '*' expecting OPERAND"]),
        (")", ["1:1: Syntax error: mismatched input ')' expecting OPERAND"]),
        ("()", ["1:2: Syntax error: mismatched input ')' expecting OPERAND"]),
        ("f(1,)", ["1:5: Syntax error: mismatched input ')' expecting OPERAND"]),
        (
            "1 + +",
            [
                "1:5: Syntax error: mismatched input '+' expecting OPERAND",
                "1:6: Syntax error: mismatched input '<EOF>' expecting OPERAND",
            ],
        ),
        (
            "*@a | b",
            [
                "1:1: Syntax error: extraneous input '*' expecting OPERAND",
                "1:2: Syntax error: token recognition error at: '@'",
                "1:5: Syntax error: token recognition error at: '| '",
                "1:7: Syntax error: extraneous input 'b' expecting <EOF>",
            ],
        ),
        ("for", ["1:1: reserved identifier: for"]),
        ("18446744073709551616u", ["1:1: invalid uint literal"]),
        ("-9223372036854775809", ["1:1: invalid int literal"]),
        ("has(a)", ["1:5: invalid argument to has() macro"]),
        ("[1].map(a.b, c)", ["1:10: argument must be a simple name"]),
        ("cel.bind(a.b, 1, 2)", ["1:11: argument must be a simple name"]),
        ("", ["1:1: Syntax error: mismatched input '<EOF>' expecting OPERAND"]),
        ("a\n+\n", ["3:1: Syntax error: mismatched input '<EOF>' expecting OPERAND"]),
    ],
)  # fmt: skip
def test_an_invalid_expression_has_upstreams_errors(text, expected):
    assert problems(text) == expected


@pytest.mark.parametrize(
    "text",
    ["[1,]", "{1: 2,}", "[,]", "--1", "!-1", "1 // c", "a.for", "a.`b-c`", "A.b{c: 1}", "[?a]"],
)
def test_a_valid_expression_is_parsed(text):
    parsed(text)
