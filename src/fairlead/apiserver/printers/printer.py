"""The printer of each built-in kind, by the name of the kind.

No two API groups have different printers for kinds of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.apiserver.printers import api_machinery, core, network, storage, workload
from fairlead.apiserver.printers.autoscaling import HORIZONTAL_POD_AUTOSCALER
from fairlead.apiserver.printers.column import Printer
from fairlead.apiserver.printers.metrics import NODE_METRICS, POD_METRICS
from fairlead.apiserver.printers.pod import POD

PRINTERS: Final[Mapping[str, Printer]] = {
    "APIService": api_machinery.API_SERVICE,
    "CSIDriver": storage.CSI_DRIVER,
    "CSINode": storage.CSI_NODE,
    "CertificateSigningRequest": core.CERTIFICATE_SIGNING_REQUEST,
    "ClusterRoleBinding": api_machinery.ROLE_BINDING,
    "ComponentStatus": core.COMPONENT_STATUS,
    "ConfigMap": core.CONFIG_MAP,
    "ControllerRevision": workload.CONTROLLER_REVISION,
    "CronJob": workload.CRON_JOB,
    "DaemonSet": workload.DAEMON_SET,
    "Deployment": workload.DEPLOYMENT,
    "DeviceClass": core.NAMED,
    "EndpointSlice": network.ENDPOINT_SLICE,
    "Endpoints": network.ENDPOINTS,
    "Event": core.EVENT,
    "FlowSchema": api_machinery.FLOW_SCHEMA,
    "HorizontalPodAutoscaler": HORIZONTAL_POD_AUTOSCALER,
    "IPAddress": network.IP_ADDRESS,
    "Ingress": network.INGRESS,
    "IngressClass": network.INGRESS_CLASS,
    "Job": workload.JOB,
    "Lease": core.LEASE,
    "MutatingAdmissionPolicy": api_machinery.MUTATING_POLICY,
    "MutatingAdmissionPolicyBinding": api_machinery.POLICY_BINDING,
    "MutatingWebhookConfiguration": api_machinery.WEBHOOKS,
    "Namespace": core.NAMESPACE,
    "NetworkPolicy": network.NETWORK_POLICY,
    "Node": core.NODE,
    "NodeMetrics": NODE_METRICS,
    "PersistentVolume": storage.PERSISTENT_VOLUME,
    "PersistentVolumeClaim": storage.PERSISTENT_VOLUME_CLAIM,
    "Pod": POD,
    "PodDisruptionBudget": core.POD_DISRUPTION_BUDGET,
    "PodMetrics": POD_METRICS,
    "PodTemplate": workload.POD_TEMPLATE,
    "PriorityClass": core.PRIORITY_CLASS,
    "PriorityLevelConfiguration": api_machinery.PRIORITY_LEVEL,
    "ReplicaSet": workload.REPLICA_SET,
    "ReplicationController": workload.REPLICATION_CONTROLLER,
    "ResourceClaim": storage.RESOURCE_CLAIM,
    "ResourceClaimTemplate": core.NAMED,
    "ResourceQuota": core.RESOURCE_QUOTA,
    "ResourceSlice": storage.RESOURCE_SLICE,
    "RoleBinding": api_machinery.ROLE_BINDING,
    "RuntimeClass": core.RUNTIME_CLASS,
    "Scale": workload.SCALE,
    "Secret": core.SECRET,
    "Service": network.SERVICE,
    "ServiceAccount": core.NAMED,
    "ServiceCIDR": network.SERVICE_CIDR,
    "StatefulSet": workload.STATEFUL_SET,
    "StorageClass": storage.STORAGE_CLASS,
    "ValidatingAdmissionPolicy": api_machinery.VALIDATING_POLICY,
    "ValidatingAdmissionPolicyBinding": api_machinery.POLICY_BINDING,
    "ValidatingWebhookConfiguration": api_machinery.WEBHOOKS,
    "VolumeAttachment": storage.VOLUME_ATTACHMENT,
    "VolumeAttributesClass": storage.VOLUME_ATTRIBUTES_CLASS,
}
# Kinds without a printer show their creation time.
DEFAULT: Final = core.DATED
# The printer of custom resources without columns.
CUSTOM: Final = core.NAMED


def printer_of(kind: str) -> Printer:
    """The printer of a built-in kind."""
    return PRINTERS.get(kind, DEFAULT)
