"""AssumedVolumes: volume decisions of the scheduler that the API does not show yet.

    free volume ──assume_volume──▶ assumed bound to a claim ──the API shows a claimRef──▶ (bound)
    unbound claim ──assume_claim──▶ assumed tied to a node ──the API shows the annotation──▶ (tied)

The next scheduling cycle treats an assumed volume as taken, and an assumed claim as tied to its
node. `restore_volume` and `restore_claim` drop an assumption.

Upstream ends an assumption at any newer version of the object. Here only a version that shows the
decision ends an assumption. So a concurrent update of the object does not end the assumption.

upstream: plugins/volumebinding/assume_cache.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import (
    ApiObject,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
)
from fairlead.engine.state.related_objects import RelatedObjects

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"


class AssumedVolumes:
    """The assumed volumes and claims; each change is added to the storage log of `related`."""

    def __init__(self, related: RelatedObjects) -> None:
        """Start without assumptions."""
        self._log = related.storage_log
        self._claim_of: dict[str, ObjectReference] = {}
        self._node_of: dict[str, str] = {}

    def claim_of(self, volume: PersistentVolume) -> ObjectReference | None:
        """Return the claim to which `volume` is bound or assumed to be bound, or None."""
        return self._claim_of.get(volume.key) or volume.spec.claim_ref

    def node_of(self, claim: PersistentVolumeClaim) -> str | None:
        """Return the node for which `claim` is or will be provisioned; None if none is chosen."""
        return self._node_of.get(claim.key) or claim.metadata.annotations.get(SELECTED_NODE)

    def is_volume_assumed(self, name: str) -> bool:
        """Return whether the binding of volume `name` is assumed and not yet in the API."""
        return name in self._claim_of

    def is_claim_assumed(self, key: str) -> bool:
        """Return whether the claim `key` has an assumed node that the API does not show yet."""
        return key in self._node_of

    def assume_volume(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Record that `volume` will be bound to `claim`; `restore_volume` undoes this."""
        meta = claim.metadata
        self._claim_of[volume.key] = ObjectReference(
            namespace=meta.namespace, name=meta.name, uid=meta.uid
        )
        self._log.append((PersistentVolume, volume.key))

    def restore_volume(self, name: str) -> None:
        """Drop the assumption about the volume `name`, if there is one."""
        if self._claim_of.pop(name, None) is not None:
            self._log.append((PersistentVolume, name))

    def assume_claim(self, claim: PersistentVolumeClaim, node: str) -> None:
        """Record that `claim` will be provisioned for `node`; `restore_claim` undoes this."""
        self._node_of[claim.key] = node
        self._log.append((PersistentVolumeClaim, claim.key))

    def restore_claim(self, key: str) -> None:
        """Drop the assumption about the claim `key`, if there is one."""
        if self._node_of.pop(key, None) is not None:
            self._log.append((PersistentVolumeClaim, key))

    def observe(self, changed: ApiObject) -> None:
        """End the assumption about the volume or claim `changed` if the API shows a decision.

        For a volume, the decision is a claimRef with a UID. For a claim, the decision is the
        annotation for the selected node.
        """
        if isinstance(changed, PersistentVolume):
            shown, assumed = changed.spec.claim_ref, self._claim_of.get(changed.key)
            if shown is not None and assumed is not None and shown.uid:
                del self._claim_of[changed.key]
        elif isinstance(changed, PersistentVolumeClaim):
            is_shown = SELECTED_NODE in changed.metadata.annotations
            if is_shown and changed.key in self._node_of:
                del self._node_of[changed.key]

    def observe_deleted(self, gone: ApiObject) -> None:
        """End the assumption about an object that was deleted from the API."""
        if isinstance(gone, PersistentVolume):
            self._claim_of.pop(gone.key, None)
        elif isinstance(gone, PersistentVolumeClaim):
            self._node_of.pop(gone.key, None)
