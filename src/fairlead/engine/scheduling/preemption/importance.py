"""importance: the order of pods by importance, in which preemption reprieves them.

The search for victims (`victims`) spares the most important pods first. `VictimColumns` sorts the
pods of many nodes by the same key with NumPy, so change both together. Plugins can replace the
order (`policy_of`); then columns are not used.
"""

from __future__ import annotations

from typing import Protocol

from fairlead.engine.core.instant import Instant


class RankedPod(Protocol):
    """Protocol for the facts of a pod that determine its importance."""

    @property
    def priority(self) -> int:
        """The priority."""
        ...

    @property
    def start(self) -> Instant:
        """The time of its start."""
        ...

    @property
    def key(self) -> str:
        """The namespace and name."""
        ...


def importance(pod: RankedPod) -> tuple[int, Instant, str]:
    """Return a sort key, most important pod first: higher priority, earlier start, then name.

    upstream: pkg/scheduler/util/utils.go: MoreImportantPod, which does not define the order of ties
    """
    return (-pod.priority, pod.start, pod.key)
