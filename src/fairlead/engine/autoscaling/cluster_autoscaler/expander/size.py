"""Expanders that compare the sizes of options: least-waste, most-pods, least-nodes.

upstream: expander/{waste/waste,mostpods/mostpods,leastnodes/leastnodes}.go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan

from fairlead.api.quantity import milli_value, whole_value
from fairlead.engine.autoscaling.cluster_autoscaler.expander.option import Option
from fairlead.engine.state.resource_columns import CPU, MEMORY


class Lowest:
    """Keeps the options with the lowest cost."""

    def __init__(self, cost: Callable[[Option], float]) -> None:
        """Create a filter that compares options by `cost`."""
        self._cost = cost

    def best_options(self, options: Sequence[Option]) -> list[Option]:
        """Return all options with the lowest cost.

        If the cost of the first option is NaN, return only this option, as upstream does.
        """
        best: list[Option] = []
        lowest = nan
        for option in options:
            cost = self._cost(option)
            if not best or cost < lowest:
                lowest, best = cost, [option]
            elif cost == lowest:
                best.append(option)
        return best


def wasted_share(option: Option) -> float:
    """Return the unused share of the new nodes' cpu plus the unused share of their memory."""
    capacity = option.template.node.status.capacity
    cpu, memory = milli_value(capacity.get("cpu", 0)), whole_value(capacity.get("memory", 0))
    total_cpu, total_memory = cpu * option.nodes, memory * option.nodes
    used_cpu = used_memory = 0
    for pod in option.pods:
        wanted = dict(pod.shape.requests)
        used_cpu += wanted.get(CPU, 0)
        used_memory += wanted.get(MEMORY, 0)
    return _share(total_cpu - used_cpu, total_cpu) + _share(
        total_memory - used_memory, total_memory
    )


def _share(part: int, total: int) -> float:
    if total:
        return part / total
    return float("-inf") if part < 0 else float("nan") if part == 0 else float("inf")


LEAST_WASTE = Lowest(wasted_share)
MOST_PODS = Lowest(lambda option: -len(option.pods))
LEAST_NODES = Lowest(lambda option: option.nodes)
