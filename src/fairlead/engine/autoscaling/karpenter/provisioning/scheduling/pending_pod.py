"""PendingPod: a pod that a pass tries to place, with the constraints that relaxation has left.

The pod itself never changes; relaxation replaces it by a copy without one preference.

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
    """What the scheduler reads of a pod's spec; pods with the same spec share one."""

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
        """`requirements` include preferences if they are respected, `strict` never do."""
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
    """A pod in a pass; `volumes` are alternative requirements of its volumes, None for none."""

    __slots__ = ("facts", "groups", "key", "labels_shape", "original", "pod", "volumes")

    def __init__(
        self,
        pod: Pod,
        facts: PodFacts,
        volumes: tuple[Requirements, ...] | None = None,
    ) -> None:
        """`groups` are the topology groups of its terms; Topology sets them."""
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
