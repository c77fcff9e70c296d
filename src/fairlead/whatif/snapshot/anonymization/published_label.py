"""Label and annotation keys that stay in anonymized snapshots, some of them with their values.

Kubernetes, cloud providers, autoscalers and volume drivers define these keys. Decisions depend on
the keys, and on a few values. A test searches Fairlead's source for keys that this module lacks.
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.pods.original import REPLACES


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_DOMAINS: Final = _words("""
    kubernetes.io k8s.io x-k8s.io sigs.dev karpenter.sh volcano.sh fairlead.dev
    k8s.aws amazonaws.com csi.aws.com eksctl.io aws-node-termination-handler
    cloud.google.com gke.io k8s.gcp
    karpenter.azure.com kubernetes.azure.com csi.azure.com
    csi.openstack.org csi.alibabacloud.com
    openshift.io
    nvidia.com amd.com intel.com
    cilium.io istio.io
""")
"""Domains of published keys; subdomains are published, too.

The taints of cilium.io and istio.io show that a node is starting.
"""

_WITHOUT_DOMAIN: Final = frozenset(
    _words("""
    pod-template-hash controller-revision-hash pod-template-generation job-name controller-uid
    ToBeDeletedByClusterAutoscaler DeletionCandidateOfClusterAutoscaler
    agentpool poolName aksEngineVersion creationSource resourceNameSuffix lifecycle
    vpc-block-csi-driver-labels type
    """)
)
"""Keys without a domain: of workload controllers, of Cluster Autoscaler, of cloud providers.

The label `type` marks virtual nodes.
"""

WELL_KNOWN: Final = frozenset(
    _words("""
    topology.kubernetes.io/zone topology.kubernetes.io/region
    failure-domain.beta.kubernetes.io/zone failure-domain.beta.kubernetes.io/region
    topology.ebs.csi.aws.com/zone topology.disk.csi.azure.com/zone topology.gke.io/zone
    topology.cinder.csi.openstack.org/zone topology.diskplugin.csi.alibabacloud.com/zone
    kubernetes.io/arch kubernetes.io/os beta.kubernetes.io/arch beta.kubernetes.io/os
    node.kubernetes.io/instance-type beta.kubernetes.io/instance-type
    node.kubernetes.io/windows-build
    karpenter.sh/capacity-type eks.amazonaws.com/capacityType eks.amazonaws.com/compute-type
    kubernetes.azure.com/scalesetpriority
    storage.alpha.kubernetes.io/migrated-plugins cluster.x-k8s.io/owner-kind
    """)
)
"""Keys whose values are published: zones, machines, capacity types, plugins and kinds."""

_KEPT_PREFIXES: Final = _words("""
    fairlead.dev/
    karpenter.k8s.aws/instance- eks.amazonaws.com/instance- karpenter.azure.com/sku-
    karpenter.k8s.gcp/instance-
""")
"""Beginnings of keys whose values are kept: Fairlead's own, and facts about instance types."""

# The keys with such a beginning whose values are names or ids. Karpenter writes the name of the
# instance profile, which contains the name of the cluster, into an annotation of each node.
_NAMES_DESPITE_PREFIX: Final = re.compile(rf"{re.escape(REPLACES)}|.*/instance-(profile.*|id)")

_VIRTUAL_NODE: Final = ("type", "virtual-kubelet")

TIME: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9:]+)"
DURATION: Final = r"([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+"
_PLAIN_VALUE: Final = re.compile(rf"-?[0-9]+|true|false|yes|no||{TIME}|{DURATION}")
# Published labels whose values are names or hashes, even if they look like a number.
_NAMING_KEY: Final = re.compile(r".*(name|hash|uid|pool|group|queue|suffix)", re.IGNORECASE)


def is_published(key: str) -> bool:
    """Return whether Kubernetes or a known vendor defines the label or annotation key `key`.

    Anonymized snapshots keep such a key, except for parts that users choose, such as the role in
    `node-role.kubernetes.io/ROLE`.
    """
    domain, slash, _ = key.partition("/")
    if not slash:
        return not key or key in _WITHOUT_DOMAIN
    return any(domain == one or domain.endswith(f".{one}") for one in _DOMAINS)


def is_kept_value(key: str, value: str) -> bool:
    """Return whether `value`, the value of the label or annotation `key`, contains no name."""
    if key in WELL_KNOWN or (key, value) == _VIRTUAL_NODE:
        return True
    if key.startswith(_KEPT_PREFIXES):
        return not _NAMES_DESPITE_PREFIX.fullmatch(key)
    is_plain = _PLAIN_VALUE.fullmatch(value) and not _NAMING_KEY.fullmatch(key)
    return bool(is_plain) and is_published(key)
