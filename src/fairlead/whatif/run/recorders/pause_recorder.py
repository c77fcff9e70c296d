"""PauseRecorder: records how long a cluster that is not at rest can remain unchanged.

For example, no object changes while ready pods wait to become available (`minReadySeconds`), or
while a flapping node stays off or on. A run must not end in such a pause.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.api.nodes.kubelet_behaviour import KUBELET, Mode, parse_kubelet_behaviour
from fairlead.api.objects import ApiObject, DaemonSet, Deployment, Node, StatefulSet
from fairlead.engine.core.instant import DurationNs, seconds

# After a flapping node has failed, nothing changes until the node controller notices it.
_DETECTION_TIME: Final = seconds(120)


class PauseRecorder(Struct):
    """Records the longest pause that the objects of a run can cause.

    A pause is a time in which no object changes, although the cluster is not at rest. `longest` is
    in ns; 0 if the objects cause no pause.
    """

    longest: DurationNs = 0

    def observe(self, changed: ApiObject) -> None:
        """Record the pauses that a new version of a node or workload can cause."""
        if type(changed) is Node:
            text = changed.metadata.annotations.get(KUBELET)
            if text:
                self.longest = max(self.longest, _flap_pause(text))
        elif isinstance(changed, Deployment | StatefulSet | DaemonSet):
            self.longest = max(self.longest, seconds(changed.spec.min_ready_seconds))


def _flap_pause(text: str) -> DurationNs:
    """Return the longest pause (ns) that a node's kubelet annotation `text` can cause.

    A pause is a time in which no object changes. The result is 0 unless `text` makes the node flap.
    """
    try:
        behaviour = parse_kubelet_behaviour(text)
    except ValueError:
        return 0
    if behaviour.mode is not Mode.FLAP:
        return 0
    return max(behaviour.off, behaviour.on + _DETECTION_TIME)
