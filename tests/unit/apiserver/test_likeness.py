"""Values are alike where they are equal."""

from __future__ import annotations

from itertools import combinations

from fairlead.apiserver.likeness import likeness


def test_members_have_no_order():
    assert likeness({"a": 1, "b": [{"c": 2, "d": 3}]}) == likeness(
        {"b": [{"d": 3, "c": 2}], "a": 1}
    )


def test_values_that_differ():
    values = ("1", 1, 1.5, True, None, [1], {"1": 1}, "", [], {}, "null", '"1"')
    assert all(likeness(one) != likeness(other) for one, other in combinations(values, 2))
