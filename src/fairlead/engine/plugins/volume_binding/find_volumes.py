"""VolumeFinder: finds which nodes satisfy a pod's claims, and with which volumes.

All nodes are computed together; the result is a `NodeVolumes`.

upstream: binder.go: pvCache; component-helpers/storage/volume/pv_helpers.go: FindMatchingVolume
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.api.objects import NodeSelector, PersistentVolume, PersistentVolumeClaim
from fairlead.api.quantity import whole_value
from fairlead.engine.plugins.volume_binding.class_capacity import ClassCapacities
from fairlead.engine.plugins.volume_binding.class_volumes import (
    NONE,
    ClassVolumes,
    Ints,
    has_kind,
    selector_of,
    size_of,
    traits_of,
)
from fairlead.engine.plugins.volume_binding.node_selector_rows import (
    Mask,
    selector_mask,
    topology_mask,
)
from fairlead.engine.plugins.volume_binding.node_volumes import (
    NO_MATCH,
    NO_SPACE,
    NO_VOLUME,
    NODE_CONFLICT,
    RESERVED,
    NodeVolumes,
    VolumeMatch,
)
from fairlead.engine.plugins.volume_binding.pod_claims import PodClaims
from fairlead.engine.plugins.volume_lookup.csi_node_columns import CSINodeColumns
from fairlead.engine.plugins.volume_lookup.in_tree_volume import driver_selector, kind_of
from fairlead.engine.plugins.volume_lookup.volume_lookup import VolumeLookup, class_name
from fairlead.engine.state.cluster import Cluster

NO_PROVISIONER: Final = ("", "kubernetes.io/no-provisioner")
Flags = npt.NDArray[np.int32]
_AVAILABLE: Final = "Available"


class VolumeFinder:
    """Finds the volumes for a pod's claims on all nodes of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._table = cluster.table
        self._assumed = cluster.assumed_volumes
        self._lookup = VolumeLookup(cluster.related)
        self._free = FreeVolumes(cluster)
        self._capacities = ClassCapacities(cluster)
        self._csi_nodes = CSINodeColumns(cluster)

    def find_volumes(self, claims: PodClaims) -> NodeVolumes:
        """Return which nodes satisfy `claims`, and with which volumes (see `node_volumes`)."""
        flags = self._check_bound(claims.bound)
        if not claims.delayed:
            return NodeVolumes(flags)
        if flags is None:
            flags = self._no_flags()
        with_selected_node = [
            one for one in claims.delayed if self._assumed.node_of(one) is not None
        ]
        fits = self._is_selected_node(with_selected_node)
        flags[~fits] |= NO_MATCH
        others = [one for one in claims.delayed if one not in with_selected_node]
        self._free.refresh()
        matches: list[VolumeMatch] = []
        for claim in sorted(others, key=size_of):
            matches.append(self._match_one(claim, matches))
        # The first claim that fails on a row sets the row's flag and removes the row from `fits`.
        for claim in with_selected_node:
            self._check_provision(claim, fits.copy(), fits, flags)
        for match in matches:
            self._check_provision(match.claim, fits & (match.chosen == NONE), fits, flags)
        return NodeVolumes(flags, tuple(matches), tuple(with_selected_node))

    def _no_flags(self) -> Flags:
        return np.zeros(self._table.capacity, np.int32)

    # --- bound claims ----------------------------------------------------------------------

    def _check_bound(self, claims: tuple[PersistentVolumeClaim, ...]) -> Flags | None:
        """Return, for the node at each row, why it cannot use the volumes of the bound `claims`.

        The reason is a flag: NO_VOLUME if a volume does not exist, NODE_CONFLICT if the node cannot
        reach a volume, and 0 if the node can use all volumes. Returns None if every node can use
        them.
        """
        flags: Flags | None = None
        for claim in claims:
            volume = self._lookup.volume(claim.spec.volume_name)
            if volume is None:
                flags = self._no_flags() if flags is None else flags
                flags[flags == 0] = NO_VOLUME
                return flags
            reach = self._reach(volume)
            if reach is not None:
                flags = self._no_flags() if flags is None else flags
                flags[~reach] = NODE_CONFLICT
        return flags

    def _reach(self, volume: PersistentVolume) -> Mask | None:
        """Return, for the node at each row, whether it can reach `volume`; None if every node can.

        On nodes where the plugin of an in-tree volume is migrated to CSI, the volume's node
        affinity is translated to the topology labels of the CSI driver.
        """
        own = self._mask(selector_of(volume))
        kind = kind_of(volume.spec)
        if kind is None:
            return own
        self._csi_nodes.refresh()
        migrated = self._csi_nodes.migrated(kind.name)
        if migrated is None:
            return own
        translated = self._mask(driver_selector(volume))
        if own is None and translated is None:
            return None
        everywhere = np.ones(self._table.capacity, np.bool_)
        return np.where(
            migrated,
            everywhere if translated is None else translated,
            everywhere if own is None else own,
        )

    def _mask(self, selector: NodeSelector | None) -> Mask | None:
        return None if selector is None else selector_mask(selector, self._table)

    # --- delayed claims ----------------------------------------------------------------------

    def _is_selected_node(self, with_selected_node: list[PersistentVolumeClaim]) -> Mask:
        """Return, for the node at each row, whether it was chosen for all of `with_selected_node`.

        `with_selected_node` are claims that wait to be provisioned for a chosen node.
        """
        fits = np.ones(self._table.capacity, np.bool_)
        for claim in with_selected_node:
            node = self._table.find(self._assumed.node_of(claim) or "")
            only = np.zeros(self._table.capacity, np.bool_)
            if node is not None:
                only[node.row] = True
            fits &= only
        return fits

    def _match_one(self, claim: PersistentVolumeClaim, earlier: list[VolumeMatch]) -> VolumeMatch:
        volumes = self._free.of_class(class_name(claim))
        reserved = self._free.reserved_for(claim)
        taken = [match.chosen for match in earlier if match.volumes is volumes]
        if not reserved:
            return VolumeMatch(claim, volumes, volumes.smallest(claim, taken))
        again = [match.chosen for match in earlier if match.claim.key == claim.key]
        chosen, is_open = self._take_reserved(reserved, again)
        if is_open.any():
            chosen = np.where(is_open, volumes.smallest(claim, taken), chosen)
        return VolumeMatch(claim, volumes, chosen, tuple(reserved))

    def _take_reserved(
        self, reserved: list[PersistentVolume], earlier: list[Ints]
    ) -> tuple[Ints, Mask]:
        """Choose, for the node at each row, the first of `reserved` that the pod has not taken.

        `reserved` are the volumes that are reserved for one claim. Several entries of the pod's
        spec.volumes can name this claim. `earlier` holds the choices for earlier entries.

        Returns (choices, mask). The mask marks the rows on which the pod has already taken all of
        `reserved`. The choice is NONE on these rows, and on rows whose node cannot reach the chosen
        volume.
        """
        chosen = np.full(self._table.capacity, NONE, np.int64)
        is_open = np.ones(self._table.capacity, np.bool_)
        for number, volume in enumerate(reserved):
            had = np.zeros(self._table.capacity, np.bool_)
            for choice in earlier:
                had |= choice == RESERVED - number
            decided = is_open & ~had
            reach = self._mask(selector_of(volume))
            chosen[decided if reach is None else decided & reach] = RESERVED - number
            is_open &= had
        return chosen, is_open

    # --- claims to provision -----------------------------------------------------------------

    def _check_provision(
        self, claim: PersistentVolumeClaim, needed: Mask, pending: Mask, flags: Flags
    ) -> None:
        if not needed.any():
            return
        of_class = self._lookup.class_of(claim)
        if of_class is None or of_class.provisioner in NO_PROVISIONER:
            _fail(needed, NO_MATCH, pending, flags)
            return
        allowed = topology_mask(of_class.allowed_topologies, self._table)
        _fail(needed & ~allowed, NO_MATCH, pending, flags)
        if "storage" not in claim.spec.resources.requests:
            return
        size = whole_value(claim.spec.resources.requests["storage"])
        enough = self._capacities.enough(of_class.provisioner, of_class.metadata.name, size)
        if enough is not None:
            _fail(needed & allowed & ~enough, NO_SPACE, pending, flags)


def _fail(rows: Mask, flag: int, pending: Mask, flags: Flags) -> None:
    flags[rows] |= flag
    pending[rows] = False


class FreeVolumes:
    """Indexes the free volumes by storage class; call `refresh` before reading."""

    def __init__(self, cluster: Cluster) -> None:
        """Index the volumes of `cluster`; volumes with an assumed binding are not free."""
        self._table = cluster.table
        self._related = cluster.related
        self._assumed = cluster.assumed_volumes
        self._position = -1
        self._forget_all()

    def _forget_all(self) -> None:
        self._known: dict[str, PersistentVolume] = {}
        # free volumes, and volumes that were free, by class
        self._names: dict[str, dict[str, None]] = {}
        self._classes: dict[str, ClassVolumes] = {}
        self._claimed: dict[str, str] = {}
        self._for_claim: dict[str, dict[str, None]] = {}

    # --- queries ---------------------------------------------------------------------------

    def of_class(self, name: str) -> ClassVolumes:
        """Return the volumes of the storage class `name` that are free now or were free earlier.

        `ClassVolumes.is_free` tells which of them are free now.
        """
        found = self._classes.get(name)
        if found is None:
            volumes = [self._known[one] for one in self._names.get(name, ())]
            found = self._classes[name] = ClassVolumes(volumes, self._table)
            for position, volume in enumerate(found.volumes):
                found.set_free(position, free=self._is_free(volume))
        return found

    def reserved_for(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Return the volumes that are reserved for `claim`, smallest first.

        A reserved volume is pre-bound to the claim or assumed for it. The volume must have the
        claim's class, volume mode and attributes class, and at least the requested size. The volume
        must not be terminating. The phase and the access modes of the volume are not checked. The
        selector of the claim is not checked either.
        """
        names = self._for_claim.get(claim.key, ())
        volumes = [self._known[name] for name in names]
        fitting = [volume for volume in volumes if self._fits(volume, claim)]
        return sorted(fitting, key=lambda volume: (size_of(volume), volume.key))

    def _fits(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        reference = self._assumed.claim_of(volume)
        return (
            reference is not None
            and reference.uid in ("", claim.metadata.uid)
            and class_name(volume) == class_name(claim)
            and has_kind(claim, traits_of(volume))
            and size_of(volume) >= size_of(claim)
            and not volume.metadata.deletion_timestamp
        )

    def _is_free(self, volume: PersistentVolume) -> bool:
        return (
            self._assumed.claim_of(volume) is None
            and volume.status.phase == _AVAILABLE
            and not volume.metadata.deletion_timestamp
        )

    # --- updates ---------------------------------------------------------------------------

    def refresh(self) -> None:
        """Update the index for the volumes that changed since the last call."""
        log = self._related.storage_log
        changes = log.since(self._position) if self._position >= 0 else None
        self._position = log.position
        if changes is None:
            self._forget_all()
            for volume in self._related.all_of(PersistentVolume):
                self._take_in(volume.key)
        else:
            for kind, name in dict.fromkeys(changes):
                if kind is PersistentVolume:
                    self._take_in(name)

    def _take_in(self, name: str) -> None:
        old = self._known.pop(name, None)
        new = self._related.get(PersistentVolume, name)
        if new is not None:
            self._known[name] = new
        self._file_claim(name, new)
        if old is not None and (new is None or _differ(old, new)):
            self._leave(old)
        if new is not None:
            self._enter(new)

    def _leave(self, volume: PersistentVolume) -> None:
        of_class = class_name(volume)
        names = self._names.get(of_class, {})
        if volume.key in names:
            del names[volume.key]
            self._classes.pop(of_class, None)

    def _enter(self, volume: PersistentVolume) -> None:
        of_class, free = class_name(volume), self._is_free(volume)
        names = self._names.setdefault(of_class, {})
        if volume.key not in names:
            if not free:
                return
            names[volume.key] = None
            self._classes.pop(of_class, None)
        built = self._classes.get(of_class)
        if built is not None:
            position = built.position[volume.key]
            built.volumes[position] = volume
            built.set_free(position, free=free)

    def _file_claim(self, name: str, volume: PersistentVolume | None) -> None:
        before = self._claimed.pop(name, None)
        if before is not None:
            del self._for_claim[before][name]
            if not self._for_claim[before]:
                del self._for_claim[before]
        reference = None if volume is None else self._assumed.claim_of(volume)
        if reference is not None:
            key = f"{reference.namespace}/{reference.name}"
            self._claimed[name] = key
            self._for_claim.setdefault(key, {})[name] = None


def _differ(old: PersistentVolume, new: PersistentVolume) -> bool:
    """Return whether `old` and `new` differ in class, capacity, node affinity or `Traits`."""
    return (
        class_name(old) != class_name(new)
        or old.spec.capacity != new.spec.capacity
        or old.spec.node_affinity != new.spec.node_affinity
        or traits_of(old) != traits_of(new)
    )
