"""Builds Tables: the columns, and a row for each object.

upstream: apiserver/pkg/endpoints/handlers/response.go:asTable
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.printers import api_machinery, core, network, storage, workload
from fairlead.apiserver.printers.autoscaling import HORIZONTAL_POD_AUTOSCALER
from fairlead.apiserver.printers.column import Printer
from fairlead.apiserver.printers.metrics import NODE_METRICS, POD_METRICS
from fairlead.apiserver.printers.pod import POD

# --- printers ------------------------------------------------------------------------------------

# No two API groups have different printers for kinds of the same name.

PRINTERS: Final[Mapping[str, Printer]] = {
    "APIService": api_machinery.API_SERVICE,
    "CSIDriver": storage.CSI_DRIVER,
    "CSINode": storage.CSI_NODE,
    "CertificateSigningRequest": core.CERTIFICATE_SIGNING_REQUEST,
    "ClusterRoleBinding": api_machinery.ROLE_BINDING,
    "ComponentStatus": core.COMPONENT_STATUS,
    "ConfigMap": core.CONFIG_MAP,
    "ControllerRevision": workload.CONTROLLER_REVISION,
    "CronJob": workload.CRON_JOB,
    "DaemonSet": workload.DAEMON_SET,
    "Deployment": workload.DEPLOYMENT,
    "DeviceClass": core.NAMED,
    "DeviceTaintRule": core.NAMED,
    "EndpointSlice": network.ENDPOINT_SLICE,
    "Endpoints": network.ENDPOINTS,
    "Event": core.EVENT,
    "FlowSchema": api_machinery.FLOW_SCHEMA,
    "HorizontalPodAutoscaler": HORIZONTAL_POD_AUTOSCALER,
    "IPAddress": network.IP_ADDRESS,
    "Ingress": network.INGRESS,
    "IngressClass": network.INGRESS_CLASS,
    "Job": workload.JOB,
    "Lease": core.LEASE,
    "MutatingAdmissionPolicy": api_machinery.MUTATING_POLICY,
    "MutatingAdmissionPolicyBinding": api_machinery.POLICY_BINDING,
    "MutatingWebhookConfiguration": api_machinery.WEBHOOKS,
    "Namespace": core.NAMESPACE,
    "NetworkPolicy": network.NETWORK_POLICY,
    "Node": core.NODE,
    "NodeMetrics": NODE_METRICS,
    "PersistentVolume": storage.PERSISTENT_VOLUME,
    "PersistentVolumeClaim": storage.PERSISTENT_VOLUME_CLAIM,
    "Pod": POD,
    "PodDisruptionBudget": core.POD_DISRUPTION_BUDGET,
    "PodGroup": core.NAMED,
    "PodMetrics": POD_METRICS,
    "PodTemplate": workload.POD_TEMPLATE,
    "PriorityClass": core.PRIORITY_CLASS,
    "PriorityLevelConfiguration": api_machinery.PRIORITY_LEVEL,
    "ReplicaSet": workload.REPLICA_SET,
    "ReplicationController": workload.REPLICATION_CONTROLLER,
    "ResourceClaim": storage.RESOURCE_CLAIM,
    "ResourceClaimTemplate": core.NAMED,
    "ResourceQuota": core.RESOURCE_QUOTA,
    "ResourceSlice": storage.RESOURCE_SLICE,
    "RoleBinding": api_machinery.ROLE_BINDING,
    "RuntimeClass": core.RUNTIME_CLASS,
    "Scale": workload.SCALE,
    "Secret": core.SECRET,
    "Service": network.SERVICE,
    "ServiceAccount": core.NAMED,
    "ServiceCIDR": network.SERVICE_CIDR,
    "StatefulSet": workload.STATEFUL_SET,
    "StorageClass": storage.STORAGE_CLASS,
    "ValidatingAdmissionPolicy": api_machinery.VALIDATING_POLICY,
    "ValidatingAdmissionPolicyBinding": api_machinery.POLICY_BINDING,
    "ValidatingWebhookConfiguration": api_machinery.WEBHOOKS,
    "VolumeAttachment": storage.VOLUME_ATTACHMENT,
    "VolumeAttributesClass": storage.VOLUME_ATTRIBUTES_CLASS,
    "Workload": core.NAMED,
}
# Kinds without a printer show their creation time.
DEFAULT: Final = core.DATED
# The printer of custom resources without columns.
CUSTOM: Final = core.NAMED


def printer_of(kind: str) -> Printer:
    """Return the printer of a built-in kind."""
    return PRINTERS.get(kind, DEFAULT)


# The values of `includeObject`; "" means Metadata.
INCLUDES: Final = ("", "Metadata", "Object", "None")
# An annotation that DaemonSets have in version v1 only.
_GENERATION_ANNOTATION: Final = "deprecated.daemonset.template.generation"


def table(kind: Kind, objects: Iterable[Json], now: int, include: str) -> Json:
    """Return the `columnDefinitions` and `rows` of a Table of `objects`, which have kind `kind`.

    `now` (ns since 1970) is the time for which ages are calculated. `include` is the query
    parameter includeObject. Raises ApiError 400 if its value is unknown.
    """
    return table_with(_printer_of(kind), kind, objects, now, include)


def _printer_of(kind: Kind) -> Printer:
    if kind.custom is not None and isinstance(kind.custom.printer, Printer):
        return kind.custom.printer
    return CUSTOM if kind.is_custom else printer_of(kind.kind)


def table_with(
    printer_: Printer, kind: Kind, objects: Iterable[Json], now: int, include: str
) -> Json:
    """Return `columnDefinitions` and `rows` of objects of `kind`, printed by `printer_`.

    The other arguments and the errors are those of `table`.
    """
    embed = embedding(kind, include)
    objects = sorted(objects, key=printer_.order) if printer_.order else objects
    rows = [{**_row(printer_, obj, now), **embed(obj)} for obj in objects]
    return {
        "columnDefinitions": [column.definition() for column in printer_.columns],
        "rows": rows or (None if printer_.is_bare else []),
    }


def _row(printer_: Printer, obj: Json, now: int) -> Json:
    row: Json = {"cells": printer_.cells(obj, now)}
    conditions = printer_.conditions(obj) if printer_.conditions else []
    return {**row, "conditions": conditions} if conditions else row


def embedding(kind: Kind, include: str) -> Callable[[Json], Json]:
    """Return a function that takes an object and returns the member `object` of its table row.

    The query parameter includeObject (`include`) determines what the member contains: the metadata
    of the object, the whole object, or null. Raises ApiError 400 if its value is unknown.
    """
    if include not in INCLUDES:
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    if include == "None":
        return lambda _: {"object": None}
    if include == "Object":
        type_meta = {"kind": kind.kind, "apiVersion": kind.api_version}
        return lambda obj: {"object": {**type_meta, **obj}}
    head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return lambda obj: {"object": {**head, "metadata": _metadata(kind, obj)}}


def _metadata(kind: Kind, obj: Json) -> Json:
    """Return the metadata of `obj`, without the annotation that upstream drops from DaemonSets."""
    # upstream: pkg/apis/apps/v1/conversion.go:Convert_apps_DaemonSet_To_v1_DaemonSet
    meta: Json = obj.get("metadata", {})
    annotations = meta.get("annotations") or {}
    if kind.kind != "DaemonSet" or _GENERATION_ANNOTATION not in annotations:
        return meta
    kept = {key: text for key, text in annotations.items() if key != _GENERATION_ANNOTATION}
    rest = {key: value for key, value in meta.items() if key != "annotations"}
    return {**rest, "annotations": kept} if kept else rest
