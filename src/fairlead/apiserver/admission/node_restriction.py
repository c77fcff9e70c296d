"""NodeRestriction: a kubelet writes about its own node and its own pods only.

upstream: plugin/pkg/admission/noderestriction/admission.go
"""

from __future__ import annotations

from typing import Final

from fairlead.apiserver.admission.plugin import Asked, Circumstances, Operation
from fairlead.apiserver.admission.service_account import MIRROR
from fairlead.apiserver.auth.node import LEASE_NAMESPACE, node_of
from fairlead.apiserver.error import forbidden
from fairlead.apiserver.kind import LEASE, NODE, POD, Kind
from fairlead.apiserver.storage import Json, Storage

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


class NodeRestriction:
    """The admission plugin."""

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """Refuse what is another node's. Raises ApiError 403."""
        kind, obj = asked.kind, asked.obj
        user = asked.about.write.user
        node = node_of(user) if user is not None else ""
        if node:
            why = _objection(node, asked.operation, kind, obj, asked.about)
            if why:
                meta = obj["metadata"]
                raise forbidden(kind, meta.get("namespace", ""), meta.get("name", ""), why)
        return obj


def _objection(node: str, operation: Operation, kind: Kind, obj: Json, about: Circumstances) -> str:
    """Why a kubelet may not, "" where it may."""
    if kind is POD:
        return _of_pods(node, operation, obj, about.subresource)
    if kind is NODE:
        return _of_nodes(node, operation, obj, about.old or {"metadata": {}})
    if kind is LEASE:
        meta = obj["metadata"]
        if meta.get("namespace") != LEASE_NAMESPACE:
            return f"can only access leases in the {LEASE_NAMESPACE} namespace"
        if meta.get("name") != node:
            return "can only access node lease with the same name as the requesting node"
    return ""


def _of_pods(node: str, operation: Operation, pod: Json, subresource: str) -> str:
    spec, annotations = pod.get("spec") or {}, pod["metadata"].get("annotations") or {}
    if subresource in ("", "status") and operation is not Operation.CREATE:
        bound = spec.get("nodeName", "")
        verb = "delete" if operation is Operation.DELETE else "update status for"
        if bound == node:
            return ""
        return f'node "{node}" can only {verb} pods with spec.nodeName set to itself'
    if subresource:
        return ""
    if MIRROR not in annotations:
        return f'pod does not have "{MIRROR}" annotation, node "{node}" can only create mirror pods'
    if spec.get("nodeName") != node:
        return f'node "{node}" can only create pods with spec.nodeName set to itself'
    if spec.get("serviceAccountName"):
        return f'node "{node}" can not create pods that reference a service account'
    return ""


def _of_nodes(node: str, operation: Operation, obj: Json, old: Json) -> str:
    name = obj["metadata"].get("name", "")
    if name != node:
        return f'node "{node}" is not allowed to modify node "{name}"'
    if operation is Operation.UPDATE and _taints(obj) != _taints(old):
        return f'node "{node}" is not allowed to modify taints'
    changed = _changed_labels(obj, old)
    if operation is Operation.UPDATE:
        forbidden_labels = [key for key in changed if _domain(key, _RESTRICTED)]
        unknown = [key for key in changed if _is_kubernetes(key) and not _is_own(key)]
        if forbidden_labels:
            return f"is not allowed to modify labels: {', '.join(forbidden_labels)}"
        if unknown:
            return f"is not allowed to modify labels: {', '.join(unknown)}"
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


def _is_kubernetes(key: str) -> bool:
    return _domain(key, *_KUBERNETES)


def _is_own(key: str) -> bool:
    return key in _OWN_LABELS or _domain(key, *_OWN_PREFIXES)
