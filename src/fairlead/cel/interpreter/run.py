"""The state of one evaluation: its variables and its cost.

A closure of the evaluator takes a `Run`. The compiler gives each loop variable a slot (`Scope`).
Therefore loop variables are not looked up by name at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairlead.cel.cost.runtime_cost import CALL_COST_MAX, CostTracker
from fairlead.cel.error import CelError


class Run(CostTracker):
    """The state of one evaluation."""

    __slots__ = ("known", "slots")

    def __init__(self, known: Mapping[str, Any], slots: int, limit: int = CALL_COST_MAX) -> None:
        """Start an evaluation of at most `limit` cost units.

        `known` maps the names of all variables except loop variables to their values. `slots` is
        the number of loop variables.
        """
        super().__init__(limit)
        self.known = known
        self.slots: list[Any] = [None] * slots


Evaluate = Callable[[Run], Any]


class Scope:
    """The loop variables in scope at a node of the syntax tree, and their slots."""

    __slots__ = ("_counter", "_names")

    def __init__(
        self, names: Mapping[str, int] | None = None, counter: list[int] | None = None
    ) -> None:
        """`names` maps loop variables to their slots.

        `counter` has one item: the number of slots in use. Nested scopes share `counter`.
        """
        self._names = dict(names or {})
        self._counter = counter if counter is not None else [0]

    @property
    def size(self) -> int:
        """The number of slots that the whole expression needs."""
        return self._counter[0]

    def slot(self, name: str) -> int | None:
        """Return the slot of the loop variable `name`; None if there is no such loop variable."""
        return self._names.get(name)

    def with_names(self, *names: str) -> Scope:
        """Return the scope inside a loop with the variables `names`; each has a new slot."""
        slots = range(self._counter[0], self._counter[0] + len(names))
        self._counter[0] += len(names)
        return Scope({**self._names, **dict(zip(names, slots, strict=True))}, self._counter)


def raised(problem: CelError) -> CelError:
    """Return a new CelError to raise; it has the message of `problem`, and no traceback."""
    return CelError(problem.message)
