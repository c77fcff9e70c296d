"""Names of Karpenter's labels and annotations, and rules for the labels that users may set.

upstream: pkg/apis/v1/labels.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.well_known_label import (
    ARCH,
    BETA_INSTANCE_TYPE,
    BETA_REGION,
    BETA_ZONE,
    HOSTNAME,
    INSTANCE_TYPE,
    OS,
    REGION,
    ZONE,
)

GROUP: Final = "karpenter.sh"

WINDOWS_BUILD: Final = "node.kubernetes.io/windows-build"

NODE_POOL: Final = "karpenter.sh/nodepool"
CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
REGISTERED: Final = "karpenter.sh/registered"
INITIALIZED: Final = "karpenter.sh/initialized"

SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"
RESERVED: Final = "reserved"
RESERVATION_ID_SUFFIX: Final = "/reservation-id"
"""The suffix of the provider's label for the id of a reservation."""
CAPACITY_TYPES: Final = (RESERVED, SPOT, ON_DEMAND)
"""The capacity types, in the order in which a launch uses them."""

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
NODE_POOL_HASH: Final = "karpenter.sh/nodepool-hash"
NODE_POOL_HASH_VERSION: Final = "karpenter.sh/nodepool-hash-version"
MIN_VALUES_RELAXED: Final = "karpenter.sh/nodeclaim-min-values-relaxed"
PRICE_OVERLAY_APPLIED: Final = "karpenter.sh/price-overlay-applied"
CAPACITY_OVERLAY_APPLIED: Final = "karpenter.sh/capacity-overlay-applied"
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

_ALIASES: Final = {
    BETA_ZONE: ZONE,
    BETA_REGION: REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    BETA_INSTANCE_TYPE: INSTANCE_TYPE,
    # The drivers of volumes label each node with its zone, and volumes require this label. The
    # driver labels a node only after its launch, so the cloud providers of Karpenter read the label
    # as the zone. upstream: pkg/operator/operator.go: init, in the providers for AWS, Azure and GCP
    "topology.ebs.csi.aws.com/zone": ZONE,
    "topology.disk.csi.azure.com/zone": ZONE,
    "topology.gke.io/zone": ZONE,
}

CORE_WELL_KNOWN_LABELS: Final = frozenset(
    (NODE_POOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, WINDOWS_BUILD)
)
"""Labels that a node may get even if pool and pod state no value for them."""


def normalized_label(key: str) -> str:
    """Return the label that Karpenter reads instead of `key`, or `key` if it has no replacement.

    A beta name is replaced by the stable name. The zone label of a volume driver is replaced by the
    standard zone label.
    """
    return _ALIASES.get(key, key)


def is_restricted(key: str, well_known: frozenset[str]) -> bool:
    """Return whether pods and NodePools must not use the label `key` in requirements."""
    # upstream: labels.go:IsRestrictedLabel
    if key in well_known:
        return False
    return key == HOSTNAME or has_restricted_domain(key)


def has_restricted_domain(key: str) -> bool:
    """Return whether the domain of the label `key` is karpenter.sh or a subdomain of it."""
    domain = key.partition("/")[0] if "/" in key else ""
    return domain == GROUP or domain.endswith(f".{GROUP}")
