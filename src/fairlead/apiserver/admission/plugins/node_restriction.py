"""NodeRestriction: a kubelet writes about its own node and its own pods only.

upstream: plugin/pkg/admission/noderestriction/admission.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked, Operation
from fairlead.apiserver.admission.plugins.service_account import MIRROR
from fairlead.apiserver.auth.authorization.node import LEASE_NAMESPACE, node_of
from fairlead.apiserver.error import forbidden
from fairlead.apiserver.kind import (
    CSI_NODE,
    LEASE,
    NODE,
    POD,
    RESOURCE_SLICE,
    SERVICE_ACCOUNT,
)
from fairlead.apiserver.storage.storage import Storage

# upstream: noderestriction/admission.go:getModifiedLabels, isKubernetesLabel
_KUBERNETES: Final = ("kubernetes.io", "k8s.io")
_RESTRICTED: Final = "node-restriction.kubernetes.io"
_OWN_LABELS: Final = frozenset(
    (
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    )
)
_OWN_PREFIXES: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")


_EVICTION: Final = "can only evict pods with spec.nodeName set to itself"
_OTHER_POD: Final = (
    "does not match the UID in record. The object might have been deleted and then recreated"
)


_SLICE: Final = "can only {} ResourceSlice with the same NodeName as the requesting node"


class NodeRestriction:
    """The admission plugin."""

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Refuse what is another node's. Raises ApiError 403."""
        user = asked.about.write.user
        node = node_of(user) if user is not None else ""
        why = _objection(node, asked, storage) if node else ""
        if why:
            meta = asked.obj["metadata"]
            raise forbidden(asked.kind, meta.get("namespace", ""), meta.get("name", ""), why)
        return asked.obj


def _objection(node: str, asked: Asked, storage: Storage) -> str:
    """Why a kubelet may not, "" where it may."""
    match asked.kind, asked.about.subresource:
        case kind, "eviction" if kind is POD:
            pod = storage.find(POD, asked.namespace, asked.name)
            return "" if _node_of(pod) == node else f"node {node} {_EVICTION}"
        case kind, part if kind is POD:
            return _of_pods(node, asked.operation, asked.obj, part)
        case kind, _ if kind is NODE:
            return _of_nodes(node, asked.operation, asked.obj, asked.about.old or {"metadata": {}})
        case kind, _ if kind is LEASE:
            return _of_leases(node, asked)
        case kind, "token" if kind is SERVICE_ACCOUNT:
            return _of_tokens(node, asked, storage)
        case kind, _ if kind is CSI_NODE and asked.name != node:
            return "can only access CSINode with the same name as the requesting node"
        case kind, _ if kind is RESOURCE_SLICE and _node_of(asked.obj) != node:
            # Whose slice an update changes, authorization has looked at.
            is_update = asked.operation is Operation.UPDATE
            return "" if is_update else _SLICE.format(asked.operation.value.lower())
        case _:
            return ""


def _of_leases(node: str, asked: Asked) -> str:
    if asked.namespace != LEASE_NAMESPACE:
        return f"can only access leases in the {LEASE_NAMESPACE} namespace"
    if asked.name != node:
        return "can only access node lease with the same name as the requesting node"
    return ""


def _of_tokens(node: str, asked: Asked, storage: Storage) -> str:
    reference = (asked.obj.get("spec") or {}).get("boundObjectRef") or {}
    name, uid = reference.get("name"), reference.get("uid")
    if (reference.get("apiVersion"), reference.get("kind")) != ("v1", POD.kind) or not name:
        return "node requested token not bound to a pod"
    if not uid:
        return "node requested token with a pod binding without a uid"
    pod = storage.find(POD, asked.namespace, name)
    if pod is None:
        return f'pods "{name}" not found'
    if pod["metadata"].get("uid") != uid:
        return f"the UID in the bound object reference ({uid}) {_OTHER_POD}"
    if _node_of(pod) != node:
        return "node requested token bound to a pod scheduled on a different node"
    return ""


def _node_of(pod: Json | None) -> str:
    return str(((pod or {}).get("spec") or {}).get("nodeName") or "")


def _of_pods(node: str, operation: Operation, pod: Json, subresource: str) -> str:
    annotations = pod["metadata"].get("annotations") or {}
    if subresource in ("", "status") and operation is not Operation.CREATE:
        verb = "delete" if operation is Operation.DELETE else "update status for"
        if _node_of(pod) == node:
            return ""
        return f'node "{node}" can only {verb} pods with spec.nodeName set to itself'
    if subresource:
        return ""
    if MIRROR not in annotations:
        return f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
    if _node_of(pod) != node:
        return f'node "{node}" can only create pods with spec.nodeName set to itself'
    if (pod.get("spec") or {}).get("serviceAccountName"):
        return f'node "{node}" can not create pods that reference a service account'
    return ""


def _of_nodes(node: str, operation: Operation, obj: Json, old: Json) -> str:
    name = obj["metadata"].get("name", "")
    if name != node:
        return f'node "{node}" is not allowed to modify node "{name}"'
    refused = ", ".join(key for key in _changed_labels(obj, old) if _is_kept(key))
    if operation is Operation.CREATE and refused:
        return f'node "{node}" is not allowed to set the following labels: {refused}'
    if operation is Operation.UPDATE and _taints(obj) != _taints(old):
        return f'node "{node}" is not allowed to modify taints'
    if operation is Operation.UPDATE and refused:
        return f"is not allowed to modify labels: {refused}"
    return ""


def _taints(node: Json) -> object:
    return (node.get("spec") or {}).get("taints") or []


def _changed_labels(new: Json, old: Json) -> list[str]:
    after, before = new["metadata"].get("labels") or {}, old["metadata"].get("labels") or {}
    return sorted(key for key in {**after, **before} if after.get(key) != before.get(key))


def _prefix(key: str) -> str:
    return key.partition("/")[0] if "/" in key else ""


def _domain(key: str, *domains: str) -> bool:
    prefix = _prefix(key)
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)


def _is_kept(key: str) -> bool:
    """Whether a label is kept from kubelets."""
    is_own = key in _OWN_LABELS or _domain(key, *_OWN_PREFIXES)
    return _domain(key, _RESTRICTED) or (_domain(key, *_KUBERNETES) and not is_own)
