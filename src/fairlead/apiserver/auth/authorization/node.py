"""What a node's kubelet may do: read what its own pods need, and write about itself.

upstream: plugin/pkg/auth/authorizer/node/node_authorizer.go,
plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go:NodeRules, pkg/auth/nodeidentifier
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.auth.authorization.node_reference import claimed_volumes, referred
from fairlead.apiserver.auth.authorization.rule import allows
from fairlead.apiserver.auth.authorizer import AccessDecision, AuthorizationAttributes
from fairlead.apiserver.auth.bootstrap_policy.roles import READ
from fairlead.apiserver.kind import POD, RESOURCE_SLICE, SERVICE_ACCOUNT, VOLUME_ATTACHMENT
from fairlead.apiserver.request import User
from fairlead.apiserver.storage.storage import Storage

# Of a node and what it asks for.
Judge = Callable[[str, AuthorizationAttributes], str | None]

NODES_GROUP: Final = "system:nodes"
USER_PREFIX: Final = "system:node:"
LEASE_NAMESPACE: Final = "kube-node-lease"
_CORE: Final = ("", "events.k8s.io")
# What every kubelet may do, whatever runs on its node.
_RULES: Final[tuple[Json, ...]] = (
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
# What has to do with a node if one of its pods refers to it.
_READ: Final = (("", "secrets"), ("", "configmaps"))
_GOT: Final = (
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
    """Has an opinion of what nodes ask for, none of others."""

    def __init__(self, storage: Storage) -> None:
        """Which pods run where is read from `storage`."""
        self._storage = storage

    def __call__(self, asked: AuthorizationAttributes) -> AccessDecision | str:
        """That it is allowed, or why it has nothing to say in favour."""
        node = node_of(asked.user)
        if not node or not asked.is_resource:
            return ""
        why_not = self._judge(asked)(node, asked)
        if why_not is not None:
            return why_not
        return AccessDecision(allowed=True)

    def _judge(self, asked: AuthorizationAttributes) -> Judge:
        """Who says why a node may not, None where it may."""
        match asked.group, asked.resource:
            case of if of in _READ:
                return self._of_read
            case of if of in _GOT:
                return self._of_got
            case "", "serviceaccounts":
                return self._of_tokens
            case "", "pods" if asked.verb in READ:
                return self._of_pods
            case "resource.k8s.io", "resourceslices":
                return self._of_slices
            case of:
                return _SAME_FOR_ALL.get(of, _by_rules)

    def _of_read(self, node: str, asked: AuthorizationAttributes) -> str | None:
        if asked.verb not in READ:
            return "can only read resources of this type"
        if asked.subresource:
            return "cannot read subresource"
        if not asked.namespace:
            return "can only read namespaced object of this type"
        return self._of_related(node, asked)

    def _of_got(self, node: str, asked: AuthorizationAttributes) -> str | None:
        if (asked.resource, asked.subresource) == ("persistentvolumeclaims", "status"):
            if asked.verb not in ("update", "patch"):
                return "can only get/update/patch this type"
            return self._of_related(node, asked)
        if asked.verb != "get":
            return "can only get individual resources of this type"
        return "cannot get subresource" if asked.subresource else self._of_related(node, asked)

    def _of_tokens(self, node: str, asked: AuthorizationAttributes) -> str | None:
        if asked.verb != "create" or not asked.name:
            return "can only create tokens for individual service accounts"
        if asked.subresource != "token":
            return "can only create token subresource of serviceaccount"
        return self._of_related(node, asked)

    def _of_pods(self, node: str, asked: AuthorizationAttributes) -> str | None:
        if asked.verb == "get":
            return "cannot get subresource" if asked.subresource else self._of_related(node, asked)
        if asked.subresource:
            return ""
        if _is_of_node(asked, "spec.nodeName", node):
            return None
        why = "can only list/watch pods with spec.nodeName field selector"
        return self._of_related(node, asked) if asked.name else why

    def _of_slices(self, node: str, asked: AuthorizationAttributes) -> str | None:
        if asked.subresource:
            return "cannot authorize ResourceSlice subresources"
        match asked.verb:
            case "create":
                return None
            case "get" | "update" | "patch" | "delete":
                return self._of_related(node, asked)
            case "watch" | "list" | "deletecollection":
                is_own = _is_of_node(asked, "spec.nodeName", node)
                return None if is_own else f"can only {_SLICES}"
        return f"only the following verbs are allowed for a ResourceSlice: {_SLICE_VERBS}"

    def _of_related(self, node: str, asked: AuthorizationAttributes) -> str | None:
        if not asked.name:
            return _NO_NAME
        if self._is_related(node, asked.resource, asked.namespace, asked.name):
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
                return name in claimed_volumes(storage, self._pods(node))
            case "serviceaccounts":
                account = storage.find(SERVICE_ACCOUNT, namespace, name)
                return account is not None and any(
                    (pod.get("spec") or {}).get("serviceAccountName") == name
                    for pod in self._pods(node, namespace)
                )
        return any(name in referred(pod, resource) for pod in self._pods(node, namespace))

    def _pods(self, node: str, namespace: str | None = None) -> list[Json]:
        return [pod for pod in self._storage.items(POD, namespace) if _is_on(node, pod)]


def node_of(user: User) -> str:
    """The node whose kubelet the user is, "" for anybody else."""
    if NODES_GROUP not in user.groups or not user.name.startswith(USER_PREFIX):
        return ""
    return user.name.removeprefix(USER_PREFIX)


def _is_on(node: str, obj: Json | None) -> bool:
    return ((obj or {}).get("spec") or {}).get("nodeName") == node


def _is_of_node(asked: AuthorizationAttributes, field: str, node: str) -> bool:
    """Whether only what is of a node is asked for."""
    wanted = (f"{field}={node}", f"{field}=={node}")
    return any(term in wanted for term in asked.selector.split(","))


def _by_rules(_: str, asked: AuthorizationAttributes) -> str | None:
    return None if any(allows(rule, asked) for rule in _RULES) else ""


def _of_nodes(node: str, asked: AuthorizationAttributes) -> str | None:
    if asked.verb not in READ or asked.subresource:
        return _by_rules(node, asked)
    what = f"'{asked.name}'" if asked.name else "all nodes"
    why = f"node '{node}' cannot read {what}, only its own Node object"
    return None if asked.name == node else why


def _of_csi_nodes(node: str, asked: AuthorizationAttributes) -> str | None:
    if asked.verb not in _WRITE:
        return "can only get, create, update, patch, or delete a CSINode"
    if asked.subresource:
        return "cannot authorize CSINode subresources"
    return None if asked.verb == "create" or asked.name == node else _CSI_NODE


def _of_leases(node: str, asked: AuthorizationAttributes) -> str | None:
    if asked.verb not in _WRITE:
        return "can only get, create, update, patch, or delete a node lease"
    if asked.namespace != LEASE_NAMESPACE:
        return f'can only access leases in the "{LEASE_NAMESPACE}" system namespace'
    return None if asked.verb == "create" or asked.name == node else _NODE_LEASE


_SAME_FOR_ALL: Final[Mapping[tuple[str, str], Judge]] = {
    ("", "nodes"): _of_nodes,
    ("coordination.k8s.io", "leases"): _of_leases,
    ("storage.k8s.io", "csinodes"): _of_csi_nodes,
}
