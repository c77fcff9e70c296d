"""Plugins of the default profile that are not built yet, under their own names.

They take part where it shows (skips, the post-filter text) and refuse by name the pods that would
need them, so that no answer is silently wrong.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.api.objects import PodSpec
from fairlead.engine.core.status import SKIP, Status, unresolvable
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape


def never(_spec: PodSpec) -> bool:
    """For plugins whose other half already refuses."""
    return False


def refusal(plugin: str) -> Status:
    """The verdict on a pod that needs a plugin which is not there."""
    return unresolvable(f"pod needs plugin {plugin}, which Fairlead does not have yet")


class Unsupported:
    """PreFilter and Filter of a plugin that refuses the pods that would use it."""

    locality = Locality.NODE

    def __init__(self, name: str, uses: Callable[[PodSpec], bool]) -> None:
        """`uses` tells which specs need the real plugin."""
        self.name = name
        self._uses = uses

    def concerns(self, shape: Shape) -> bool:
        """Whether pods of `shape` would need the real plugin."""
        return self._uses(shape.spec)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """SKIP for pods that do not use it."""
        return refusal(self.name) if self._uses(pod.shape.spec) else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Never reached: PreFilter either skips or rejects."""
        return None

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """Nothing to say about pods that do not use it."""
        return SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Never reached: PreScore skips."""
        return 0
