"""Writes planned volume bindings, and checks whether they are complete.

The scheduler writes one side of a binding. If a claim gets a free volume, this side is the volume's
claimRef. If a volume must be provisioned, this side is the claim's annotation selected-node. After
this write, the pod waits until the PV controller or the provisioner has completed the binding.
upstream: binder.go: AssumePodVolumes, bindAPIUpdate, checkBindings
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from fairlead.api.nodes.node_selector import node_selector_matches
from fairlead.api.objects import PersistentVolume, PersistentVolumeClaim
from fairlead.engine.core.command import ObjectRef, PatchObject
from fairlead.engine.plugins.volume_binding.class_volumes import selector_of
from fairlead.engine.plugins.volume_binding.node_volumes import PodVolumes
from fairlead.engine.plugins.volume_lookup.csi_node_columns import migrated_plugins
from fairlead.engine.plugins.volume_lookup.in_tree_volume import driver_selector, kind_of
from fairlead.engine.plugins.volume_lookup.volume_lookup import VolumeLookup, is_bound
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.state.volumes.assumed_volumes import SELECTED_NODE

BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"


class Decision(Struct):
    """The assumed bindings of one pod.

    `volumes` and `claims` are the keys of the objects for which a change is assumed.
    """

    pod_volumes: PodVolumes
    volumes: list[str]
    claims: list[str]


class BindingIncompleteError(Exception):
    """Raised while a binding is not complete yet."""


class BindingFailedError(Exception):
    """Raised if a binding has failed; the message is the reason."""


class VolumeBinder:
    """Assumes planned bindings, reverts them, and checks their progress."""

    def __init__(self, cluster: Cluster) -> None:
        """Look up claims and volumes in `cluster` whenever they are needed."""
        self._cluster = cluster
        self._assumed = cluster.assumed_volumes
        self._lookup = VolumeLookup(cluster.related)

    # --- planned bindings ------------------------------------------------------------------

    def assume(self, pod_volumes: PodVolumes, node: str) -> Decision:
        """Assume the bindings, so that the next scheduling cycle takes them into account."""
        decision = Decision(pod_volumes, [], [])
        for claim, volume in pod_volumes.bindings:
            if not _is_bound_to(volume, claim):
                self._assumed.assume_volume(volume, claim)
                decision.volumes.append(volume.key)
        for claim in pod_volumes.provisions:
            if self._assumed.node_of(claim) is None:
                self._assumed.assume_claim(claim, node)
                decision.claims.append(claim.key)
        return decision

    def revert(self, decision: Decision) -> None:
        """Revert the assumptions of `decision`."""
        for name in decision.volumes:
            self._assumed.restore_volume(name)
        for key in decision.claims:
            self._assumed.restore_claim(key)

    def commands(self, decision: Decision, node: str) -> tuple[PatchObject, ...]:
        """Return the patches that bind volumes, or that request volumes from a provisioner.

        `decision` lists the volumes and claims to patch (see `assume`).
        """
        bindings = decision.pod_volumes.bindings
        return (
            *(_bind(one, claim) for claim, one in bindings if one.key in decision.volumes),
            *(
                _provision(claim, node)
                for claim in decision.pod_volumes.provisions
                if claim.key in decision.claims
            ),
        )

    # --- progress --------------------------------------------------------------------------

    def check(self, decision: Decision, pod: PodInfo, node_name: str) -> None:
        """Return normally if all bindings of `decision` are complete.

        `node_name` is the node on which `pod` is placed. Raises BindingIncompleteError if a binding
        is incomplete, and BindingFailedError if a binding has failed.
        """
        node = self._cluster.table.find(node_name)
        if node is None:
            raise BindingFailedError(
                f'failed to get node "{node_name}": node "{node_name}" not found'
            )
        known = self._cluster.pods.get(pod.key)
        if known is None or known.id != pod.id:
            name = pod.pod.metadata.name
            raise BindingFailedError(f'pod does not exist any more: pod "{name}" not found')
        for claim, volume in decision.pod_volumes.bindings:
            self._check_binding(claim, volume, node)
        for claim in decision.pod_volumes.provisions:
            self._check_provision(claim, node)

    def _check_binding(
        self, claim: PersistentVolumeClaim, volume: PersistentVolume, node: NodeInfo
    ) -> None:
        shown = self._lookup.volume(volume.key)
        if shown is None:
            reason = f'could not find v1.PersistentVolume "{volume.key}"'
            raise BindingFailedError(f"failed to check binding: {reason}")
        shown_claim = self._claim(claim, "failed to check binding")
        if self._assumed.is_volume_assumed(volume.key):
            raise BindingIncompleteError
        self._check_reach(shown, node)
        if shown.spec.claim_ref is None or not shown.spec.claim_ref.uid:
            raise BindingFailedError(f'ClaimRef got reset for pv "{volume.key}"')
        if not is_bound(shown_claim):
            raise BindingIncompleteError

    def _check_provision(self, claim: PersistentVolumeClaim, node: NodeInfo) -> None:
        shown = self._claim(claim, "failed to check provisioning pvc")
        name = claim.metadata.name
        if self._assumed.is_claim_assumed(claim.key):
            raise BindingIncompleteError
        if not shown.metadata.annotations:
            raise BindingFailedError(f'selectedNode annotation reset for PVC "{name}"')
        if shown.metadata.annotations.get(SELECTED_NODE) != node.name:
            # A provisioner removes the annotation if it failed and another node should be tried.
            raise BindingFailedError(f'provisioning failed for PVC "{name}"')
        if shown.spec.volume_name:
            volume = self._lookup.volume(shown.spec.volume_name)
            if volume is None:
                raise BindingIncompleteError
            self._check_reach(volume, node)
        if not is_bound(shown):
            raise BindingIncompleteError

    def _claim(self, claim: PersistentVolumeClaim, operation: str) -> PersistentVolumeClaim:
        meta = claim.metadata
        shown = self._lookup.claim(meta.namespace, meta.name)
        if shown is None:
            reason = f'could not find v1.PersistentVolumeClaim "{claim.key}"'
            raise BindingFailedError(f"{operation}: {reason}")
        return shown

    def _check_reach(self, volume: PersistentVolume, node: NodeInfo) -> None:
        selector = selector_of(volume)
        kind = kind_of(volume.spec)
        if kind is not None:
            csi_node = self._lookup.csi_node(node.name)
            if csi_node is not None and kind.name in migrated_plugins(csi_node):
                selector = driver_selector(volume)
        if selector is not None and not node_selector_matches(selector, node.labels, ""):
            raise BindingFailedError(
                f'pv "{volume.key}" node affinity doesn\'t match node "{node.name}": '
                "no matching NodeSelectorTerms"
            )


def _is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    found, meta = volume.spec.claim_ref, claim.metadata
    return found is not None and (found.namespace, found.name, found.uid) == (
        meta.namespace,
        meta.name,
        meta.uid,
    )


def _bind(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PatchObject:
    meta = claim.metadata
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
    }
    patch: dict[str, Any] = {"metadata": _versioned(volume), "spec": {"claimRef": reference}}
    if volume.spec.claim_ref is None:
        # A volume that its creator pre-bound to this claim does not get this annotation.
        patch["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    target = ObjectRef("PersistentVolume", "", volume.key, volume.metadata.uid)
    return PatchObject(target, patch)


def _provision(claim: PersistentVolumeClaim, node: str) -> PatchObject:
    meta = claim.metadata
    target = ObjectRef("PersistentVolumeClaim", meta.namespace, meta.name, meta.uid)
    metadata = _versioned(claim) | {"annotations": {SELECTED_NODE: node}}
    return PatchObject(target, {"metadata": metadata})


def _versioned(one: PersistentVolume | PersistentVolumeClaim) -> dict[str, Any]:
    """Return the metadata for a patch: the version of `one`, so that an outdated patch fails."""
    version = one.metadata.resource_version
    return {"resourceVersion": version} if version else {}
