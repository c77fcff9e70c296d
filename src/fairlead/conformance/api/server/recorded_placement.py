"""Where chance had put the pods of the recorded session: a scheduler plugin.

Upstream takes any of the nodes that are equally good. What later commands find (which pods are
drained, which are left) hangs on it, so chance is let fall as it fell: among equals, and only
there, the recorded node is the better one. Pods that are not named here fall anywhere.

upstream: pkg/scheduler/schedule_one.go:selectHost
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality
from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

# By what their names begin with; from the events of the session and from what was drained.
PLACES: Final[Mapping[str, str]] = {
    "d1": "node-2",
    "d2x": "node-2",
    "d3": "node-2",
    "d4": "node-2",
    "gn-": "node-3",
    "j1-": "node-2",
    "j2-": "node-1",
    "late": "node-1",
    "p1": "node-1",
    "p3": "node-2",
    "unk": "node-1",
    "unk2": "node-2",
    "wp": "node-2",
}
_BEST: Final = 100
# One point of any other plugin counts more than all of this one's.
_MORE: Final = _BEST + 1


class RecordedPlaces:
    """Score."""

    name = "RecordedPlaces"
    locality = Locality.CLUSTER

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The best for the recorded node."""
        return _BEST * (node.name == _place_of(pod.pod.metadata.name))


def as_recorded() -> SchedulerConfig:
    """The default scheduler, whose choices among equals fall as in the recording."""
    weighted = tuple((name, weight * _MORE) for name, weight in DEFAULT_PLUGINS)
    profile = Profile(plugins=(*weighted, (RecordedPlaces.name, 1)))
    return SchedulerConfig(
        (profile,), out_of_tree={RecordedPlaces.name: lambda _handle, _args: RecordedPlaces()}
    )


def _place_of(pod: str) -> str | None:
    """A generated name has an entry that ends in a dash, any other name its own."""
    return PLACES.get(pod) or PLACES.get(f"{pod.split('-', maxsplit=1)[0]}-")
