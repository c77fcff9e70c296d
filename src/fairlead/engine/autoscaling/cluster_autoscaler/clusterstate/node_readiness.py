"""Whether a node is ready, and when its readiness last changed.

upstream: utils/kubernetes/ready.go
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import Node, NodeCondition
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.autoscaling.cluster_autoscaler.gpu import gpu_resource
from fairlead.engine.autoscaling.cluster_autoscaler.taint import TaintConfig
from fairlead.engine.core.instant import Instant

READY: Final = "Ready"
_ADVERSE: Final = ("DiskPressure", "NetworkUnavailable")
_SUSPENDED: Final = "Suspended"
_NOT_READY_TAINTS: Final = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
    }
)


class NodeReadiness(Struct, frozen=True):
    """Whether the autoscaler treats a node as ready, and since when.

    `last_transition` is the latest transition time of the conditions and taints that determine
    `is_ready`. `last_transition` is 0 if the node has no Ready condition. `is_suspended` is set if
    the node's condition Suspended is True.
    """

    is_ready: bool
    last_transition: Instant = 0
    is_suspended: bool = False


# A cache by id(node). Each entry refers to its node, so that no other node can get the same id.
# Every loop needs the readiness of each node several times, and few nodes change between two
# loops.
_known: Final[dict[int, tuple[Node, NodeReadiness]]] = {}
_KNOWN_MAX: Final = 20_000


def node_readiness(node: Node) -> NodeReadiness:
    """Return the readiness of `node`."""
    known = _known.get(id(node))
    if known is not None:
        return known[1]
    if len(_known) >= _KNOWN_MAX:
        _known.clear()
    found = _readiness(node)
    _known[id(node)] = node, found
    return found


def _readiness(node: Node) -> NodeReadiness:
    is_ready, has_ready, since, is_suspended = True, False, 0, False
    for condition in node.status.conditions:
        if condition.type == READY:
            has_ready = True
            is_ready = is_ready and condition.status not in ("False", "Unknown")
        elif condition.type in _ADVERSE:
            is_ready = is_ready and condition.status != "True"
        elif condition.type == _SUSPENDED:
            is_suspended = condition.status == "True"
            continue
        else:
            continue
        since = max(since, _instant(condition.last_transition_time))
    for taint in node.spec.taints:
        if taint.key in _NOT_READY_TAINTS:
            is_ready = False
            since = max(since, _instant(taint.time_added))
    return NodeReadiness(is_ready and has_ready, since if has_ready else 0, is_suspended)


def is_ready_and_schedulable(node: Node) -> bool:
    """Return True if the node is ready and not cordoned."""
    return not node.spec.unschedulable and node_readiness(node).is_ready


def with_starting_nodes_unready(node: Node, taints: TaintConfig, gpu_label: str) -> Node:
    """Return `node`, or an unready copy if the node lacks its GPU or has a startup taint.

    A node lacks its GPU if it has the label `gpu_label` but no allocatable GPU. The copy has the
    condition Ready=False. The last transition time of this condition is the creation time of the
    node. A node that is unready or cordoned is always returned unchanged.
    upstream: processors/customresources/gpu_processor.go: FilterOutNodesWithUnreadyResources,
    utils/taints/taints.go: FilterOutNodesWithStartupTaints
    """
    if not is_ready_and_schedulable(node):
        return node
    lacks_gpu = bool(gpu_label) and gpu_label in node.metadata.labels and gpu_resource(node) is None
    if lacks_gpu or any(taints.is_startup_taint(taint.key) for taint in node.spec.taints):
        return _unready_copy(node)
    return node


def _unready_copy(node: Node) -> Node:
    others = tuple(one for one in node.status.conditions if one.type != READY)
    unready = NodeCondition(
        type=READY, status="False", last_transition_time=node.metadata.creation_timestamp
    )
    return replace(node, status=replace(node.status, conditions=(*others, unready)))


def _instant(text: str) -> Instant:
    return parse_timestamp(text) if text else 0
