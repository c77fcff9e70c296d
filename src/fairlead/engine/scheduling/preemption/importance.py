"""importance: a sort key for pods, the most important pod first.

The search for victims (`victims`) first reprieves the pods that a disruption budget protects, and
then the other pods. In each of the two groups, the search begins with the most important pod. Three
functions do not call `importance`, but contain the same order (priority, start, pod key):
`victims._least_important`, `victim_columns._by_importance` and `VictimColumns._fill_loaded`. Change
these functions together with `importance`. If a plugin defines another order (`policy_of`), the
three functions are not used.
"""

from __future__ import annotations

from typing import Protocol

from fairlead.engine.core.instant import Instant


class RankedPod(Protocol):
    """Protocol for the facts of a pod that determine its importance."""

    @property
    def priority(self) -> int:
        """The priority of the pod."""
        ...

    @property
    def start(self) -> Instant:
        """The time at which the pod started."""
        ...

    @property
    def key(self) -> str:
        """The pod's key, `namespace/name`."""
        ...


def importance(pod: RankedPod) -> tuple[int, Instant, str]:
    """Return a sort key, most important pod first: higher priority, earlier start, then pod key.

    upstream: pkg/scheduler/util/utils.go: MoreImportantPod, which does not define the order of ties
    """
    return (-pod.priority, pod.start, pod.key)
