"""TieBreak: chance that can be repeated."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.core.tie_break import TieBreak, splitmix64


@pytest.mark.parametrize(
    ("value", "expected"),
    # The first outputs of SplittableRandom's reference generator seeded with 0: its state after
    # n steps is n times the golden gamma.
    [
        (0, 0xE220A8397B1DCDAF),
        (0x9E3779B97F4A7C15, 0x6E789E6AA1B965F4),
        (2 * 0x9E3779B97F4A7C15 % 2**64, 0x06C45D188009454F),
    ],
)
def test_splitmix64_is_the_published_one(value, expected):
    """So that another implementation can repeat a run."""
    assert splitmix64(value) == expected


def picks(seed, counts):
    tie_break = TieBreak(seed)
    return [tie_break.pick(count) for count in counts]


@given(st.integers(), st.lists(st.integers(1, 50), max_size=30))
def test_equal_seeds_pick_equally(seed, counts):
    """And every pick is one of the equals."""
    found = picks(seed, counts)
    assert found == picks(seed, counts)
    assert all(0 <= pick < count for pick, count in zip(found, counts, strict=True))


@given(st.integers(), st.lists(st.integers(2, 9), max_size=20))
def test_a_choice_of_one_is_no_choice(seed, counts):
    """It neither counts nor changes what is picked later."""
    with_ones = [count for real in counts for count in (1, real, 1)]
    assert picks(seed, with_ones)[1::3] == picks(seed, counts)
    tie_break = TieBreak(seed)
    for count in with_ones:
        tie_break.pick(count)
    assert tie_break.choices == len(counts)


def test_seeds_differ_and_picks_are_spread():
    """Neighbouring seeds have nothing in common, and no equal is preferred."""
    runs = {tuple(picks(seed, [7] * 20)) for seed in range(100)}
    assert len(runs) == 100
    tally = Counter(picks(1, [5] * 5000))
    assert all(900 < tally[index] < 1100 for index in range(5))
