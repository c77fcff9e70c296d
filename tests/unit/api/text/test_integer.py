"""Integers with any number of digits, parsed as in Go."""

from __future__ import annotations

import pytest

from fairlead.api.text.integer import capped_integer, parse_int64


@pytest.mark.parametrize(
    ("digits", "number"),
    [("", 0), ("000", 0), ("7", 7), ("00099", 99), ("100", 100), ("101", 100), ("9" * 9_999, 100)],
)
def test_a_number_is_limited_to_the_cap(digits, number):
    assert capped_integer(digits, 100) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("+07", 7),
        ("1_000", None),
        (" 1", None),
        ("٣", None),
        ("0" * 4_001, None),
    ],
)
def test_a_number_outside_64_bits_is_not_parsed(text, number):
    assert parse_int64(text) == number
