"""RemovalEffect: how removing pods from a node can change the verdict of a Filter on that node.

Some Filters, such as PodTopologySpread, depend on the pods of other nodes. Removing a pod of lower
priority seldom changes the verdict of these Filters. A Filter that implements RemovalEffectPlugin
states which pods can change its verdict. Preemption then finds most victims without removing each
pod from the node and running the Filter again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, runtime_checkable

from msgspec import Struct

from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Plugin
from fairlead.engine.state.pod_class import PodLocations
from fairlead.engine.state.pod_info import PodInfo


class RemovalEffect(Struct, frozen=True):
    """The pods whose removal from a node can change the verdict of a Filter on that node.

    `concerns` returns whether a placed pod is one of these pods. It may read only facts that are
    equal for all loaded pods of a group (`Representatives`). `locations` contain at least the rows
    on which these pods are; None means that the pods may be on any row. If `may_harm` is not set,
    a node that the Filter accepts remains acceptable when any of its pods are removed.
    """

    concerns: Callable[[PodInfo], bool]
    locations: Sequence[PodLocations] | None = None
    may_harm: bool = False


def _concerns_no_pod(_: PodInfo) -> bool:
    return False


NO_EFFECT: Final = RemovalEffect(_concerns_no_pod, ())


def has_volumes(pod: PodInfo) -> bool:
    """Return whether `pod` has volumes.

    Filters that count volumes use this function as `RemovalEffect.concerns`.
    """
    return pod.shape.has_volumes


@runtime_checkable
class RemovalEffectPlugin(Plugin, Protocol):
    """A Filter plugin that states which removals can change its verdicts."""

    def removal_effect(self, state: CycleState) -> RemovalEffect:
        """Return the effect of removals in this cycle.

        The method is called only if PreFilter of the plugin did not return SKIP.
        """
        ...
