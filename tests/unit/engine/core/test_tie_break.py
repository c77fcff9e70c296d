"""TieBreak: random choices that can be reproduced by a seed."""

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
def test_splitmix64_gives_the_published_numbers(value, expected):
    """Other implementations can therefore reproduce a run."""
    assert splitmix64(value) == expected


def picks(seed, counts):
    tie_break = TieBreak(seed)
    return [tie_break.pick(count) for count in counts]


@given(st.integers(), st.lists(st.integers(1, 50), max_size=30))
def test_equal_seeds_give_equal_picks(seed, counts):
    """Every pick is one of the candidates."""
    found = picks(seed, counts)
    assert found == picks(seed, counts)
    assert all(0 <= pick < count for pick, count in zip(found, counts, strict=True))


@given(st.integers(), st.lists(st.integers(2, 9), max_size=20))
def test_a_single_candidate_uses_no_random_number(seed, counts):
    """Such a pick is not counted, and does not change later picks."""
    with_ones = [count for real in counts for count in (1, real, 1)]
    assert picks(seed, with_ones)[1::3] == picks(seed, counts)
    tie_break = TieBreak(seed)
    for count in with_ones:
        tie_break.pick(count)
    assert tie_break.choices == len(counts)


@given(st.integers(), st.lists(st.integers(0, 1 << 40), min_size=1, max_size=5))
def test_a_pick_depends_only_on_the_seed_and_the_number_of_earlier_picks(seed, starts):
    """Also if a hypothesis is reverted, which resets the number of picks."""
    tie_break = TieBreak(seed)
    state = splitmix64(seed % 2**64)
    for start in starts:
        tie_break.choices = start
        for number in range(start + 1, start + 300):
            assert tie_break.pick(1 << 64) == splitmix64(state + number)


def test_picks_differ_by_seed_and_are_uniform():
    """Consecutive seeds give unrelated picks, and no candidate is preferred."""
    runs = {tuple(picks(seed, [7] * 20)) for seed in range(100)}
    assert len(runs) == 100
    tally = Counter(picks(1, [5] * 5000))
    assert all(900 < tally[index] < 1100 for index in range(5))
