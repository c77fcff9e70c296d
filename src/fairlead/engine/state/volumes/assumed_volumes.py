"""VolumePromises: what the scheduler decided about volumes and the API does not show yet.

    free volume ──promise_volume──▶ promised to a claim ──the API shows a claimRef──▶ (kept)
    unbound claim ──promise_node──▶ promised to a node ──the API shows the annotation──▶ (kept)
                       └────────── take_back ──────────┘

The next scheduling cycle already sees a promised volume as taken and a promised claim as tied to
its node, as it sees an assumed pod on its node.
upstream: plugins/volumebinding/assume_cache.go, which lets any newer version of the object win;
here only one that shows the decision does, so that an update that crossed it does not undo it.
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


class VolumePromises:
    """Over the volumes and claims of `related`, whose storage log names what is promised too."""

    def __init__(self, related: RelatedObjects) -> None:
        """Nothing is promised."""
        self._log = related.storage_log
        self._claim_of: dict[str, ObjectReference] = {}
        self._node_of: dict[str, str] = {}

    # --- reading ---------------------------------------------------------------------------

    def claim_of(self, volume: PersistentVolume) -> ObjectReference | None:
        """To which claim `volume` is bound or promised."""
        return self._claim_of.get(volume.key) or volume.spec.claim_ref

    def node_of(self, claim: PersistentVolumeClaim) -> str | None:
        """For which node `claim` is or will be provisioned, None if that is open."""
        return self._node_of.get(claim.key) or claim.metadata.annotations.get(SELECTED_NODE)

    def is_volume_promised(self, name: str) -> bool:
        """Whether the API does not show yet what was decided about the volume."""
        return name in self._claim_of

    def is_claim_promised(self, key: str) -> bool:
        """Whether the API does not show yet what was decided about the claim."""
        return key in self._node_of

    # --- promises --------------------------------------------------------------------------

    def promise_volume(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """`volume` will be bound to `claim`; undone by `take_back_volume`."""
        meta = claim.metadata
        self._claim_of[volume.key] = ObjectReference(
            namespace=meta.namespace, name=meta.name, uid=meta.uid
        )
        self._log.append((PersistentVolume, volume.key))

    def take_back_volume(self, name: str) -> None:
        """The volume will not be bound after all; does nothing if it is not promised."""
        if self._claim_of.pop(name, None) is not None:
            self._log.append((PersistentVolume, name))

    def promise_node(self, claim: PersistentVolumeClaim, node: str) -> None:
        """`claim` will be provisioned for `node`; undone by `take_back_node`."""
        self._node_of[claim.key] = node
        self._log.append((PersistentVolumeClaim, claim.key))

    def take_back_node(self, key: str) -> None:
        """The claim will not be provisioned after all; does nothing if it is not promised."""
        if self._node_of.pop(key, None) is not None:
            self._log.append((PersistentVolumeClaim, key))

    # --- what happened ---------------------------------------------------------------------

    def observe(self, changed: ApiObject) -> None:
        """The API shows `changed`; what it says itself needs no promise any more."""
        if isinstance(changed, PersistentVolume):
            shown, promised = changed.spec.claim_ref, self._claim_of.get(changed.key)
            if shown is not None and promised is not None and shown.uid:
                del self._claim_of[changed.key]
        elif isinstance(changed, PersistentVolumeClaim):
            is_shown = SELECTED_NODE in changed.metadata.annotations
            if is_shown and changed.key in self._node_of:
                del self._node_of[changed.key]

    def observe_gone(self, gone: ApiObject) -> None:
        """The API has `gone` no more."""
        if isinstance(gone, PersistentVolume):
            self._claim_of.pop(gone.key, None)
        elif isinstance(gone, PersistentVolumeClaim):
            self._node_of.pop(gone.key, None)
