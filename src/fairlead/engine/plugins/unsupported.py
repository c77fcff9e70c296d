"""Placeholders for plugins of the default profile that are not implemented.

They run where users notice it (skips, the PostFilter text). They reject pods that need the plugin,
with a reason that names it, so that no decision is silently wrong.
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
    """Return False: no pod is rejected."""
    return False


def refusal(plugin: str) -> Status:
    """Return the rejection of a pod that needs a plugin that is not implemented."""
    return unresolvable(f"pod needs plugin {plugin}, which Fairlead does not have yet")


class Unsupported:
    """A placeholder for the PreFilter and Filter of a plugin.

    Rejects the pods that need the plugin.
    """

    locality = Locality.NODE

    def __init__(self, name: str, uses: Callable[[PodSpec], bool]) -> None:
        """`uses` returns True for specs that need the real plugin."""
        self.name = name
        self._uses = uses

    def concerns(self, shape: Shape) -> bool:
        """Return True if pods of `shape` need the real plugin."""
        return self._uses(shape.spec)

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Return SKIP for pods that do not use the plugin."""
        return refusal(self.name) if self._uses(pod.shape.spec) else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Return None; never called, because PreFilter either skips or rejects."""
        return None

    def pre_score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Status | None:
        """Return SKIP."""
        return SKIP

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return 0; never called, because PreScore skips."""
        return 0
