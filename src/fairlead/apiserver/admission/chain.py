"""Which admission plugins there are, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fairlead.apiserver.admission.certificate_request import CertificateRequests
from fairlead.apiserver.admission.claim_growth import ClaimGrowth
from fairlead.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from fairlead.apiserver.admission.ingress_defaults import DefaultIngressClass
from fairlead.apiserver.admission.limit_ranger import LimitRanger
from fairlead.apiserver.admission.mutating_policy import MutatingPolicies
from fairlead.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from fairlead.apiserver.admission.node_restriction import NodeRestriction
from fairlead.apiserver.admission.plugin import AdmissionPlugin
from fairlead.apiserver.admission.pod_security import PodSecurity
from fairlead.apiserver.admission.pod_topology_labels import PodTopologyLabels
from fairlead.apiserver.admission.policy_rights import PolicyRights
from fairlead.apiserver.admission.priority import Priority
from fairlead.apiserver.admission.resource_quota import LimitedResource, ResourceQuota
from fairlead.apiserver.admission.role_escalation import RoleEscalation
from fairlead.apiserver.admission.runtime_class import RuntimeClass, RuntimeClassOverhead
from fairlead.apiserver.admission.service_account import ServiceAccount
from fairlead.apiserver.admission.storage_defaults import (
    DefaultStorageClass,
    StorageObjectInUseProtection,
)
from fairlead.apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition
from fairlead.apiserver.admission.validating_policy import ValidatingPolicies
from fairlead.apiserver.admission.webhook import MutatingWebhooks, ValidatingWebhooks

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
