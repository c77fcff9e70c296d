"""UnreliablePlugin: a scheduler plugin that raises exceptions or makes pods wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import ClassVar, Final

from fairlead.engine.core.instant import seconds
from fairlead.engine.core.status import Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality
from fairlead.engine.framework.waiting_pods import Wait
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

NAME: Final = "Unreliable"
RAISES: Final = "raises"
WAITS: Final = "waits"
_EVERY: Final = 40  # calls
_FILTER_EVERY: Final = 400  # calls; `filter` is called for each node
_PATIENCE: Final = seconds(30)


class UnreliablePlugin:
    """A plugin that misbehaves until `is_calm` returns True.

    The plugin either raises RuntimeError in one call of 40, or makes one pod of 40 wait for a
    permission that never comes. `filter` is called for each node, so it raises in only one call of
    400.
    """

    name: ClassVar[str] = NAME
    locality: ClassVar[Locality] = Locality.CLUSTER

    def __init__(self, behaviour: str, tally: Counter[str], is_calm: Callable[[], bool]) -> None:
        """Store the behaviour: RAISES for exceptions, or WAITS for waiting pods.

        `tally` counts the exceptions and the waiting pods.
        """
        self._raises = behaviour == RAISES
        self._tally = tally
        self._is_calm = is_calm
        self._calls = 0

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Accept every node, but raise RuntimeError in some calls (see the class)."""
        self._maybe_fail("filter", _FILTER_EVERY)
        return None

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Accept the pod, but raise RuntimeError in some calls (see the class)."""
        self._maybe_fail("reserve")
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Do nothing, but raise RuntimeError in some calls (see the class)."""
        self._maybe_fail("unreserve")

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status | Wait | None:
        """Permit the pod in most calls.

        In the other calls, raise RuntimeError if the behaviour is RAISES. If the behaviour is
        WAITS, return a Wait; the plugin never permits the waiting pod.
        """
        self._maybe_fail("permit")
        if not self._raises and self._is_due(_EVERY):
            self._tally["plugin stalls"] += 1
            return Wait(_PATIENCE)
        return None

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Accept the pod, but raise RuntimeError in some calls (see the class)."""
        self._maybe_fail("pre_bind")
        return None

    def post_bind(self, pod: PodInfo, node: str) -> None:
        """Do nothing, but raise RuntimeError in some calls (see the class)."""
        self._maybe_fail("post_bind")

    def _maybe_fail(self, point: str, every: int = _EVERY) -> None:
        if self._raises and self._is_due(every):
            self._tally["plugin raises"] += 1
            raise RuntimeError(f"{point} fails")

    def _is_due(self, every: int) -> bool:
        self._calls += 1
        return self._calls % every == 0 and not self._is_calm()
