"""Texts of index intervals in the status and policies of a Job."""

from __future__ import annotations

import pytest

from fairlead.apiserver.validation.batch.index_interval import (
    IndexTextError,
    index_intervals,
    shared_index,
)

NINES = "9" * 5_000
NO_NUMBER = "cannot convert string to integer for index: "


@pytest.mark.parametrize(
    ("text", "intervals"),
    [
        ("", []),
        ("0", [(0, 0)]),
        ("1,3-5,7", [(1, 1), (3, 5), (7, 7)]),
        ("+1-02", [(1, 2)]),
    ],
)
def test_a_valid_text_is_parsed_to_intervals(text, intervals):
    assert index_intervals(text, 10) == intervals


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (",", f'{NO_NUMBER}""'),
        ("-1", f'{NO_NUMBER}""'),
        ("1_0", f'{NO_NUMBER}"1_0"'),
        (NINES, f'{NO_NUMBER}"{NINES}"'),
        (f"0-{NINES}", f'{NO_NUMBER}"{NINES}"'),
        ("10", 'too large index: "10"'),
        ("3-3", "non-increasing order, previous: 3, current: 3"),
        ("5,3-4", "non-increasing order, previous: 5, current: 3"),
        (
            "1-2-3",
            (
                'the fragment "1-2-3" violates the requirement that an index interval can have at '
                "most two parts separated by '-'"
            ),
        ),
    ],
)
def test_an_invalid_text_is_refused(text, problem):
    with pytest.raises(IndexTextError) as refused:
        index_intervals(text, 10)
    assert str(refused.value) == problem


@pytest.mark.parametrize(
    ("one", "other", "index"),
    [
        ("0-3,7", "4-6,8", None),
        ("0-3,7", "5-8", 7),
        ("2-9", "0,4", 4),
        ("x,2", "2", 2),
        (NINES, "2", None),
    ],
)
def test_the_first_index_in_both_texts_is_found(one, other, index):
    assert shared_index(one, other, 10) == index


def test_long_texts_are_compared_in_linear_time():
    even, odd = (",".join(map(str, range(start, 20_000, 2))) for start in (0, 1))
    assert shared_index(even, odd, 20_000) is None
