"""Simulates a provisioning pass without some nodes, to find new nodes for their pods.

upstream: pkg/controllers/disruption/helpers.go:SimulateScheduling
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from fairlead.engine.autoscaling.karpenter.disruption.candidate import DisruptionCandidate
from fairlead.engine.autoscaling.karpenter.pod import is_provisionable
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import NodeClaimRequest
from fairlead.engine.autoscaling.karpenter.provisioning.provisioner import (
    Provisioner,
    currently_reschedulable,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.existingnode import ExistingNode
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode
from fairlead.engine.core.instant import Instant

_SHOWN_ERRORS: Final = 5


class NoNodePoolsError(Exception):
    """No NodePool is Ready for pods, so no pass can be simulated."""


class Simulated(Struct, frozen=True):
    """The result of a provisioning pass that was simulated without some nodes.

    `requests` are new NodeClaims, `placed` are existing nodes on which pods were placed. `errors`
    maps each running pod that found no node, or only a node that is not initialized, to the reason.
    """

    requests: tuple[NodeClaimRequest, ...]
    placed: tuple[ExistingNode, ...]
    errors: dict[str, str]

    def problem(self) -> str | None:
        """Return upstream's sentence about running pods that fit no node; None if all pods fit."""
        # upstream: scheduler.go:NonPendingPodSchedulingErrors
        if not self.errors:
            return None
        text = "Not all pods would schedule, "
        for number, key in enumerate(sorted(self.errors), 1):
            text += f"{key} => {self.errors[key]} "
            if number == _SHOWN_ERRORS:
                return f"{text} and {len(self.errors) - _SHOWN_ERRORS} other(s)"
        return text


def simulate(
    cluster: KarpenterCluster,
    provisioner: Provisioner,
    candidates: Sequence[DisruptionCandidate],
    now: Instant,
) -> Simulated | None:
    """Simulate a pass without `candidates`; return None if a candidate is already being removed.

    The pass places the pods of the candidates, pending pods, and pods of other nodes that are being
    removed. A pod whose reservations are used up uses other capacity. Raises NoNodePoolsError if
    no NodePool is Ready for pods.
    """
    leaving = {one.node.key for one in candidates}
    nodes = cluster.nodes(now)
    deleting = sorted((n for n in nodes if n.marked_for_deletion), key=lambda one: one.name)
    if any(node.key in leaving for node in deleting):
        return None
    if not provisioner.usable_pools():
        raise NoNodePoolsError("no nodepools found")
    pods = [
        *provisioner.pending_pods()[0],
        *(pod for one in candidates for pod in currently_reschedulable(cluster, one.node, now)),
    ]
    excused = {
        pod.key: pod for node in deleting for pod in currently_reschedulable(cluster, node, now)
    }
    pods += excused.values()
    staying = [n for n in nodes if not n.marked_for_deletion]
    result = provisioner.schedule(pods, staying, strict_reservations=False, leaving=leaving)
    errors = dict(result.errors)
    for node in result.existing:
        if not node.state.initialized:
            text = uninitialized_error(node.state)
            errors |= {one.key: text for one in node.pods if one.key not in excused}
    running = {key: text for key, text in errors.items() if not is_provisionable(cluster.pods[key])}
    placed = tuple(node for node in result.existing if node.pods)
    return Simulated(tuple(result.requests), placed, running)


def uninitialized_error(state: StateNode) -> str:
    """Return upstream's text about a running pod that was placed on an uninitialized node."""
    parts = [f"nodeclaim/{state.claim.name}"] if state.claim is not None else []
    if state.node is not None:
        parts.append(f"node/{state.node_name}")
    return f"would schedule against uninitialized {', '.join(parts)}"
