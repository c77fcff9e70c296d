"""The rules of each kind: for what is new and for what changes.

upstream: Validate and ValidateUpdate of pkg/registry/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.objects import Pod, ResourceRequirements
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.spelled import is_respelled
from fairlead.apiserver.validation.change_text import internal_of
from fairlead.apiserver.validation.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
)
from fairlead.apiserver.validation.metadata import check_labels, dns_label_problems
from fairlead.apiserver.validation.pod import check_tolerations
from fairlead.apiserver.validation.repetition import repeated_places
from fairlead.apiserver.validation.resource import check_requirements
from fairlead.apiserver.validation.served import (
    address,
    admission_policy,
    api_service,
    autoscaling,
    configuration,
    csi,
    device,
    device_claim,
    endpoint,
    event,
    flow,
    job,
    job_update,
    limit_range,
    network,
    pod,
    quota,
    rbac,
    service,
    signing,
    storage,
    webhook,
    workload,
)
from fairlead.apiserver.validation.served.address_form import check_cidr
from fairlead.apiserver.validation.served.form import IMMUTABLE, check_unchanged
from fairlead.apiserver.validation.served.immutable import check_fixed
from fairlead.apiserver.validation.served.metadata import check_finalizer_names

Check = Callable[[Json], Causes]
CheckUpdate = Callable[[Json, Json], Causes]


def check_new(kind: Kind, obj: Json) -> Causes:
    """What is wrong with a new object besides."""
    rule = _NEW.get(kind.resource) or _ANY.get(kind.resource)
    if kind.group == "events.k8s.io":
        rule = event.check_new_event
    if rule is not None:
        yield from rule(obj)


def check_any(kind: Kind, obj: Json) -> Causes:
    """What is wrong with an object besides, whether it is new or not."""
    if kind.group == "events.k8s.io":
        yield from event.check_event(obj, "reportingController")
        return
    rule = _ANY.get(kind.resource)
    if rule is not None:
        yield from rule(obj)


def check_change(kind: Kind, old: Json, new: Json) -> Causes:
    """What is wrong with a change besides."""
    if kind.resource != "events" or kind.group:  # those of core/v1 are as they always were
        yield from check_fixed(kind.resource, old, new)
    change = _CHANGED.get(kind.resource)
    if change is not None:
        yield from change(old, new)


def _lease(obj: Json) -> Causes:
    spec = obj.get("spec") or {}
    for key, least in (("leaseDurationSeconds", 1), ("leaseTransitions", 0)):
        number = spec.get(key)
        if number is not None and number < least:
            bound = "greater than 0" if least else "greater than or equal to 0"
            yield invalid(f"spec.{key}", number, f"must be {bound}")


def _namespace(obj: Json) -> Causes:
    yield from check_finalizer_names("spec.finalizers", (obj.get("spec") or {}).get("finalizers"))


def _node(obj: Json) -> Causes:
    ranges = obj["spec"].get("podCIDRs") or []
    for place, text in enumerate(ranges):
        yield from check_cidr(f"spec.podCIDRs[{place}]", text)
    families = [":" in text for text in ranges]
    if len(set(families)) < len(families):
        why = "may specify no more than one CIDR for each IP family"
        yield invalid("spec.podCIDRs", ranges, why)


def _node_update(old: Json, new: Json) -> Causes:
    had, wants = old["spec"].get("podCIDRs") or [], new["spec"].get("podCIDRs") or []
    changed = [one != other for one, other in zip(had, wants, strict=False)]
    why = 'node updates may not change podCIDR except from "" to valid'
    for _ in range(sum(changed) if len(had) == len(wants) else bool(had)):
        yield forbidden("spec.podCIDRs", why)
    had, wants = old["spec"].get("providerID"), new["spec"].get("providerID")
    if had and had != wants:
        why = 'node updates may not change providerID except from "" to valid'
        yield forbidden("spec.providerID", why)
    if old["spec"].get("externalID", "") != new["spec"].get("externalID", ""):
        yield forbidden("spec.externalID", "may not be updated")


def _revision_update(old: Json, new: Json) -> Causes:
    before, after = old.get("data"), new.get("data")
    if before == after and is_respelled(before, after):
        yield invalid("data", after, IMMUTABLE)
    yield from check_unchanged("data", before, after)


def _runtime_class(obj: Json) -> Causes:
    for problem in dns_label_problems(obj["handler"]):
        yield invalid("handler", obj["handler"], problem)
    fixed = (obj.get("overhead") or {}).get("podFixed") or {}
    yield from check_requirements("overhead", ResourceRequirements(limits=fixed))
    scheduling = obj.get("scheduling") or {}
    labels = scheduling.get("nodeSelector") or {}
    yield from check_labels("scheduling.nodeSelector", labels)
    tolerations = scheduling.get("tolerations") or []
    spec = decode_as(Pod, {"spec": {"tolerations": tolerations}}).spec
    yield from check_tolerations("scheduling.tolerations", spec.tolerations)
    keys = [[one.get(key, "") for key in _TOLERATION] for one in tolerations]
    for place in sorted(repeated_places(keys)):
        shown = internal_of("core.v1.Toleration", tolerations[place])
        yield duplicate(f"scheduling.tolerations[{place}]", shown)


_TOLERATION: Final = ("key", "operator", "value", "effect")
_NEW: Final[Mapping[str, Check]] = {
    "pods": pod.check_new_pod,
    "ingresses.networking.k8s.io": network.check_new_ingress,
    "cronjobs.batch": job.check_new_cron_job,
    "volumeattachments.storage.k8s.io": csi.check_new_attachment,
    "certificatesigningrequests.certificates.k8s.io": signing.check_request,
}
_ANY: Final[Mapping[str, Check]] = {
    "configmaps": configuration.check_config_map,
    "events": event.check_event,
    "secrets": configuration.check_secret,
    "resourcequotas": quota.check_quota,
    "limitranges": limit_range.check_limit_range,
    "persistentvolumeclaims": storage.check_claim,
    "persistentvolumes": storage.check_volume,
    "storageclasses.storage.k8s.io": storage.check_storage_class,
    "services": service.check_service,
    "endpoints": endpoint.check_endpoints,
    "endpointslices.discovery.k8s.io": endpoint.check_endpoint_slice,
    "nodes": _node,
    "leases.coordination.k8s.io": _lease,
    "deployments.apps": workload.check_deployment,
    "replicasets.apps": workload.check_replica_set,
    "replicationcontrollers": workload.check_replica_set,
    "statefulsets.apps": workload.check_stateful_set,
    "controllerrevisions.apps": workload.check_revision,
    "podtemplates": workload.check_new_pod_template,
    "daemonsets.apps": workload.check_daemon_set,
    "jobs.batch": job.check_job,
    "cronjobs.batch": job.check_cron_job,
    "roles.rbac.authorization.k8s.io": rbac.check_role,
    "clusterroles.rbac.authorization.k8s.io": rbac.check_cluster_role,
    "rolebindings.rbac.authorization.k8s.io": rbac.check_role_binding,
    "clusterrolebindings.rbac.authorization.k8s.io": rbac.check_cluster_role_binding,
    "horizontalpodautoscalers.autoscaling": autoscaling.check_autoscaler,
    "ingresses.networking.k8s.io": network.check_ingress,
    "ingressclasses.networking.k8s.io": network.check_ingress_class,
    "networkpolicies.networking.k8s.io": network.check_network_policy,
    "runtimeclasses.node.k8s.io": _runtime_class,
    "volumeattachments.storage.k8s.io": csi.check_attachment,
    "csinodes.storage.k8s.io": csi.check_node,
    "csidrivers.storage.k8s.io": csi.check_driver,
    "csistoragecapacities.storage.k8s.io": csi.check_capacity,
    "volumeattributesclasses.storage.k8s.io": csi.check_attributes_class,
    "flowschemas.flowcontrol.apiserver.k8s.io": flow.check_schema,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": flow.check_level,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": webhook.check_webhooks,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": webhook.check_webhooks,
    "validatingadmissionpolicies.admissionregistration.k8s.io": admission_policy.check_policy,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": admission_policy.check_bound,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": (
        admission_policy.check_mutating_policy
    ),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": (
        admission_policy.check_mutating_bound
    ),
    "ipaddresses.networking.k8s.io": address.check_ip_address,
    "servicecidrs.networking.k8s.io": address.check_service_cidr,
    "namespaces": _namespace,
    "apiservices.apiregistration.k8s.io": api_service.check_api_service,
    "deviceclasses.resource.k8s.io": device_claim.check_class,
    "resourceslices.resource.k8s.io": device.check_slice,
    "resourceclaims.resource.k8s.io": device_claim.check_claim,
    "resourceclaimtemplates.resource.k8s.io": device_claim.check_claim_template,
}
_CHANGED: Final[Mapping[str, CheckUpdate]] = {
    "configmaps": configuration.check_config_map_update,
    "nodes": _node_update,
    "secrets": configuration.check_secret_update,
    "resourcequotas": quota.check_quota_update,
    "persistentvolumeclaims": storage.check_claim_update,
    "persistentvolumes": storage.check_volume_update,
    "csinodes.storage.k8s.io": csi.check_node_update,
    "servicecidrs.networking.k8s.io": address.check_service_cidr_update,
    "services": service.check_service_update,
    "statefulsets.apps": workload.check_stateful_set_update,
    "jobs.batch": job_update.check_job_update,
    "controllerrevisions.apps": _revision_update,
}
