"""Pods that need the world's preparation before they can be bound, and are therefore left alone.

A session decides and binds at once. A pod whose volumes must be bound, or whose devices must be
allocated, has to wait in between; batch does not do that, and a Bind without it would put the pod
on a node where it can never start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.core.status import SKIP, Status, unresolvable
from fairlead.framework.cycle_state import CycleState
from fairlead.framework.interface import (
    Locality,
    Plugin,
    PreBindPlugin,
    Preparation,
    ReservePlugin,
)
from fairlead.state.node_info import NodeInfo
from fairlead.state.pod_info import PodInfo

_NAME: Final = "NothingToPrepare"
_REFUSAL: Final = unresolvable(
    "node(s) would need volumes or devices prepared, which batch does not do"
).by(_NAME)


class NothingToPrepare:
    """Filter: none of the plugins has anything to do between decision and Bind."""

    name = _NAME
    locality = Locality.CLUSTER

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        """Those of `plugins` are asked that reserve and prepare; they filter before this one."""
        self._plugins = [
            plugin
            for plugin in plugins
            if isinstance(plugin, ReservePlugin) and isinstance(plugin, PreBindPlugin)
        ]

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Only volumes and claims are ever prepared."""
        shape = pod.shape
        return None if shape.has_volumes or shape.spec.resource_claims else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Suppose the pod came here, and take it back."""
        for plugin in self._plugins:
            refusal = plugin.reserve(state, pod, node.name)
            answer = None if refusal is not None else plugin.pre_bind(state, pod, node.name)
            plugin.unreserve(state, pod, node.name)
            if isinstance(answer, Preparation):
                return _REFUSAL
            if refusal is not None or answer is not None:
                return refusal or answer
        return None
