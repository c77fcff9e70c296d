"""The node authorizer: the permissions of kubelets.

A kubelet may read the objects to which the pods on its node refer. The kubelet may write its own
Node, Lease, CSINode and ResourceSlices. `NodeRestriction` (admission) checks the content of these
writes.

upstream: plugin/pkg/auth/authorizer/node/{node_authorizer,graph}.go,
plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go:NodeRules, pkg/auth/nodeidentifier
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.auth.authorization.policy_rule import allows
from fairlead.apiserver.auth.authorizer import AccessDecision, AuthorizationAttributes
from fairlead.apiserver.auth.bootstrap_policy.roles import READ
from fairlead.apiserver.kind import (
    PERSISTENT_VOLUME_CLAIM,
    POD,
    RESOURCE_SLICE,
    SERVICE_ACCOUNT,
    VOLUME_ATTACHMENT,
)
from fairlead.apiserver.request import User
from fairlead.apiserver.storage.storage import Storage

# Returns why the authorizer has no opinion on a node's request; None if the request is allowed.
Check = Callable[[str, AuthorizationAttributes], str | None]

NODES_GROUP: Final = "system:nodes"
USER_PREFIX: Final = "system:node:"
LEASE_NAMESPACE: Final = "kube-node-lease"
_CORE: Final = ("", "events.k8s.io")
# The rules that allow requests of every kubelet, regardless of its pods.
_NODE_RULES: Final[tuple[Json, ...]] = (
    {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"]},
    {
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["subjectaccessreviews", "localsubjectaccessreviews"],
    },
    {"verbs": READ, "apiGroups": [""], "resources": ["services"]},
    {"verbs": ["create", "patch", "update"], "apiGroups": [""], "resources": ["nodes"]},
    {"verbs": ["patch", "update"], "apiGroups": [""], "resources": ["nodes/status"]},
    {"verbs": ["create", "patch", "update"], "apiGroups": _CORE, "resources": ["events"]},
    {"verbs": ["create", "delete"], "apiGroups": [""], "resources": ["pods"]},
    {"verbs": ["patch", "update"], "apiGroups": [""], "resources": ["pods/status"]},
    {"verbs": ["create"], "apiGroups": [""], "resources": ["pods/eviction"]},
    {"verbs": ["get"], "apiGroups": [""], "resources": ["endpoints"]},
    {
        "verbs": ["create", *READ],
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests"],
    },
    {"verbs": READ, "apiGroups": ["node.k8s.io"], "resources": ["runtimeclasses"]},
    {"verbs": READ, "apiGroups": ["storage.k8s.io"], "resources": ["csidrivers"]},
)
# Resources that a kubelet may read if one of its pods refers to them.
_READABLE_RESOURCES: Final = (("", "secrets"), ("", "configmaps"))
_GETTABLE_RESOURCES: Final = (
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("resource.k8s.io", "resourceclaims"),
    ("storage.k8s.io", "volumeattachments"),
)
_WRITE: Final = ("get", "create", "update", "patch", "delete")
_SLICES: Final = "list/watch/deletecollection resourceslices with nodeName field selector"
_SLICE_VERBS: Final = "get, watch, list, create, update, patch, delete, deletecollection"
_NODE_LEASE: Final = "can only access node lease with the same name as the requesting node"
_CSI_NODE: Final = "can only access CSINode with the same name as the requesting node"
_NO_NAME: Final = "No Object name found"


class NodeAuthorizer:
    """Authorizes requests of kubelets. For other requests, it has no opinion."""

    def __init__(self, storage: Storage) -> None:
        """`storage` contains the pods of each node."""
        self._storage = storage

    def __call__(self, attributes: AuthorizationAttributes) -> AccessDecision | str:
        """Return a decision that allows the request, or the reason for having no opinion on it.

        The reason may be "".
        """
        node = node_of(attributes.user)
        if not node or not attributes.is_resource:
            return ""
        problem = self._check_for(attributes)(node, attributes)
        if problem is not None:
            return problem
        return AccessDecision(allowed=True)

    def _check_for(self, attributes: AuthorizationAttributes) -> Check:
        """Return the check for the requested resource.

        The check returns None if it allows the request, otherwise the reason why it does not.
        """
        match attributes.group, attributes.resource:
            case resource if resource in _READABLE_RESOURCES:
                return self._check_readable
            case resource if resource in _GETTABLE_RESOURCES:
                return self._check_gettable
            case "", "serviceaccounts":
                return self._check_tokens
            case "", "pods" if attributes.verb in READ:
                return self._check_pods
            case "resource.k8s.io", "resourceslices":
                return self._check_slices
            case resource:
                return _STATELESS_CHECKS.get(resource, _check_rules)

    def _check_readable(self, node: str, attributes: AuthorizationAttributes) -> str | None:
        if attributes.verb not in READ:
            return "can only read resources of this type"
        if attributes.subresource:
            return "cannot read subresource"
        if not attributes.namespace:
            return "can only read namespaced object of this type"
        return self._check_related(node, attributes)

    def _check_gettable(self, node: str, attributes: AuthorizationAttributes) -> str | None:
        if (attributes.resource, attributes.subresource) == ("persistentvolumeclaims", "status"):
            if attributes.verb not in ("update", "patch"):
                return "can only get/update/patch this type"
            return self._check_related(node, attributes)
        if attributes.verb != "get":
            return "can only get individual resources of this type"
        return (
            "cannot get subresource"
            if attributes.subresource
            else self._check_related(node, attributes)
        )

    def _check_tokens(self, node: str, attributes: AuthorizationAttributes) -> str | None:
        if attributes.verb != "create" or not attributes.name:
            return "can only create tokens for individual service accounts"
        if attributes.subresource != "token":
            return "can only create token subresource of serviceaccount"
        return self._check_related(node, attributes)

    def _check_pods(self, node: str, attributes: AuthorizationAttributes) -> str | None:
        if attributes.verb == "get":
            return (
                "cannot get subresource"
                if attributes.subresource
                else self._check_related(node, attributes)
            )
        if attributes.subresource:
            return ""
        if _selects_node(attributes, "spec.nodeName", node):
            return None
        problem = "can only list/watch pods with spec.nodeName field selector"
        return self._check_related(node, attributes) if attributes.name else problem

    def _check_slices(self, node: str, attributes: AuthorizationAttributes) -> str | None:
        if attributes.subresource:
            return "cannot authorize ResourceSlice subresources"
        match attributes.verb:
            case "create":
                return None
            case "get" | "update" | "patch" | "delete":
                return self._check_related(node, attributes)
            case "watch" | "list" | "deletecollection":
                is_own = _selects_node(attributes, "spec.nodeName", node)
                return None if is_own else f"can only {_SLICES}"
        return f"only the following verbs are allowed for a ResourceSlice: {_SLICE_VERBS}"

    def _check_related(self, node: str, attributes: AuthorizationAttributes) -> str | None:
        if not attributes.name:
            return _NO_NAME
        if self._is_related(node, attributes.resource, attributes.namespace, attributes.name):
            return None
        return f"no relationship found between node '{node}' and this object"

    def _is_related(self, node: str, resource: str, namespace: str, name: str) -> bool:
        storage = self._storage
        match resource:
            case "pods":
                return _is_on(node, storage.find(POD, namespace, name))
            case "resourceslices":
                return _is_on(node, storage.find(RESOURCE_SLICE, "", name))
            case "volumeattachments":
                return _is_on(node, storage.find(VOLUME_ATTACHMENT, "", name))
            case "persistentvolumes":
                return name in bound_volumes(storage, self._pods(node))
            case "serviceaccounts":
                account = storage.find(SERVICE_ACCOUNT, namespace, name)
                return account is not None and any(
                    (pod.get("spec") or {}).get("serviceAccountName") == name
                    for pod in self._pods(node, namespace)
                )
        return any(name in referenced_names(pod, resource) for pod in self._pods(node, namespace))

    def _pods(self, node: str, namespace: str | None = None) -> list[Json]:
        return [pod for pod in self._storage.items(POD, namespace) if _is_on(node, pod)]


def node_of(user: User) -> str:
    """Return the name of the node whose kubelet is `user`; "" for other users."""
    if NODES_GROUP not in user.groups or not user.name.startswith(USER_PREFIX):
        return ""
    return user.name.removeprefix(USER_PREFIX)


def _is_on(node: str, obj: Json | None) -> bool:
    return ((obj or {}).get("spec") or {}).get("nodeName") == node


def _selects_node(attributes: AuthorizationAttributes, field: str, node: str) -> bool:
    """Return whether the field selector of the request requires that `field` equals `node`."""
    terms = (f"{field}={node}", f"{field}=={node}")
    return any(term in terms for term in attributes.selector.split(","))


def _check_rules(_: str, attributes: AuthorizationAttributes) -> str | None:
    return None if any(allows(rule, attributes) for rule in _NODE_RULES) else ""


def _check_nodes(node: str, attributes: AuthorizationAttributes) -> str | None:
    if attributes.verb not in READ or attributes.subresource:
        return _check_rules(node, attributes)
    target_text = f"'{attributes.name}'" if attributes.name else "all nodes"
    problem = f"node '{node}' cannot read {target_text}, only its own Node object"
    return None if attributes.name == node else problem


def _check_csi_nodes(node: str, attributes: AuthorizationAttributes) -> str | None:
    if attributes.verb not in _WRITE:
        return "can only get, create, update, patch, or delete a CSINode"
    if attributes.subresource:
        return "cannot authorize CSINode subresources"
    return None if attributes.verb == "create" or attributes.name == node else _CSI_NODE


def _check_leases(node: str, attributes: AuthorizationAttributes) -> str | None:
    if attributes.verb not in _WRITE:
        return "can only get, create, update, patch, or delete a node lease"
    if attributes.namespace != LEASE_NAMESPACE:
        return f'can only access leases in the "{LEASE_NAMESPACE}" system namespace'
    return None if attributes.verb == "create" or attributes.name == node else _NODE_LEASE


_STATELESS_CHECKS: Final[Mapping[tuple[str, str], Check]] = {
    ("", "nodes"): _check_nodes,
    ("coordination.k8s.io", "leases"): _check_leases,
    ("storage.k8s.io", "csinodes"): _check_csi_nodes,
}


# The fields of a container's `envFrom` and `env` that refer to objects of a resource.
_ENVIRONMENT_KEYS: Final[Mapping[str, tuple[str, str]]] = {
    "secrets": ("secretRef", "secretKeyRef"),
    "configmaps": ("configMapRef", "configMapKeyRef"),
}


# --- what pods refer to ---------------------------------------------------------------------


def bound_volumes(storage: Storage, pods: list[Json]) -> set[str]:
    """Return the names of the PersistentVolumes to which the claims of `pods` are bound."""
    found = set()
    for pod in pods:
        namespace = pod["metadata"]["namespace"]
        for name in sorted(referenced_names(pod, "persistentvolumeclaims")):
            claim = storage.find(PERSISTENT_VOLUME_CLAIM, namespace, name) or {}
            found.add(str((claim.get("spec") or {}).get("volumeName") or ""))
    return found - {""}


def referenced_names(pod: Json, resource: str) -> set[str]:
    """Return the names of the objects of `resource` to which a pod refers.

    `resource` is a plural such as `secrets`, `configmaps` or `resourceclaims`.
    """
    found: set[str] = set()
    spec = pod.get("spec") or {}
    if resource == "resourceclaims":
        status = pod.get("status") or {}
        generated = status.get("resourceClaimStatuses") or ()
        special = status.get("extendedResourceClaimStatus") or {}
        claims = (*(spec.get("resourceClaims") or ()), *generated, special)
        return {one.get("resourceClaimName") or "" for one in claims} - {""}
    if resource == "secrets":
        found.update(one.get("name", "") for one in spec.get("imagePullSecrets") or ())
    for volume in spec.get("volumes") or ():
        found.update(_volume_references(volume, resource))
    if resource in _ENVIRONMENT_KEYS:
        for container_list in ("containers", "initContainers", "ephemeralContainers"):
            for container in spec.get(container_list) or ():
                found.update(_environment_references(container, resource))
    return found - {""}


def _volume_references(volume: Json, resource: str) -> Iterator[str]:
    projected = (volume.get("projected") or {}).get("sources") or ()
    for source in (volume, *projected):
        match resource:
            case "secrets":
                secret = source.get("secret") or {}
                yield secret.get("secretName", secret.get("name", ""))
            case "configmaps":
                yield (source.get("configMap") or {}).get("name", "")
            case _:
                yield (source.get("persistentVolumeClaim") or {}).get("claimName", "")


def _environment_references(container: Json, resource: str) -> Iterator[str]:
    all_keys, key = _ENVIRONMENT_KEYS[resource]
    for source in container.get("envFrom") or ():
        yield (source.get(all_keys) or {}).get("name", "")
    for variable in container.get("env") or ():
        yield ((variable.get("valueFrom") or {}).get(key) or {}).get("name", "")
