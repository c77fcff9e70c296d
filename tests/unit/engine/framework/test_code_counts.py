"""Cached counts and lists of status codes equal new ones after any changes."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.engine.core.status import SUCCESS, Code, unresolvable, unschedulable
from fairlead.engine.framework.code_counts import CodeCounts
from fairlead.testing.random_cluster import Chance

STATUSES = (SUCCESS, unschedulable("a"), unschedulable("b"), unresolvable("c"))
CODES = tuple(Code)


def array(codes):
    return np.array(codes, np.int32)


def asserts_equal(kept, rows, codes):
    """Assert that `kept` returns the same as new counts."""
    new = CodeCounts(STATUSES)
    assert kept.tally(rows, codes) == new.tally(rows, codes)
    for code in CODES:
        assert kept.rows_with(rows, codes, code).tolist() == [
            int(row)
            for row, number in zip(rows, codes, strict=True)
            if number > 0 and STATUSES[number].code is code
        ]


@pytest.mark.parametrize("seed", range(20))
def test_cached_counts_equal_new_counts(seed):
    """Given few or many changed codes, or other rows, then all results are up to date."""
    chance = Chance(seed)
    kept = CodeCounts(STATUSES)
    rows, codes = np.arange(40), array([0] * 40)
    for _ in range(40):
        match chance.below(8):
            case 0:
                rows = rows + 1
            case 1:
                rows = np.arange(chance.below(60))
                codes = array([chance.below(5) - 1 for _ in rows])
            case 2:
                codes = array([chance.below(5) - 1 for _ in rows])
            case _ if len(rows):
                codes = codes.copy()
                for _ in range(3):
                    codes[chance.below(len(codes))] = chance.below(5) - 1
        asserts_equal(kept, rows, codes)


def test_changes_are_found_in_codes_that_are_changed_in_place():
    """The plan changes its codes in place."""
    kept, rows, codes = CodeCounts(STATUSES), np.arange(3), array([1, 1, 2])
    assert kept.tally(rows, codes) == [(1, 2), (2, 1)]
    codes[0] = 3
    assert kept.tally(rows, codes) == [(1, 1), (2, 1), (3, 1)]


def test_a_list_is_the_same_array_while_its_rows_are_unchanged():
    """Other reasons of the same kind do not matter, nor does a change that was undone."""
    kept, rows, codes = CodeCounts(STATUSES), np.arange(3), array([1, 1, 3])
    first = kept.rows_with(rows, codes, Code.UNSCHEDULABLE)
    assert kept.rows_with(rows, array([1, 2, 3]), Code.UNSCHEDULABLE) is first
    assert kept.rows_with(rows, array([1, 0, 3]), Code.UNSCHEDULABLE).tolist() == [0]
    assert not first.flags.writeable
