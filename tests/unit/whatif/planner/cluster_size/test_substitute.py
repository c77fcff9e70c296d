"""substitutes: the sets of new nodes that supply what pods require, the cheapest first."""

from __future__ import annotations

from itertools import combinations_with_replacement
from types import SimpleNamespace

import pytest

from fairlead.testing.random_cluster import Chance
from fairlead.whatif.planner.cluster_size.requirement import Requirement
from fairlead.whatif.planner.cluster_size.substitute import substitutes


def offer(node_type, price, zone=""):
    return SimpleNamespace(
        pool="", node_type=node_type, size="", price=price, zone=zone, title=f"{node_type} {zone}"
    )


def found(offers, required, limit):
    return list(substitutes(offers, required, limit))


def test_the_cheapest_substitute_comes_first():
    """Six cores: three small nodes, or a small and a large node."""
    offers = [offer("large", 0.9), offer("small", 0.4)]
    sets = found(offers, [Requirement("cpu", 6.0, (4.0, 2.0))], 1.5)
    assert sets == [((1,), (1,), (1,)), ((1,), (0,))]


def test_offers_in_several_zones_are_one_kind():
    """Two cores need one node, in either zone."""
    offers = [offer("small", 0.4, "z1"), offer("small", 0.4, "z2")]
    assert found(offers, [Requirement("cpu", 2.0, (2.0, 2.0))], 1.0) == [((0, 1),)]


def test_no_node_is_a_substitute_if_nothing_is_required():
    """The pods have room on the nodes that stay."""
    assert found([offer("small", 0.4)], [], 1.0) == [()]


def test_a_requirement_that_no_offer_supplies_has_no_substitute():
    """No node has a GPU."""
    assert found([offer("small", 0.4)], [Requirement("gpu", 1.0, (0.0,))], 9.0) == []


@pytest.mark.parametrize("seed", range(20))
def test_the_first_substitute_is_the_cheapest_of_all_sets(seed):
    """No set of up to six nodes that supplies the amounts is cheaper."""
    chance = Chance(seed)
    offers = [offer(str(at), chance.of((1.0, 1.3, 2.0, 2.7, 4.1))) for at in range(4)]
    amounts = (chance.of((3.0, 5.0, 8.0)), chance.of((4.0, 9.0, 13.0)))
    required = [
        Requirement("", amount, tuple(chance.of((1.0, 2.0, 3.0, 5.0)) for _ in offers))
        for amount in amounts
    ]
    prices = [
        sum(offers[at].price for at in some)
        for count in range(7)
        for some in combinations_with_replacement(range(4), count)
        if all(sum(one.supplies[at] for at in some) >= one.amount for one in required)
    ]
    first = found(offers, required, 99.0)[0]
    assert sum(offers[kind[0]].price for kind in first) <= min(prices) + 1e-9
