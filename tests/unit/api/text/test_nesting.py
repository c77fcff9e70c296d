"""The limit of the nesting depth of values."""

from __future__ import annotations

import json

import pytest

from fairlead.api.text.nesting import DEPTH_MAX, is_text_too_deep, is_too_deep


def nested(depth, of_lists):
    value = 1
    for _ in range(depth):
        value = [value] if of_lists else {"a": value}
    return value


@pytest.mark.parametrize("of_lists", [True, False])
def test_the_maximum_depth_is_allowed_and_one_more_level_is_not(of_lists):
    assert not is_too_deep(nested(DEPTH_MAX, of_lists))
    assert is_too_deep(nested(DEPTH_MAX + 1, of_lists))


@pytest.mark.parametrize("value", [None, 1, "[[[", [], {}])
def test_scalars_and_empty_values_are_not_too_deep(value):
    assert not is_too_deep(value)


@pytest.mark.parametrize(
    "inner",
    ["", "[[[", "]" * 500, [{"a": []}] * 500],
    ids=["shallow", "open brackets", "closed brackets", "many values"],
)
def test_the_depth_of_a_text_is_that_of_its_value(inner):
    """Brackets in strings do not count."""
    for depth in (2, DEPTH_MAX // 2, DEPTH_MAX - 3, DEPTH_MAX + 1, 2 * DEPTH_MAX):
        for value in (nested(depth, of_lists=True), nested(depth, of_lists=False)):
            both = [value, inner] if depth > DEPTH_MAX else {"a": inner, "b": value}
            assert is_text_too_deep(json.dumps(both).encode()) is is_too_deep(both)
    mixed = nested(DEPTH_MAX // 2, of_lists=True)
    for _ in range(DEPTH_MAX):
        mixed = [{"a": mixed}]
    assert is_text_too_deep(json.dumps(mixed).encode())
