"""CostBound: a price below which no set of nodes can hold the pods, whatever the placement is.

The problem is relaxed: pods may be cut into pieces, and nodes may be bought in fractions. The
relaxed problem is a linear program, and by duality every vector of unit prices y >= 0 with

    y · capacity(k) <= price(k)        for every kind of node k

proves that the cost is at least y · demand. These vectors form a polytope, and the best y is one of
its vertices. There are few resources, so the vertices can be enumerated.

Example: demand 10 cores and 40 GiB; one kind of node with 4 cores and 16 GiB for 1.00. The vector
y = (0.25, 0) is feasible and proves a cost of 2.50; 3 nodes cost 3.00.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Floats = npt.NDArray[np.float64]

# Vertices are computed from at most this many kinds; feasibility is checked against all kinds.
_KINDS_MAX: Final = 40
_TOLERANCE: Final = 1e-9


class CostBound(Struct, frozen=True):
    """The proven minimum `cost` of any set of nodes.

    `unit_prices` are the y of the module's docstring, by resource; `shares` is the fraction of
    `cost` that each resource causes.
    """

    cost: float
    unit_prices: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()


def cost_bound(
    demand: Sequence[float], capacities: Sequence[Sequence[float]], prices: Sequence[float]
) -> CostBound:
    """Return a lower bound on the cost of nodes that hold `demand`.

    `demand[r]` is the amount of resource r; a node of kind k costs `prices[k]` and has
    `capacities[k][r]`. Without demand or without kinds, the bound is 0.
    """
    wanted = np.array(demand, np.float64)
    used = np.flatnonzero(wanted > 0)
    if not len(used) or not len(prices):
        return CostBound(0.0, (0.0,) * len(demand), (0.0,) * len(demand))
    # Scaled to a demand of 1 in each resource, so that the coefficients have similar sizes.
    matrix = np.maximum(np.array(capacities, np.float64)[:, used], 0) / wanted[used]
    kinds = np.unique(np.column_stack([matrix, prices]), axis=0)
    matrix, limit = kinds[:, :-1], kinds[:, -1]
    best = np.zeros(len(used))
    for vertices in _vertices(matrix, limit):
        usable = (vertices >= -_TOLERANCE).all(axis=1) & (
            vertices @ matrix.T <= limit + _TOLERANCE * (1 + limit)
        ).all(axis=1)
        for one in np.maximum(vertices[usable], 0):
            if one.sum() > best.sum():
                best = one
    units, shares = [0.0] * len(demand), [0.0] * len(demand)
    total = float(best.sum())
    for at, column in enumerate(used.tolist()):
        units[column] = float(best[at]) / demand[column]
        shares[column] = float(best[at]) / total if total else 0.0
    return CostBound(total * (1 - _TOLERANCE), tuple(units), tuple(shares))


def _vertices(matrix: Floats, limit: Floats) -> list[Floats]:
    """Return candidates for the best vertex; the caller checks whether they are feasible.

    The first array has the points at which d constraints hold with equality; d is the number of
    resources. The second array has the farthest feasible point on each axis.
    """
    size = matrix.shape[1]
    # Kinds with the most capacity for their price come first; other kinds are rarely tight.
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(limit > 0, matrix.max(axis=1) / limit, np.inf)
    kinds = np.argsort(-value, kind="stable")[:_KINDS_MAX]
    rows = np.vstack([matrix[kinds], np.eye(size)])
    sides = np.concatenate([limit[kinds], np.zeros(size)])
    chosen = np.array(list(combinations(range(len(rows)), size)))
    systems, right = rows[chosen], sides[chosen]
    solvable = np.abs(np.linalg.det(systems)) > 1e-12
    solved = np.linalg.solve(systems[solvable], right[solvable][..., None])[..., 0]
    # Computed from all kinds, not only from those in `kinds`, so that the points are feasible.
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(matrix > 0, limit[:, None] / matrix, np.inf).min(axis=0)
    axes = np.diag(np.where(np.isfinite(reach), reach, 0.0))
    return [solved, axes]
