"""NodePreferAvoidPods of 1.19: pods avoid nodes whose annotation names their controller.

The annotation scheduler.alpha.kubernetes.io/preferAvoidPods of a node names ReplicaSets and
ReplicationControllers by kind and UID. The plugin's weight of 10000 outweighs all other plugins.
upstream: v1.19 nodepreferavoidpods/node_prefer_avoid_pods.go
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fairlead.api.pods.facts import controller_of
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import SCORE_MAX, Locality
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

ANNOTATION: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_KINDS: Final = ("ReplicationController", "ReplicaSet")


class NodePreferAvoidPods:
    """Scores nodes 0 if their annotation names the pod's controller, otherwise 100 (Score)."""

    name = "NodePreferAvoidPods"
    locality = Locality.CLUSTER

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return 0 if the node's annotation names the pod's controller, otherwise 100."""
        text = node.node.metadata.annotations.get(ANNOTATION)
        owner = controller_of(pod.pod.metadata)
        if text is None or owner is None or owner.kind not in _KINDS:
            return SCORE_MAX
        avoided = ((one.get("kind"), one.get("uid")) for one in _controllers(text))
        return 0 if (owner.kind, owner.uid) in avoided else SCORE_MAX

    def scores_alike(self, pod: PodInfo) -> bool:
        """Return True if no ReplicaSet or ReplicationController controls the pod."""
        owner = controller_of(pod.pod.metadata)
        return owner is None or owner.kind not in _KINDS


def _controllers(annotation: str) -> list[dict[str, Any]]:
    """Return the podController of every entry; [] if the annotation is malformed."""
    try:
        entries = msgspec.json.decode(annotation)["preferAvoidPods"]
        return [entry["podSignature"]["podController"] for entry in entries]
    except (msgspec.DecodeError, KeyError, TypeError):
        return []
