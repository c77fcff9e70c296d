"""How plugins of all tiers decide together which tasks may be evicted."""

from __future__ import annotations

import pytest

from fairlead.engine.batch.actions.eviction_search import vote
from fairlead.engine.batch.defect import FIXED, UPSTREAM, Defect

FIRST_WINS = Defect.TIER_FIRST_WINS
CARRY = Defect.TIER_CARRY


class Pod:
    def __init__(self, name):
        self.id = name


PODS = {name: Pod(name) for name in "abcd"}


def elect(tiers, defects):
    """Return the elected victims. The letters of a plugin are the victims that it votes for."""
    voters = [tuple(tier) for tier in tiers]
    named = vote(voters, lambda letters: [PODS[name] for name in letters], defects)
    return "".join(pod.id for pod in named)


@pytest.mark.parametrize(
    ("tiers", "upstream", "fixed"),
    [
        ([["abc", "bcd"]], "bc", "bc"),
        ([["ab"], ["b"]], "ab", "b"),
        ([[""], ["ab"]], "", ""),
        ([["ab", "cd"], ["ab"]], "", ""),
        ([[], ["ab"]], "ab", "ab"),
        ([[], []], "", ""),
        ([["cba"]], "cba", "cba"),
    ],
)
def test_the_victims_of_all_tiers_with_and_without_defects(tiers, upstream, fixed):
    assert (elect(tiers, UPSTREAM), elect(tiers, FIXED)) == (upstream, fixed)


def test_without_the_carry_an_empty_tier_does_not_limit_the_next_tier():
    assert elect([["ab", "cd"], ["ab"]], UPSTREAM.without([CARRY])) == "ab"


def test_without_the_first_winner_every_tier_has_a_veto():
    assert elect([["ab"], ["b"]], UPSTREAM.without([FIRST_WINS])) == "b"
