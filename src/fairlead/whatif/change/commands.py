"""Commands for user actions: cordon, drain, scale, create, delete, patch, set kubelet behaviour."""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.nodes.kubelet_behaviour import KUBELET
from fairlead.engine.core.command import (
    Command,
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.workloads.drain.rolling_drain import RollingDrainOptions
from fairlead.engine.workloads.node_annotation import DRAIN, IN_TURN, REQUESTED
from fairlead.whatif.snapshot.manifest import Manifest

_NOT_PATCHED: Final = ("apiVersion", "kind", "status")


def cordon(node: str) -> Command:
    """Return the command that marks `node` unschedulable."""
    return PatchObject(_node(node), {"spec": {"unschedulable": True}})


def uncordon(node: str) -> Command:
    """Return the command that makes `node` schedulable again and ends its drain.

    Like kubectl uncordon, the command does not write taints: the node lifecycle controller removes
    the taint node.kubernetes.io/unschedulable.
    """
    metadata = {"annotations": {DRAIN: None, IN_TURN: None}}
    return PatchObject(_node(node), {"spec": {"unschedulable": None}, "metadata": metadata})


def drain(node: str) -> Command:
    """Return the command that cordons `node` and requests the eviction of its pods.

    The request is an annotation for the simulation's drain controller, which respects budgets.
    """
    metadata = {"annotations": {DRAIN: REQUESTED}}
    return PatchObject(_node(node), {"spec": {"unschedulable": True}, "metadata": metadata})


def rolling_drain(node: str, options: RollingDrainOptions) -> Command:
    """Return the command that queues `node` for a rolling drain with the settings `options`.

    The command also cancels an earlier request to drain the node. So the node waits for its turn
    like the other nodes.
    """
    annotations = {DRAIN: None, IN_TURN: str(options)}
    return PatchObject(_node(node), {"metadata": {"annotations": annotations}})


def set_kubelet_behaviour(node: str, behaviour: str) -> Command:
    """Return the command that sets the behaviour of the kubelet of `node`.

    fairlead.api.nodes.kubelet_behaviour describes the format of `behaviour`.
    """
    return PatchObject(_node(node), {"metadata": {"annotations": {KUBELET: behaviour}}})


def return_node(node: str) -> Command:
    """Return the command that makes the kubelet of `node` behave normally again."""
    return PatchObject(_node(node), {"metadata": {"annotations": {KUBELET: None}}})


def scale(workload: ObjectRef, replicas: int) -> PatchObject:
    """Return the command that sets the number of replicas of `workload`."""
    return PatchObject(workload, {"spec": {"replicas": replicas}})


def create(manifest: Manifest) -> Command:
    """Return the command that creates the object `manifest`."""
    return CreateObject(manifest.value)


def delete(target: ObjectRef) -> Command:
    """Return the command that deletes the object `target`, whatever its UID is."""
    return DeleteObject(ObjectRef(target.kind, target.namespace, target.name))


def patch(target: ObjectRef, merge: Json) -> list[Command]:
    """Return the commands that patch `target` and its status with `merge` (RFC 7386)."""
    commands: list[Command] = []
    if body := {key: value for key, value in merge.items() if key not in _NOT_PATCHED}:
        commands.append(PatchObject(target, body))
    if status := merge.get("status"):
        commands.append(PatchStatus(target, status))
    return commands


def _node(name: str) -> ObjectRef:
    return ObjectRef("Node", "", name)
