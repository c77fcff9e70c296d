"""The roles of kube-controller-manager's controllers, as a table.

A line without indentation is the NAME of a controller. Its role is `system:controller:NAME`, which
is bound to the service account NAME in kube-system. Rules are written as in `roles`. EVENTS is
replaced by the rule that allows writing events.

upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PREFIX: Final = "system:controller:"
EVENTS: Final = "create,patch,update -,events.k8s.io events"

CONTROLLERS: Final = """
attachdetach-controller
  list,watch - persistentvolumeclaims,persistentvolumes
  READ - nodes
  patch,update - nodes/status
  list,watch - pods
  EVENTS
  create,delete,get,list,watch storage.k8s.io volumeattachments
  READ storage.k8s.io csidrivers
  READ storage.k8s.io csinodes
certificate-controller
  delete,get,list,watch certificates.k8s.io certificatesigningrequests
  update certificates.k8s.io certificatesigningrequests/approval,certificatesigningrequests/status
  approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client-kubelet
  sign certificates.k8s.io signers kubernetes.io/kube-apiserver-client,kubernetes.io/kube-apiserver-client-kubelet,kubernetes.io/kubelet-serving,kubernetes.io/legacy-unknown
  create authorization.k8s.io subjectaccessreviews
  EVENTS
clusterrole-aggregation-controller
  escalate,get,list,patch,update,watch rbac.authorization.k8s.io clusterroles
cronjob-controller
  get,list,update,watch batch cronjobs
  create,delete,get,list,patch,update,watch batch jobs
  update batch cronjobs/status
  update batch cronjobs/finalizers
  delete,list,watch - pods
  EVENTS
daemon-set-controller
  READ apps,extensions daemonsets
  update apps,extensions daemonsets/status
  update apps,extensions daemonsets/finalizers
  list,watch - nodes
  create,delete,list,patch,watch - pods
  create - pods/binding
  create,delete,get,list,patch,update,watch apps controllerrevisions
  EVENTS
deployment-controller
  get,list,update,watch apps,extensions deployments
  update apps,extensions deployments/status
  update apps,extensions deployments/finalizers
  create,delete,get,list,patch,update,watch apps,extensions replicasets
  get,list,update,watch - pods
  EVENTS
device-taint-eviction-controller
  delete,get,list,watch - pods
  patch,update - pods/status
  READ resource.k8s.io resourceclaims
  READ resource.k8s.io resourceslices
  READ resource.k8s.io deviceclasses
  EVENTS
disruption-controller
  READ apps,extensions deployments
  READ apps,extensions replicasets
  READ - replicationcontrollers
  READ policy poddisruptionbudgets
  READ apps statefulsets
  update policy poddisruptionbudgets/status
  patch,update - pods/status
  get * */scale
  EVENTS
endpoint-controller
  READ - pods,services
  create,delete,get,list,update,watch - endpoints
  create - endpoints/restricted
  EVENTS
endpointslice-controller
  READ - nodes,pods,services
  update - services/finalizers
  create,delete,get,list,update,watch discovery.k8s.io endpointslices
  create discovery.k8s.io endpointslices/restricted
  EVENTS
endpointslicemirroring-controller
  READ - endpoints,services
  update - services/finalizers
  update - endpoints/finalizers
  create,delete,get,list,update,watch discovery.k8s.io endpointslices
  create discovery.k8s.io endpointslices/restricted
  EVENTS
ephemeral-volume-controller
  READ - pods
  update - pods/finalizers
  create,get,list,watch - persistentvolumeclaims
  EVENTS
expand-controller
  get,list,patch,update,watch - persistentvolumes
  patch,update - persistentvolumeclaims/status
  READ - persistentvolumeclaims
  EVENTS
generic-garbage-collector
  delete,get,list,patch,update,watch * *
  EVENTS
horizontal-pod-autoscaler
  READ autoscaling horizontalpodautoscalers
  update autoscaling horizontalpodautoscalers/status
  get,update * */scale
  list,watch - pods
  list,watch metrics.k8s.io pods
  READ custom.metrics.k8s.io *
  READ external.metrics.k8s.io *
  EVENTS
job-controller
  get,list,patch,update,watch batch jobs
  update batch jobs/status
  update batch jobs/finalizers
  create,delete,list,patch,watch - pods
  EVENTS
legacy-service-account-token-cleaner
  get - configmaps kube-apiserver-legacy-service-account-token-tracking
  delete,patch - secrets
namespace-controller
  delete,get,list,watch - namespaces
  update - namespaces/finalize,namespaces/status
  delete,deletecollection,get,list,watch * *
node-controller
  delete,get,list,patch,update,watch - nodes
  patch,update - nodes/status
  patch,update - pods/status
  delete,get,list,watch - pods
  EVENTS
persistent-volume-binder
  create,delete,get,list,update,watch - persistentvolumes
  update - persistentvolumes/status
  get,list,update,watch - persistentvolumeclaims
  update - persistentvolumeclaims/status
  create,delete,get,list,watch - pods
  READ storage.k8s.io storageclasses
  list,watch - nodes
  EVENTS
  watch - events
pod-garbage-collector
  delete,list,watch - pods
  READ - nodes
  patch - pods/status
pv-protection-controller
  get,list,update,watch - persistentvolumes
  EVENTS
pvc-protection-controller
  get,list,update,watch - persistentvolumeclaims
  update - persistentvolumeclaims/status
  READ - pods
  EVENTS
replicaset-controller
  get,list,update,watch apps,extensions replicasets
  update apps,extensions replicasets/status
  update apps,extensions replicasets/finalizers
  create,delete,list,patch,watch - pods
  EVENTS
replication-controller
  get,list,update,watch - replicationcontrollers
  update - replicationcontrollers/status
  update - replicationcontrollers/finalizers
  create,delete,list,patch,watch - pods
  EVENTS
resource-claim-controller
  READ - pods
  update - pods/finalizers
  create,delete,get,list,watch resource.k8s.io resourceclaims
  patch,update resource.k8s.io resourceclaims,resourceclaims/status
  patch,update - pods/status
  EVENTS
  patch,update resource.k8s.io resourceclaims/binding
resourcequota-controller
  list,watch * *
  update - resourcequotas/status
  EVENTS
root-ca-cert-publisher
  create,update - configmaps
  EVENTS
route-controller
  list,watch - nodes
  patch - nodes/status
  EVENTS
selinux-warning-controller
  EVENTS
  READ - persistentvolumes
  READ - persistentvolumeclaims
  READ - pods
  READ storage.k8s.io csidrivers
service-account-controller
  create - serviceaccounts
  EVENTS
service-cidrs-controller
  get,list,patch,update,watch networking.k8s.io servicecidrs
  patch,update networking.k8s.io servicecidrs/finalizers
  patch,update networking.k8s.io servicecidrs/status
  READ networking.k8s.io ipaddresses
  EVENTS
service-controller
  READ - services
  patch,update - services/status
  list,watch - nodes
  EVENTS
statefulset-controller
  list,watch - pods
  READ apps statefulsets
  update apps statefulsets/status
  update apps statefulsets/finalizers
  create,delete,get,patch,update - pods
  create,delete,get,list,patch,update,watch apps controllerrevisions
  create,get,list,watch - persistentvolumeclaims
  delete,update - persistentvolumeclaims
  update - pods/finalizers
  EVENTS
ttl-after-finished-controller
  delete,get,list,watch batch jobs
  EVENTS
ttl-controller
  list,patch,update,watch - nodes
  EVENTS
validatingadmissionpolicy-status-controller
  READ admissionregistration.k8s.io validatingadmissionpolicies
  get,patch,update admissionregistration.k8s.io validatingadmissionpolicies/status
  EVENTS
volumeattributesclass-protection-controller
  READ - persistentvolumeclaims
  READ - persistentvolumes
  get,list,update,watch storage.k8s.io volumeattributesclasses
  EVENTS
"""  # noqa: E501 - one rule per line

# Controllers that run only if a feature gate is enabled, by feature gate.
GATED_CONTROLLERS: Final[Mapping[str, str]] = {
    "GenericWorkload": """
podgroup-protection-controller
  get,list,update,watch scheduling.k8s.io podgroups
  READ - pods
""",
}
