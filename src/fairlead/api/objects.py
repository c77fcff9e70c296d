"""Typed, frozen views of the Kubernetes objects that Fairlead reads.

A view contains only the fields that Fairlead reads; the store keeps the full JSON.
`fairlead.api.codec` decodes views from JSON without nulls, once per object. Field names are
upstream's names in snake_case. Quantities and RFC 3339 timestamps stay text, which
`fairlead.api.quantity` and `fairlead.api.timestamp` parse.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.api.json import Json
from fairlead.api.reported_status import (
    CronJobStatus,
    DaemonSetStatus,
    DeploymentStatus,
    HorizontalPodAutoscalerStatus,
    NamespaceStatus,
    ReplicaSetStatus,
    ReportedCondition,
    StatefulSetStatus,
)

QuantityText = str | int | float
ResourceList = dict[str, QuantityText]
IntOrString = int | str


class _View(
    msgspec.Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True, gc=False
):
    """The common settings of all views.

    Python's garbage collector does not track views, because JSON values cannot form cycles.
    """


class OwnerReference(_View, frozen=True, cache_hash=True):
    """An entry of metadata.ownerReferences."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(_View, frozen=True):
    """The field `metadata` of every object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()
    resource_version: str = ""
    generation: int = 0


# --- selectors -----------------------------------------------------------------------------


class LabelSelectorRequirement(_View, frozen=True):
    """An entry of matchExpressions; the operator is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(_View, frozen=True):
    """metav1.LabelSelector; an empty selector matches everything, and None matches nothing."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorRequirement(_View, frozen=True):
    """A requirement on a node; the operator is In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(_View, frozen=True):
    """Requirements that must all be met; a term without requirements matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(_View, frozen=True):
    """A selector that matches a node if at least one of the selector's terms matches."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(_View, frozen=True):
    """A node selector term and its weight (1..100)."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(_View, frozen=True):
    """The field spec.affinity.nodeAffinity."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(_View, frozen=True):
    """A pod affinity or anti-affinity term.

    In a stored pod, `label_selector` already contains the requirements that follow from
    `match_label_keys` and `mismatch_label_keys`. The API server adds these requirements when the
    pod is created.
    """

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(_View, frozen=True):
    """A pod affinity term and its weight (1..100)."""

    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(_View, frozen=True):
    """The field podAffinity or podAntiAffinity of spec.affinity; the two have the same form."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(_View, frozen=True):
    """The field spec.affinity of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(_View, frozen=True):
    """One entry of spec.topologySpreadConstraints."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None  # if missing, Honor
    node_taints_policy: str | None = None  # if missing, Ignore
    match_label_keys: tuple[str, ...] = ()


# --- pods ----------------------------------------------------------------------------------


class Taint(_View, frozen=True):
    """An entry of spec.taints of a node."""

    key: str
    effect: str
    value: str = ""
    time_added: str = ""


class Toleration(_View, frozen=True):
    """An entry of tolerations; an empty effect means all effects, an empty operator means Equal."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class ResourceRequirements(_View, frozen=True):
    """Requests and limits of a container; also the form of status.containerStatuses[].resources."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[Json, ...] = ()


class ContainerPort(_View, frozen=True):
    """An entry of a container's ports.

    The scheduler reads only the host port. A Service can refer to a port by its name.
    """

    name: str = ""
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = "TCP"


class ContainerRestartRule(_View, frozen=True):
    """The action of an entry of restartPolicyRules: what to do when a container exits."""

    action: str = ""


class Container(_View, frozen=True):
    """A container or init container; an init container with restart_policy Always is a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    stdin_once: bool = False


class ImageVolumeSource(_View, frozen=True):
    """The field volumes[].image."""

    reference: str = ""


class PersistentVolumeClaimSource(_View, frozen=True):
    """The field volumes[].persistentVolumeClaim."""

    claim_name: str = ""


class EphemeralVolumeSource(_View, frozen=True):
    """The field volumes[].ephemeral: a claim that is created and deleted together with the pod."""

    volume_claim_template: Json = {}


class CSISource(_View, frozen=True):
    """The field csi of a PersistentVolume or a pod's volume; a pod's volume has no handle."""

    driver: str = ""
    volume_handle: str = ""


class GCEPersistentDiskSource(_View, frozen=True):
    """The field gcePersistentDisk of a volume or PersistentVolume."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreSource(_View, frozen=True):
    """The field awsElasticBlockStore of a volume or PersistentVolume."""

    volume_id: str = msgspec.field(name="volumeID", default="")


class AzureDiskSource(_View, frozen=True):
    """The field azureDisk of a volume or PersistentVolume."""

    disk_uri: str = msgspec.field(name="diskURI", default="")


class VolumeIdSource(_View, frozen=True):
    """The field cinder or portworxVolume of a volume or PersistentVolume."""

    volume_id: str = msgspec.field(name="volumeID", default="")


class ISCSISource(_View, frozen=True):
    """The field volumes[].iscsi."""

    iqn: str = ""
    read_only: bool = False


class RBDSource(_View, frozen=True):
    """The field volumes[].rbd."""

    monitors: tuple[str, ...] = ()
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class EmptyDirSource(_View, frozen=True):
    """The field volumes[].emptyDir; with medium Memory, nothing is stored on the node's disk."""

    medium: str = ""


class HostPathSource(_View, frozen=True):
    """The field volumes[].hostPath."""


class ProjectedSource(_View, frozen=True):
    """The field volumes[].projected, used for example for the token that every pod gets."""


class Volume(_View, frozen=True):
    """A volume with the sources that Fairlead reads; other sources are left out."""

    name: str = ""
    image: ImageVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    csi: CSISource | None = None
    gce_persistent_disk: GCEPersistentDiskSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreSource | None = None
    azure_disk: AzureDiskSource | None = None
    azure_file: Json | None = None
    cinder: VolumeIdSource | None = None
    portworx_volume: VolumeIdSource | None = None
    vsphere_volume: Json | None = None
    iscsi: ISCSISource | None = None
    rbd: RBDSource | None = None
    empty_dir: EmptyDirSource | None = None
    host_path: HostPathSource | None = None
    projected: ProjectedSource | None = None


class PodSchedulingGate(_View, frozen=True):
    """An entry of schedulingGates."""

    name: str


class PodReadinessGate(_View, frozen=True):
    """An entry of readinessGates: a condition that must be true for the pod to be ready."""

    condition_type: str = ""


class SchedulingGroup(_View, frozen=True):
    """The field spec.schedulingGroup of a pod: the name of its PodGroup (scheduling.k8s.io)."""

    pod_group_name: str | None = None


class PodResourceClaim(_View, frozen=True):
    """An entry of spec.resourceClaims: a ResourceClaim by name, or one created from a template."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(_View, frozen=True):
    """The spec of a pod."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    hostname: str = ""
    subdomain: str = ""
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    restart_policy: str = "Always"
    runtime_class_name: str = ""


class PodCondition(_View, frozen=True):
    """An entry of status.conditions of a pod, and of most other kinds."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class ContainerTermination(_View, frozen=True):
    """The field state.terminated of a container, with a `reason` such as OOMKilled."""

    exit_code: int = 0
    reason: str = ""
    finished_at: str = ""


class ContainerWaiting(_View, frozen=True):
    """The field state.waiting of a container, with a `reason` such as ContainerCreating."""

    reason: str = ""


class ContainerState(_View, frozen=True):
    """The field status.containerStatuses[].state, without `running`."""

    waiting: ContainerWaiting | None = None
    terminated: ContainerTermination | None = None


class ContainerStatus(_View, frozen=True):
    """An entry of status.containerStatuses: restarts, state, actual and allocated resources."""

    name: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodResourceClaimStatus(_View, frozen=True):
    """An entry of status.resourceClaimStatuses; the claim name is "" if no claim was created."""

    name: str = ""
    resource_claim_name: str = ""


class ContainerExtendedResourceRequest(_View, frozen=True):
    """An entry of requestMappings: which device request serves a container's extended resource."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(_View, frozen=True):
    """The claim that the scheduler created for extended resources that devices provide."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodStatus(_View, frozen=True):
    """The status of a pod.

    `observed_generation` is the metadata.generation of the spec that the status reflects.
    """

    observed_generation: int = 0
    phase: str = ""
    reason: str = ""
    start_time: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class _Object(_View, frozen=True):
    """The fields of every API object."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> str:
        """The key `namespace/name`, or `name` for cluster-scoped kinds."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class Pod(_Object, frozen=True):
    """v1 Pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


# --- nodes ---------------------------------------------------------------------------------


class NodeSpec(_View, frozen=True):
    """The spec of a node."""

    provider_id: str = msgspec.field(name="providerID", default="")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(_View, frozen=True):
    """An entry of a node's status.images; an image can have several names."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeCondition(PodCondition, frozen=True):
    """An entry of status.conditions of a node."""

    last_heartbeat_time: str = ""


class NodeSystemInfo(_View, frozen=True):
    """Facts about a node's machine and software."""

    container_runtime_version: str = ""
    kubelet_version: str = ""


class NodeStatus(_View, frozen=True):
    """The status of a node."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()
    declared_features: tuple[str, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(_Object, frozen=True):
    """v1 Node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class LeaseSpec(_View, frozen=True):
    """The spec of a Lease."""

    renew_time: str = ""


class Lease(_Object, frozen=True):
    """coordination.k8s.io/v1 Lease; the Lease of the node `a` is `kube-node-lease/a`."""

    spec: LeaseSpec = LeaseSpec()


# --- policy --------------------------------------------------------------------------------


class Namespace(_Object, frozen=True):
    """v1 Namespace."""

    status: NamespaceStatus = {}


class PriorityClass(_Object, frozen=True):
    """scheduling.k8s.io/v1 PriorityClass."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""
    description: str = ""


class PodDisruptionBudgetSpec(_View, frozen=True):
    """The spec of a PodDisruptionBudget."""

    selector: LabelSelector | None = None
    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(_View, frozen=True):
    """The status of a PodDisruptionBudget."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str] = {}
    conditions: tuple[ReportedCondition, ...] = ()


class PodDisruptionBudget(_Object, frozen=True):
    """policy/v1 PodDisruptionBudget."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


# --- workloads -----------------------------------------------------------------------------


class ServicePort(_View, frozen=True):
    """An entry of spec.ports of a Service; the target is the number or name of a container port."""

    name: str = ""
    port: int = 0
    protocol: str = "TCP"
    target_port: IntOrString | None = None
    app_protocol: str | None = None


class ServiceSpec(_View, frozen=True):
    """The spec of a Service."""

    selector: dict[str, str] = {}
    ports: tuple[ServicePort, ...] = ()
    type: str = "ClusterIP"
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    publish_not_ready_addresses: bool = False
    traffic_distribution: str = ""


class Service(_Object, frozen=True):
    """v1 Service."""

    spec: ServiceSpec = ServiceSpec()


class EndpointSlice(_Object, frozen=True):
    """discovery.k8s.io/v1 EndpointSlice; endpoints and ports are kept as JSON."""

    address_type: str = "IPv4"
    endpoints: tuple[Json, ...] = ()
    ports: tuple[Json, ...] = ()


class Endpoints(_Object, frozen=True):
    """v1 Endpoints, one per Service; EndpointSlices replace this kind."""

    subsets: tuple[Json, ...] = ()


class ReplicationControllerSpec(_View, frozen=True):
    """The spec of a ReplicationController; its selector is a plain label map."""

    replicas: int = 1
    min_ready_seconds: int = 0
    selector: dict[str, str] = {}
    template: Json = {}


class ReplicationController(_Object, frozen=True):
    """v1 ReplicationController."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicaSetStatus = {}


class RollingUpdate(_View, frozen=True):
    """The field rollingUpdate of a Deployment, StatefulSet or DaemonSet.

    If `max_surge` or `max_unavailable` is None, the default of the kind applies.
    """

    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    partition: int = 0


class UpdateStrategy(_View, frozen=True):
    """The field `strategy` of a Deployment, or `updateStrategy` of a StatefulSet or DaemonSet."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class Ordinals(_View, frozen=True):
    """The field spec.ordinals of a StatefulSet."""

    start: int = 0


class ClaimRetentionPolicy(_View, frozen=True):
    """The field spec.persistentVolumeClaimRetentionPolicy of a StatefulSet.

    Each member is `Retain` or `Delete`.
    """

    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class WorkloadSpec(_View, frozen=True):
    """The spec of a ReplicaSet, Deployment, StatefulSet or DaemonSet; templates are kept as JSON.

    Only Deployments have `strategy`, `progress_deadline_seconds` and `paused`. Only StatefulSets
    and DaemonSets have `update_strategy`. Only StatefulSets have the fields below
    `update_strategy`.
    """

    replicas: int = 1
    min_ready_seconds: int = 0
    selector: LabelSelector | None = None
    template: Json = {}
    revision_history_limit: int = 10
    strategy: UpdateStrategy = UpdateStrategy()
    progress_deadline_seconds: int = 600
    paused: bool = False
    update_strategy: UpdateStrategy = UpdateStrategy()
    service_name: str = ""
    volume_claim_templates: tuple[Json, ...] = ()
    pod_management_policy: str = "OrderedReady"
    ordinals: Ordinals = Ordinals()
    persistent_volume_claim_retention_policy: ClaimRetentionPolicy = ClaimRetentionPolicy()


class ReplicaSet(_Object, frozen=True):
    """apps/v1 ReplicaSet."""

    spec: WorkloadSpec = WorkloadSpec()
    status: ReplicaSetStatus = {}


class Deployment(_Object, frozen=True):
    """apps/v1 Deployment."""

    spec: WorkloadSpec = WorkloadSpec()
    status: DeploymentStatus = {}


class StatefulSet(_Object, frozen=True):
    """apps/v1 StatefulSet."""

    spec: WorkloadSpec = WorkloadSpec()
    status: StatefulSetStatus = {}


class DaemonSet(_Object, frozen=True):
    """apps/v1 DaemonSet."""

    spec: WorkloadSpec = WorkloadSpec()
    status: DaemonSetStatus = {}


class ControllerRevision(_Object, frozen=True):
    """apps/v1 ControllerRevision: a stored version of a StatefulSet's or DaemonSet's template."""

    revision: int = 0
    data: Json = {}


class OnExitCodes(_View, frozen=True):
    """The field onExitCodes of a `PodFailurePolicyRule`.

    If `container_name` is None, all containers count.
    """

    container_name: str | None = None
    operator: str = "In"
    values: tuple[int, ...] = ()


class OnPodCondition(_View, frozen=True):
    """An entry of the field onPodConditions of a `PodFailurePolicyRule`."""

    type: str
    status: str = "True"


class PodFailurePolicyRule(_View, frozen=True):
    """An entry of podFailurePolicy.rules: the consequence of a pod's failure for its Job."""

    action: str
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: tuple[OnPodCondition, ...] = ()


class PodFailurePolicy(_View, frozen=True):
    """The field spec.podFailurePolicy of a Job; the first rule that matches applies."""

    rules: tuple[PodFailurePolicyRule, ...] = ()


class SuccessPolicyRule(_View, frozen=True):
    """An entry of successPolicy.rules, which is met when enough indexes of a Job have succeeded.

    At least `succeeded_count` of the indexes in `succeeded_indexes` must have succeeded. If
    `succeeded_count` is None, all of these indexes must have succeeded. If `succeeded_indexes` is
    None, all indexes of the Job are meant.
    """

    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(_View, frozen=True):
    """The field spec.successPolicy of a Job."""

    rules: tuple[SuccessPolicyRule, ...] = ()


class JobSpec(_View, frozen=True):
    """The spec of a Job."""

    parallelism: int = 1
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    pod_replacement_policy: str = ""
    managed_by: str = ""
    selector: LabelSelector | None = None
    template: Json = {}


class JobCondition(PodCondition, frozen=True):
    """An entry of status.conditions of a Job."""

    last_probe_time: str = ""


class UncountedPods(_View, frozen=True):
    """The field status.uncountedTerminatedPods of a Job, as uids."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(_View, frozen=True):
    """The status of a Job."""

    active: int = 0
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    failed: int = 0
    start_time: str = ""
    completion_time: str = ""
    completed_indexes: str = ""
    failed_indexes: str = ""
    uncounted_terminated_pods: UncountedPods = UncountedPods()
    conditions: tuple[JobCondition, ...] = ()


class Job(_Object, frozen=True):
    """batch/v1 Job."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class CronJobSpec(_View, frozen=True):
    """The spec of a CronJob; `job_template` contains the metadata and spec of its Jobs."""

    schedule: str = ""
    time_zone: str = ""
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    successful_jobs_history_limit: int = 3
    failed_jobs_history_limit: int = 1
    job_template: Json = {}


class CronJob(_Object, frozen=True):
    """batch/v1 CronJob."""

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = {}


class CrossVersionObjectReference(_View, frozen=True):
    """The field spec.scaleTargetRef of a HorizontalPodAutoscaler."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class MetricTarget(_View, frozen=True):
    """The `target` of a metric; `average_utilization` is a percentage of the pods' requests.

    Only validation reads `type`. The autoscaler uses `average_value` if it is set, otherwise
    `average_utilization`.
    """

    type: str = ""
    average_utilization: int | None = None
    average_value: QuantityText | None = None


class MetricSource(_View, frozen=True):
    """The source of a metric: resource, containerResource, pods, object or external.

    The sources `resource` and `containerResource` have the field `name`, and `containerResource`
    also has `container`. The sources `pods`, `object` and `external` have `metric`.
    """

    name: str = ""
    container: str = ""
    target: MetricTarget = MetricTarget()
    metric: Json = {}
    described_object: CrossVersionObjectReference = CrossVersionObjectReference()


class MetricSpec(_View, frozen=True):
    """An entry of spec.metrics of a HorizontalPodAutoscaler; `type` says which source is set."""

    type: str = ""
    resource: MetricSource = MetricSource()
    container_resource: MetricSource = MetricSource()
    pods: MetricSource = MetricSource()
    object: MetricSource = MetricSource()
    external: MetricSource = MetricSource()


class ScalingPolicy(_View, frozen=True):
    """An entry of policies in scaling rules: how far the replica count may change in a period.

    `value` is a number of pods or a percentage, depending on `type`.
    """

    type: str = ""
    value: int = 0
    period_seconds: int = 0


class ScalingRules(_View, frozen=True):
    """The field behavior.scaleUp or behavior.scaleDown; `tolerance` is a fraction of the target."""

    stabilization_window_seconds: int | None = None
    select_policy: str = "Max"
    policies: tuple[ScalingPolicy, ...] = ()
    tolerance: QuantityText | None = None


class ScalingBehavior(_View, frozen=True):
    """The field spec.behavior of a HorizontalPodAutoscaler."""

    scale_up: ScalingRules = ScalingRules()
    scale_down: ScalingRules = ScalingRules()


class HorizontalPodAutoscalerSpec(_View, frozen=True):
    """The spec of a HorizontalPodAutoscaler."""

    scale_target_ref: CrossVersionObjectReference = CrossVersionObjectReference()
    min_replicas: int = 1
    max_replicas: int = 0
    metrics: tuple[MetricSpec, ...] = ()
    behavior: ScalingBehavior | None = None


class HorizontalPodAutoscaler(_Object, frozen=True):
    """autoscaling/v2 HorizontalPodAutoscaler."""

    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = {}


# --- storage -------------------------------------------------------------------------------


class ObjectReference(_View, frozen=True):
    """The field claimRef of a PersistentVolume."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(_View, frozen=True):
    """The field nodeAffinity of a PersistentVolume: the nodes that can access the volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(_View, frozen=True):
    """The spec of a PersistentVolume; only some volume sources are read."""

    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str = ""
    persistent_volume_reclaim_policy: str = "Retain"
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSISource | None = None
    gce_persistent_disk: GCEPersistentDiskSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreSource | None = None
    azure_disk: AzureDiskSource | None = None
    cinder: VolumeIdSource | None = None
    portworx_volume: VolumeIdSource | None = None
    local: Json | None = None
    host_path: Json | None = None


class PersistentVolumeStatus(_View, frozen=True):
    """The status of a PersistentVolume."""

    phase: str = ""


class PersistentVolume(_Object, frozen=True):
    """v1 PersistentVolume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimSpec(_View, frozen=True):
    """The spec of a PersistentVolumeClaim.

    If `storage_class_name` is "", the claim needs a volume without a storage class. If it is None,
    the default StorageClass may be set later.
    """

    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str = ""


class ModifyVolumeStatus(_View, frozen=True):
    """The change of a volume to another VolumeAttributesClass."""

    target_volume_attributes_class_name: str = ""


class PersistentVolumeClaimStatus(_View, frozen=True):
    """The status of a PersistentVolumeClaim."""

    phase: str = ""
    capacity: ResourceList = {}
    current_volume_attributes_class_name: str = ""
    modify_volume_status: ModifyVolumeStatus | None = None


class PersistentVolumeClaim(_Object, frozen=True):
    """v1 PersistentVolumeClaim."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologySelectorLabelRequirement(_View, frozen=True):
    """A requirement that the label `key` has one of `values`."""

    key: str
    values: tuple[str, ...] = ()


class TopologySelectorTerm(_View, frozen=True):
    """Requirements that must all be met; a term without requirements matches nothing."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(_Object, frozen=True):
    """storage.k8s.io/v1 StorageClass."""

    provisioner: str = ""
    reclaim_policy: str = "Delete"
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(_View, frozen=True):
    """The volume limit of a CSINode's driver; `count` is None if there is no limit."""

    count: int | None = None


class CSINodeDriver(_View, frozen=True):
    """An entry of spec.drivers of a CSINode."""

    name: str
    allocatable: VolumeNodeResources = VolumeNodeResources()
    topology_keys: tuple[str, ...] = ()


class CSINodeSpec(_View, frozen=True):
    """The spec of a CSINode."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(_Object, frozen=True):
    """storage.k8s.io/v1 CSINode; it has the same name as its Node."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(_View, frozen=True):
    """The spec of a CSIDriver."""

    attach_required: bool = True
    storage_capacity: bool = False


class CSIDriver(_Object, frozen=True):
    """storage.k8s.io/v1 CSIDriver."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(_Object, frozen=True):
    """storage.k8s.io/v1 CSIStorageCapacity: a storage class's free capacity in one topology."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: QuantityText | None = None
    maximum_volume_size: QuantityText | None = None


class VolumeAttachmentSource(_View, frozen=True):
    """The field spec.source of a VolumeAttachment."""

    persistent_volume_name: str = ""


class VolumeAttachmentSpec(_View, frozen=True):
    """The spec of a VolumeAttachment."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(_Object, frozen=True):
    """storage.k8s.io/v1 VolumeAttachment."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


# --- devices -------------------------------------------------------------------------------


class CELSelector(_View, frozen=True):
    """The field selectors[].cel: a CEL expression over `device` that returns a boolean."""

    expression: str = ""


class DeviceSelector(_View, frozen=True):
    """An entry of the field `selectors` of a DeviceRequest or a DeviceClass."""

    cel: CELSelector | None = None


class DeviceToleration(_View, frozen=True):
    """An entry of tolerations of a device request."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(_View, frozen=True):
    """The field `capacity` of a device request: `requests` maps capacity names to amounts."""

    requests: dict[str, QuantityText] = {}


class ExactDeviceRequest(_View, frozen=True):
    """The field requests[].exactly: a request for devices of one class.

    If `capacity` is set, each device must provide the amounts that `capacity` states.
    """

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(ExactDeviceRequest, frozen=True):
    """An entry of requests[].firstAvailable; the scheduler tries the entries in order."""

    name: str = ""


class DeviceRequest(_View, frozen=True):
    """An entry of spec.devices.requests; either `exactly` or `first_available` is set."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(_View, frozen=True):
    """An entry of spec.devices.constraints: a rule on attributes of the devices of some requests.

    If `match_attribute` is set, the devices must have equal values of this attribute. If
    `distinct_attribute` is set, they must have different values of this attribute. If `requests` is
    empty, the constraint applies to all requests.
    """

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(_View, frozen=True):
    """The field spec.devices of a ResourceClaim; `config` is passed to the drivers."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[Json, ...] = ()


class ResourceClaimSpec(_View, frozen=True):
    """The spec of a ResourceClaim."""

    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(_View, frozen=True):
    """An entry of status.allocation.devices.results."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    share_id: str = msgspec.field(name="shareID", default="")
    consumed_capacity: dict[str, QuantityText] = {}
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


class AllocatedDevices(_View, frozen=True):
    """The field status.allocation.devices of a ResourceClaim."""

    results: tuple[AllocatedDevice, ...] = ()
    config: tuple[Json, ...] = ()


class ClaimAllocation(_View, frozen=True):
    """The field status.allocation of a ResourceClaim: the allocated devices.

    `node_selector` selects the nodes that can access the devices; None means all nodes.
    """

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str = ""


class ClaimConsumer(_View, frozen=True):
    """An entry of status.reservedFor of a ResourceClaim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(_View, frozen=True):
    """The status of a ResourceClaim."""

    allocation: ClaimAllocation | None = None
    reserved_for: tuple[ClaimConsumer, ...] = ()
    devices: tuple[Json, ...] = ()


class ResourceClaim(_Object, frozen=True):
    """resource.k8s.io/v1 ResourceClaim."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplate(_Object, frozen=True):
    """resource.k8s.io/v1 ResourceClaimTemplate.

    `spec` contains the metadata and the spec of the claims that are made from the template.
    """

    spec: Json = {}


class DeviceClassSpec(_View, frozen=True):
    """The spec of a DeviceClass.

    A pod can request devices of the class without a claim, as the extended resource
    `extended_resource_name`.
    """

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[Json, ...] = ()
    extended_resource_name: str = ""


class DeviceClass(_Object, frozen=True):
    """resource.k8s.io/v1 DeviceClass."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceAttribute(_View, frozen=True):
    """An attribute of a device; exactly one field is set."""

    int_value: int | None = msgspec.field(name="int", default=None)
    bool_value: bool | None = msgspec.field(name="bool", default=None)
    string_value: str | None = msgspec.field(name="string", default=None)
    version_value: str | None = msgspec.field(name="version", default=None)


class CapacityRange(_View, frozen=True):
    """The field validRange of a request policy: amounts from `min` to `max` in steps of `step`."""

    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityRequestPolicy(_View, frozen=True):
    """The field requestPolicy of a capacity: the amounts that a request may consume."""

    default: QuantityText | None = None
    valid_values: tuple[QuantityText, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(_View, frozen=True):
    """A capacity of a device; its request policy applies only if the device can be shared."""

    value: QuantityText = 0
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(_View, frozen=True):
    """An entry of taints of a device."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str = ""


class Counter(_View, frozen=True):
    """An amount of a resource that the devices of a pool share."""

    value: str | int | float = 0


class CounterSet(_View, frozen=True):
    """An entry of spec.sharedCounters of a ResourceSlice: capacity shared by a pool's devices."""

    name: str = ""
    counters: dict[str, Counter] = {}


class CounterConsumption(_View, frozen=True):
    """An entry of consumesCounters: the amounts of a counter set that an allocated device uses."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}


class Device(_View, frozen=True):
    """An entry of spec.devices of a ResourceSlice."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    taints: tuple[DeviceTaint, ...] = ()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    consumes_counters: tuple[CounterConsumption, ...] = ()
    allow_multiple_allocations: bool = False
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


class ResourcePool(_View, frozen=True):
    """The field spec.pool of a ResourceSlice.

    The pool is complete if it has `resource_slice_count` slices of its newest generation.
    """

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(_View, frozen=True):
    """The spec of a ResourceSlice."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(_Object, frozen=True):
    """resource.k8s.io/v1 ResourceSlice: a part of a driver's devices."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(_View, frozen=True):
    """The field deviceSelector of a DeviceTaintRule; None in a field matches any value."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(_View, frozen=True):
    """The spec of a DeviceTaintRule; if `device_selector` is None, no device is tainted."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRuleCondition(_View, frozen=True):
    """An entry of status.conditions of a DeviceTaintRule."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""


class DeviceTaintRuleStatus(_View, frozen=True):
    """The status of a DeviceTaintRule."""

    conditions: tuple[DeviceTaintRuleCondition, ...] = ()


class DeviceTaintRule(_Object, frozen=True):
    """resource.k8s.io/v1beta2 DeviceTaintRule: it taints the devices that its selector matches."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()


# --- pod groups and queues -----------------------------------------------------------------


class GangPolicy(_View, frozen=True):
    """The field schedulingPolicy.gang of a PodGroup."""

    min_count: int = 0


class SchedulingPolicy(_View, frozen=True):
    """The field schedulingPolicy of a PodGroup; with `basic`, each pod is scheduled by itself."""

    basic: Json | None = None
    gang: GangPolicy | None = None


class PodGroupSpec(_View, frozen=True):
    """The spec of a PodGroup of any API group; see `engine.batch.info.group`."""

    min_member: int = 0
    min_resources: ResourceList | None = None
    queue: str = ""
    priority_class_name: str = ""
    priority: int | None = None
    scheduling_policy: SchedulingPolicy | None = None
    disruption_mode: str | Json = ""


class PodGroupCondition(_View, frozen=True):
    """An entry of status.conditions of a PodGroup."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    transition_id: str = msgspec.field(name="transitionID", default="")
    last_transition_time: str = ""


class PodGroupStatus(_View, frozen=True):
    """The status of a PodGroup."""

    phase: str = ""
    conditions: tuple[PodGroupCondition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(_Object, frozen=True):
    """A PodGroup of kube-batch, Volcano or Kubernetes itself: pods that are scheduled together."""

    api_version: str = ""
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class QueueGuarantee(_View, frozen=True):
    """The field spec.guarantee of a Queue."""

    resource: ResourceList = {}


class QueueSpec(_View, frozen=True):
    """The spec of a Queue; kube-batch has only `weight`, the other fields exist only in Volcano."""

    weight: int | None = None
    capability: ResourceList = {}
    deserved: ResourceList = {}
    guarantee: QueueGuarantee = QueueGuarantee()
    reclaimable: bool | None = None
    parent: str = ""
    priority: int = 0


class QueueStatus(_View, frozen=True):
    """The status of a Queue; in Volcano, `state` is Open or Closed."""

    state: str = ""


class Queue(_Object, frozen=True):
    """A Queue of kube-batch or Volcano: the jobs in a queue get a share of the cluster."""

    api_version: str = ""
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class Unstructured(_Object, frozen=True):
    """An object of a kind that has no typed view; its fields are JSON values or None.

    `data` is the data of a ConfigMap or Secret.
    """

    api_version: str = ""
    kind: str = ""
    spec: Any = None
    status: Any = None
    data: Any = None


ApiObject = (
    Pod
    | Node
    | Lease
    | Namespace
    | PriorityClass
    | PodDisruptionBudget
    | Service
    | EndpointSlice
    | Endpoints
    | ReplicationController
    | ReplicaSet
    | Deployment
    | StatefulSet
    | DaemonSet
    | ControllerRevision
    | Job
    | CronJob
    | HorizontalPodAutoscaler
    | PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
    | ResourceClaim
    | ResourceClaimTemplate
    | DeviceClass
    | ResourceSlice
    | DeviceTaintRule
    | PodGroup
    | Queue
    | Unstructured
)
