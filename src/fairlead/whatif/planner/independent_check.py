"""independent_checks: checks that all start from the same state of a model, on all cores.

Planners ask the same question about thousands of nodes: can this node be drained alone? Each check
is a hypothesis: its changes and its random choices are reverted. So the result of a check does not
depend on earlier checks, on the number of cores, or on the process.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Final, TypeVar

from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.run.parallel.forked_call import can_fork, each_in_children, usable_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

_FORKED_MIN: Final = 16  # checks; with fewer, starting processes takes longer than they save


def independent_checks(
    model: ClusterModel,
    check: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    forked_min: int = _FORKED_MIN,
) -> Generator[Result, None, None]:
    """Yield `check(item)` for each of `items`, in order.

    `check` must leave `model` unchanged, and return a value that can be pickled. The checks are
    distributed to forked processes if possible. If there are fewer than `forked_min` checks, all
    checks run in this process. All checks also run in this process if a profile has plugins of the
    user, because such plugins may keep a state.
    """
    if (
        len(items) < forked_min
        or usable_cores() == 1
        or not model.repeats_decisions
        or not can_fork()
    ):
        yield from map(check, items)
        return
    with closing(each_in_children(check, items)) as results:
        yield from results
