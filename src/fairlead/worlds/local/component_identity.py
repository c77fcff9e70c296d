"""Who would have sent a command, were every controller a program of its own.

Kubernetes' components sign what they write, in metadata.managedFields by the name of the program
and to admission webhooks by the user that it runs as. Commands do not say from which controller
they come; what they are about tells it.

upstream: cmd/kube-controller-manager/app/*.go (NewControllerDescriptors, service accounts),
pkg/kubelet/status, pkg/scheduler
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.request import User
from fairlead.engine.core.command import (
    Bind,
    Command,
    CreateObject,
    DeleteObject,
    PatchObject,
    PatchStatus,
    RecordEvent,
)

Json = Mapping[str, Any]


class Component(StrEnum):
    """A component by the name under which it writes."""

    CONTROLLERS = "kube-controller-manager"
    KUBELET = "kubelet"
    SCHEDULER = "kube-scheduler"


_MIRROR: Final = "kubernetes.io/config.mirror"
_SCHEDULERS_CONDITIONS: Final = ("PodScheduled",)
_SCHEDULERS_REASONS: Final = ("PreemptionByScheduler",)
_CONTROLLERS_REASONS: Final = ("DeletionByPodGC", "DeletionByTaintManager")
_NODES_ARE_SILENT: Final = ("NodeStatusUnknown", "NodeStatusNeverUpdated")
_PREEMPTION: Final = "preemption"
_ACCOUNT: Final = "system:serviceaccount:kube-system:"
_ACCOUNTS_GROUPS: Final = ("system:serviceaccounts", "system:serviceaccounts:kube-system")
# upstream: the names that controllers have as service accounts
_ACCOUNTS: Final = {
    "CronJob": "cronjob-controller",
    "DaemonSet": "daemon-set-controller",
    "Deployment": "deployment-controller",
    "Endpoints": "endpoint-controller",
    "EndpointSlice": "endpointslice-controller",
    "Job": "job-controller",
    "Node": "node-controller",
    "PersistentVolume": "persistent-volume-binder",
    "PersistentVolumeClaim": "persistent-volume-binder",
    "PodDisruptionBudget": "disruption-controller",
    "ReplicaSet": "replicaset-controller",
    "ReplicationController": "replication-controller",
    "ResourceClaim": "resource-claim-controller",
    "StatefulSet": "statefulset-controller",
}
_OTHERWISE: Final = "generic-garbage-collector"


def program_of(command: Command) -> Component:
    """The component that would have sent `command`."""
    match command:
        case Bind():
            return Component.SCHEDULER
        case PatchStatus(target) if target.kind == "Pod":
            return _writer_of_pod_status(command)
        case PatchStatus(target, _, conditions) if target.kind == "Node":
            is_told_by_others = any(row.reason in _NODES_ARE_SILENT for row in conditions)
            return Component.CONTROLLERS if is_told_by_others else Component.KUBELET
        case CreateObject(manifest) | PatchObject(_, manifest) if _is_kubelets(command, manifest):
            return Component.KUBELET
        case DeleteObject(_, _, why) if why == _PREEMPTION:
            return Component.SCHEDULER
        case RecordEvent():
            return program_called(command.reporting_controller)
        case _:
            return Component.CONTROLLERS


def program_called(component: str) -> Component:
    """The component that reports events as `component`."""
    if component == Component.KUBELET:
        return Component.KUBELET
    return Component.SCHEDULER if component.endswith("scheduler") else Component.CONTROLLERS


def _writer_of_pod_status(command: PatchStatus) -> Component:
    rows = command.conditions
    if "nominatedNodeName" in command.fields:
        return Component.SCHEDULER
    for row in rows:
        if row.type in _SCHEDULERS_CONDITIONS or row.reason in _SCHEDULERS_REASONS:
            return Component.SCHEDULER
        if row.reason in _CONTROLLERS_REASONS:
            return Component.CONTROLLERS
    is_ready = any(row.type == "Ready" and row.status == "True" for row in rows)
    return Component.KUBELET if is_ready or "phase" in command.fields else Component.CONTROLLERS


def _is_kubelets(command: CreateObject | PatchObject, manifest: Json) -> bool:
    if command.target.kind == "Lease":
        return True
    annotations = manifest.get("metadata", {}).get("annotations") or {}
    return command.target.kind == "Pod" and _MIRROR in annotations


def user_of(command: Command, old: Json | None) -> User:
    """The user as whom that component asks; `old` is what the command is about, as it is."""
    match program_of(command):
        case Component.SCHEDULER:
            return authenticated("system:kube-scheduler")
        case Component.KUBELET:
            return authenticated(f"system:node:{_node(command, old)}", ("system:nodes",))
        case _:
            return authenticated(f"{_ACCOUNT}{_account(command)}", _ACCOUNTS_GROUPS)


def _node(command: Command, old: Json | None) -> str:
    subject = command.manifest if isinstance(command, CreateObject) else old or {}
    name: str = subject.get("spec", {}).get("nodeName", "") or subject["metadata"]["name"]
    return name


def _account(command: Command) -> str:
    """The controller's own account, as far as what it writes tells."""
    if isinstance(command, CreateObject):
        references = command.manifest.get("metadata", {}).get("ownerReferences") or ()
        owner = next((row["kind"] for row in references if row.get("controller")), "")
        if owner in _ACCOUNTS:
            return _ACCOUNTS[owner]
    kind = "" if isinstance(command, RecordEvent) else _target_kind(command)
    return _ACCOUNTS.get(kind, _OTHERWISE)


def _target_kind(command: Command) -> str:
    target = getattr(command, "target", None)
    return target.kind if target is not None else "Pod"
