"""How Kubernetes' Go types encode empty fields, which the published schemas do not state.

Fields are named `version.Type.field`, or `group.version.Type.field` if the types of several groups
have the same name. If a field is not a pointer and is marked "omitempty", its
zero value is omitted. A pointer is written if the client sent the field, even with an empty value.
A struct that is not a pointer is written even if it is empty.

upstream: staging/src/k8s.io/api/<group>/<version>/types.go
"""

from __future__ import annotations


def _paths(table: str) -> frozenset[str]:
    """Return the paths of the fields in `table`, which has lines of the form `Type field field`.

    A type that is written without a version has the version v1 of its group.
    """
    paths = []
    for line in table.strip().splitlines():
        owner, *fields = line.split()
        paths += [f"{owner if '.' in owner else f'v1.{owner}'}.{field}" for field in fields]
    return frozenset(paths)


# The optional numbers and booleans that are not pointers. All others are pointers.
PLAIN_NUMBERS = _paths("""
DaemonSetSpec minReadySeconds
DaemonSetStatus numberAvailable numberUnavailable updatedNumberScheduled
DeploymentSpec minReadySeconds paused
DeploymentStatus availableReplicas readyReplicas replicas unavailableReplicas updatedReplicas
ReplicaSetSpec minReadySeconds
ReplicaSetStatus availableReplicas fullyLabeledReplicas readyReplicas
StatefulSetSpec minReadySeconds
StatefulSetStatus currentReplicas readyReplicas updatedReplicas
TokenReviewStatus authenticated
SubjectAccessReviewStatus denied
ScaleSpec replicas
v2.HorizontalPodAutoscalerStatus currentReplicas
JobStatus active failed succeeded
AWSElasticBlockStoreVolumeSource partition readOnly
AzureFilePersistentVolumeSource readOnly
AzureFileVolumeSource readOnly
CSIPersistentVolumeSource readOnly
CephFSPersistentVolumeSource readOnly
CephFSVolumeSource readOnly
CinderPersistentVolumeSource readOnly
CinderVolumeSource readOnly
FCVolumeSource readOnly
FlexPersistentVolumeSource readOnly
FlexVolumeSource readOnly
GCEPersistentDiskVolumeSource partition readOnly
GlusterfsVolumeSource readOnly
GlusterfsPersistentVolumeSource readOnly
ISCSIPersistentVolumeSource chapAuthDiscovery chapAuthSession readOnly
ISCSIVolumeSource chapAuthDiscovery chapAuthSession readOnly
NFSVolumeSource readOnly
PersistentVolumeClaimVolumeSource readOnly
PortworxVolumeSource readOnly
QuobyteVolumeSource readOnly
RBDPersistentVolumeSource readOnly
RBDVolumeSource readOnly
ScaleIOPersistentVolumeSource readOnly sslEnabled
ScaleIOVolumeSource readOnly sslEnabled
StorageOSPersistentVolumeSource readOnly
StorageOSVolumeSource readOnly
Container stdin stdinOnce tty
EphemeralContainer stdin stdinOnce tty
ContainerImage sizeBytes
ContainerPort hostPort
ContainerStateTerminated signal
Event count deprecatedCount
EventSeries count
NodeSpec unschedulable
PodSpec hostIPC hostNetwork hostPID
Probe failureThreshold initialDelaySeconds periodSeconds successThreshold timeoutSeconds
ReplicationControllerSpec minReadySeconds
ReplicationControllerStatus availableReplicas fullyLabeledReplicas readyReplicas
ServicePort nodePort
ServiceSpec healthCheckNodePort publishNotReadyAddresses
VolumeMount readOnly
VolumeMountStatus readOnly
ResourcePolicyRule clusterScope
ServiceBackendPort number
DeviceSubRequest count
ExactDeviceRequest count
PriorityClass globalDefault
CustomResourceColumnDefinition priority
CustomResourceDefinitionSpec preserveUnknownFields
CustomResourceDefinitionVersion deprecated
JSONSchemaProps exclusiveMaximum exclusiveMinimum nullable uniqueItems
JSONSchemaProps x-kubernetes-embedded-resource x-kubernetes-int-or-string
ObjectMeta generation
Status code
StatusDetails retryAfterSeconds
""")

# Pointers for which an empty value and a missing value have different meanings.
KEPT = _paths("""
PersistentVolumeClaimSpec storageClassName volumeAttributesClassName volumeMode
PersistentVolumeSpec volumeAttributesClassName volumeMode
PersistentVolumeClaimStatus currentVolumeAttributesClassName
HostPathVolumeSource type
discovery.v1.EndpointPort name protocol
EndpointPort appProtocol
ServicePort appProtocol
ServiceSpec loadBalancerClass
PodSpec runtimeClassName preemptionPolicy hostnameOverride
IngressSpec ingressClassName
LeaseSpec holderIdentity strategy preferredHolder
Endpoint hostname nodeName zone
EndpointAddress nodeName
VolumeAttachmentSource persistentVolumeName
TypedObjectReference namespace
IngressClassParametersReference apiGroup namespace
AzureDiskVolumeSource cachingMode fsType kind
CSIVolumeSource fsType
WindowsSecurityContextOptions gmsaCredentialSpec gmsaCredentialSpecName runAsUserName
WebhookClientConfig url
ServiceReference path
CustomResourceDefinitionVersion deprecationWarning
JobSpec managedBy
JobStatus failedIndexes
LoadBalancerIngress ipMode
PortStatus error
IngressPortStatus error
ContainerStatus stopSignal
CronJobSpec timeZone
SeccompProfile localhostProfile
AppArmorProfile localhostProfile
PodResourceClaim resourceClaimName resourceClaimTemplateName
PodResourceClaimStatus resourceClaimName
ClusterTrustBundleProjection name signerName
DeviceClassSpec extendedResourceName
JSONSchemaProps $ref x-kubernetes-list-type x-kubernetes-map-type
ObjectMeta managedFields
Container restartPolicy
EphemeralContainer restartPolicy
TopologySpreadConstraint nodeAffinityPolicy nodeTaintsPolicy
VolumeMount mountPropagation recursiveReadOnly
VolumeMountStatus recursiveReadOnly
PodSecurityContext fsGroupChangePolicy supplementalGroupsPolicy seLinuxChangePolicy
SecurityContext procMount
Lifecycle stopSignal
PodDNSConfigOption value
PodSchedulingGroup podGroupName
LocalVolumeSource fsType
GlusterfsPersistentVolumeSource endpointsNamespace
ISCSIVolumeSource initiatorName
ISCSIPersistentVolumeSource initiatorName
JobSpec completionMode podReplacementPolicy
PodFailurePolicyOnExitCodesRequirement containerName
ServiceSpec internalTrafficPolicy ipFamilyPolicy trafficDistribution
StorageClass reclaimPolicy volumeBindingMode
CSIDriverSpec fsGroupPolicy
NetworkPolicyPort protocol
DeviceConstraint matchAttribute distinctAttribute
DeviceAttribute string version
Device nodeName
ResourceSliceSpec nodeName
CustomResourceSubresourceScale labelSelectorPath
ValidationRule reason
Validation reason
ValidatingWebhook failurePolicy matchPolicy
MutatingWebhook failurePolicy matchPolicy reinvocationPolicy
ValidatingAdmissionPolicySpec failurePolicy
MutatingAdmissionPolicySpec failurePolicy
ParamRef parameterNotFoundAction
MatchResources matchPolicy
Rule scope
RuleWithOperations scope
NamedRuleWithOperations scope
HPAScalingRules selectPolicy
v2.HPAScalingRules selectPolicy
HorizontalPodAutoscalerStatus observedGeneration
v2.HorizontalPodAutoscalerStatus observedGeneration
SuccessPolicyRule succeededIndexes
ResourceHealth message
PodDisruptionBudgetSpec unhealthyPodEvictionPolicy
AllocatedDeviceStatus shareID data
CapacityRequestPolicyRange min
DeviceRequestAllocationResult shareID
NodeAllocatableResourceMapping capacityKey
PriorityClass preemptionPolicy
IPAddressSpec parentRef
DeleteOptions propagationPolicy
Preconditions uid resourceVersion
ManagedFieldsEntry fieldsV1
""")

# Optional structs that are written even if they are empty, as are all structs that the schemas
# require.
HELD_BY_VALUE = _paths("""
PodTemplateSpec metadata spec
JobTemplateSpec metadata spec
PersistentVolumeClaimTemplate metadata spec
ResourceClaimTemplateSpec metadata spec
PodTemplate template
Container resources
EphemeralContainer resources
PersistentVolumeClaimSpec resources
DeploymentSpec strategy
StatefulSetSpec updateStrategy
DaemonSetSpec updateStrategy
ReplicaSetSpec template
NodeStatus daemonEndpoints nodeInfo
NodeDaemonEndpoints kubeletEndpoint
ServiceStatus loadBalancer
IngressStatus loadBalancer
ContainerStatus state lastState
Event source deprecatedSource regarding
Endpoint conditions
ResourceClaimSpec devices
AllocationResult devices
LimitedPriorityLevelConfiguration limitResponse
CustomResourceDefinitionStatus acceptedNames
NetworkPolicySpec podSelector
IngressServiceBackend port
TokenReviewStatus user
SelfSubjectReviewStatus userInfo
""")

# Fields that are written even if they are empty, although the schemas do not require them.
EMITTED = _paths("""
PodDisruptionBudgetStatus disruptionsAllowed currentHealthy desiredHealthy expectedPods
PriorityClass value
StatefulSetStatus availableReplicas
core.v1.Event firstTimestamp lastTimestamp eventTime reportingComponent reportingInstance
events.v1.Event eventTime deprecatedFirstTimestamp deprecatedLastTimestamp
EventSeries lastObservedTime
PodCondition lastProbeTime lastTransitionTime
NodeCondition lastHeartbeatTime lastTransitionTime
ContainerStateRunning startedAt
ContainerStateTerminated startedAt finishedAt
DeploymentCondition lastUpdateTime lastTransitionTime
ReplicaSetCondition lastTransitionTime
ReplicationControllerCondition lastTransitionTime
StatefulSetCondition lastTransitionTime
DaemonSetCondition lastTransitionTime
JobCondition lastProbeTime lastTransitionTime
PersistentVolumeClaimCondition lastProbeTime lastTransitionTime
HorizontalPodAutoscalerCondition lastTransitionTime
v2.HorizontalPodAutoscalerCondition lastTransitionTime
v2.HorizontalPodAutoscalerStatus currentMetrics desiredReplicas
NamespaceCondition lastTransitionTime
CustomResourceDefinitionCondition lastTransitionTime
CustomResourceDefinitionStatus conditions storedVersions
APIServiceCondition lastTransitionTime
CertificateSigningRequestCondition lastUpdateTime lastTransitionTime
FlowSchemaCondition lastTransitionTime
PriorityLevelConfigurationCondition lastTransitionTime
VolumeError time
ResourceFieldSelector divisor
Role rules
ClusterRole rules
RoleRef apiGroup
DeviceClaim requests
StatefulSetSpec serviceName
EndpointSlice ports endpoints
StatefulSetOrdinals start
PodFailurePolicyOnPodConditionsPattern status
ContainerImage names
NodeRuntimeHandler name
ProjectedVolumeSource sources
ServicePort targetPort
TokenRequestSpec audiences
TokenRequestStatus token expirationTimestamp
FlowSchemaSpec matchingPrecedence
QueuingConfiguration queues handSize queueLengthLimit
ResourcePolicyRule namespaces
AllocatedDeviceStatus conditions
CSINodeDriver topologyKeys
""")

# Fields that are written as null if they are not set.
POINTERS = _paths("""
TokenRequestSpec boundObjectRef expirationSeconds
ControllerRevision data
DaemonSetSpec selector
DeploymentSpec selector
ReplicaSetSpec selector
StatefulSetSpec selector
ScaleIOPersistentVolumeSource secretRef
ScaleIOVolumeSource secretRef
AzureFilePersistentVolumeSource secretNamespace
GRPCAction service
TypedLocalObjectReference apiGroup
TypedObjectReference apiGroup
HTTPIngressPath pathType
IngressClassParametersReference scope
ValidatingWebhook sideEffects
MutatingWebhook sideEffects
LimitedPriorityLevelConfiguration nominalConcurrencyShares
CapacityRequestPolicy default
""")

# Fields that the schemas require, but that are omitted if they are empty.
DROPPED = _paths("""
ValidatingAdmissionPolicyBindingSpec validationActions policyName
ParentReference resource name
TokenReviewSpec token
ContainerRestartRule action
ContainerRestartRuleOnExitCodes operator
ImageVolumeStatus imageRef
PodCertificateProjection signerName keyType
CounterSet counters
DeviceCounterConsumption counters
""")

# The values that missing keys have when the items of an associative list are compared.
KEY_DEFAULTS = {
    "v1.ContainerPort": {"protocol": "TCP"},
    "v1.LocalObjectReference": {"name": ""},
    "v1.ServicePort": {"protocol": "TCP"},
}
