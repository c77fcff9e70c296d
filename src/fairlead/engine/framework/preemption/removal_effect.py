"""RemovalEffect: how removing pods from a node can change the verdict of a Filter on that node.

The removal of a pod seldom changes the verdict of Filters such as PodTopologySpread. A Filter that
implements RemovalEffectPlugin states which pods can change its verdict. Preemption then finds most
victims without running the Filter again for each pod.
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

    `concerns` returns whether a placed pod is one of these pods. Its argument can be one pod that
    represents a group of pods. So `concerns` must read only data that is equal for all pods of a
    group (`engine.state.loaded_pods.Representatives`). `locations` contains the NodeTable rows of
    all nodes with pods for which `concerns` returns True. `locations` is None if every node may
    have such pods. If `may_harm` is False, a removal never makes the Filter reject a node that it
    accepted.
    """

    concerns: Callable[[PodInfo], bool]
    locations: Sequence[PodLocations] | None = None
    may_harm: bool = False


def _concerns_no_pod(_: PodInfo) -> bool:
    return False


NO_EFFECT: Final = RemovalEffect(_concerns_no_pod, ())


def has_volumes(pod: PodInfo) -> bool:
    """Return whether `pod` has volumes; some Filters use this as `RemovalEffect.concerns`."""
    return pod.shape.has_volumes


@runtime_checkable
class RemovalEffectPlugin(Plugin, Protocol):
    """A Filter plugin that states which pods can change its verdicts if they are removed."""

    def removal_effect(self, state: CycleState) -> RemovalEffect:
        """Return the pods whose removal can change verdicts of this cycle.

        Not called if PreFilter returned SKIP.
        """
        ...
