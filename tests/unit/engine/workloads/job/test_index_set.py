"""Sets of indexes that are too large to enumerate."""

from __future__ import annotations

from fairlead.engine.workloads.job.index_set import INDEXES_MAX, parse_index_set, parse_indexes


def test_a_large_set_is_not_enumerated():
    found = parse_index_set("0-1999999999,2000000002", 2**31 - 1)
    assert len(found) == 2_000_000_001
    assert [index in found for index in (0, 1999999999, 2000000000, 2000000002)] == [
        True,
        True,
        False,
        True,
    ]
    assert -1 not in found


def test_invalid_intervals_are_left_out():
    found = parse_index_set(f"1,{'9' * 5_000},x,4-3,5-6,2,7-99", 9)
    assert found.intervals == ((1, 1), (5, 6), (7, 8))
    assert parse_index_set("", 9).intervals == ()


def test_the_number_of_indexes_is_limited():
    assert len(parse_indexes("0-2000000000", 2**31 - 1)) == INDEXES_MAX
