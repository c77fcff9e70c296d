"""Karpenter's custom resources as typed views: NodePool, NodeClaim, NodeOverlay.

Durations remain text, in Go's syntax or `Never`.

upstream: pkg/apis/v1, pkg/apis/v1alpha1
"""

from __future__ import annotations

from typing import Final

import msgspec

from fairlead.api.json import Json
from fairlead.api.objects import ObjectMeta, PodCondition, ResourceList, Taint
from fairlead.api.timestamp import parse_duration
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL

NEVER: Final = "Never"
DEFAULT_EXPIRE_AFTER: Final = "720h"
DEFAULT_BUDGET_NODES: Final = "10%"

WHEN_EMPTY: Final = "WhenEmpty"
WHEN_EMPTY_OR_UNDERUTILIZED: Final = "WhenEmptyOrUnderutilized"

LAUNCHED: Final = "Launched"
REGISTERED_CONDITION: Final = "Registered"
INITIALIZED_CONDITION: Final = "Initialized"
CONSOLIDATABLE: Final = "Consolidatable"
DRIFTED: Final = "Drifted"
INSTANCE_TERMINATING: Final = "InstanceTerminating"
DISRUPTION_REASON: Final = "DisruptionReason"


class _KarpenterView(msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """Base class of Karpenter's views. In JSON, names are camelCase, and defaults are left out."""


class _KarpenterKind(_KarpenterView, frozen=True):
    """Base class of Karpenter's kinds, which are all cluster-scoped."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> str:
        """The key of the object: its metadata.name."""
        return self.metadata.name

    @property
    def name(self) -> str:
        """The name of the object: its metadata.name."""
        return self.metadata.name


class FlexibleRequirement(_KarpenterView, frozen=True):
    """A node selector requirement with minValues and the additional operators Gte and Lte."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    min_values: int | None = None


class NodeClassReference(_KarpenterView, frozen=True):
    """The field `nodeClassRef`: a reference to the provider's description of its machines."""

    group: str = ""
    kind: str = ""
    name: str = ""


class NodeClaimSpec(_KarpenterView, frozen=True):
    """The field `spec` of a NodeClaim, or `spec.template.spec` of a NodePool."""

    requirements: tuple[FlexibleRequirement, ...] = ()
    resources: dict[str, ResourceList] = {}
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    node_class_ref: NodeClassReference = NodeClassReference()
    expire_after: str = NEVER  # an API server sets DEFAULT_EXPIRE_AFTER if the field is missing
    termination_grace_period: str | None = None


class NodeClaimStatus(_KarpenterView, frozen=True):
    """The field `status` of a NodeClaim."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[PodCondition, ...] = ()
    node_name: str = ""
    provider_id: str = msgspec.field(name="providerID", default="")
    last_pod_event_time: str = ""


class NodeClaim(_KarpenterKind, frozen=True):
    """karpenter.sh/v1 NodeClaim: a node that Karpenter requested from its provider."""

    spec: NodeClaimSpec = NodeClaimSpec()
    status: NodeClaimStatus = NodeClaimStatus()

    @property
    def node_pool(self) -> str:
        """The name of the claim's NodePool; "" if it belongs to no NodePool."""
        return self.metadata.labels.get(NODE_POOL, "")

    def condition(self, kind: str) -> PodCondition | None:
        """Return the condition of type `kind`; None if the claim has no such condition."""
        return next((one for one in self.status.conditions if one.type == kind), None)

    def is_true(self, kind: str) -> bool:
        """Return whether the condition of type `kind` is True."""
        found = self.condition(kind)
        return found is not None and found.status == "True"


class NodePoolTemplateMeta(_KarpenterView, frozen=True):
    """The field `spec.template.metadata` of a NodePool."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class NodePoolTemplate(_KarpenterView, frozen=True):
    """The field `spec.template` of a NodePool."""

    metadata: NodePoolTemplateMeta = NodePoolTemplateMeta()
    spec: NodeClaimSpec = NodeClaimSpec()


class NodePoolBudget(_KarpenterView, frozen=True):
    """A disruption budget of a NodePool: an element of `spec.disruption.budgets`.

    A budget limits how many nodes may be disrupted at the same time. The budget applies only in the
    periods that `schedule` and `duration` define. A budget without these fields always applies.
    `reasons` lists the reasons of the disruptions to which the budget applies; None means all
    reasons.
    """

    nodes: str = DEFAULT_BUDGET_NODES
    schedule: str | None = None
    duration: str | None = None
    reasons: tuple[str, ...] | None = None


class NodePoolDisruption(_KarpenterView, frozen=True):
    """The field `spec.disruption` of a NodePool."""

    consolidate_after: str = "0s"
    consolidation_policy: str = WHEN_EMPTY_OR_UNDERUTILIZED
    budgets: tuple[NodePoolBudget, ...] = (NodePoolBudget(),)


class NodePoolSpec(_KarpenterView, frozen=True):
    """The field `spec` of a NodePool."""

    template: NodePoolTemplate = NodePoolTemplate()
    disruption: NodePoolDisruption = NodePoolDisruption()
    limits: ResourceList = {}
    weight: int | None = None
    replicas: int | None = None


class NodePoolStatus(_KarpenterView, frozen=True):
    """The field `status` of a NodePool."""

    conditions: tuple[PodCondition, ...] = ()


class NodePool(_KarpenterKind, frozen=True):
    """karpenter.sh/v1 NodePool: the nodes that Karpenter may create, and when it removes nodes."""

    spec: NodePoolSpec = NodePoolSpec()
    status: NodePoolStatus = NodePoolStatus()

    @property
    def is_static(self) -> bool:
        """Whether the pool keeps a fixed number of nodes."""
        return self.spec.replicas is not None

    @property
    def is_ready(self) -> bool:
        """Whether the Ready condition is True or missing."""
        found = next((one for one in self.status.conditions if one.type == "Ready"), None)
        return found is None or found.status == "True"


class NodeOverlaySpec(_KarpenterView, frozen=True):
    """The field `spec` of a NodeOverlay."""

    requirements: tuple[FlexibleRequirement, ...] = ()
    price: str | None = None
    price_adjustment: str | None = None
    capacity: ResourceList = {}
    weight: int | None = None


class NodeOverlay(_KarpenterKind, frozen=True):
    """karpenter.sh/v1alpha1 NodeOverlay: changes prices and capacity of instance types."""

    spec: NodeOverlaySpec = NodeOverlaySpec()


def with_lifetime(obj: Json) -> Json:
    """Return the NodePool `obj`, with the default of `expireAfter` if this field is missing.

    Objects of other kinds are returned unchanged.
    upstream: pkg/apis/crds/karpenter.sh_nodepools.yaml
    """
    if obj.get("kind") != "NodePool":
        return obj
    return _with_default(obj, ("spec", "template", "spec"), "expireAfter", DEFAULT_EXPIRE_AFTER)


def _with_default(obj: Json, path: tuple[str, ...], field: str, default: str) -> Json:
    """Return `obj`; if the object at `path` has no `field`, this field becomes `default`."""
    if not path:
        return {field: default, **obj}
    inner = obj.get(path[0]) or {}
    if not isinstance(inner, dict):  # the decoder refuses it later
        return obj
    return {**obj, path[0]: _with_default(inner, path[1:], field, default)}


def duration_or_never(text: str) -> int | None:
    """Return the duration `text` in ns; None for `Never`. Raises ValueError if it is invalid."""
    return None if text == NEVER else parse_duration(text)
