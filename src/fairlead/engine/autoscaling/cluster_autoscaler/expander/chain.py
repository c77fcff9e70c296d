"""choose: applies a chain of expander filters, then lets `pick` choose among the remaining options.

Upstream picks at random. The caller's `pick` is seeded, so that equal runs choose equally.

upstream: expander/factory/chain.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from fairlead.engine.autoscaling.cluster_autoscaler.expander.option import Filter, Option
from fairlead.engine.autoscaling.cluster_autoscaler.expander.size import (
    LEAST_NODES,
    LEAST_WASTE,
    MOST_PODS,
)

Pick = Callable[[int], int]
_BY_SIZE: Mapping[str, Filter] = {
    "least-waste": LEAST_WASTE,
    "most-pods": MOST_PODS,
    "least-nodes": LEAST_NODES,
}


class Choice(Struct, frozen=True):
    """The result of a chain of expanders.

    `options` are the options before filtering. `equals` are the options that passed all filters.
    `best` is the option that was chosen from `equals`, or None if no option passed.
    """

    options: tuple[Option, ...]
    equals: tuple[Option, ...]
    best: Option | None


def choose(
    names: Sequence[str], filters: Mapping[str, Filter], options: Sequence[Option], pick: Pick
) -> Choice:
    """Filter `options` by the expanders in `names` and choose one of the remaining options.

    `filters` contains the filters of the expanders `price` and `priority`, by name. `pick(n)`
    returns the index of one of n equal options. Expanders after `random` are ignored.
    """
    left = list(options)
    for name in names:
        if name == "random" or len(left) == 1:
            break
        chosen = filters.get(name) or _BY_SIZE[name]
        left = chosen.best_options(left)
        if not left:
            break
    best = left[pick(len(left))] if left else None
    return Choice(tuple(options), tuple(left), best)
