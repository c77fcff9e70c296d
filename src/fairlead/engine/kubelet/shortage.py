"""Shortage: the eviction thresholds that a node has crossed by the usage of pods and system."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from fairlead.api.objects import Node, Pod
from fairlead.api.quantity import QuantityError, whole_value
from fairlead.engine.kubelet.eviction_config import RESOURCE_OF, Signal, Threshold
from fairlead.engine.kubelet.usage import usage_of


@dataclass(frozen=True, slots=True)
class Shortage:
    """A threshold that is crossed: `available` is less than `threshold` (whole units)."""

    signal: Signal
    threshold: int
    available: int

    @property
    def resource(self) -> str:
        """The resource that is short."""
        return RESOURCE_OF[self.signal]


def shortages(
    thresholds: Iterable[Threshold], node: Node, users: Collection[Pod], were: Collection[Threshold]
) -> dict[Threshold, Shortage]:
    """The thresholds that are crossed on `node` with those `users`.

    One of `were`, which were crossed before, stays so until as much more was reclaimed as it asks.
    What the node does not say it has is never short.
    """
    found: dict[Threshold, Shortage] = {}
    for threshold in thresholds:
        capacity = _capacity(node, threshold.signal)
        if capacity is None:
            continue
        resource = RESOURCE_OF[threshold.signal]
        used = usage_of(node).get(resource, 0)
        used += sum(usage_of(pod).get(resource, 0) for pod in users)
        available, value = capacity - used, threshold.value(capacity)
        if available < value + (threshold.reclaim if threshold in were else 0):
            found[threshold] = Shortage(threshold.signal, value, available)
    return found


def _capacity(node: Node, signal: Signal) -> int | None:
    text = node.status.capacity.get(RESOURCE_OF[signal])
    if text is None:
        return None
    try:
        return whole_value(text)
    except QuantityError:
        return None
