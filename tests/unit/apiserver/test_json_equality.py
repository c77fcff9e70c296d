"""Equality of JSON values."""

from __future__ import annotations

from itertools import combinations

import pytest

from fairlead.apiserver.json_equality import canonical_key, json_equal


def test_the_order_of_members_is_ignored():
    assert canonical_key({"a": 1, "b": [{"c": 2, "d": 3}]}) == canonical_key(
        {"b": [{"d": 3, "c": 2}], "a": 1}
    )


def test_different_values_have_different_canonical_keys():
    values = ("1", 1, 1.5, True, None, [1], {"1": 1}, "", [], {}, "null", '"1"')
    assert all(canonical_key(one) != canonical_key(other) for one, other in combinations(values, 2))


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": [1]}, {"a": [True]}, False),
        ({"a": [1.0, True]}, {"a": [1, True]}, True),
        ({"a": [1.0, True]}, {"a": [1, 1]}, False),
        (0, False, False),
        ("1", 1, False),
        (None, False, False),
    ],
)
def test_json_equal_compares_values_and_ignores_the_order_of_members(one, other, alike):
    assert json_equal(one, other) is alike
