"""Counts per topology domain: independent copies for dry runs, and the minimum."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.state.label_column import Domains
from fairlead.engine.state.pod_class import PodLocations
from fairlead.engine.state.pod_index.domain_counts import DomainCounts, NodeEpoch


def counts_of(*pods):
    """Counts with that many pods in domain 0, 1, …; each domain is one row."""
    size = len(pods)
    counts = DomainCounts(NodeEpoch(), lambda: Domains(np.arange(size), size))
    where = PodLocations()
    counts.attach(where, 1)
    for row, count in enumerate(pods):
        for _ in range(count):
            where.add(row)
    return counts.refresh()


moves = st.lists(st.tuples(st.integers(0, 11), st.integers(-2, 2)), max_size=14)


@given(
    pods=st.lists(st.integers(0, 5), min_size=12, max_size=12),
    present=st.lists(st.integers(0, 11), min_size=1, unique=True),
    moved=moves,
)
def test_the_minimum_is_that_of_the_changed_counts(pods, present, moved):
    """For any number of changed domains; other domains are not read."""
    domains = np.array(sorted(present), np.int64)
    hypothetical = counts_of(*pods).hypothetical().hypothetical()
    expected = list(pods)
    for domain, by in moved:
        if domain in present:
            hypothetical.change(domain, by)
            expected[domain] += by
        assert hypothetical.lowest(domains) == min(expected[d] for d in present)
    assert hypothetical.by_domain().tolist() == [*expected, 0]
    assert [hypothetical.of(d) for d in range(12)] == expected
    assert hypothetical.total() == sum(expected)


@given(pods=st.lists(st.integers(0, 3), min_size=1, max_size=4), moved=moves)
def test_a_copy_and_its_clones_are_independent(pods, moved):
    """The live counts are independent of them, too."""
    live = counts_of(*pods)
    first = live.hypothetical()
    second = first.hypothetical()
    for domain, by in moved:
        second.change(domain % len(pods), by)
    third = second.hypothetical()
    for domain, by in reversed(moved):
        third.change(domain % len(pods), -by)
    assert third.changes == {}
    assert (
        first.by_domain().tolist() == third.by_domain().tolist() == live.sums.tolist() == [*pods, 0]
    )


def test_a_copy_does_not_follow_the_live_counts():
    """It has the counts of the time of its creation."""
    live = counts_of(1, 0)
    where = PodLocations()
    live.attach(where, 10)
    copy = live.hypothetical()
    where.add(1)
    assert live.sums.tolist() == [1, 10, 0]
    assert copy.by_domain().tolist() == [1, 0, 0]
    where.remove(1)
    assert live.sums.tolist() == [1, 0, 0]
    live.validate()
