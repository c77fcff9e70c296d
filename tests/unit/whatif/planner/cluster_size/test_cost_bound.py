"""cost_bound finds the optimum of the linear program that it relaxes the purchase of nodes to."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.whatif.planner.cluster_size.cost_bound import cost_bound

AMOUNTS = st.integers(0, 5)


def optimum(demand, capacities, prices):
    """Return the best y · demand over all vertices of the polytope of unit prices."""
    size = len(demand)
    rows = np.vstack([np.array(capacities, float), np.eye(size)])
    limits = np.concatenate([np.array(prices, float), np.zeros(size)])
    best = 0.0
    for chosen in combinations(range(len(rows)), size):
        system = rows[list(chosen)]
        if abs(np.linalg.det(system)) < 1e-9:
            continue
        y = np.linalg.solve(system, limits[list(chosen)])
        if (y >= -1e-9).all() and (rows[: len(prices)] @ y <= np.array(prices) + 1e-9).all():
            best = max(best, float(y @ np.array(demand)))
    return best


@given(data=st.data(), size=st.integers(1, 3), kinds=st.integers(1, 5))
def test_the_bound_is_the_best_vertex(data, size, kinds):
    demand = data.draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))
    capacities = data.draw(
        st.lists(
            st.lists(AMOUNTS, min_size=size, max_size=size), min_size=kinds, max_size=kinds
        ).filter(lambda rows: all(any(column) for column in zip(*rows, strict=True)))
    )
    prices = data.draw(st.lists(st.integers(0, 9), min_size=kinds, max_size=kinds))
    found = cost_bound(demand, capacities, prices)
    assert found.cost == pytest.approx(optimum(demand, capacities, prices), abs=1e-6)
    spent = np.array(capacities) @ np.array(found.unit_prices)
    assert (spent <= np.array(prices) + 1e-6).all()


def test_many_resources_and_kinds_are_solved():
    kinds = np.arange(400)[:, np.newaxis]
    capacities = (kinds * 7_919 + np.arange(60) * 104_729 + kinds**2) % 100.0
    prices = 1.0 + np.arange(400) * 31 % 50
    found = cost_bound([10.0] * 60, capacities.tolist(), prices.tolist())
    assert found.cost > 0
    assert (capacities @ np.array(found.unit_prices) <= prices + 1e-6).all()
    assert sum(found.shares) == pytest.approx(1)


@pytest.mark.parametrize(
    ("demand", "capacities", "prices"),
    [([5.0], [], []), ([0.0], [[4.0]], [1.0]), ([5.0], [[0.0]], [1.0])],
    ids=["no kind", "no demand", "no kind with the resource"],
)
def test_the_bound_is_0_if_nothing_can_be_proven(demand, capacities, prices):
    assert cost_bound(demand, capacities, prices).cost == 0


def test_a_resource_that_no_kind_has_does_not_lower_the_bound():
    assert cost_bound([8.0, 1.0], [[4.0, 0.0]], [1.0]).cost == pytest.approx(2)
