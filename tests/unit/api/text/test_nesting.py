"""The limit of the nesting depth of values."""

from __future__ import annotations

import pytest

from fairlead.api.text.nesting import DEPTH_MAX, is_too_deep


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
