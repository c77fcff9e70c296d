"""Tracks the cost of a running evaluation in upstream's units, and ends the evaluation at a limit.

Reading a variable, selecting a field or calling a function on numbers costs one unit. Reading a
text costs a tenth of a unit for each character. Worked example, for `self.name == 'web-1'` where
the name has eleven characters:

    self              1   a variable
    .name             1   a field
    'web-1'           0   constants are free
    ==                1   the shorter text, 5 characters: ceil(5 * 0.1)
                      3

Upstream's units leave out some work. The cost of comparing two lists depends only on their lengths,
even if their items are lists. The cost of `text.replace("", other)` depends only on the length of
`text`, even if the result is much longer. `add_work` counts such work separately, in steps of about
50 nanoseconds. Therefore no expression within its budget can block the server.

upstream: cel-go's interpreter/runtimecost.go, apiserver/pkg/apis/cel/config.go
"""

from __future__ import annotations

from math import ceil
from typing import Any, Final

from fairlead.cel.error import CostLimitError
from fairlead.cel.value import work_of

# upstream: config.go: PerCallLimit, RuntimeCELCostBudget, RuntimeCELCostBudgetMatchConditions
CALL_COST_MAX: Final = 1_000_000
BUDGET: Final = 10_000_000
MATCH_CONDITIONS_BUDGET: Final = 2_500_000
WORK_MAX: Final = 10_000_000
TEXT_COST: Final = 0.1
PATTERN_COST: Final = 0.25
_CHARACTERS_A_STEP: Final = 16


class OutOfBudgetError(Exception):
    """Raised if an evaluation, or other work with a budget, needs more units than are left."""


class CostBudget:
    """The cost units that a request may still spend on CEL, or on work such as filling in defaults.

    Work needs a budget if its cost is a product of several sizes. The product can be huge although
    each size is within its own limit. Each kind of work defines what a unit is.
    """

    __slots__ = ("left",)

    def __init__(self, units: int = BUDGET) -> None:
        """Start with `units` to spend."""
        self.left = units

    def spend(self, units: int) -> None:
        """Spend `units`. Raises OutOfBudgetError if fewer units are left."""
        self.left -= units
        if self.left < 0:
            raise OutOfBudgetError


class CostTracker:
    """The cost of one evaluation in upstream's units, and the `work` that these units leave out.

    `charge` adds to `cost` and checks the limit. Loops, and expressions whose cost depends on the
    sizes of values, must call `charge`. Expressions with a fixed cost may add to `cost` directly.
    """

    __slots__ = ("cost", "limit", "work")

    def __init__(self, limit: int = CALL_COST_MAX) -> None:
        """Store `limit`, the largest allowed cost; `cost` and `work` are 0 at first."""
        self.cost, self.limit, self.work = 0, limit, 0

    def charge(self, units: int) -> None:
        """Add `units` to the cost. Raises CostLimitError if the cost exceeds the limit."""
        self.cost += units
        if self.cost > self.limit:
            raise CostLimitError

    def add_work(self, steps: int) -> None:
        """Add steps of work that upstream's units do not count.

        Raises CostLimitError if the work exceeds WORK_MAX steps.
        """
        self.work += steps
        if self.work > WORK_MAX:
            raise CostLimitError

    def add_work_within(self, value: Any, steps: int) -> None:
        """Add `steps` of work for each value in the list or map `value`, at all depths.

        Raises CostLimitError if the work exceeds WORK_MAX steps.
        """
        self.add_work(steps * work_of(value, WORK_MAX // steps))

    def write(self, characters: int) -> None:
        """Add the work of building a string of length `characters`. Raises CostLimitError."""
        self.add_work(characters // _CHARACTERS_A_STEP)


def size_of(value: Any) -> int:
    """Return the size of a value for cost computations; 1 for values without a size."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    return getattr(value, "size", 1)


def reading(value: Any, factor: float = TEXT_COST) -> int:
    """Return the cost of reading `value` once: its size (see `size_of`) times `factor`."""
    return ceil(size_of(value) * factor)
