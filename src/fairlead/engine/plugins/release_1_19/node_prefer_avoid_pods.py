"""NodePreferAvoidPods of 1.19: a pod avoids nodes whose annotation names the pod's controller.

The annotation scheduler.alpha.kubernetes.io/preferAvoidPods of a node names ReplicaSets and
ReplicationControllers by kind and UID. The plugin's weight of 10000 outweighs all other plugins.
upstream: v1.19 nodepreferavoidpods/node_prefer_avoid_pods.go
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from fairlead.api.pods.facts import controller_of
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import SCORE_MAX, Locality
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

ANNOTATION: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_KINDS: Final = ("ReplicationController", "ReplicaSet")


class _Controller(Struct):
    kind: str = ""
    uid: str = ""


class _PodSignature(Struct, rename="camel"):
    pod_controller: _Controller | None = None


class _AvoidedPods(Struct, rename="camel"):
    pod_signature: _PodSignature


class _Annotation(Struct, rename="camel"):
    prefer_avoid_pods: tuple[_AvoidedPods, ...] = ()


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
        avoided = ((one.kind, one.uid) for one in _controllers(text))
        return 0 if (owner.kind, owner.uid) in avoided else SCORE_MAX

    def scores_alike(self, pod: PodInfo) -> bool:
        """Return True if no ReplicaSet or ReplicationController controls the pod."""
        owner = controller_of(pod.pod.metadata)
        return owner is None or owner.kind not in _KINDS


def _controllers(annotation: str) -> list[_Controller]:
    """Return the podController of every entry; [] if the annotation is malformed."""
    try:
        entries = msgspec.json.decode(annotation, type=_Annotation).prefer_avoid_pods
    except (msgspec.DecodeError, RecursionError):
        return []
    controllers = (entry.pod_signature.pod_controller for entry in entries)
    return [one for one in controllers if one is not None]
