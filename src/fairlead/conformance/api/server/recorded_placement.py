"""RecordedPlaces: a scheduler plugin that repeats the random placements of the recording.

If several nodes have the highest score, upstream chooses one of them at random, and later commands
depend on the choice. This plugin then prefers the recorded node. The plugin never outweighs other
plugins.

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

# The recorded node of each pod, taken from events and drains of the session. Keys are names of
# pods, or prefixes of generated names, which end in a dash.
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
# One point of any other plugin outweighs this plugin's maximum.
_MORE: Final = _BEST + 1


class RecordedPlaces:
    """A Score plugin that prefers the recorded node of a pod."""

    name = "RecordedPlaces"
    locality = Locality.CLUSTER

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the maximum score for the recorded node, 0 for every other node."""
        return _BEST * (node.name == _place_of(pod.pod.metadata.name))


def as_recorded() -> SchedulerConfig:
    """Return the default configuration with the additional plugin RecordedPlaces.

    RecordedPlaces decides only between nodes whose total scores without this plugin are equal.
    """
    weighted = tuple((name, weight * _MORE) for name, weight in DEFAULT_PLUGINS)
    profile = Profile(plugins=(*weighted, (RecordedPlaces.name, 1)))
    return SchedulerConfig(
        (profile,), out_of_tree={RecordedPlaces.name: lambda _handle, _args: RecordedPlaces()}
    )


def _place_of(pod: str) -> str | None:
    """Return the recorded node of the pod called `pod`; None if no node was recorded."""
    return PLACES.get(pod) or PLACES.get(f"{pod.split('-', maxsplit=1)[0]}-")
