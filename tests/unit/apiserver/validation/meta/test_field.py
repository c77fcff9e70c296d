"""Detection of duplicate items in a list."""

from __future__ import annotations

from fairlead.apiserver.validation.meta.field import repeated_indexes


def test_duplicate_items_are_found_by_json_equality():
    items = ["a", {"a": 1, "b": 2}, "b", "a", {"b": 2, "a": 1}, 1, True, "1", 1.5, None, None]
    assert repeated_indexes(items) == {3, 4, 10}
