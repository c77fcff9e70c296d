"""Counts per topology domain: after changes of nodes, in copies for dry runs, and the minimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.state.label_column import ABSENT, Domains, LabelColumn
from fairlead.engine.state.pod_class import PodLocations
from fairlead.engine.state.pod_index.domain_counts import DomainCounts, NodeEpoch
from fairlead.testing.random_cluster import Chance


def counts_of(*pods):
    """Counts with that many pods in domain 0, 1, …; each domain is one row."""
    size = len(pods)
    counts = DomainCounts(NodeEpoch(), lambda: Domains(np.arange(size), size))
    where = PodLocations()
    counts.attach(where, 1)
    for row, count in enumerate(pods):
        for _ in range(count):
            where.add(row, 0)
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
    where.add(1, 0)
    assert live.sums.tolist() == [1, 10, 0]
    assert copy.by_domain().tolist() == [1, 0, 0]
    where.remove(1)
    assert live.sums.tolist() == [1, 0, 0]
    live.validate()


ROWS, WEIGHTS = 40, (1, 1, -3)  # more rows than change their domain at once without a recount


def relabel(chance, column, epoch):
    """Change the label of one node or of all nodes, or add nodes."""
    if chance.one_in(12):
        column.grow(len(column.ids) + 3)
    rows = len(column.ids)
    for row in range(rows) if chance.one_in(6) else [chance.below(rows)]:
        column.set(row, {"zone": chance.of("abcdefgh")} if chance.below(4) else {})
    epoch.advance()


@pytest.mark.parametrize("seed", range(4))
def test_the_sums_equal_those_of_new_counts(seed):
    """After random changes of pods, of nodes and of the attached sources."""
    chance, column, epoch = Chance(seed), LabelColumn("zone", ROWS), NodeEpoch()
    kept, sources, changed = DomainCounts(epoch, column.domains), [], []
    seen = kept.refresh().log_position()
    signs = kept.sums > 0
    for _ in range(400):
        if len(sources) < len(WEIGHTS) and chance.one_in(40):
            sources.append(PodLocations())
            kept.attach(sources[-1], WEIGHTS[len(sources) - 1])
        for _ in range(chance.below(4)):
            if chance.one_in(3):
                relabel(chance, column, epoch)
            elif sources:
                where = chance.of(sources)
                if where.rows and chance.one_in(3):
                    where.remove(chance.of(sorted(where.rows)))
                else:
                    where.add(chance.below(len(column.ids)), 0)
        if chance.one_in(2):
            continue  # pods and nodes change before the next refresh
        new = DomainCounts(NodeEpoch(), column.domains)
        for where, weight in zip(sources, WEIGHTS, strict=False):
            new.attach(where, weight)
        assert kept.refresh().sums.tolist() == new.refresh().sums.tolist()
        assert kept.pods == new.pods
        changed, before = kept.sign_changes_since(seen), signs
        seen, signs = kept.log_position(), kept.sums > 0
        if changed is not None:
            before = np.append(before, np.zeros(len(signs) - len(before), np.bool_))
            assert set(np.flatnonzero(before != signs).tolist()) <= set(changed)
        new.detach()
    assert ABSENT not in (changed or ())
