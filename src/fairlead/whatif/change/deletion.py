"""Deletions of a what-if: the contents of deleted Namespaces, and notes about delayed deletions.

Three kinds of objects are not deleted immediately. A PersistentVolumeClaim that a pod uses is
deleted after the pod. A bound PersistentVolume is deleted after its claim. A Node of Karpenter is
drained first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from fairlead.api.finalizer import FOREGROUND, JOB_TRACKING, ORPHAN, TERMINATION
from fairlead.api.json import text
from fairlead.api.pods.facts import is_terminal
from fairlead.api.pods.volumes import BOUND, all_claims
from fairlead.apiserver.kind import NAMESPACE, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD
from fairlead.engine.autoscaling.karpenter.labels import CAPACITY_TYPE, DO_NOT_DISRUPT, SPOT
from fairlead.engine.core.command import Command, PatchObject
from fairlead.engine.workloads.deletion.in_use_protection import FINALIZERS
from fairlead.whatif.change import commands
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

# upstream: apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go: NewLifecycle
_IMMORTAL_NAMESPACES: Final = frozenset({"default", "kube-system", "kube-public"})
_SIMULATED_FINALIZERS: Final = frozenset(
    (*FINALIZERS.values(), TERMINATION, JOB_TRACKING, FOREGROUND, ORPHAN)
)

# A provider that takes back a spot machine gives notice, and stops the machine in any case.
_RECLAIM: Final = (
    " A cloud that takes back spot nodes does not wait for the drain. To simulate this, state "
    "terminationGracePeriod in the NodeClaims of the dump, such as 2m, with --autoscale karpenter."
)


def deleted_with(source: str, target: Manifest, inventory: Inventory) -> list[Manifest]:
    """Return the objects that a deletion of `target` deletes; `target` itself is the last object.

    Raises InputError if `target` cannot be deleted; the message names the option or file `source`.
    """
    if target.kind is not NAMESPACE:
        return [target]
    if target.ref.name in _IMMORTAL_NAMESPACES:
        raise InputError(source, f"the {target.title} cannot be deleted")
    return [*inventory.in_namespace(target.ref.name), target]


def claims_in_use(targets: Iterable[Manifest], inventory: Inventory) -> Iterator[str]:
    """Yield a note for each PersistentVolumeClaim in `targets` that a pod in `inventory` uses.

    `targets` are the objects to delete; `inventory` contains the objects that are not deleted.
    """
    claims = [one for one in targets if one.kind is PERSISTENT_VOLUME_CLAIM]
    if not claims:
        return
    users: dict[tuple[str, str], list[str]] = {}
    for pod in (one.pod for one in inventory.of_kind(POD)):
        # upstream: pkg/controller/volume/pvcprotection/pvc_protection_controller.go:podUsesPVC
        if pod.spec.node_name and not is_terminal(pod):
            for claim in all_claims(pod):
                users.setdefault((pod.metadata.namespace, claim), []).append(pod.metadata.name)
    for one in claims:
        pods = users.get((one.ref.namespace, one.ref.name))
        if pods:
            more = f" and {len(pods) - 1:,} more" if len(pods) > 1 else ""
            yield (
                f"{one.title} stays Terminating while a pod uses it "
                f"({one.ref.namespace}/{pods[0]}{more}). Then the claim is deleted, and a pod "
                "that names it cannot start before a new claim with this name exists. A "
                "StatefulSet creates one from its template, without the old data."
            )


def bound_volumes(targets: Iterable[Manifest], inventory: Inventory) -> Iterator[str]:
    """Yield a note for each PersistentVolume in `targets` that is bound to a claim in `inventory`.

    `targets` are the objects to delete; `inventory` contains the objects that are not deleted.
    """
    for one in targets:
        if one.kind is not PERSISTENT_VOLUME or one.value.get("status", {}).get("phase") != BOUND:
            continue
        claim = one.value["spec"].get("claimRef") or {}
        names = claim.get("namespace", ""), claim.get("name", "")
        if inventory.get(PERSISTENT_VOLUME_CLAIM, *names) is not None:
            yield (
                f"{one.title} stays Terminating while PersistentVolumeClaim {'/'.join(names)} is "
                "bound to it, and pods keep using it. It is deleted when the claim is deleted."
            )


def drained_nodes(targets: Iterable[Manifest], inventory: Inventory) -> Iterator[str]:
    """Yield notes about the Nodes in `targets` that are drained before they are removed.

    `targets` are the objects to delete; `inventory` contains the objects that are not deleted.
    """
    nodes = [one for one in targets if one.kind is NODE and TERMINATION in one.metadata.finalizers]
    # If a node was being deleted in the dump, its drain began before (`leaving_node`).
    names = [one.ref.name for one in nodes if not one.metadata.deletion_timestamp]
    if names:
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        spot = {one.ref.name for one in nodes if one.metadata.labels.get(CAPACITY_TYPE) == SPOT}
        is_endless = bool(spot - _nodes_with_grace_period(inventory))
        yield (
            f"The deletion starts a drain of {names[0]}{more}: Karpenter drains its nodes within "
            f"budgets before it removes them.{_RECLAIM if is_endless else ''}"
        )
    if nodes:
        yield from _protected_pods({one.ref.name for one in nodes}, inventory)


def _nodes_with_grace_period(inventory: Inventory) -> set[str]:
    """Return the names of the nodes whose NodeClaims limit the time of a drain."""
    claims = (
        one
        for kind in inventory.kinds
        if kind.kind == "NodeClaim"
        for one in inventory.of_kind(kind)
    )
    return {
        text(one.value, "status", "nodeName")
        for one in claims
        if text(one.value, "spec", "terminationGracePeriod")
    }


def leaving_pods(targets: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note about the Pods to delete that are already terminating in the dump.

    `targets` are all objects to delete.
    """
    leaving = (one for one in targets if one.kind is POD and one.metadata.deletion_timestamp)
    names = [one.ref.key for one in leaving]
    if names:
        more = f" and {len(names) - 1:,} more are" if len(names) > 1 else " is"
        yield (
            f"{names[0]}{more} already being deleted in the dump, so a second deletion changes "
            "nothing. kubectl delete --force is not simulated."
        )


def _protected_pods(nodes: Collection[str], inventory: Inventory) -> Iterator[str]:
    """Yield a note about pods on `nodes` that Karpenter does not evict."""
    # upstream: sigs.k8s.io/karpenter pkg/utils/pod/scheduling.go: IsEvictable
    pods = [
        pod.key
        for pod in (one.pod for one in inventory.of_kind(POD))
        if pod.spec.node_name in nodes
        and pod.metadata.annotations.get(DO_NOT_DISRUPT) == "true"
        and not is_terminal(pod)
    ]
    if pods:
        more = f" and {len(pods) - 1:,} more" if len(pods) > 1 else ""
        yield (
            f"Karpenter does not evict pods with the annotation {DO_NOT_DISRUPT} "
            f"({pods[0]}{more}). It waits until they end, unless the NodeClaim has a "
            "terminationGracePeriod, which only --autoscale karpenter simulates."
        )


def deletion_of(target: Manifest) -> tuple[list[Command], str]:
    """Return the commands that delete `target`, and a note; the note is "" if none is needed.

    If finalizers of `target` belong to controllers that are not simulated, the first command
    removes these finalizers, and the second command deletes `target`. If the deletion of `target`
    was requested before, there is no second command. Finalizers of Pods stay: if only a finalizer
    keeps a Pod, the Pod counts as removed.
    """
    delete = commands.delete(target.ref)
    finalizers = () if target.kind is POD else target.metadata.finalizers
    foreign = [one for one in finalizers if one not in _SIMULATED_FINALIZERS]
    if not foreign:
        return [delete], ""
    kept = [one for one in finalizers if one in _SIMULATED_FINALIZERS]
    release = PatchObject(target.ref, {"metadata": {"finalizers": kept or None}})
    note = (
        f"{target.title} is deleted at once, although it has finalizers of controllers that are "
        f"not simulated: {', '.join(foreign)}."
    )
    if TERMINATION in kept:
        note = ""  # it is not deleted at once; see `drained_nodes`
    return [release] if target.metadata.deletion_timestamp else [release, delete], note
