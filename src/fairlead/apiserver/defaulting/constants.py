"""Types whose defaults are values, whatever else the object says.

upstream: pkg/apis/{core,apps,batch,storage,scheduling,admissionregistration,apiregistration,
flowcontrol,discovery,rbac,networking}/v1/defaults.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.apiserver.defaulting.fill import Rule, filling

_FILE_MODE: Final = 0o644

_WEBHOOK: Final = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}
_MATCHING: Final = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_RBD: Final = {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}

CONSTANT_RULES: Final[Mapping[str, Rule]] = {
    # Pods of the core group.
    "v1.ContainerPort": filling(protocol="TCP"),
    "v1.HTTPGetAction": filling(path="/", scheme="HTTP"),
    "v1.GRPCAction": lambda action: action if "service" in action else {**action, "service": ""},
    "v1.Probe": filling(timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3),
    "v1.ObjectFieldSelector": filling(apiVersion="v1"),
    "v1.ServiceAccountTokenProjection": filling(expirationSeconds=3600),
    "v1.SecretVolumeSource": filling(defaultMode=_FILE_MODE),
    "v1.ConfigMapVolumeSource": filling(defaultMode=_FILE_MODE),
    "v1.DownwardAPIVolumeSource": filling(defaultMode=_FILE_MODE),
    "v1.ProjectedVolumeSource": filling(defaultMode=_FILE_MODE),
    "v1.HostPathVolumeSource": lambda path: path if "type" in path else {**path, "type": ""},
    "v1.ISCSIVolumeSource": filling(iscsiInterface="default"),
    "v1.ISCSIPersistentVolumeSource": filling(iscsiInterface="default"),
    "v1.RBDVolumeSource": filling(**_RBD),
    "v1.RBDPersistentVolumeSource": filling(**_RBD),
    "v1.ScaleIOVolumeSource": filling(storageMode="ThinProvisioned", fsType="xfs"),
    "v1.ScaleIOPersistentVolumeSource": filling(storageMode="ThinProvisioned", fsType="xfs"),
    "v1.AzureDiskVolumeSource": filling(
        cachingMode="ReadWrite", kind="Shared", fsType="ext4", readOnly=False
    ),
    # The rest of the core group.
    "v1.PersistentVolumeSpec": filling(
        persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem"
    ),
    "v1.PersistentVolumeStatus": filling(phase="Pending"),
    "v1.PersistentVolumeClaimSpec": filling(volumeMode="Filesystem"),
    "v1.PersistentVolumeClaimStatus": filling(phase="Pending"),
    "v1.NamespaceStatus": filling(phase="Active"),
    "core.v1.EndpointPort": filling(protocol="TCP"),
    # apps and batch
    "v1.ReplicaSetSpec": filling(replicas=1),
    "v1.CronJobSpec": filling(
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    ),
    "v1.PodFailurePolicyOnPodConditionsPattern": filling(status="True"),
    # storage and scheduling
    "v1.StorageClass": filling(reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    "v1.CSIDriverSpec": filling(
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        volumeLifecycleModes=["Persistent"],
        requiresRepublish=False,
        seLinuxMount=False,
    ),
    "v1.PriorityClass": filling(preemptionPolicy="PreemptLowerPriority"),
    # networks
    "discovery.v1.EndpointPort": lambda port: {"name": "", "protocol": "TCP", **port},
    "v1.NetworkPolicyPort": filling(protocol="TCP"),
    "v1.IngressClassParametersReference": filling(scope="Cluster"),
    # admission and other extensions
    "v1.MutatingWebhook": filling(**_WEBHOOK, reinvocationPolicy="Never"),
    "v1.ValidatingWebhook": filling(**_WEBHOOK),
    "v1.RuleWithOperations": filling(scope="*"),
    "v1.NamedRuleWithOperations": filling(scope="*"),
    "v1.MatchResources": filling(**_MATCHING),
    "v1.ValidatingAdmissionPolicySpec": filling(failurePolicy="Fail"),
    "v1.MutatingAdmissionPolicySpec": filling(failurePolicy="Fail"),
    "v1.ServiceReference": filling(port=443),
    # fairness
    "v1.FlowSchemaSpec": filling(matchingPrecedence=1000),
    "v1.LimitedPriorityLevelConfiguration": filling(nominalConcurrencyShares=30, lendablePercent=0),
    "v1.ExemptPriorityLevelConfiguration": filling(nominalConcurrencyShares=0, lendablePercent=0),
    "v1.QueuingConfiguration": filling(queues=64, handSize=8, queueLengthLimit=50),
}
