"""The tables of groups and kinds, with the content of a 1.36 API server's discovery documents.

The columns of a row are apiVersion, kind, plural, short names, traits, categories and subresources
("-" for none). Subresources are sorted by name. The traits are:

- n: the kind is namespaced
- g: new objects have a metadata.generation
- s: the kind has the subresource `status`, which is not repeated in the last column
- c: a custom resource, which is served only if its definition exists

Several groups may have a kind of the same name. As in kubectl, a lookup by this name finds the kind
whose row comes first.

upstream: pkg/registry/*/rest/storage_*.go, and each kind's strategy.go for the traits
"""

from __future__ import annotations

from typing import Final

# Built-in kinds that are stored: apiVersion kind plural shortNames traits categories subresources
STORED: Final = """
v1 Pod pods po ngs all attach,binding,ephemeralcontainers,eviction,exec,log,portforward,proxy,resize
v1 Node nodes no s - proxy
v1 Namespace namespaces ns s - finalize
v1 Service services svc ns all proxy
v1 ReplicationController replicationcontrollers rc ngs all scale
v1 ConfigMap configmaps cm n - -
v1 Secret secrets - n - -
v1 ServiceAccount serviceaccounts sa n - token
v1 Endpoints endpoints ep n - -
v1 Event events ev n - -
v1 PersistentVolume persistentvolumes pv s - -
v1 PersistentVolumeClaim persistentvolumeclaims pvc ns - -
v1 LimitRange limitranges limits n - -
v1 ResourceQuota resourcequotas quota ns - -
v1 PodTemplate podtemplates - ng - -
v1 ComponentStatus componentstatuses cs - - -
apps/v1 Deployment deployments deploy ngs all scale
apps/v1 ReplicaSet replicasets rs ngs all scale
apps/v1 StatefulSet statefulsets sts ngs all scale
apps/v1 DaemonSet daemonsets ds ngs all -
apps/v1 ControllerRevision controllerrevisions - n - -
batch/v1 Job jobs - ngs all -
batch/v1 CronJob cronjobs cj ngs all -
policy/v1 PodDisruptionBudget poddisruptionbudgets pdb ngs - -
scheduling.k8s.io/v1 PriorityClass priorityclasses pc g - -
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers hpa ns all -
autoscaling/v1 HorizontalPodAutoscaler horizontalpodautoscalers hpa ns all -
coordination.k8s.io/v1 Lease leases - n - -
discovery.k8s.io/v1 EndpointSlice endpointslices - ng - -
events.k8s.io/v1 Event events ev n - -
storage.k8s.io/v1 StorageClass storageclasses sc - - -
storage.k8s.io/v1 VolumeAttachment volumeattachments - s - -
storage.k8s.io/v1 CSINode csinodes - - - -
storage.k8s.io/v1 CSIDriver csidrivers - - - -
storage.k8s.io/v1 CSIStorageCapacity csistoragecapacities - n - -
storage.k8s.io/v1 VolumeAttributesClass volumeattributesclasses vac - - -
networking.k8s.io/v1 Ingress ingresses ing ngs - -
networking.k8s.io/v1 IngressClass ingressclasses - g - -
networking.k8s.io/v1 NetworkPolicy networkpolicies netpol ng - -
networking.k8s.io/v1 IPAddress ipaddresses ip - - -
networking.k8s.io/v1 ServiceCIDR servicecidrs - s - -
rbac.authorization.k8s.io/v1 Role roles - n - -
rbac.authorization.k8s.io/v1 RoleBinding rolebindings - n - -
rbac.authorization.k8s.io/v1 ClusterRole clusterroles - - - -
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings - - - -
resource.k8s.io/v1 DeviceClass deviceclasses - g - -
resource.k8s.io/v1 ResourceClaim resourceclaims - ns - -
resource.k8s.io/v1 ResourceClaimTemplate resourceclaimtemplates - n - -
resource.k8s.io/v1 ResourceSlice resourceslices - g - -
node.k8s.io/v1 RuntimeClass runtimeclasses - - - -
certificates.k8s.io/v1 CertificateSigningRequest certificatesigningrequests csr s - approval
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions crd,crds gs api-extensions -
apiregistration.k8s.io/v1 APIService apiservices - s api-extensions -
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations - g api-extensions -
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations - g api-extensions -
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy validatingadmissionpolicies - gs api-extensions -
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings - g api-extensions -
admissionregistration.k8s.io/v1 MutatingAdmissionPolicy mutatingadmissionpolicies - g api-extensions -
admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings - g api-extensions -
flowcontrol.apiserver.k8s.io/v1 FlowSchema flowschemas - gs - -
flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration prioritylevelconfigurations - gs - -
"""  # noqa: E501

# Built-in kinds that are served only if a feature gate is enabled; each row begins with the gate.
GATED: Final = """
DRADeviceTaintRules resource.k8s.io/v1beta2 DeviceTaintRule devicetaintrules - gs - -
GenericWorkload scheduling.k8s.io/v1alpha2 PodGroup podgroups - ngs - -
GenericWorkload scheduling.k8s.io/v1alpha2 Workload workloads - ng - -
"""

# Kinds that batch schedulers and Karpenter read, and the NodeClass of the simulated provider.
CUSTOM: Final = """
scheduling.volcano.sh/v1beta1 PodGroup podgroups pg ngsc - -
scheduling.incubator.k8s.io/v1alpha1 PodGroup podgroups pg ngsc - -
scheduling.sigs.dev/v1alpha2 PodGroup podgroups pg ngsc - -
scheduling.x-k8s.io/v1alpha1 PodGroup podgroups pg ngsc - -
scheduling.volcano.sh/v1beta1 Queue queues q gsc - -
scheduling.incubator.k8s.io/v1alpha1 Queue queues q gsc - -
scheduling.sigs.dev/v1alpha2 Queue queues q gsc - -
karpenter.sh/v1 NodePool nodepools - gsc karpenter -
karpenter.sh/v1 NodeClaim nodeclaims - gsc karpenter -
karpenter.sh/v1alpha1 NodeOverlay nodeoverlays - gsc karpenter -
fairlead.dev/v1 NodeClass nodeclasses - gsc karpenter -
"""

# Short names of other custom resources, from their definitions, which dumps usually lack.
CUSTOM_SHORT_NAMES: Final = {
    "DeploymentConfig.apps.openshift.io": ("dc",),
    "Job.batch.volcano.sh": ("vcjob", "vj"),
    "LeaderWorkerSet.leaderworkerset.x-k8s.io": ("lws",),
    "Rollout.argoproj.io": ("ro",),
    "Service.serving.knative.dev": ("ksvc", "kservice"),
    "Workflow.argoproj.io": ("wf",),
    "Workload.kueue.x-k8s.io": ("wl",),
}

# Kinds that a metrics server serves.
MEASURED: Final = """
metrics.k8s.io/v1beta1 NodeMetrics nodes - - - -
metrics.k8s.io/v1beta1 PodMetrics pods - n - -
"""

# Kinds whose objects are created but never stored. The response contains the result.
POSTED: Final = """
v1 Binding bindings - n - -
authentication.k8s.io/v1 SelfSubjectReview selfsubjectreviews - - - -
authentication.k8s.io/v1 TokenReview tokenreviews - - - -
authorization.k8s.io/v1 LocalSubjectAccessReview localsubjectaccessreviews - n - -
authorization.k8s.io/v1 SelfSubjectAccessReview selfsubjectaccessreviews - - - -
authorization.k8s.io/v1 SelfSubjectRulesReview selfsubjectrulesreviews - - - -
authorization.k8s.io/v1 SubjectAccessReview subjectaccessreviews - - - -
"""

# The groups in the order in which `/apis` lists them, with the priorities in their APIServices:
# group version, groupPriorityMinimum, versionPriority. The priorities need not descend. "-" marks
# the group of the aggregator itself, which has no APIService.
# upstream: pkg/controlplane/apiserver/aggregator.go:DefaultGenericAPIServicePriorities,
# kube-aggregator/pkg/controllers/autoregister
GROUP_VERSIONS: Final = """
v1                                18000  1
apiregistration.k8s.io/v1             -  -
apps/v1                           17800 15
events.k8s.io/v1                  17750 15
authentication.k8s.io/v1          17700 15
authorization.k8s.io/v1           17600 15
autoscaling/v1                    17500 15
autoscaling/v2                    17500 30
batch/v1                          17400 15
certificates.k8s.io/v1            17300 15
networking.k8s.io/v1              17200 15
policy/v1                         17100 15
rbac.authorization.k8s.io/v1      17000 15
storage.k8s.io/v1                 16800 15
admissionregistration.k8s.io/v1   16700 15
apiextensions.k8s.io/v1           16700 15
scheduling.k8s.io/v1              16600 15
coordination.k8s.io/v1            16500 15
node.k8s.io/v1                    16300 15
discovery.k8s.io/v1               16200 15
resource.k8s.io/v1                15900 21
flowcontrol.apiserver.k8s.io/v1   16100 21
"""
# The API versions of the kinds in GATED. A row begins with the feature gate that enables it.
GATED_GROUP_VERSIONS: Final = """
DRADeviceTaintRules resource.k8s.io/v1beta2 15900 15
GenericWorkload scheduling.k8s.io/v1alpha2 16600 9
"""
