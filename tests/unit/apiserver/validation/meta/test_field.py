"""Which items stand in a list already."""

from __future__ import annotations

from fairlead.apiserver.validation.meta.field import repeated_indexes


def test_items_are_told_apart_as_json_tells_them_apart():
    items = ["a", {"a": 1, "b": 2}, "b", "a", {"b": 2, "a": 1}, 1, True, "1", 1.5, None, None]
    assert repeated_indexes(items) == {3, 4, 10}
