"""NodeDeclaredFeatures: rejects nodes that do not declare a feature that the pod needs.

The status.declaredFeatures of a node lists the new features that its kubelet supports. In
Kubernetes 1.36, two of these features affect scheduling. The other features affect only updates of
running pods.

upstream: plugins/nodedeclaredfeatures, component-helpers/nodedeclaredfeatures/features
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fairlead.api.objects import Node, PodSpec
from fairlead.engine.core.status import SKIP, SUCCESS, Status, unresolvable
from fairlead.engine.framework.cluster_event import ClusterEvent, EventKind
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.engine.framework.interface import Locality, Rows, Verdicts
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.node_table import NodeTable
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.shape import Shape

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"
NOT_DECLARED: Final = unresolvable("node(s) didn't match Pod's required features").by(
    "NodeDeclaredFeatures"
)


class NodeDeclaredFeatures:
    """Rejects nodes that do not declare a needed feature (PreFilter, Filter)."""

    name = "NodeDeclaredFeatures"
    locality = Locality.NODE
    events = frozenset({EventKind.NODE_ADD, EventKind.NODE_DECLARED_FEATURES})
    wakes_alike = True

    def concerns(self, shape: Shape) -> bool:
        """Return True if pods of `shape` need a feature."""
        return bool(required_features(shape.spec))

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status | None:
        """Return SKIP if the pod needs no feature."""
        return None if required_features(pod.shape.spec) else SKIP

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Reject nodes that do not declare all features that the pod needs."""
        declared = node.node.status.declared_features
        return None if required_features(pod.shape.spec) <= {*declared} else NOT_DECLARED

    def filter_columns(
        self, state: CycleState, pod: PodInfo, table: NodeTable, rows: Rows
    ) -> Verdicts:
        """Return the Filter verdict for each node in `rows`."""
        lacking = [self.filter(state, pod, table.at(row)) is not None for row in rows.tolist()]
        return Verdicts(np.array(lacking, np.int32), (SUCCESS, NOT_DECLARED))

    def is_woken_by(self, pod: PodInfo, event: ClusterEvent) -> bool:
        """Return whether a node was added or changed its declared features."""
        old, new = event.old, event.new
        if not isinstance(old, Node) or not isinstance(new, Node):
            return True
        return old.status.declared_features != new.status.declared_features


def required_features(spec: PodSpec) -> frozenset[str]:
    """Return the features that the pod's node must declare (upstream: InferForScheduling)."""
    features: set[str] = set()
    containers = (*spec.containers, *spec.init_containers)
    if any(
        rule.action == "RestartAllContainers"
        for container in containers
        for rule in container.restart_policy_rules
    ):
        features.add(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        features.add(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(features)
