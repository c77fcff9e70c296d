"""What people ask for in words (cordon, drain, scale, apply) as the commands that do it."""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.api.kubelet_behaviour import KUBELET, Mode
from fairlead.engine.core.command import (
    Command,
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    PatchStatus,
)
from fairlead.engine.workloads.annotation import DRAIN, IN_TURN, REQUESTED
from fairlead.engine.workloads.drain.rolling_drain import Turns
from fairlead.whatif.manifest import Manifest

UNSCHEDULABLE_TAINT: Final = "node.kubernetes.io/unschedulable"
_NOT_PATCHED: Final = ("apiVersion", "kind", "status")


def cordon(node: str) -> Command:
    """No new pods on `node`."""
    return PatchObject(_node(node), {"spec": {"unschedulable": True}})


def uncordon(node: Manifest) -> Command:
    """New pods on the node again; the taint that marks a cordoned node goes with it."""
    taints = node.value.get("spec", {}).get("taints", [])
    kept = [taint for taint in taints if taint.get("key") != UNSCHEDULABLE_TAINT]
    spec: Json = {"unschedulable": None}
    if len(kept) != len(taints):
        spec["taints"] = kept or None
    annotations = {DRAIN: None, IN_TURN: None}
    return PatchObject(
        _node(node.ref.name), {"spec": spec, "metadata": {"annotations": annotations}}
    )


def drain(node: str) -> Command:
    """Cordon `node` and have its pods evicted, as far as their budgets allow."""
    metadata = {"annotations": {DRAIN: REQUESTED}}
    return PatchObject(_node(node), {"spec": {"unschedulable": True}, "metadata": metadata})


def drain_in_turn(node: str, turns: Turns) -> Command:
    """Let `node` be drained when its turn comes, and come back."""
    return PatchObject(_node(node), {"metadata": {"annotations": {IN_TURN: str(turns)}}})


def steer_kubelet(node: str, behaviour: str) -> Command:
    """The kubelet of `node` behaves as `behaviour` says (fairlead.api.kubelet_behaviour)."""
    return PatchObject(_node(node), {"metadata": {"annotations": {KUBELET: behaviour}}})


def stop_node(node: str) -> Command:
    """`node` falls silent: its kubelet does nothing any more."""
    return steer_kubelet(node, str(Mode.STOPPED))


def return_node(node: str) -> Command:
    """`node` is back, as it was left."""
    return PatchObject(_node(node), {"metadata": {"annotations": {KUBELET: None}}})


def scale(workload: ObjectRef, replicas: int) -> Command:
    """`workload` shall have `replicas` pods."""
    return PatchObject(workload, {"spec": {"replicas": replicas}})


def create(manifest: Manifest) -> Command:
    """The object shall be there."""
    return CreateObject(manifest.value)


def delete(target: ObjectRef) -> Command:
    """The object shall be gone; of whatever incarnation."""
    return DeleteObject(ObjectRef(target.kind, target.namespace, target.name))


def patch(target: ObjectRef, merge: Json) -> list[Command]:
    """RFC 7386 `merge` applied to the object, its status included."""
    commands: list[Command] = []
    if body := {key: value for key, value in merge.items() if key not in _NOT_PATCHED}:
        commands.append(PatchObject(target, body))
    if status := merge.get("status"):
        commands.append(PatchStatus(target, status))
    return commands


def apply(manifest: Manifest, existing: Manifest | None) -> list[Command]:
    """Create the object, or merge the manifest into the one that is there."""
    if existing is None:
        return [create(manifest)]
    return patch(existing.ref, manifest.value)


def _node(name: str) -> ObjectRef:
    return ObjectRef("Node", "", name)
