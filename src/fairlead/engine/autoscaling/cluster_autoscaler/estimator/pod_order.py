"""The order in which equivalence groups are packed, and the group that is packed on the fast path.

On the fast path, only the first new node is simulated. The number of nodes that the group needs is
calculated from the number of pods that fit this node.

upstream: estimator/decreasing_pod_orderer.go, binpacking_estimator.go: determineBestPEGToFastpath
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairlead.api.objects import Node, PodAffinityTerm
from fairlead.api.quantity import approximate_value, milli_value, whole_value
from fairlead.api.selector import selector_matches
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.resource_columns import CPU, MEMORY

Pods = Sequence[PodInfo]


def decreasing(groups: Sequence[Pods], node: Node) -> list[Pods]:
    """Return `groups`, sorted by the size of their pods, largest first.

    The size of a pod is the sum of two shares: the share of the allocatable cpu of `node` that the
    pod requests, and the share of the allocatable memory. Groups whose pods have equal sizes keep
    their order.
    """
    offered = node.status.allocatable
    cpu = milli_value(offered.get("cpu", 0))
    memory = whole_value(offered.get("memory", 0))

    def score(pods: Pods) -> float:
        wanted = dict(pods[0].shape.requests)
        found = 0.0
        if cpu > 0:
            found += wanted.get(CPU, 0) / cpu
        if memory > 0:
            found += wanted.get(MEMORY, 0) / memory
        return found

    return sorted(groups, key=score, reverse=True)


def fast_path_group(groups: Sequence[Pods], node: Node) -> int | None:
    """Return the index of the group for which upstream's fast path saves the most steps.

    The fast path simulates only the first new node of the group. The fast path assumes that each
    further node takes as many pods as the first node. If several groups save equally many steps,
    the last of them is chosen. Returns None if no group can take the fast path. As in upstream,
    only the requests of a pod's first container are read.
    """
    best, found = 0, None
    for index, pods in enumerate(groups):
        nodes = max(_nodes_by_anti_affinity(pods), _nodes_by_requests(pods, node))
        saved = len(pods) - len(pods) // nodes if nodes > 0 else 0
        if saved >= best and _qualifies(pods[0]):
            best, found = saved, index
    return found


def _anti_affinity(pod: PodInfo) -> Sequence[PodAffinityTerm]:
    affinity = pod.shape.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    return affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution


def _nodes_by_anti_affinity(pods: Pods) -> int:
    for term in _anti_affinity(pods[0]):
        if term.topology_key == HOSTNAME and selector_matches(term.label_selector, pods[0].labels):
            return len(pods)
    return 0


def _nodes_by_requests(pods: Pods, node: Node) -> int:
    containers = pods[0].shape.spec.containers
    requests = containers[0].resources.requests if containers else {}
    found = 0
    for name in ("cpu", "memory"):
        offered = approximate_value(node.status.capacity.get(name, 0))
        if name in requests and offered > 0:
            # Upstream computes with floats. So a rounding error can add a node. For 20 pods of 700m
            # on nodes with 2 cores, the result is 8 nodes, not 7.
            found = max(found, math.ceil(len(pods) * approximate_value(requests[name]) / offered))
    return found


def _qualifies(pod: PodInfo) -> bool:
    """Return whether a group of pods like `pod` can be packed on the fast path."""
    if pod.shape.spec.topology_spread_constraints:
        return False
    return all(term.topology_key == HOSTNAME for term in _anti_affinity(pod))
