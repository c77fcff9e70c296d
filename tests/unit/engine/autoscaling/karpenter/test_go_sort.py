"""Go's sort is deterministic, but stable only for short lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.autoscaling.karpenter.go_sort import go_resorted, go_sorted

KEYS = st.lists(st.integers(0, 9), max_size=200)


@given(KEYS)
def test_the_result_is_sorted_and_a_permutation(keys: list[int]) -> None:
    """This holds for any number of equal elements."""
    found = go_sorted(list(range(len(keys))), keys)
    assert [keys[i] for i in found] == sorted(keys)
    assert sorted(found) == list(range(len(keys)))


@given(st.lists(st.integers(0, 3), max_size=12))
def test_up_to_twelve_elements_stay_in_order(keys: list[int]) -> None:
    """Short lists are sorted by insertion."""
    assert go_sorted(list(range(len(keys))), keys) == sorted(range(len(keys)), key=keys.__getitem__)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=300), st.data())
def test_resorting_after_one_change_equals_a_full_sort(
    keys: list[int], data: st.DataObject
) -> None:
    """The shortcut for a list with one element out of place gives the same order."""
    keys.sort()
    keys[data.draw(st.integers(0, len(keys) - 1))] += 1
    elements = list(range(len(keys)))
    assert go_resorted(elements, keys) == go_sorted(elements, keys)


def test_equal_elements_of_long_lists_are_reordered() -> None:
    """Lists of thirteen elements are partitioned, so the sort is not stable."""
    keys = [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    assert go_sorted(list(range(16)), keys) != sorted(range(16), key=keys.__getitem__)
