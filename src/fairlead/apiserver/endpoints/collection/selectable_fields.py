"""Fields that field selectors may use, by kind, and how their values read as text.

Every kind has metadata.name and metadata.namespace; a few have more.

upstream: each kind's SelectableFields in pkg/registry/*/strategy.go and
pkg/apis/*/v1/conversion.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.json_path import json_path
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import Kind

Read = Callable[[Json], str]

NAME: Final = "metadata.name"
NAMESPACE: Final = "metadata.namespace"
_ALWAYS: Final = (NAME, NAMESPACE)


def reader(kind: Kind, field: str) -> Read:
    """Reads `field` of objects of `kind` as text. Raises ApiError 400 if it is not selectable."""
    if field == NAME or (field == NAMESPACE and not _is_named_only(kind)):
        return _metadata(field.removeprefix("metadata."))
    if kind.custom is not None:
        return _selectable(kind.custom.selectable, field)
    is_newer = kind.group == "events.k8s.io"
    read = (_NEWER_EVENT if is_newer else _FIELDS.get(kind.resource, {})).get(field)
    if read is not None:
        return read
    if kind.resource in _FIELDS:
        raise bad_request(_UNSUPPORTED.get(kind.resource, _UNKNOWN_FIELD).format(field))
    known = ", ".join(f'"{name}"' for name in _ALWAYS)
    raise bad_request(f'"{field}" is not a known field selector: only {known}')


def _is_named_only(kind: Kind) -> bool:
    """Whether a cluster-scoped kind rejects metadata.namespace; others accept it."""
    # upstream: AddFieldLabelConversionFunc in conversion.go of core, certificates and resource;
    # apiextensions-apiserver/pkg/apiserver/conversion/converter.go:ConvertFieldLabel
    return kind.resource in _NAMED_ONLY or (kind.custom is not None and not kind.namespaced)


def _selectable(paths: tuple[str, ...], field: str) -> Read:
    """A selectable field of a custom resource definition."""
    # upstream: apiextensions-apiserver/pkg/apiserver/conversion/converter.go:ConvertFieldLabel
    if f".{field}" not in paths:
        raise bad_request(f"field label not supported: {field}")
    path = json_path(f".{field}")

    def read(obj: Json) -> str:
        value = next(iter(path.find(obj)), "")
        return str(value).lower() if isinstance(value, bool) else str(value)

    return read


def _metadata(field: str) -> Read:
    def read(obj: Json) -> str:
        text: str = obj["metadata"].get(field, "")
        return text

    return read


def _text(*path: str, absent: str = "") -> Read:
    """Reads the field at `path` as text; `absent` if there is none."""

    def read(obj: Json) -> str:
        value: Any = obj
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            return absent
        return str(value).lower() if isinstance(value, bool) else str(value)

    return read


def _pod_ip(obj: Json) -> str:
    # upstream: pkg/registry/core/pod/strategy.go:ToSelectableFields
    ips = obj.get("status", {}).get("podIPs", ())
    return str(ips[0].get("ip", "")) if ips else ""


def _source(obj: Json) -> str:
    # upstream: pkg/registry/core/event/strategy.go:ToSelectableFields
    return str(obj.get("source", {}).get("component", "") or obj.get("reportingComponent", ""))


_INVOLVED: Final = (
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
)
_EVENT: Final[dict[str, Read]] = {
    **{f"involvedObject.{key}": _text("involvedObject", key) for key in _INVOLVED},
    "reason": _text("reason"),
    "reportingComponent": _text("reportingComponent"),
    "source": _source,
    "type": _text("type"),
}
# upstream: pkg/apis/events/v1/conversion.go:AddFieldLabelConversionsForEvent
_NEWER_EVENT: Final[dict[str, Read]] = {
    **{f"regarding.{key}": _text("involvedObject", key) for key in _INVOLVED},
    "reason": _text("reason"),
    "reportingController": _text("reportingComponent"),
    "type": _text("type"),
}
_UNKNOWN_FIELD: Final = "field label not supported: {}"
_UNSUPPORTED: Final[Mapping[str, str]] = {
    "jobs.batch": 'field label "{}" not supported for Job',
    "resourceslices.resource.k8s.io": (
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}"
    ),
}
# By Kind.resource.
_FIELDS: Final[Mapping[str, Mapping[str, Read]]] = {
    "pods": {
        "spec.nodeName": _text("spec", "nodeName"),
        "spec.restartPolicy": _text("spec", "restartPolicy"),
        "spec.schedulerName": _text("spec", "schedulerName"),
        "spec.serviceAccountName": _text("spec", "serviceAccountName"),
        "spec.hostNetwork": _text("spec", "hostNetwork", absent="false"),
        "status.phase": _text("status", "phase"),
        "status.podIP": _pod_ip,
        "status.podIPs": _pod_ip,
        "status.nominatedNodeName": _text("status", "nominatedNodeName"),
    },
    "nodes": {"spec.unschedulable": _text("spec", "unschedulable", absent="false")},
    "namespaces": {"status.phase": _text("status", "phase")},
    "secrets": {"type": _text("type")},
    "services": {
        "spec.clusterIP": _text("spec", "clusterIP"),
        "spec.type": _text("spec", "type"),
    },
    "jobs.batch": {"status.successful": _text("status", "succeeded", absent="0")},
    "replicationcontrollers": {"status.replicas": _text("status", "replicas", absent="0")},
    "certificatesigningrequests.certificates.k8s.io": {
        "spec.signerName": _text("spec", "signerName")
    },
    "resourceslices.resource.k8s.io": {
        "spec.nodeName": _text("spec", "nodeName"),
        "spec.driver": _text("spec", "driver"),
    },
    "events": _EVENT,
}
_NAMED_ONLY: Final = (
    "namespaces", "nodes", "certificatesigningrequests.certificates.k8s.io",
    "resourceslices.resource.k8s.io",
)  # fmt: skip
