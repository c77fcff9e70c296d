"""Which admission plugins there are, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fairlead.apiserver.admission.attributes import AdmissionPlugin
from fairlead.apiserver.admission.plugins.certificate_signing_request import CertificateRequests
from fairlead.apiserver.admission.plugins.default_ingress_class import DefaultIngressClass
from fairlead.apiserver.admission.plugins.default_toleration_seconds import DefaultTolerationSeconds
from fairlead.apiserver.admission.plugins.limit_ranger import LimitRanger
from fairlead.apiserver.admission.plugins.namespace_lifecycle import NamespaceLifecycle
from fairlead.apiserver.admission.plugins.node_restriction import NodeRestriction
from fairlead.apiserver.admission.plugins.persistent_volume_claim_resize import ClaimGrowth
from fairlead.apiserver.admission.plugins.pod_security import PodSecurity
from fairlead.apiserver.admission.plugins.pod_topology_labels import PodTopologyLabels
from fairlead.apiserver.admission.plugins.priority import Priority
from fairlead.apiserver.admission.plugins.role_escalation import RoleEscalation
from fairlead.apiserver.admission.plugins.runtime_class import RuntimeClass, RuntimeClassOverhead
from fairlead.apiserver.admission.plugins.service_account import ServiceAccount
from fairlead.apiserver.admission.plugins.storage import (
    DefaultStorageClass,
    StorageObjectInUseProtection,
)
from fairlead.apiserver.admission.plugins.taint_nodes_by_condition import TaintNodesByCondition
from fairlead.apiserver.admission.policy.authorization import PolicyRights
from fairlead.apiserver.admission.policy.mutating import MutatingPolicies
from fairlead.apiserver.admission.policy.validating import ValidatingPolicies
from fairlead.apiserver.admission.quota.resource_quota import LimitedResource, ResourceQuota
from fairlead.apiserver.admission.webhooks.plugin import MutatingWebhooks, ValidatingWebhooks

# What a cluster needs that nobody but Fairlead writes to.
ADMISSION: Final[tuple[AdmissionPlugin, ...]] = (
    Priority(),  # before anything that looks at a pod's priority
    DefaultTolerationSeconds(),
)


def served_admission(
    suffix: Callable[[], str],
    *,
    limited: Sequence[LimitedResource] = (),
    authorities: Sequence[tuple[str, str]] = (),
) -> tuple[AdmissionPlugin, ...]:
    """The plugins of a server that others write to.

    `suffix` gives five characters for a generated name; `limited` and `authorities` are as
    ResourceQuota and ServiceAccount take them.
    """
    # upstream: pkg/kubeapiserver/options/plugins.go:AllOrderedPlugins
    return (
        NamespaceLifecycle(),  # first: what is nowhere is nothing to anybody else
        LimitRanger(),
        ServiceAccount(suffix, authorities),
        NodeRestriction(),
        TaintNodesByCondition(),
        PodSecurity(),
        *ADMISSION,
        DefaultStorageClass(),
        StorageObjectInUseProtection(),
        CertificateRequests(),
        ClaimGrowth(),
        RuntimeClass(),
        RuntimeClassOverhead(),
        DefaultIngressClass(),
        PodTopologyLabels(),
        MutatingPolicies(),
        MutatingWebhooks(),
        RoleEscalation(),
        PolicyRights(),
        ValidatingPolicies(),
        ValidatingWebhooks(),
        ResourceQuota(limited),  # last: what is charged must have passed everything else
    )
