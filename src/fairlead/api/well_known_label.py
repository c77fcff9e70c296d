"""The labels that describe nodes: name, location, machine type, and whether a node is virtual.

Labels with `beta` in their name are deprecated, but cloud providers still set them.

upstream: staging/src/k8s.io/api/core/v1/well_known_labels.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

HOSTNAME: Final = "kubernetes.io/hostname"

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
BETA_INSTANCE_TYPE: Final = "beta.kubernetes.io/instance-type"
ARCH: Final = "kubernetes.io/arch"
OS: Final = "kubernetes.io/os"
BETA_ARCH: Final = "beta.kubernetes.io/arch"
BETA_OS: Final = "beta.kubernetes.io/os"
WINDOWS_BUILD: Final = "node.kubernetes.io/windows-build"

STABLE: Final = {
    BETA_REGION: REGION,
    BETA_INSTANCE_TYPE: INSTANCE_TYPE,
    BETA_ARCH: ARCH,
    BETA_OS: OS,
}
"""{deprecated label: the label that replaces it}"""

MACHINE_FACTS: Final = frozenset(
    (
        HOSTNAME, ZONE, REGION, BETA_ZONE, BETA_REGION, INSTANCE_TYPE, BETA_INSTANCE_TYPE,
        ARCH, OS, BETA_ARCH, BETA_OS, WINDOWS_BUILD,
    )
)  # fmt: skip
"""Labels that the kubelet and the cloud provider set from facts about the machine."""

_PROVIDER_DOMAINS: Final = frozenset(
    (
        "karpenter.sh", "karpenter.k8s.aws", "karpenter.azure.com",
        "eks.amazonaws.com", "cloud.google.com", "kubernetes.azure.com",
        "feature.node.kubernetes.io", "nvidia.com",
    )
)  # fmt: skip

_COMPUTE_TYPE: Final = "eks.amazonaws.com/compute-type"
_FARGATE: Final = "fargate"
# A Fargate node belongs to one pod and ends with this pod. A virtual kubelet runs in a pod of the
# cluster, and may state thousands of cores that no machine has.
_VIRTUAL: Final = {
    # https://docs.aws.amazon.com/eks/latest/userguide/fargate.html
    _COMPUTE_TYPE: (_FARGATE, "a Fargate node ends with its pod"),
    # upstream: virtual-kubelet node/nodeutil/controller.go
    "type": ("virtual-kubelet", "a virtual node has no machine of its own"),
}


def is_provider_label(key: str) -> bool:
    """Return whether `key` is in a domain of Karpenter, EKS, GKE, AKS, NFD or NVIDIA.

    Such a label states how the machine was created, or what it contains. Examples are its node
    pool, whether it is a spot machine, and the model of its GPU. NFD is Node Feature Discovery.
    """
    return key.partition("/")[0] in _PROVIDER_DOMAINS


def region_and_zone(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return (region, zone) in the `labels` of a node; each is "" if the node has no label for it.

    The deprecated labels take precedence, even if they are empty.
    """
    # upstream: staging/src/k8s.io/component-helpers/node/topology/helpers.go: GetZoneKey
    region = labels.get(BETA_REGION, labels.get(REGION, ""))
    return region, labels.get(BETA_ZONE, labels.get(ZONE, ""))


def is_fargate(labels: Mapping[str, str]) -> bool:
    """Return whether a node with `labels` is a Fargate node, which runs a single pod."""
    return labels.get(_COMPUTE_TYPE) == _FARGATE


def is_virtual(labels: Mapping[str, str]) -> bool:
    """Return whether a node with `labels` is virtual; sums of capacity leave out virtual nodes."""
    return bool(virtual_words(labels))


def virtual_words(labels: Mapping[str, str]) -> str:
    """Return why the virtual node with `labels` has no machine; "" if the node is not virtual."""
    return next((why for key, (value, why) in _VIRTUAL.items() if labels.get(key) == value), "")
