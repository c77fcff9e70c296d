"""StateNode: a NodeClaim joined with its Node.

Until a node has registered, its NodeClaim describes it. Until the node is initialized, temporary
taints are ignored, and the NodeClaim provides the resources that the node does not report yet.

upstream: pkg/controllers/state/statenode.go
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from msgspec import Struct

from fairlead.api.nodes.autoscaler_taint import UNREGISTERED_TAINT
from fairlead.api.objects import Node, ResourceList, Taint
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.autoscaling.karpenter.apis import INSTANCE_TERMINATING, NodeClaim
from fairlead.engine.autoscaling.karpenter.labels import INITIALIZED, NODE_POOL, REGISTERED
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import LabelRequirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import (
    Requirements,
    label_requirements,
)

_EPHEMERAL_TAINTS: Final = (
    ("node.kubernetes.io/not-ready", "NoSchedule"),
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoSchedule"),
    ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
    (UNREGISTERED_TAINT, "NoExecute"),
)
_READINESS_PREFIX: Final = "readiness.k8s.io/"


class StateNode(Struct, frozen=True, dict=True):
    """A NodeClaim, a Node, or both. `marked` is set if Karpenter has decided to delete them."""

    claim: NodeClaim | None
    node: Node | None
    marked: bool = False
    nominated: bool = False

    @cached_property
    def registered(self) -> bool:
        """Whether the node has registered.

        Nodes that Karpenter does not manage count as registered.
        """
        if self.claim is None:
            return True
        return self.node is not None and self.node.metadata.labels.get(REGISTERED) == "true"

    @cached_property
    def initialized(self) -> bool:
        """Whether the node has been initialized.

        Nodes that Karpenter does not manage count as initialized.
        """
        if self.claim is None:
            return True
        return self.node is not None and self.node.metadata.labels.get(INITIALIZED) == "true"

    @cached_property
    def name(self) -> str:
        """The node's name; before the node has registered, the NodeClaim's name."""
        if self.claim is not None and (self.node is None or not self.registered):
            return self.claim.name
        return self.node.metadata.name if self.node is not None else ""

    @cached_property
    def node_name(self) -> str:
        """The name of the Node object; "" if there is no Node."""
        return self.node.metadata.name if self.node is not None else ""

    @cached_property
    def key(self) -> str:
        """The identity of the node: its provider id, or its name if it has no provider id."""
        if self.claim is not None:
            return self.claim.status.provider_id or self.claim.name
        return (self.node.spec.provider_id or self.node_name) if self.node is not None else ""

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The node's labels; before the node has registered, the NodeClaim's labels."""
        if self.claim is not None and (self.node is None or not self.registered):
            return self.claim.metadata.labels
        return self.node.metadata.labels if self.node is not None else {}

    @cached_property
    def requirements(self) -> Requirements:
        """One requirement for each label of the node, and one for its hostname."""
        host = LabelRequirement(HOSTNAME, values=frozenset((self.hostname,)))
        return self.label_requirements.with_added((host,))

    @cached_property
    def single_values(self) -> Mapping[str, str | None]:
        """A mapping {label in `requirements`: its value, or None if it has no single value}."""
        return {one.key: one.single for one in self.requirements}

    @cached_property
    def label_requirements(self) -> Requirements:
        """For each label of the node, a requirement that allows only the label's value."""
        return label_requirements(self.labels)

    @property
    def annotations(self) -> Mapping[str, str]:
        """The node's annotations; before the node has registered, the NodeClaim's annotations."""
        if self.claim is not None and (self.node is None or not self.registered):
            return self.claim.metadata.annotations
        return self.node.metadata.annotations if self.node is not None else {}

    @cached_property
    def node_pool(self) -> str:
        """The name of the NodePool; "" if the node belongs to none."""
        return self.labels.get(NODE_POOL, "")

    @cached_property
    def hostname(self) -> str:
        """The value of the label kubernetes.io/hostname; `name` if the label is missing."""
        return self.labels.get(HOSTNAME, "") or self.name

    @cached_property
    def deleted(self) -> bool:
        """Whether the NodeClaim or its instance is being deleted.

        If there is no NodeClaim, the value tells whether the Node is being deleted.
        """
        if self.claim is not None:
            terminating = self.claim.is_true(INSTANCE_TERMINATING)
            return self.claim.metadata.deletion_timestamp != "" or terminating
        return self.node is not None and self.node.metadata.deletion_timestamp != ""

    @property
    def marked_for_deletion(self) -> bool:
        """Whether the node is being removed: `marked` or `deleted` is True."""
        return self.marked or self.deleted

    @property
    def ready(self) -> bool:
        """Whether the Node's Ready condition is True."""
        conditions = self.node.status.conditions if self.node is not None else ()
        return any(one.type == "Ready" and one.status == "True" for one in conditions)

    @cached_property
    def taints(self) -> tuple[Taint, ...]:
        """The taints that pods must tolerate, except those that disappear while the node starts."""
        if self.node is None or not self.registered:
            found = self.claim.spec.taints if self.claim is not None else ()
        else:
            found = self.node.spec.taints
        if self.initialized or self.claim is None:
            return found
        startup = {(one.key, one.effect) for one in self.claim.spec.startup_taints}
        return tuple(
            one for one in found if not is_ephemeral(one) and (one.key, one.effect) not in startup
        )

    @cached_property
    def allocatable(self) -> dict[str, int]:
        """The allocatable resources, in the units of `amounts`."""
        return self._amounts("allocatable")

    @cached_property
    def capacity(self) -> dict[str, int]:
        """The capacity of the machine, in the units of `amounts`."""
        return self._amounts("capacity")

    def _amounts(self, field: str) -> dict[str, int]:
        """Return the amounts in the field `field` of the status (`capacity` or `allocatable`).

        Before the node is initialized, missing amounts come from the NodeClaim.
        """
        reported = amounts(getattr(self.node.status, field)) if self.node is not None else {}
        if self.claim is None or self.initialized:
            return reported
        promised = amounts(getattr(self.claim.status, field))
        return reported | {n: a for n, a in promised.items() if not reported.get(n)}


def is_ephemeral(taint: Taint) -> bool:
    """Return whether the taint disappears while the node starts."""
    # upstream: pkg/scheduling/taints.go:KnownEphemeralTaints; key and effect decide
    return (taint.key, taint.effect) in _EPHEMERAL_TAINTS or taint.key.startswith(_READINESS_PREFIX)


def amounts(resources: ResourceList) -> dict[str, int]:
    """Return a resource list as integers: cpu in millicores, other resources in whole units."""
    return {
        name: milli_value(text) if name == "cpu" else whole_value(text)
        for name, text in resources.items()
    }
