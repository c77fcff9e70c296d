"""What a node's kubelet may do: read what its own pods need, and write about itself.

upstream: plugin/pkg/auth/authorizer/node/node_authorizer.go,
plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go:NodeRules, pkg/auth/nodeidentifier
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.apiserver.auth.bootstrap_table import READ
from fairlead.apiserver.auth.rule import allows
from fairlead.apiserver.kind import POD, SERVICE_ACCOUNT
from fairlead.apiserver.request import User
from fairlead.apiserver.serving.identity import Attributes, Verdict
from fairlead.apiserver.storage import Storage

Json = dict[str, Any]

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
    {"verbs": ["create", *READ], "apiGroups": [""], "resources": ["nodes"]},
    {"verbs": ["patch", "update"], "apiGroups": [""], "resources": ["nodes", "nodes/status"]},
    {"verbs": ["create", "patch", "update"], "apiGroups": _CORE, "resources": ["events"]},
    {"verbs": READ, "apiGroups": [""], "resources": ["pods"]},
    {"verbs": ["create", "delete"], "apiGroups": [""], "resources": ["pods"]},
    {"verbs": ["patch", "update"], "apiGroups": [""], "resources": ["pods/status"]},
    {"verbs": ["create"], "apiGroups": [""], "resources": ["pods/eviction"]},
    {
        "verbs": ["create", *READ],
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests"],
    },
    {"verbs": READ, "apiGroups": ["node.k8s.io"], "resources": ["runtimeclasses"]},
    {"verbs": READ, "apiGroups": ["storage.k8s.io"], "resources": ["csidrivers"]},
)
# What a pod on the node must refer to before its kubelet may read it: under which fields.
_REFERRED: Final = ("secrets", "configmaps", "persistentvolumeclaims")
_NODE_LEASE: Final = "can only access node lease with the same name as the requesting node"
_NO_NAME: Final = "No Object name found"


class NodeAuthorizer:
    """Has an opinion of what nodes ask for, none of others."""

    def __init__(self, storage: Storage) -> None:
        """Which pods run where is read from `storage`."""
        self._storage = storage

    def __call__(self, asked: Attributes) -> Verdict | str:
        """That it is allowed, or why it has nothing to say in favour."""
        node = node_of(asked.user)
        if not node or not asked.is_resource:
            return ""
        why_not = self._objection(node, asked)
        if why_not is not None:
            return why_not
        return Verdict(allowed=True)

    def _objection(self, node: str, asked: Attributes) -> str | None:
        """Why a node may not; None where it may."""
        resource = asked.resource
        if resource in _REFERRED and not asked.group:
            return self._of_referred(node, asked)
        if resource == "leases" and asked.group == "coordination.k8s.io":
            return _of_leases(node, asked)
        if resource == "serviceaccounts" and asked.subresource == "token":
            runs = any(self._runs_as(pod, asked.name) for pod in self._pods(node, asked.namespace))
            return None if runs else self._no_relationship(node, asked)
        if resource == "nodes" and asked.verb == "get" and asked.name != node:
            return f"node '{node}' cannot read '{asked.name}', only its own Node object"
        return None if any(allows(rule, asked) for rule in _RULES) else ""

    def _of_referred(self, node: str, asked: Attributes) -> str | None:
        if asked.verb not in READ:
            return "can only read resources of this type"
        if not asked.namespace:
            return "can only read namespaced object of this type"
        if not asked.name:
            return _NO_NAME
        for pod in self._pods(node, asked.namespace):
            if asked.name in referred(pod, asked.resource):
                return None
        return self._no_relationship(node, asked)

    def _no_relationship(self, node: str, asked: Attributes) -> str:
        return f"no relationship found between node '{node}' and this object"

    def _runs_as(self, pod: Json, account: str) -> bool:
        name = pod.get("spec", {}).get("serviceAccountName", "")
        known = self._storage.find(SERVICE_ACCOUNT, pod["metadata"]["namespace"], name)
        return bool(name == account and known is not None)

    def _pods(self, node: str, namespace: str) -> Iterator[Json]:
        for pod in self._storage.items(POD, namespace):
            if pod.get("spec", {}).get("nodeName") == node:
                yield pod


def node_of(user: User) -> str:
    """The node whose kubelet the user is, "" for anybody else."""
    if NODES_GROUP not in user.groups or not user.name.startswith(USER_PREFIX):
        return ""
    return user.name.removeprefix(USER_PREFIX)


def referred(pod: Json, resource: str) -> set[str]:
    """The names of Secrets, ConfigMaps or claims that a pod needs."""
    found: set[str] = set()
    spec = pod.get("spec") or {}
    if resource == "secrets":
        found.update(one.get("name", "") for one in spec.get("imagePullSecrets") or ())
    for volume in spec.get("volumes") or ():
        found.update(_of_volume(volume, resource))
    for holder in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(holder) or ():
            found.update(_of_environment(container, resource))
    return found - {""}


def _of_volume(volume: Json, resource: str) -> Iterator[str]:
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


def _of_environment(container: Json, resource: str) -> Iterator[str]:
    whole, key = ("secretRef", "secretKeyRef")
    if resource == "configmaps":
        whole, key = ("configMapRef", "configMapKeyRef")
    for source in container.get("envFrom") or ():
        yield (source.get(whole) or {}).get("name", "")
    for variable in container.get("env") or ():
        yield ((variable.get("valueFrom") or {}).get(key) or {}).get("name", "")


def _of_leases(node: str, asked: Attributes) -> str | None:
    if asked.namespace != LEASE_NAMESPACE:
        return f'can only access leases in the "{LEASE_NAMESPACE}" system namespace'
    if asked.verb not in ("get", "create", "update", "patch", "delete"):
        return "can only get, create, update, patch, or delete a node lease"
    if asked.verb != "create" and asked.name != node:
        return _NODE_LEASE
    return None
