"""The roles and bindings of every new cluster, as tables.

The line of a role contains its name. `-> ROLE` follows if the role is aggregated to ROLE, and `<-
LABEL` if the role aggregates roles with LABEL. The indented lines below are its rules: verbs,
groups (`-` is the core group), resources, and names of objects. `~` in place of groups introduces
non-resource URLs. READ, WRITE and READ_WRITE are replaced by the usual verbs.

upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/{policy,namespace_policy}.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

READ: Final = ("get", "list", "watch")
WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
READ_WRITE: Final = tuple(sorted((*READ, *WRITE)))

CLUSTER_ROLES: Final = """
cluster-admin
  * * *
  * ~ *
system:discovery
  get ~ /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/
system:basic-user
  create authorization.k8s.io selfsubjectaccessreviews,selfsubjectrulesreviews
  create authentication.k8s.io selfsubjectreviews
system:public-info-viewer
  get ~ /healthz,/livez,/readyz,/version,/version/
system:monitoring
  get ~ /healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*
system:service-account-issuer-discovery
  get ~ /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,/openid/v1/jwks/
system:auth-delegator
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io subjectaccessreviews
admin <- admin
edit -> admin <- edit
view -> edit <- view
system:aggregate-to-admin -> admin
  create authorization.k8s.io localsubjectaccessreviews
  READ_WRITE rbac.authorization.k8s.io rolebindings,roles
system:aggregate-to-edit -> edit
  READ - pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy
  impersonate - serviceaccounts
  WRITE - pods,pods/attach,pods/exec,pods/portforward,pods/proxy
  create - pods/eviction
  WRITE - configmaps,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,secrets,serviceaccounts,services,services/proxy
  create - serviceaccounts/token
  WRITE -,events.k8s.io events
  WRITE apps daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale,statefulsets,statefulsets/scale
  WRITE autoscaling horizontalpodautoscalers
  WRITE batch cronjobs,jobs
  WRITE extensions daemonsets,deployments,deployments/rollback,deployments/scale,ingresses,networkpolicies,replicasets,replicasets/scale,replicationcontrollers/scale
  WRITE policy poddisruptionbudgets
  WRITE networking.k8s.io ingresses,networkpolicies
  READ_WRITE coordination.k8s.io leases
  WRITE resource.k8s.io resourceclaims,resourceclaimtemplates
system:aggregate-to-view -> view
  READ - configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/status
  READ - bindings,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status,resourcequotas,resourcequotas/status
  READ - namespaces
  READ -,events.k8s.io events
  READ discovery.k8s.io endpointslices
  READ apps controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,replicasets,replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status
  READ autoscaling horizontalpodautoscalers,horizontalpodautoscalers/status
  READ batch cronjobs,cronjobs/status,jobs,jobs/status
  READ extensions daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,ingresses,ingresses/status,networkpolicies,replicasets,replicasets/scale,replicasets/status,replicationcontrollers/scale
  READ policy poddisruptionbudgets,poddisruptionbudgets/status
  READ networking.k8s.io ingresses,ingresses/status,networkpolicies
  READ resource.k8s.io resourceclaims,resourceclaims/status,resourceclaimtemplates
system:kube-scheduler
  create,patch,update -,events.k8s.io events
  create coordination.k8s.io leases
  get,list,update,watch coordination.k8s.io leases kube-scheduler
  READ_WRITE coordination.k8s.io leasecandidates
  READ - nodes
  delete,get,list,watch - pods
  create - bindings,pods/binding
  patch,update - pods/status
  READ - replicationcontrollers,services
  READ apps,extensions replicasets
  READ apps statefulsets
  READ policy poddisruptionbudgets
  READ - persistentvolumeclaims,persistentvolumes
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io subjectaccessreviews
  READ storage.k8s.io csinodes
  READ storage.k8s.io volumeattachments
  READ - namespaces
  READ storage.k8s.io csidrivers
  READ storage.k8s.io csistoragecapacities
  READ resource.k8s.io deviceclasses
  get,list,patch,update,watch resource.k8s.io resourceclaims
  get,list,patch,update,watch resource.k8s.io resourceclaims/status
  update - pods/finalizers
  READ resource.k8s.io resourceslices
  create,delete resource.k8s.io resourceclaims
  patch,update resource.k8s.io resourceclaims/binding
system:volume-scheduler
  get,list,patch,update,watch - persistentvolumes
  READ storage.k8s.io storageclasses
  get,list,patch,update,watch - persistentvolumeclaims
  READ storage.k8s.io volumeattachments
system:kube-controller-manager
  create,patch,update -,events.k8s.io events
  create coordination.k8s.io leases
  get,update coordination.k8s.io leases kube-controller-manager
  create - secrets,serviceaccounts
  delete - secrets
  get - configmaps,namespaces,secrets,serviceaccounts
  update - secrets,serviceaccounts
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io subjectaccessreviews
  list,watch * *
  create - serviceaccounts/token
system:kube-dns
  list,watch - endpoints,services
system:node-proxier
  list,watch - endpoints,services
  get,list,watch - nodes
  create,patch,update -,events.k8s.io events
  list,watch discovery.k8s.io endpointslices
  list,watch networking.k8s.io servicecidrs
system:persistent-volume-provisioner
  create,delete,get,list,watch - persistentvolumes
  get,list,update,watch - persistentvolumeclaims
  READ storage.k8s.io storageclasses
  watch - events
  create,patch,update - events
system:node
  create authentication.k8s.io tokenreviews
  create authorization.k8s.io localsubjectaccessreviews,subjectaccessreviews
  READ - services
  create,get,list,watch - nodes
  patch,update - nodes/status
  patch,update - nodes
  create,patch,update -,events.k8s.io events
  READ - pods
  create,delete - pods
  patch,update - pods/status
  create - pods/eviction
  READ - configmaps,secrets
  get - persistentvolumeclaims,persistentvolumes
  get - endpoints
  create,get,list,watch certificates.k8s.io certificatesigningrequests
  create,delete,get,patch,update coordination.k8s.io leases
  get storage.k8s.io volumeattachments
  create - serviceaccounts/token
  get,patch,update - persistentvolumeclaims/status
  READ storage.k8s.io csidrivers
  create,delete,get,patch,update storage.k8s.io csinodes
  READ node.k8s.io runtimeclasses
  get resource.k8s.io resourceclaims
  deletecollection resource.k8s.io resourceslices
system:node-bootstrapper
  create,get,list,watch certificates.k8s.io certificatesigningrequests
system:node-problem-detector
  get - nodes
  patch - nodes/status
  create,patch,update -,events.k8s.io events
system:certificates.k8s.io:certificatesigningrequests:nodeclient
  create certificates.k8s.io certificatesigningrequests/nodeclient
system:certificates.k8s.io:certificatesigningrequests:selfnodeclient
  create certificates.k8s.io certificatesigningrequests/selfnodeclient
system:certificates.k8s.io:kube-apiserver-client-approver
  approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client
system:certificates.k8s.io:kube-apiserver-client-kubelet-approver
  approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client-kubelet
system:certificates.k8s.io:kubelet-serving-approver
  approve certificates.k8s.io signers kubernetes.io/kubelet-serving
system:certificates.k8s.io:legacy-unknown-approver
  approve certificates.k8s.io signers kubernetes.io/legacy-unknown
system:heapster
  READ - events,namespaces,nodes,pods
  READ extensions deployments
system:kube-aggregator
  READ - endpoints,services
system:kubelet-api-admin
  READ - nodes
  proxy - nodes
  * - nodes/log,nodes/metrics,nodes/proxy,nodes/stats
  * - nodes/configz,nodes/healthz,nodes/pods
"""  # noqa: E501 - one rule per line

# Namespaced roles: `NAMESPACE/ROLE`.
ROLES: Final = """
kube-system/extension-apiserver-authentication-reader
  READ - configmaps extension-apiserver-authentication
kube-system/system::leader-locking-kube-controller-manager
  watch - configmaps
  get,update - configmaps kube-controller-manager
kube-system/system::leader-locking-kube-scheduler
  watch - configmaps
  get,update - configmaps kube-scheduler
kube-system/system:controller:bootstrap-signer
  READ - secrets
kube-system/system:controller:cloud-provider
  create,get,list,watch - configmaps
kube-system/system:controller:token-cleaner
  delete,get,list,watch - secrets
  create,patch,update -,events.k8s.io events
kube-public/system:controller:bootstrap-signer
  READ - configmaps
  get,update - configmaps cluster-info
  create,patch,update -,events.k8s.io events
"""

# Rules that a feature gate adds to cluster roles.
GATED_RULES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "DRADeviceTaintRules": {
        "system:kube-scheduler": ("READ resource.k8s.io devicetaintrules",),
        "system:controller:device-taint-eviction-controller": (
            "READ resource.k8s.io devicetaintrules",
            "patch,update resource.k8s.io devicetaintrules/status",
        ),
    },
    "GenericWorkload": {
        "system:kube-scheduler": (
            "READ scheduling.k8s.io podgroups",
            "patch,update scheduling.k8s.io podgroups/status",
        ),
    },
}

# Bindings of namespaced roles: role, then subjects.
ROLE_BINDINGS: Final = (
    (
        "kube-system/extension-apiserver-authentication-reader",
        ("User", "system:kube-controller-manager"),
        ("User", "system:kube-scheduler"),
    ),
    (
        "kube-system/system::leader-locking-kube-controller-manager",
        ("User", "system:kube-controller-manager"),
        ("ServiceAccount", "kube-controller-manager"),
        ("ServiceAccount", "leader-election-controller"),
    ),
    (
        "kube-system/system::leader-locking-kube-scheduler",
        ("User", "system:kube-scheduler"),
        ("ServiceAccount", "kube-scheduler"),
    ),
    ("kube-system/system:controller:bootstrap-signer", ("ServiceAccount", "bootstrap-signer")),
    ("kube-system/system:controller:cloud-provider", ("ServiceAccount", "cloud-provider")),
    ("kube-system/system:controller:token-cleaner", ("ServiceAccount", "token-cleaner")),
    ("kube-public/system:controller:bootstrap-signer", ("ServiceAccount", "bootstrap-signer")),
)

# Bindings of cluster roles: role, then subjects.
CLUSTER_ROLE_BINDINGS: Final = (
    ("cluster-admin", ("Group", "system:masters")),
    ("system:basic-user", ("Group", "system:authenticated")),
    ("system:discovery", ("Group", "system:authenticated")),
    (
        "system:public-info-viewer",
        ("Group", "system:authenticated"),
        ("Group", "system:unauthenticated"),
    ),
    ("system:monitoring", ("Group", "system:monitoring")),
    ("system:service-account-issuer-discovery", ("Group", "system:serviceaccounts")),
    ("system:kube-scheduler", ("User", "system:kube-scheduler")),
    ("system:volume-scheduler", ("User", "system:kube-scheduler")),
    ("system:kube-controller-manager", ("User", "system:kube-controller-manager")),
    ("system:kube-dns", ("ServiceAccount", "kube-dns")),
    (
        "system:node",
    ),  # without subjects, because the node authorizer decides on requests of kubelets
    ("system:node-proxier", ("User", "system:kube-proxy")),
)
