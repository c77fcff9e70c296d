"""Regular expressions of users: results as of Python's `re`, in linear time."""

from __future__ import annotations

import pytest

from fairlead.api.text.pattern import compiled_pattern


@pytest.mark.parametrize(
    ("expression", "text", "found"),
    [("a+", "baac", "aa"), (r"^\d{2}$", "12", "12"), (r"^\d{2}$", "123", None), ("é", "café", "é")],
)
def test_matches_equal_those_of_re(expression, text, found) -> None:
    matched = compiled_pattern(expression).search(text)
    assert (matched and matched[0]) == found


def test_a_hostile_pattern_is_matched_quickly() -> None:
    """Python's own `re` would take practically forever."""
    assert compiled_pattern("(a+)+$").search("a" * 5_000 + "!") is None


@pytest.mark.parametrize("expression", ["(", "a{2,1}", r"(?=look)", r"(.)\1"])
def test_invalid_and_unsupported_patterns_are_refused(expression) -> None:
    """This includes what RE2 does not support: lookahead and back references."""
    with pytest.raises(ValueError, match=r"\w"):
        compiled_pattern(expression)
