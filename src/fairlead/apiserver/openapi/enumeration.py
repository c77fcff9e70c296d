"""The values that some fields are limited to, which the schema tables do not have.

A row is `version.Type field`, and the values in their order.

upstream: +enum in staging/src/k8s.io/api/*/*/types.go
"""

from __future__ import annotations

from typing import Final

_TABLE: Final = """
v1.AppArmorProfile type Localhost RuntimeDefault Unconfined
v1.Container imagePullPolicy Always IfNotPresent Never
v1.Container terminationMessagePolicy FallbackToLogsOnError File
v1.ContainerPort protocol SCTP TCP UDP
v1.CronJobSpec concurrencyPolicy Allow Forbid Replace
v1.DaemonSetUpdateStrategy type OnDelete RollingUpdate
v1.DeploymentStrategy type Recreate RollingUpdate
v1.EndpointPort protocol SCTP TCP UDP
v1.EndpointSlice addressType FQDN IPv4 IPv6
v1.EphemeralContainer imagePullPolicy Always IfNotPresent Never
v1.EphemeralContainer terminationMessagePolicy FallbackToLogsOnError File
v1.HTTPGetAction scheme HTTP HTTPS
v1.HTTPIngressPath pathType Exact ImplementationSpecific Prefix
v1.JobSpec completionMode Indexed NonIndexed
v1.JobSpec podReplacementPolicy Failed TerminatingOrFailed
v1.MutatingWebhook failurePolicy Fail Ignore
v1.MutatingWebhook matchPolicy Equivalent Exact
v1.MutatingWebhook reinvocationPolicy IfNeeded Never
v1.MutatingWebhook sideEffects None NoneOnDryRun Some Unknown
v1.NamespaceStatus phase Active Terminating
v1.NodeSelectorRequirement operator DoesNotExist Exists Gt In Lt NotIn
v1.NodeStatus phase Pending Running Terminated
v1.PersistentVolumeClaimSpec volumeMode Block Filesystem
v1.PersistentVolumeClaimStatus phase Bound Lost Pending
v1.PersistentVolumeSpec persistentVolumeReclaimPolicy Delete Recycle Retain
v1.PersistentVolumeSpec volumeMode Block Filesystem
v1.PersistentVolumeStatus phase Available Bound Failed Pending Released
v1.PodDisruptionBudgetSpec unhealthyPodEvictionPolicy AlwaysAllow IfHealthyBudget
v1.PodFailurePolicyOnExitCodesRequirement operator In NotIn
v1.PodFailurePolicyRule action Count FailIndex FailJob Ignore
v1.PodSpec dnsPolicy ClusterFirst ClusterFirstWithHostNet Default None
v1.PodSpec preemptionPolicy Never PreemptLowerPriority
v1.PodSpec restartPolicy Always Never OnFailure
v1.PodStatus phase Failed Pending Running Succeeded Unknown
v1.PodStatus qosClass BestEffort Burstable Guaranteed
v1.PriorityClass preemptionPolicy Never PreemptLowerPriority
v1.ScopedResourceSelectorRequirement operator DoesNotExist Exists In NotIn
v1.SeccompProfile type Localhost RuntimeDefault Unconfined
v1.ServicePort protocol SCTP TCP UDP
v1.ServiceSpec externalTrafficPolicy Cluster Local
v1.ServiceSpec internalTrafficPolicy Cluster Local
v1.ServiceSpec ipFamilyPolicy PreferDualStack RequireDualStack SingleStack
v1.ServiceSpec sessionAffinity ClientIP None
v1.ServiceSpec type ClusterIP ExternalName LoadBalancer NodePort
v1.StatefulSetSpec podManagementPolicy OrderedReady Parallel
v1.StatefulSetUpdateStrategy type OnDelete RollingUpdate
v1.StorageClass reclaimPolicy Delete Recycle Retain
v1.StorageClass volumeBindingMode Immediate WaitForFirstConsumer
v1.Taint effect NoExecute NoSchedule PreferNoSchedule
v1.Toleration effect NoExecute NoSchedule PreferNoSchedule
v1.Toleration operator Equal Exists Gt Lt
v1.TopologySpreadConstraint nodeAffinityPolicy Honor Ignore
v1.TopologySpreadConstraint nodeTaintsPolicy Honor Ignore
v1.TopologySpreadConstraint whenUnsatisfiable DoNotSchedule ScheduleAnyway
v1.ValidatingWebhook failurePolicy Fail Ignore
v1.ValidatingWebhook matchPolicy Equivalent Exact
v1.ValidatingWebhook sideEffects None NoneOnDryRun Some Unknown
"""


def _rows() -> dict[tuple[str, str], tuple[str, ...]]:
    rows = (line.split() for line in _TABLE.strip().splitlines())
    return {(owner, name): tuple(values) for owner, name, *values in rows}


_VALUES: Final = _rows()


def values_of(definition: str, name: str) -> list[str]:
    """The values of field `name` of the type called `definition`; none where any will do."""
    owner = ".".join(definition.split(".")[-2:])
    return list(_VALUES.get((owner, name), ()))
