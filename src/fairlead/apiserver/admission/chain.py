"""The admission plugins of an API server.

The plugins run in the order in which `served_admission` lists them. Exception: plugins that set
`CHECKS_ONLY` run after all other plugins.

upstream: pkg/kubeapiserver/options/plugins.go:AllOrderedPlugins
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from fairlead.apiserver.admission.attributes import AdmissionPlugin
from fairlead.apiserver.admission.minimal import minimal_admission
from fairlead.apiserver.admission.plugins.certificate_signing_request import (
    CertificateSigningRequests,
)
from fairlead.apiserver.admission.plugins.default_ingress_class import DefaultIngressClass
from fairlead.apiserver.admission.plugins.disabled_fields import (
    WORKLOAD_AWARE_PREEMPTION,
    DisabledFields,
)
from fairlead.apiserver.admission.plugins.limit_ranger import LimitRanger
from fairlead.apiserver.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from fairlead.apiserver.admission.plugins.node_declared_feature_validator import (
    NodeDeclaredFeatureValidator,
)
from fairlead.apiserver.admission.plugins.node_restriction import NodeRestriction
from fairlead.apiserver.admission.plugins.persistent_volume_claim_resize import (
    PersistentVolumeClaimResize,
)
from fairlead.apiserver.admission.plugins.pod_group import (
    PodGroupProtection,
    PodGroupWorkloadExists,
)
from fairlead.apiserver.admission.plugins.pod_resize_validator import PodResizeValidator
from fairlead.apiserver.admission.plugins.pod_security import PodSecurity
from fairlead.apiserver.admission.plugins.pod_topology_labels import PodTopologyLabels
from fairlead.apiserver.admission.plugins.rbac_escalation import RbacEscalation
from fairlead.apiserver.admission.plugins.runtime_class import RuntimeClass, RuntimeClassOverhead
from fairlead.apiserver.admission.plugins.service_account import ServiceAccount
from fairlead.apiserver.admission.plugins.storage import (
    DefaultStorageClass,
    StorageObjectInUseProtection,
)
from fairlead.apiserver.admission.plugins.taint_nodes_by_condition import TaintNodesByCondition
from fairlead.apiserver.admission.policy.authorization import PolicyAuthorization
from fairlead.apiserver.admission.policy.mutating import MutatingAdmissionPolicy
from fairlead.apiserver.admission.policy.validating import ValidatingAdmissionPolicy
from fairlead.apiserver.admission.quota.resource_quota import LimitedResource, ResourceQuota
from fairlead.apiserver.admission.webhooks.plugin import (
    MutatingAdmissionWebhook,
    ValidatingAdmissionWebhook,
)


def served_admission(
    suffix: Callable[[], str],
    *,
    limited: Sequence[LimitedResource] = (),
    authorities: Sequence[tuple[str, str]] = (),
    preemption_policies: bool = True,
    gates: Collection[str] = (),
) -> tuple[AdmissionPlugin, ...]:
    """Return the admission plugins of an API server.

    `suffix` returns five characters for generated names. `limited` are the resources that can be
    used only if a quota covers them; the plugin ResourceQuota checks this. Each pair (ConfigMap
    name, key) in `authorities` names an additional CA certificate, which the plugin ServiceAccount
    mounts into pods. `preemption_policies` is an option of the plugin Priority. `gates` are the
    enabled feature gates.
    """
    group_priorities = WORKLOAD_AWARE_PREEMPTION in gates
    return (
        NamespaceLifecycle(),  # first: other plugins need the object's namespace
        LimitRanger(),
        ServiceAccount(suffix, authorities),
        NodeRestriction(),
        TaintNodesByCondition(),
        PodSecurity(),
        *minimal_admission(
            preemption_policies=preemption_policies, group_priorities=group_priorities
        ),
        DefaultStorageClass(),
        StorageObjectInUseProtection(),
        PodGroupProtection(),
        CertificateSigningRequests(),
        PersistentVolumeClaimResize(),
        RuntimeClass(),
        RuntimeClassOverhead(),
        DefaultIngressClass(),
        PodTopologyLabels(),
        NodeDeclaredFeatureValidator(),
        PodResizeValidator(),
        MutatingAdmissionPolicy(),
        MutatingAdmissionWebhook(),
        DisabledFields(gates),
        PodGroupWorkloadExists(),
        RbacEscalation(),
        PolicyAuthorization(),
        ValidatingAdmissionPolicy(),
        ValidatingAdmissionWebhook(),
        # last: counts against quotas, so no other plugin may refuse afterwards
        ResourceQuota(limited),
    )
