"""NodeRestriction: limits a kubelet to its own Node object and the pods bound to that node.

upstream: plugin/pkg/admission/noderestriction/admission.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.well_known_label import (
    ARCH,
    BETA_INSTANCE_TYPE,
    BETA_REGION,
    BETA_ZONE,
    HOSTNAME,
    INSTANCE_TYPE,
    OS,
    REGION,
    ZONE,
)
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.plugins.service_account import MIRROR
from fairlead.apiserver.auth.authorization.node_authorizer import LEASE_NAMESPACE, node_of
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
_KUBERNETES_DOMAINS: Final = ("kubernetes.io", "k8s.io")
_RESTRICTED: Final = "node-restriction.kubernetes.io"
_KUBELET_LABELS: Final = frozenset(
    (
        HOSTNAME,
        ARCH,
        OS,
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        BETA_INSTANCE_TYPE,
        INSTANCE_TYPE,
        BETA_REGION,
        BETA_ZONE,
        REGION,
        ZONE,
    )
)
_KUBELET_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")


_EVICTION_PROBLEM: Final = "can only evict pods with spec.nodeName set to itself"
_UID_PROBLEM: Final = (
    "does not match the UID in record. The object might have been deleted and then recreated"
)


_SLICE_PROBLEM: Final = "can only {} ResourceSlice with the same NodeName as the requesting node"


class NodeRestriction:
    """The admission plugin `NodeRestriction`."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Refuse a kubelet's write to objects of other nodes, or to restricted fields.

        For example, a kubelet may not change the taints of its Node. Raises ApiError 403.
        """
        user = attributes.write.user
        node = node_of(user) if user is not None else ""
        problem = _problem(node, attributes, storage) if node else ""
        if problem:
            meta = attributes.obj["metadata"]
            raise forbidden(
                attributes.kind, meta.get("namespace", ""), meta.get("name", ""), problem
            )
        return attributes.obj


def _problem(node: str, attributes: AdmissionAttributes, storage: Storage) -> str:
    """Return the reason why the kubelet of `node` may not make this request; "" if it may."""
    match attributes.kind, attributes.subresource:
        case kind, "eviction" if kind is POD:
            pod = storage.find(POD, attributes.namespace, attributes.name)
            return "" if _node_of(pod) == node else f"node {node} {_EVICTION_PROBLEM}"
        case kind, subresource if kind is POD:
            return _pod_problem(node, attributes.operation, attributes.obj, subresource)
        case kind, _ if kind is NODE:
            return _node_problem(
                node, attributes.operation, attributes.obj, attributes.old or {"metadata": {}}
            )
        case kind, _ if kind is LEASE:
            return _lease_problem(node, attributes)
        case kind, "token" if kind is SERVICE_ACCOUNT:
            return _token_problem(node, attributes, storage)
        case kind, _ if kind is CSI_NODE and attributes.name != node:
            return "can only access CSINode with the same name as the requesting node"
        case kind, _ if kind is RESOURCE_SLICE and _node_of(attributes.obj) != node:
            # For an update, the node authorizer has already checked that the node owns the slice.
            is_update = attributes.operation is Operation.UPDATE
            return "" if is_update else _SLICE_PROBLEM.format(attributes.operation.value.lower())
        case _:
            return ""


def _lease_problem(node: str, attributes: AdmissionAttributes) -> str:
    if attributes.namespace != LEASE_NAMESPACE:
        return f"can only access leases in the {LEASE_NAMESPACE} namespace"
    if attributes.name != node:
        return "can only access node lease with the same name as the requesting node"
    return ""


def _token_problem(node: str, attributes: AdmissionAttributes, storage: Storage) -> str:
    reference = (attributes.obj.get("spec") or {}).get("boundObjectRef") or {}
    name, uid = reference.get("name"), reference.get("uid")
    if (reference.get("apiVersion"), reference.get("kind")) != ("v1", POD.kind) or not name:
        return "node requested token not bound to a pod"
    if not uid:
        return "node requested token with a pod binding without a uid"
    pod = storage.find(POD, attributes.namespace, name)
    if pod is None:
        return f'pods "{name}" not found'
    if pod["metadata"].get("uid") != uid:
        return f"the UID in the bound object reference ({uid}) {_UID_PROBLEM}"
    if _node_of(pod) != node:
        return "node requested token bound to a pod scheduled on a different node"
    return ""


def _node_of(pod: Json | None) -> str:
    return str(((pod or {}).get("spec") or {}).get("nodeName") or "")


def _pod_problem(node: str, operation: Operation, pod: Json, subresource: str) -> str:
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


def _node_problem(node: str, operation: Operation, obj: Json, old: Json) -> str:
    name = obj["metadata"].get("name", "")
    if name != node:
        return f'node "{node}" is not allowed to modify node "{name}"'
    restricted = ", ".join(key for key in _changed_labels(obj, old) if _is_restricted(key))
    if operation is Operation.CREATE and restricted:
        return f'node "{node}" is not allowed to set the following labels: {restricted}'
    if operation is Operation.UPDATE and _taints(obj) != _taints(old):
        return f'node "{node}" is not allowed to modify taints'
    if operation is Operation.UPDATE and restricted:
        return f"is not allowed to modify labels: {restricted}"
    return ""


def _taints(node: Json) -> object:
    return (node.get("spec") or {}).get("taints") or []


def _changed_labels(new: Json, old: Json) -> list[str]:
    after, before = new["metadata"].get("labels") or {}, old["metadata"].get("labels") or {}
    return sorted(key for key in {**after, **before} if after.get(key) != before.get(key))


def _is_in_domain(key: str, *domains: str) -> bool:
    prefix = key.partition("/")[0] if "/" in key else ""
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)


def _is_restricted(key: str) -> bool:
    """Return whether kubelets may not set the label `key` on their nodes."""
    is_kubelets = key in _KUBELET_LABELS or _is_in_domain(key, *_KUBELET_DOMAINS)
    return _is_in_domain(key, _RESTRICTED) or (
        _is_in_domain(key, *_KUBERNETES_DOMAINS) and not is_kubelets
    )
