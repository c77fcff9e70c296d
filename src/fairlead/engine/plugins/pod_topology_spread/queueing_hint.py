"""QueueingHints of PodTopologySpread.

upstream: podtopologyspread/plugin.go: isSchedulableAfterPodChange, isSchedulableAfterNodeChange
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.objects import Node
from fairlead.api.selector import selector_matches
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.plugins.pod_topology_spread.constraint import Constraint
from fairlead.engine.state.pod_info import PodInfo

EVENTS: Final = frozenset(
    {
        EventKind.ASSIGNED_POD_ADD,
        EventKind.ASSIGNED_POD_LABEL,
        EventKind.ASSIGNED_POD_DELETE,
        EventKind.POD_LABEL,
        EventKind.POD_TOLERATION,
        EventKind.NODE_ADD,
        EventKind.NODE_DELETE,
        EventKind.NODE_LABEL,
        EventKind.NODE_TAINT,
    }
)


def is_worth_a_try(pod: PodInfo, constraints: Sequence[Constraint], event: ClusterEvent) -> bool:
    """Return True if `event`, one of EVENTS, may change the verdict for `pod`."""
    match event:
        case ClusterEvent(kind=EventKind.POD_TOLERATION):
            return any(one.honors_taints for one in constraints)
        case ClusterEvent(old=PodInfo() as old, new=PodInfo() as new):
            flips = _selecting(constraints, old) != _selecting(constraints, new)
            return new.namespace == pod.namespace and flips
        case ClusterEvent(old=PodInfo() as moved) | ClusterEvent(new=PodInfo() as moved):
            return moved.namespace == pod.namespace and any(_selecting(constraints, moved))
        case ClusterEvent(old=Node() as before, new=Node() as after):
            return _changes_counting(constraints, before, after)
        case ClusterEvent(old=Node() as node) | ClusterEvent(new=Node() as node):
            return _has_all_keys(constraints, node)
        case _:
            return True


def _selecting(constraints: Sequence[Constraint], pod: PodInfo) -> list[bool]:
    """The constraints whose selector matches the labels of `pod`, terminating or not."""
    return [selector_matches(one.selector, pod.labels) for one in constraints]


def _has_all_keys(constraints: Sequence[Constraint], node: Node) -> bool:
    return all(one.topology_key in node.metadata.labels for one in constraints)


def _changes_counting(constraints: Sequence[Constraint], before: Node, after: Node) -> bool:
    """Return True if the node starts or stops to count, or changes its domain or taints."""
    if _has_all_keys(constraints, before) != _has_all_keys(constraints, after):
        return True
    old, new = before.metadata.labels, after.metadata.labels
    moved = any(old.get(one.topology_key) != new.get(one.topology_key) for one in constraints)
    retainted = before.spec.taints != after.spec.taints
    return _has_all_keys(constraints, after) and (moved or retainted)
