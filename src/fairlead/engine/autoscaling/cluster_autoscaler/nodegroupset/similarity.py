"""Decides whether two groups have similar templates, so that new nodes can be balanced over both.

upstream: processors/nodegroupset/{compare_nodegroups,label_nodegroups}.go; for the labels of cloud
providers: processors/nodegroupset/{aws,azure,clusterapi,gce}_nodegroups.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.pods.requests import pod_requests
from fairlead.api.quantity import milli_value
from fairlead.api.well_known_label import BETA_REGION, BETA_ZONE, HOSTNAME, REGION, ZONE
from fairlead.engine.autoscaling.cluster_autoscaler.options import AutoscalingOptions
from fairlead.engine.autoscaling.cluster_autoscaler.template import Template
from fairlead.engine.state.resource_columns import PODS

_IGNORED_LABELS: Final = frozenset(
    {
        HOSTNAME,
        ZONE,
        REGION,
        BETA_ZONE,
        BETA_REGION,
        "beta.kubernetes.io/fluentd-ds-ready",
        "kops.k8s.io/instancegroup",
    }
)
_AZURE_POOLS: Final = ("kubernetes.azure.com/agentpool", "agentpool")
_AWS_LABELS: Final = frozenset(
    {
        "alpha.eksctl.io/instance-id",
        "alpha.eksctl.io/nodegroup-name",
        "eks.amazonaws.com/nodegroup",
        "k8s.amazonaws.com/eniConfig",
        "lifecycle",
        "topology.ebs.csi.aws.com/zone",
    }
)
_AZURE_ZONE: Final = "topology.disk.csi.azure.com/zone"
_GCE_ZONE: Final = "topology.gke.io/zone"
# The labels of nodes that may differ between similar groups, by --cloud-provider.
_PROVIDER_LABELS: Final[Mapping[str, frozenset[str]]] = {
    # Since Kubernetes 1.30, the cloud provider of AWS labels nodes with the zone ID (upstream's
    # pull request 8910). Upstream's list for clusterapi lacks this label.
    "aws": _AWS_LABELS | {"topology.k8s.aws/zone-id"},
    "azure": frozenset(
        {
            *_AZURE_POOLS,
            _AZURE_ZONE,
            "aksEngineVersion",
            "creationSource",
            "poolName",
            "resourceNameSuffix",
            "kubernetes.azure.com/consolidated-additional-properties",
            "kubernetes.azure.com/node-image-version",
        }
    ),
    "clusterapi": frozenset(
        {
            *_AWS_LABELS,
            *_AZURE_POOLS,
            _AZURE_ZONE,
            _GCE_ZONE,
            "ibm-cloud.kubernetes.io/vpc-instance-id",
            "ibm-cloud.kubernetes.io/worker-id",
            "topology.diskplugin.csi.alibabacloud.com/zone",
            "vpc-block-csi-driver-labels",
        }
    ),
    "gce": frozenset({_GCE_ZONE}),
}
_MEMORY: Final = "memory"
_ALWAYS_COUNTED: Final = ("cpu", _MEMORY, "ephemeral-storage", PODS)
Amounts = dict[str, int]


def are_similar(a: Template, b: Template, options: AutoscalingOptions) -> bool:
    """Return whether labels, capacity, allocatable and free resources match; taints are ignored.

    Labels that may differ between similar groups, such as the zone, are ignored. Groups of the same
    Azure node pool are always similar. If --balancing-label is set, only the labels that the flag
    names are compared: the groups are similar if both templates have these labels with equal
    values.
    """
    left, right = a.node.metadata.labels, b.node.metadata.labels
    if options.balancing_label:
        names = options.balancing_label
        return all(name in left and left.get(name) == right.get(name) for name in names)
    if options.cloud_provider == "azure" and any(
        left.get(key) and left.get(key) == right.get(key) for key in _AZURE_POOLS
    ):
        return True
    ignored = _PROVIDER_LABELS.get(options.cloud_provider, frozenset())
    return (
        _same_capacity(a, b, options.memory_difference_ratio)
        and _within(_allocatable(a), _allocatable(b), options.max_allocatable_difference_ratio)
        and _within(_free(a), _free(b), options.max_free_difference_ratio)
        and _same_labels(left, right, ignored | frozenset(options.balancing_ignore_label))
    )


def _same_labels(a: Mapping[str, str], b: Mapping[str, str], ignored: frozenset[str]) -> bool:
    keys = (a.keys() | b.keys()) - _IGNORED_LABELS - ignored
    return all(key in a and key in b and a[key] == b[key] for key in keys)


def _same_capacity(a: Template, b: Template, memory_ratio: float) -> bool:
    left = {name: milli_value(text) for name, text in a.node.status.capacity.items()}
    right = {name: milli_value(text) for name, text in b.node.status.capacity.items()}
    if left.keys() != right.keys():
        return False
    return all(
        _is_close(amount, right[name], memory_ratio) if name == _MEMORY else amount == right[name]
        for name, amount in left.items()
    )


def _within(a: Amounts, b: Amounts, ratio: float) -> bool:
    if a.keys() != b.keys():
        return False
    return all(_is_close(amount, b[name], ratio) for name, amount in a.items())


def _is_close(a: int, b: int, ratio: float) -> bool:
    larger, smaller = max(a, b), min(a, b)
    return larger - smaller <= larger * ratio


def _allocatable(template: Template) -> Amounts:
    offered = template.node.status.allocatable
    return {name: milli_value(text) for name, text in offered.items()}


def _free(template: Template) -> Amounts:
    """Return the allocatable amounts minus the requests of the template's pods.

    The amounts are in thousandths of a unit.

    As in upstream, the template's pods are not subtracted from the resource `pods`.
    """
    # upstream: compare_nodegroups.go: IsCloudProviderNodeInfoSimilar, NodeInfo.Requested
    allocatable = _allocatable(template)
    free = {name: allocatable.get(name, 0) for name in _ALWAYS_COUNTED}
    for pod in template.pods:
        for name, amount in pod_requests(pod.pod).items():
            if name != PODS:
                unit = 1 if name == "cpu" else 1000
                free[name] = free.get(name, allocatable.get(name, 0)) - amount * unit
    return free
