"""NodeSets: sets of nodes whose loss is tested represent all sets, up to equal nodes."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb

import pytest
from tests.unit.whatif.planner.conftest import deployment

from fairlead.whatif.planner.cluster_size import node_set
from fairlead.whatif.planner.cluster_size.node_offer import node_offers
from fairlead.whatif.planner.cluster_size.node_set import sets_to_try


def pooled(planner, make, load):
    """Return nodes with these numbers of pods; all nodes have the same offered type."""
    names = [f"n{at}" for at in range(len(load))]
    places = [name for name, pods in zip(names, load, strict=True) for _ in range(pods)]
    made = planner(*map(make.node, names), *deployment(make, "web", places))
    infos = list(made.model.table.nodes())
    (offer,) = node_offers(made.model, infos, (), 0.0)
    return infos, dict.fromkeys(names, offer)


def test_few_sets_are_all_tried(planner, make):
    infos, offers = pooled(planner, make, [1, 1, 1, 1])
    found = sets_to_try(infos, offers, 2)
    assert set(map(frozenset, found.sets)) == set(
        map(frozenset, combinations([info.name for info in infos], 2))
    )
    assert (len(found.sets), found.covered, found.total) == (6, 6, 6)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("load", [[2, 1, 1, 1, 0, 0], [1] * 6, [3, 2, 2, 1, 1, 1, 0]])
def test_equal_nodes_represent_each_other(planner, make, monkeypatch, load, count):
    """For each set of nodes, a set with the same numbers of pods is tried."""
    monkeypatch.setattr(node_set, "SETS_MAX", comb(len(load), count) - 1)
    infos, offers = pooled(planner, make, load)
    found = sets_to_try(infos, offers, count)
    pods = dict(zip(offers, load, strict=True))
    tried = {tuple(sorted(pods[name] for name in names)) for names in found.sets}
    assert tried == {tuple(sorted(one)) for one in combinations(load, count)}
    assert len(found.sets) == len(tried)
    assert found.covered == found.total == comb(len(load), count)


def test_too_many_sets_are_counted_and_not_tried(planner, make, monkeypatch):
    monkeypatch.setattr(node_set, "SETS_MAX", 3)
    infos, offers = pooled(planner, make, [4, 3, 2, 1, 0])
    found = sets_to_try(infos, offers, 2)
    assert found.sets[0] == ("n0", "n1")
    assert found.covered == len(found.sets) < found.total == 10


def test_nodes_to_keep_are_not_interchangeable_with_other_nodes(planner, make, monkeypatch):
    monkeypatch.setattr(node_set, "SETS_MAX", 5)
    infos, offers = pooled(planner, make, [1, 1, 1, 1])
    del offers["n3"]
    found = sets_to_try(infos, offers, 2)
    sizes = Counter("n3" in names for names in found.sets)
    assert (sizes[True], sizes[False], found.covered) == (1, 1, 6)


def test_as_many_failures_as_nodes_lose_all_nodes(planner, make):
    infos, offers = pooled(planner, make, [1, 1])
    found = sets_to_try(infos, offers, 5)
    assert found.sets == (("n0", "n1"),)
    assert (found.covered, found.total) == (1, 1)
