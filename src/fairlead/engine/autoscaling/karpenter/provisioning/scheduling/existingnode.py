"""ExistingNode: a node, or a NodeClaim that is being launched, during a provisioning pass.

ExistingNodes contains the nodes as they are before a pass places any pod. A search for a disruption
simulates one pass for each candidate. All passes of the search share one ExistingNodes: a pass
copies only the nodes on which it places pods.

upstream: pkg/controllers/provisioning/scheduling/existingnode.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy

from fairlead.api.objects import Pod
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.pending_pod import (
    PendingPod,
    PodFacts,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topology import Topology
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import (
    Requirements,
)
from fairlead.engine.autoscaling.karpenter.scheduling.taints import untolerated
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.state.statenode import StateNode
from fairlead.engine.autoscaling.karpenter.state.usage import (
    PodsOnNode,
    conflicting_port,
    requests_of,
)


class ExistingNode:
    """An existing node during a provisioning pass. Placing pods reduces its free resources."""

    def __init__(
        self, state: StateNode, cluster: KarpenterCluster, free: Mapping[str, int]
    ) -> None:
        """`free` is the result of `free_resources` for the node.

        The attribute `pods` starts empty; it contains only the pods that the provisioning pass
        places.
        """
        self.state = state
        self.pods: list[PendingPod] = []
        on_node = cluster.pods_on(state.node_name)
        self.remaining = free
        # If any amount is negative, no pod fits. Placed pods fit, so they make no amount negative.
        self.is_overcommitted = any(amount < 0 for amount in self.remaining.values())
        self.requirements = state.requirements
        self.ports = list(on_node.ports)
        self._storage = cluster.storage
        self._limits = cluster.storage.limits(state.node_name)
        self.mounts = cluster.storage.mounts(on_node.running) if self._limits else {}

    def copied(self) -> ExistingNode:
        """Return a copy to which a pass can add pods."""
        found = copy(self)
        found.pods = list(self.pods)
        found.ports = list(self.ports)
        found.mounts = {driver: set(claims) for driver, claims in self.mounts.items()}
        return found

    def can_add(self, pod: PendingPod, topology: Topology) -> Requirements | None:
        """Return the node's requirements with the pod added; None if the pod does not fit."""
        facts = pod.facts
        if not self.has_room(facts.requests):
            return None
        taints = self.state.taints
        if taints:
            if taints not in facts.untolerated:
                facts.untolerated[taints] = untolerated(taints, facts.tolerations)
            if facts.untolerated[taints] is not None:
                return None
        if self._limits and self._exceeds_volume_limits(pod.pod):
            return None
        if facts.ports and conflicting_port(facts.ports, self.ports) is not None:
            return None
        if not self.requirements.compatible(facts.requirements):
            return None
        joined = self.requirements.with_added(facts.requirements)
        for volumes in pod.volumes or (None,):
            found = self._with_volumes(pod, topology, joined, volumes)
            if found is not None:
                return found
        return None

    def _with_volumes(
        self,
        pod: PendingPod,
        topology: Topology,
        joined: Requirements,
        volumes: Requirements | None,
    ) -> Requirements | None:
        if volumes is not None:
            if not joined.compatible(volumes):
                return None
            joined = joined.with_added(volumes)
        demanded = topology.added_requirements(pod, joined, joined.get(HOSTNAME))
        if not isinstance(demanded, list):
            return None
        if not demanded:
            return joined
        wanted = joined.with_added(demanded)
        return joined.with_added(wanted) if joined.compatible(wanted) else None

    def has_room(self, requests: Mapping[str, int]) -> bool:
        """Return whether the node has `requests` free."""
        if self.is_overcommitted:
            return False
        remaining = self.remaining
        for name, amount in requests.items():  # noqa: SIM110 - twice as fast as a generator
            if amount > remaining.get(name, 0):
                return False
        return True

    def _exceeds_volume_limits(self, pod: Pod) -> bool:
        """Return whether, with the pod added, the node would exceed a driver's volume limit."""
        # upstream: pkg/scheduling/volumeusage.go:ExceedsLimits
        more = self._storage.mounts((pod,))
        return any(
            len(self.mounts.get(driver, set()) | more.get(driver, set())) > limit
            for driver, limit in self._limits.items()
        )

    def add(self, pod: PendingPod, topology: Topology, requirements: Requirements) -> None:
        """Place the pod on the node; `requirements` is the result of `can_add`."""
        self.pods.append(pod)
        self.remaining = _minus(self.remaining, pod.facts.requests)
        self.requirements = requirements
        topology.record(pod, self.state.taints, requirements, requirements.get(HOSTNAME))
        self.ports += pod.facts.ports
        if self._limits:
            for driver, more in self._storage.mounts((pod.pod,)).items():
                self.mounts.setdefault(driver, set()).update(more)


class ExistingNodes:
    """The existing nodes before a provisioning pass, in the order in which they are tried.

    The nodes must not change.
    """

    def __init__(self, nodes: Iterable[ExistingNode]) -> None:
        """Sort `nodes`: initialized nodes first, then by name."""
        self.nodes = sorted(nodes, key=lambda one: (not one.state.initialized, one.state.name))
        self._with_room: dict[int, list[ExistingNode]] = {}  # by the id of a pod's facts

    def with_room(self, facts: PodFacts, leaving: Collection[str]) -> list[ExistingNode]:
        """Return the nodes with room for a pod with the spec that `facts` describes.

        Nodes whose keys are in `leaving` are left out. Results are cached by `id(facts)`, so the
        caller must keep `facts` as long as it uses this ExistingNodes.
        """
        found = self._with_room.get(id(facts))
        if found is None:
            found = [one for one in self.nodes if one.has_room(facts.requests)]
            self._with_room[id(facts)] = found
        if not leaving:
            return found
        return [one for one in found if one.state.key not in leaving]


def free_resources(state: StateNode, on_node: PodsOnNode, daemons: Iterable[Pod]) -> dict[str, int]:
    """Return the free resources of a node, minus an amount reserved for DaemonSet pods.

    For each resource, the reserved amount is the total request of `daemons`, minus the total
    request of the DaemonSet pods that already run on the node. The reserved amount is at least 0.
    """
    available = _minus(state.allocatable, on_node.requests)
    missing = {
        name: max(0, amount - on_node.daemon_requests.get(name, 0))
        for name, amount in requests_of(daemons).items()
    }
    return _minus(available, missing)


def _minus(amounts: Mapping[str, int], less: Mapping[str, int]) -> dict[str, int]:
    """Return `amounts` minus `less`, for the resources in `amounts`."""
    # upstream: pkg/utils/resources/resources.go:Subtract
    return {name: amount - less.get(name, 0) for name, amount in amounts.items()}
