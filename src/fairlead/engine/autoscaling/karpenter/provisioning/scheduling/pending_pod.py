"""PendingPod: a pod in a provisioning pass, with the constraints that are left after relaxation.

Relaxation replaces the pod object with a copy that lacks one preference.

upstream: pkg/controllers/provisioning/scheduling/scheduler.go:PodData
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from fairlead.api.objects import Pod
from fairlead.api.pods.host_port import HostPort
from fairlead.engine.autoscaling.karpenter.pod import has_resource_claims
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.topologygroup import (
    TopologyGroup,
)
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import (
    Requirements,
    has_preferred_node_affinity,
    pod_requirements,
)
from fairlead.engine.autoscaling.karpenter.state.usage import host_ports, requests_of


class PodFacts:
    """The facts about a pod's spec that a provisioning pass needs.

    Pods with equal specs share one object.
    """

    __slots__ = (
        "has_resource_claims",
        "ports",
        "requests",
        "requirements",
        "strict",
        "tolerations",
        "untolerated",
    )

    def __init__(self, pod: Pod, *, respects_preferences: bool) -> None:
        """Read the spec of `pod`.

        `requirements` include preferences if `respects_preferences` is set; `strict` never includes
        them.
        """
        self.requests: Mapping[str, int] = requests_of((pod,))
        self.requirements = pod_requirements(pod, preferred=respects_preferences)
        self.strict: Requirements = self.requirements
        if has_preferred_node_affinity(pod):
            self.strict = pod_requirements(pod, preferred=False)
        self.ports: tuple[HostPort, ...] = host_ports(pod)
        self.tolerations = pod.spec.tolerations
        self.has_resource_claims = has_resource_claims(pod)
        self.untolerated: dict[object, str | None] = {}


class PendingPod:
    """A pod in a provisioning pass.

    `volumes` contains alternative requirements of the pod's volumes: a node must meet one of them.
    `volumes` is None if the volumes require nothing of a node. `original` is the pod with all its
    preferences. Some preferences may have been removed from `pod`.
    """

    __slots__ = ("facts", "groups", "key", "labels_shape", "original", "pod", "volumes")

    def __init__(
        self,
        pod: Pod,
        facts: PodFacts,
        volumes: tuple[Requirements, ...] | None = None,
    ) -> None:
        """Start with all preferences of `pod`; `facts` were computed from the pod's spec.

        `groups` is empty until `Topology.update` finds the topology groups of the pod.
        """
        self.original = pod
        self.pod = pod
        self.key = pod.key
        self.facts = facts
        self.volumes = volumes
        self.groups: list[TopologyGroup] = []
        self.labels_shape: Hashable = (
            pod.metadata.namespace,
            frozenset(pod.metadata.labels.items()),
        )
