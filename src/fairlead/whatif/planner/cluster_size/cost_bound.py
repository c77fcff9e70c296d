"""CostBound: a price below which no set of nodes can hold the pods, whatever the placement is.

The problem is relaxed: pods may be cut into pieces, and nodes may be bought in fractions. The
relaxed problem is a linear program, and by duality every vector of unit prices y >= 0 with

    y · capacity(k) <= price(k)        for every kind of node k

proves that the cost is at least y · demand. The simplex method finds the best y.

Example: demand 10 cores and 40 GiB; one kind of node with 4 cores and 16 GiB for 1.00. The vector
y = (0.25, 0) is feasible and proves a cost of 2.50; 3 nodes cost 3.00.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Floats = npt.NDArray[np.float64]

_TOLERANCE: Final = 1e-9
_PIVOTS_MAX: Final = 10_000


class CostBound(Struct, frozen=True):
    """The proven minimum `cost` of any set of nodes.

    `unit_prices` is the vector y in the module's docstring, by resource; `shares` is the fraction
    of `cost` that each resource causes.
    """

    cost: float
    unit_prices: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()


def cost_bound(
    demand: Sequence[float], capacities: Sequence[Sequence[float]], prices: Sequence[float]
) -> CostBound:
    """Return a lower bound on the cost of nodes that hold `demand`.

    `demand[r]` is the amount of resource r; a node of kind k costs `prices[k]` and has
    `capacities[k][r]`. If there is no demand or no kind of node, the bound is 0.
    """
    wanted = np.array(demand, np.float64)
    capacity = np.maximum(np.array(capacities, np.float64).reshape(len(prices), len(demand)), 0)
    # A resource that no kind of node has is left out: no number of nodes can meet its demand.
    used = np.flatnonzero((wanted > 0) & (capacity > 0).any(axis=0))
    units, shares = [0.0] * len(demand), [0.0] * len(demand)
    if not len(used):
        return CostBound(0.0, tuple(units), tuple(shares))
    # Scaled to a demand of 1 in each resource, so that the coefficients have similar sizes.
    matrix = capacity[:, used] / wanted[used]
    kinds = np.unique(np.column_stack([matrix, prices]), axis=0)
    best = _largest_sum(kinds[:, :-1], kinds[:, -1])
    total = float(best.sum())
    for at, column in enumerate(used.tolist()):
        units[column] = float(best[at]) / demand[column]
        shares[column] = float(best[at]) / total if total else 0.0
    return CostBound(total * (1 - _TOLERANCE), tuple(units), tuple(shares))


def _largest_sum(matrix: Floats, limit: Floats) -> Floats:
    """Return the y >= 0 with the largest sum for which `matrix` @ y <= `limit`.

    `limit` must not be negative, and each column of `matrix` must have a positive coefficient.
    """
    # The simplex method. Each row of the tableau expresses one basic variable by the others.
    # Initially, row i says  slack_i = limit_i - matrix_i @ y,  and y = 0 is a vertex. Each pivot
    # moves to a neighbouring vertex with a larger sum. The last row has the gain of each nonbasic
    # variable. Bland's rule (the variable with the lowest number) excludes cycles.
    rows, columns = matrix.shape
    tableau = np.block([[matrix, limit[:, None]], [np.ones((1, columns)), np.zeros((1, 1))]])
    nonbasic, basic = np.arange(columns), np.arange(columns, columns + rows)
    for _ in range(_PIVOTS_MAX):  # every vertex on the way is a valid bound
        gains = np.flatnonzero(tableau[-1, :-1] > _TOLERANCE)
        if not gains.size:
            break
        enters = gains[np.argmin(nonbasic[gains])]
        bounding = np.flatnonzero(tableau[:-1, enters] > _TOLERANCE)
        if not bounding.size:
            break  # only rounding errors lead here
        reach = tableau[bounding, -1] / tableau[bounding, enters]
        tight = bounding[reach <= reach.min() + _TOLERANCE]
        leaves = tight[np.argmin(basic[tight])]
        _pivot(tableau, leaves, enters)
        nonbasic[enters], basic[leaves] = basic[leaves], nonbasic[enters]
    found = np.zeros(columns)
    is_unit = basic < columns
    found[basic[is_unit]] = np.maximum(tableau[:-1, -1][is_unit], 0)
    # Rounding errors may exceed a limit. Dividing all values by the worst excess corrects this.
    spent = matrix @ found
    over = np.divide(spent, limit, out=np.ones_like(spent), where=limit > 0).max(initial=1.0)
    found[(matrix[limit <= 0] > 0).any(axis=0)] = 0.0
    scaled: Floats = found / over
    return scaled


def _pivot(tableau: Floats, row: int, column: int) -> None:
    """Exchange the basic variable of `row` and the nonbasic variable of `column`."""
    pivot = tableau[row, column]
    tableau[row] /= pivot
    factors = tableau[:, column].copy()
    factors[row] = 0.0
    tableau -= np.outer(factors, tableau[row])
    tableau[:, column] = -factors / pivot
    tableau[row, column] = 1 / pivot
