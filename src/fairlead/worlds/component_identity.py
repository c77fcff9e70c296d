"""Returns the user that sends a command; admission webhooks and policies see this user.

Each controller of kube-controller-manager has its own service account. If one Fairlead controller
replaces several upstream controllers, the kind of the command's target selects the account.

upstream: cmd/kube-controller-manager/names/controller_names.go, pkg/kubelet, pkg/scheduler
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import User
from fairlead.engine.core.command import (
    Bind,
    CallExtender,
    CreateObject,
    DeleteCollection,
    EvictPod,
    IssuedCommand,
    RecordEvent,
)
from fairlead.engine.core.issuer import Component

_SERVICE_ACCOUNT: Final = "system:serviceaccount:kube-system:"
_GROUPS: Final = ("system:serviceaccounts", "system:serviceaccounts:kube-system")
_ACCOUNTS: Final = {
    "DaemonSet": "daemon-set-controller",
    "Deployment": "deployment-controller",
    "Endpoints": "endpoint-controller",
    "EndpointSlice": "endpointslice-controller",
    "Job": "job-controller",
    "ReplicaSet": "replicaset-controller",
    "ReplicationController": "replication-controller",
    "StatefulSet": "statefulset-controller",
}
_DEFAULT_ACCOUNT: Final = "generic-garbage-collector"

Object = Mapping[str, Any]


def sender_of(issued: IssuedCommand, store: Store) -> User | None:
    """Return the user that sends the command in `issued`; None if the command skips admission."""
    match issued.command:
        case RecordEvent() | CallExtender() | DeleteCollection():
            return None
        case Bind(pod, _) | EvictPod(pod, _):
            target = pod
        case command:
            target = command.target
    kind = find_kind(target.kind)
    old = store.find(kind, target.namespace, target.name) if kind else None
    return user_of(issued, old)


def user_of(issued: IssuedCommand, old: Object | None) -> User:
    """Return the user of the component that issued the command.

    `old` is the stored object that the command changes, None if there is none.
    """
    match issued.issuer.component:
        case Component.SCHEDULER:
            return authenticated("system:kube-scheduler")
        case Component.KUBELET:
            return authenticated(f"system:node:{_node(issued, old)}", ("system:nodes",))
        case Component.KARPENTER:
            return authenticated(f"{_SERVICE_ACCOUNT}karpenter", _GROUPS)
        case Component.CLUSTER_AUTOSCALER:
            return authenticated(f"{_SERVICE_ACCOUNT}cluster-autoscaler", _GROUPS)
        case Component.API_SERVER:
            return authenticated("system:apiserver", ("system:masters",))
        case Component.CONTROLLER_MANAGER:
            account = issued.issuer.account or _account(issued, old)
            return authenticated(f"{_SERVICE_ACCOUNT}{account}", _GROUPS)


def _node(issued: IssuedCommand, old: Object | None) -> str:
    command = issued.command
    subject = command.manifest if isinstance(command, CreateObject) else old
    if subject is None:  # a client deleted the pod first; the command will not find it
        return ""
    name: str = subject.get("spec", {}).get("nodeName", "") or subject["metadata"]["name"]
    return name


def _account(issued: IssuedCommand, old: Object | None) -> str:
    """Return the service account of the controller that issued the command; see `user_of`."""
    command = issued.command
    subject = command.manifest if isinstance(command, CreateObject) else old or {}
    references = subject.get("metadata", {}).get("ownerReferences") or ()
    owner = next((row["kind"] for row in references if row.get("controller")), "")
    match command:
        case Bind() | EvictPod() | RecordEvent() | CallExtender() | DeleteCollection():
            kind = ""
        case _:
            kind = command.target.kind
    found = _ACCOUNTS.get(kind) or _ACCOUNTS.get(owner)
    if isinstance(command, CreateObject):
        found = _ACCOUNTS.get(owner) or _ACCOUNTS.get(kind)
    return found or _DEFAULT_ACCOUNT
