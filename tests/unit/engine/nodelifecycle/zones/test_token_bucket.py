"""Token buckets give exactly the same results as upstream's rate limiter."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.core.instant import seconds
from fairlead.engine.nodelifecycle.period import Period
from fairlead.engine.nodelifecycle.zones.token_bucket import NeverLimiter, TokenBucket, as_float32

TICKS = Period(seconds(0.05), seconds(0.1))


def acceptances(bucket, until):
    """Return the ticks at which a caller that tries at every tick gets a token."""
    ticks = range(TICKS.first, until, TICKS.period)
    return [tick for tick in ticks if bucket.try_accept(tick)]


@pytest.mark.parametrize(
    ("rate", "gap_s"),
    [
        pytest.param(0.1, 10.0, id="float32(0.1) is a little more, so 10 s are enough"),
        pytest.param(0.01, 100.1, id="float32(0.01) is a little less, so 100 s are not"),
        pytest.param(1.0, 1.0, id="exact"),
        pytest.param(0.3, 3.4, id="the next tick after 3.33 s"),
        pytest.param(20.0, 0.1, id="faster than the ticks"),
    ],
)
def test_the_intervals_between_tokens(rate, gap_s):
    found = acceptances(TokenBucket(rate, 0), seconds(400))
    assert found[0] == TICKS.first
    assert {after - before for before, after in pairwise(found)} == {seconds(gap_s)}


def test_a_shortage_of_less_than_a_nanosecond_counts_as_none():
    """At this rate, a token is back after 3,333,333,200.9 ns: one instant earlier by rounding."""
    bucket = TokenBucket(0.3, 0)
    wait = int(seconds(1) / as_float32(0.3))
    assert wait * as_float32(0.3) < seconds(1)
    assert bucket.try_accept(0)
    assert not bucket.try_accept(wait - 1)
    assert bucket.try_accept(wait)


def test_a_bucket_never_holds_more_than_one_token():
    bucket = TokenBucket(0.1, 0)
    assert bucket.try_accept(seconds(1_000))
    assert not bucket.try_accept(seconds(1_000))


def test_refused_attempts_spend_no_tokens():
    polled, waited = TokenBucket(0.1, 0), TokenBucket(0.1, 0)
    polled.try_accept(0)
    waited.try_accept(0)
    for second in range(1, 10):
        assert not polled.try_accept(seconds(second))
    assert polled.try_accept(seconds(10)) is waited.try_accept(seconds(10)) is True


def test_a_rate_of_zero_gives_only_the_first_token():
    bucket = TokenBucket(0.0, 0)
    assert bucket.next_acceptance(TICKS, 0) == TICKS.first
    assert bucket.try_accept(5)
    assert not bucket.try_accept(seconds(10**6))
    assert bucket.next_acceptance(TICKS, 0) is None


def test_an_extremely_low_rate_gives_only_the_first_token():
    bucket = TokenBucket(1e-30, 0)
    assert bucket.try_accept(0)
    assert bucket.next_acceptance(TICKS, 0) is None


@given(st.floats(0.001, 30.0), st.lists(st.integers(0, 10**11), max_size=6), st.integers(0, 10**11))
def test_the_next_acceptance_is_the_first_tick_that_is_accepted(rate, instants, earliest):
    """This holds after any earlier attempts; the ticks before and after are checked, too."""
    bucket = TokenBucket(rate, 0)
    for instant in sorted(instants):
        bucket.try_accept(instant)
    earliest = max(earliest, *instants) if instants else earliest
    found = bucket.next_acceptance(TICKS, earliest)
    assert found is not None
    assert found >= earliest
    before = found - TICKS.period
    if before >= earliest:
        assert not bucket.try_accept(before)
    assert bucket.try_accept(found)


def test_a_stopped_limiter_never_accepts():
    never = NeverLimiter(1.0)
    assert never.rate == 1.0
    assert not never.try_accept(seconds(10**9))
    assert never.next_acceptance(TICKS, 0) is None


def test_rates_are_float32():
    assert TokenBucket(0.1, 0).rate == as_float32(0.1) == 0.10000000149011612
