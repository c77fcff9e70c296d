"""The rules of each built-in kind, one row per kind.

A row names what holds for a new object, what holds for a changed one, how an update may differ
from what was there, and what a status must keep to. `validator` applies them.

upstream: Validate, ValidateUpdate and the status strategies of pkg/registry/*/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.validation import (
    apiregistration,
    autoscaling,
    certificates,
    coordination,
    flowcontrol,
    policy,
    rbac,
    scheduling,
)
from fairlead.apiserver.validation import (
    node as node_group,
)
from fairlead.apiserver.validation.admissionregistration import policy as admission_policy
from fairlead.apiserver.validation.admissionregistration import webhook
from fairlead.apiserver.validation.apps import workload
from fairlead.apiserver.validation.batch import job, job_update
from fairlead.apiserver.validation.core import (
    configuration,
    endpoints,
    event,
    limit_range,
    namespace,
    node,
    resource_quota,
    service,
)
from fairlead.apiserver.validation.core.pod import spec as pod
from fairlead.apiserver.validation.core.pod import update as pod_update
from fairlead.apiserver.validation.core.volume import persistent_volume
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.immutable import check_immutable
from fairlead.apiserver.validation.networking import ingress, ip_address
from fairlead.apiserver.validation.resource import resource_claim, resource_slice
from fairlead.apiserver.validation.storage import csi

Check = Callable[[Json], Causes]
CheckWithView = Callable[[Json, Any], Causes]
CheckUpdate = Callable[[Json, Json], Causes]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRules:
    """The rules of one kind; checks take the object's JSON and its typed view.

    `new` holds for new objects, `changed` for what an update leads to (the same unless stated).
    `update` compares the old object with the new one. With `update_first` upstream reports its
    causes before the others, with `twice` it reports those of `changed` twice.
    """

    new: CheckWithView | None = None
    changed: CheckWithView | None = None
    update: CheckUpdate | None = None
    update_first: bool = False
    twice: bool = False


def check_new(kind: Kind, obj: Json, view: Any) -> Causes:
    """What is wrong with a new object, whose typed view is `view`."""
    rules = _rules_of(kind)
    if rules.new is not None:
        yield from rules.new(obj, view)


def check_changed(kind: Kind, obj: Json, view: Any) -> Causes:
    """What is wrong with an object that an update led to, whatever was there before."""
    rules = _rules_of(kind)
    check = rules.changed or rules.new
    if check is not None:
        yield from check(obj, view)


def check_update(kind: Kind, old: Json, new: Json) -> Causes:
    """What of `old` may not become `new`."""
    if kind.resource != "events" or kind.group:  # events of the core group have no fixed fields
        yield from check_immutable(kind.resource, old, new)
    update = _rules_of(kind).update
    if update is not None:
        yield from update(old, new)


def reports_update_first(kind: Kind) -> bool:
    """Whether upstream compares with the old object before it looks at the new one."""
    return _rules_of(kind).update_first


def reports_twice(kind: Kind) -> bool:
    """Whether upstream validates a changed object as a new and as a changed one."""
    # upstream: ValidateUpdate of pkg/registry/{apps,batch,core}/*/strategy.go
    return _rules_of(kind).twice


def _rules_of(kind: Kind) -> KindRules:
    if kind.group == "events.k8s.io":
        return _EVENTS
    return _RULES.get(kind.resource, _NONE)


def _json(check: Check) -> CheckWithView:
    """A check that needs no typed view."""
    return lambda obj, _: check(obj)


def _view(check: Callable[[Any], Causes]) -> CheckWithView:
    """A check that needs only the typed view."""
    return lambda _, view: check(view)


_NONE: Final = KindRules()
_EVENTS: Final = KindRules(
    new=_json(event.check_new_event),
    changed=_json(lambda obj: event.check_event(obj, "reportingController")),
)
_WEBHOOKS: Final = KindRules(new=_json(webhook.check_webhooks))
_RULES: Final[Mapping[str, KindRules]] = {
    # core
    "pods": KindRules(
        new=pod.check_new_pod,
        changed=_view(pod.check_changed_pod),
        update=pod_update.check_pod_update,
    ),
    "nodes": KindRules(new=node.check_node, update=node.check_node_update),
    "namespaces": KindRules(new=_json(namespace.check_namespace)),
    "services": KindRules(
        new=_json(service.check_service), update=service.check_service_update, update_first=True
    ),
    "endpoints": KindRules(new=_json(endpoints.check_endpoints)),
    "configmaps": KindRules(
        new=_json(configuration.check_config_map),
        update=configuration.check_config_map_update,
        update_first=True,
    ),
    "secrets": KindRules(
        new=_json(configuration.check_secret),
        update=configuration.check_secret_update,
        update_first=True,
    ),
    "events": KindRules(new=_json(event.check_event)),
    "limitranges": KindRules(new=_json(limit_range.check_limit_range)),
    "resourcequotas": KindRules(
        new=_json(resource_quota.check_quota), update=resource_quota.check_quota_update
    ),
    "persistentvolumeclaims": KindRules(
        new=_json(persistent_volume.check_claim), update=persistent_volume.check_claim_update
    ),
    "persistentvolumes": KindRules(
        new=_json(persistent_volume.check_volume), update=persistent_volume.check_volume_update
    ),
    "podtemplates": KindRules(new=_json(workload.check_new_pod_template)),
    "replicationcontrollers": KindRules(new=workload.check_replication_controller, twice=True),
    # apps
    "deployments.apps": KindRules(new=workload.check_deployment),
    "replicasets.apps": KindRules(new=workload.check_replica_set, twice=True),
    "statefulsets.apps": KindRules(
        new=workload.check_stateful_set, update=workload.check_stateful_set_update
    ),
    "daemonsets.apps": KindRules(new=workload.check_daemon_set, twice=True),
    "controllerrevisions.apps": KindRules(
        new=_json(workload.check_revision), update=workload.check_revision_update
    ),
    # batch
    "jobs.batch": KindRules(new=job.check_job, update=job_update.check_job_update, twice=True),
    "cronjobs.batch": KindRules(
        new=_json(job.check_new_cron_job), changed=_json(job.check_cron_job)
    ),
    # policy, scheduling, autoscaling
    "poddisruptionbudgets.policy": KindRules(new=policy.check_disruption_budget),
    "priorityclasses.scheduling.k8s.io": KindRules(
        new=_view(scheduling.check_priority_class), update=scheduling.check_priority_class_update
    ),
    **{
        f"{plural}.{group}": KindRules(new=_view(check))
        for group in scheduling.BATCH_GROUPS
        for plural, check in (
            ("queues", scheduling.check_queue),
            ("podgroups", scheduling.check_pod_group),
        )
    },
    "horizontalpodautoscalers.autoscaling": KindRules(new=_json(autoscaling.check_autoscaler)),
    # networking, discovery
    "ingresses.networking.k8s.io": KindRules(
        new=_json(ingress.check_new_ingress), changed=_json(ingress.check_ingress)
    ),
    "ingressclasses.networking.k8s.io": KindRules(
        new=_json(ingress.check_ingress_class), update_first=True
    ),
    "networkpolicies.networking.k8s.io": KindRules(
        new=_json(ingress.check_network_policy), twice=True
    ),
    "ipaddresses.networking.k8s.io": KindRules(new=_json(ip_address.check_ip_address)),
    "servicecidrs.networking.k8s.io": KindRules(
        new=_json(ip_address.check_service_cidr), update=ip_address.check_service_cidr_update
    ),
    "endpointslices.discovery.k8s.io": KindRules(new=_json(endpoints.check_endpoint_slice)),
    # storage
    "storageclasses.storage.k8s.io": KindRules(new=_json(persistent_volume.check_storage_class)),
    "volumeattachments.storage.k8s.io": KindRules(
        new=_json(csi.check_new_attachment), changed=_json(csi.check_attachment), twice=True
    ),
    "csinodes.storage.k8s.io": KindRules(
        new=_json(csi.check_node), update=csi.check_node_update, twice=True
    ),
    "csidrivers.storage.k8s.io": KindRules(new=_json(csi.check_driver), twice=True),
    "csistoragecapacities.storage.k8s.io": KindRules(new=_json(csi.check_capacity)),
    "volumeattributesclasses.storage.k8s.io": KindRules(
        new=_json(csi.check_attributes_class), update_first=True
    ),
    # rbac, certificates
    "roles.rbac.authorization.k8s.io": KindRules(new=_json(rbac.check_role)),
    "clusterroles.rbac.authorization.k8s.io": KindRules(new=_json(rbac.check_cluster_role)),
    "rolebindings.rbac.authorization.k8s.io": KindRules(new=_json(rbac.check_role_binding)),
    "clusterrolebindings.rbac.authorization.k8s.io": KindRules(
        new=_json(rbac.check_cluster_role_binding)
    ),
    "certificatesigningrequests.certificates.k8s.io": KindRules(
        new=_json(certificates.check_request), changed=_json(lambda _: ())
    ),
    # coordination, node, flowcontrol, apiregistration
    "leases.coordination.k8s.io": KindRules(new=_json(coordination.check_lease)),
    "runtimeclasses.node.k8s.io": KindRules(new=_json(node_group.check_runtime_class)),
    "flowschemas.flowcontrol.apiserver.k8s.io": KindRules(new=_json(flowcontrol.check_schema)),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": KindRules(
        new=_json(flowcontrol.check_level)
    ),
    "apiservices.apiregistration.k8s.io": KindRules(new=_json(apiregistration.check_api_service)),
    # admissionregistration
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingadmissionpolicies.admissionregistration.k8s.io": KindRules(
        new=_json(admission_policy.check_policy)
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": KindRules(
        new=_json(admission_policy.check_bound)
    ),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": KindRules(
        new=_json(admission_policy.check_mutating_policy)
    ),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": KindRules(
        new=_json(admission_policy.check_mutating_bound)
    ),
    # resource
    "deviceclasses.resource.k8s.io": KindRules(new=_json(resource_claim.check_class)),
    "resourceslices.resource.k8s.io": KindRules(new=_json(resource_slice.check_slice)),
    "resourceclaims.resource.k8s.io": KindRules(new=_json(resource_claim.check_claim)),
    "resourceclaimtemplates.resource.k8s.io": KindRules(
        new=_json(resource_claim.check_claim_template)
    ),
}
