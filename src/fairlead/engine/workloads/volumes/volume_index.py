"""VolumeIndex: claims, volumes and classes, indexed by their relations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.objects import (
    ApiObject,
    CSINode,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from fairlead.api.pods.volumes import BOUND
from fairlead.api.selector import selector_matches
from fairlead.engine.plugins.volume_binding.class_volumes import has_kind, size_of, traits_of
from fairlead.engine.plugins.volume_lookup.volume_lookup import class_name, is_bound

AVAILABLE: Final = "Available"
UNDECIDED: Final = ("", "Pending")  # phase of a volume before its first sync
IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
IS_DEFAULT_BETA: Final = "storageclass.beta.kubernetes.io/is-default-class"


class VolumeIndex:
    """Claims, volumes and classes by key.

    The results of lookups do not depend on the order in which objects were stored.
    """

    def __init__(self) -> None:
        self.claims: dict[str, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.nodes: dict[str, Node] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self._assumed: dict[str, str] = {}  # volume -> the claim for which it is reserved
        self._meant_for: dict[str, dict[str, None]] = {}
        self._of_class: dict[str, dict[str, None]] = {}

    def observe(self, obj: ApiObject) -> None:
        """Store a new or changed object."""
        # Most objects are nodes, or of other kinds.
        if type(obj) is Node:
            self.nodes[obj.key] = obj
        elif type(obj) is PersistentVolumeClaim:
            self.claims[obj.key] = obj
        elif type(obj) is PersistentVolume:
            self._drop_volume(obj.key)
            self._file_volume(obj)
            if obj.spec.claim_ref is not None:
                self._assumed.pop(obj.key, None)
        elif type(obj) is StorageClass:
            self.classes[obj.key] = obj
        elif type(obj) is CSINode:
            self.csi_nodes[obj.key] = obj

    def forget(self, obj: ApiObject) -> None:
        """Remove a deleted object."""
        if type(obj) is Pod:  # frequent, and not in the index
            return
        match obj:
            case PersistentVolumeClaim():
                self.claims.pop(obj.key, None)
            case PersistentVolume():
                self._drop_volume(obj.key)
                self._assumed.pop(obj.key, None)
            case StorageClass():
                self.classes.pop(obj.key, None)
            case Node():
                self.nodes.pop(obj.key, None)
            case CSINode():
                self.csi_nodes.pop(obj.key, None)
            case _:
                pass

    def _file_volume(self, volume: PersistentVolume) -> None:
        self.volumes[volume.key] = volume
        self._of_class.setdefault(class_name(volume), {})[volume.key] = None
        if (claim := claim_key(volume)) is not None:
            self._meant_for.setdefault(claim, {})[volume.key] = None

    def _drop_volume(self, name: str) -> None:
        old = self.volumes.pop(name, None)
        if old is not None:
            del self._of_class[class_name(old)][name]
            if (claim := claim_key(old)) is not None:
                del self._meant_for[claim][name]

    # --- pending writes --------------------------------------------------------------------

    def assume_volume(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Reserve `volume` for `claim` until the binding is observed or undone."""
        self._assumed[volume.key] = claim.key

    def restore_volume(self, volume: PersistentVolume) -> None:
        """End the reservation of a volume that could not be bound."""
        self._assumed.pop(volume.key, None)

    # --- lookups ---------------------------------------------------------------------------

    def class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        """Return the claim's class, or None if the class does not exist."""
        return self.classes.get(class_name(claim))

    def default_class(self) -> StorageClass | None:
        """Return the newest class that is marked as the default, or None if there is none."""
        return default_class(self.classes.values())

    def volumes_of(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Return the volumes whose claimRef refers to `claim`, sorted by name."""
        volumes = [self.volumes[name] for name in sorted(self._meant_for.get(claim.key, ()))]
        return [one for one in volumes if is_volume_bound_to_claim(one, claim)]

    def holder_of(self, volume: PersistentVolume) -> PersistentVolumeClaim | None:
        """Return the claim that the volume's claimRef names, or None if this claim does not exist.

        If a Bound volume has no claimRef, return the first claim by key whose binding to `volume`
        is complete. A client has removed the claimRef of such a volume.
        """
        if (key := claim_key(volume)) is not None:
            return self.claims.get(key)
        if volume.status.phase != BOUND:
            return None
        claims = (
            one
            for one in self.claims.values()
            if one.spec.volume_name == volume.key and is_bound(one)
        )
        return min(claims, key=lambda one: one.key, default=None)

    def is_orphan(self, volume: PersistentVolume) -> bool:
        """Return whether the claim to which `volume` was bound does not exist."""
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            return False
        claim = self.claims.get(f"{reference.namespace}/{reference.name}")
        return claim is None or claim.metadata.uid != reference.uid

    def best_free(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """Return the best free volume that satisfies `claim`, or None if there is none.

        The best volume is the smallest of the volumes with the fewest access modes. Whether a node
        can access the volume is not checked.
        """
        # upstream: persistentvolume/index.go:findByClaim, allPossibleMatchingAccessModes
        volumes = [self.volumes[name] for name in self._of_class.get(class_name(claim), ())]
        suitable = [one for one in volumes if self.is_free(one, claim) and _suits(one, claim)]
        return min(suitable, key=_rank, default=None)

    def is_free(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        """Return whether `volume` has no claimRef and is not reserved for another claim."""
        assumed_for = self._assumed.get(volume.key, claim.key)
        return volume.spec.claim_ref is None and assumed_for == claim.key


def claim_key(volume: PersistentVolume) -> str | None:
    """Return `namespace/name` of the volume's claimRef, or None if the volume has no claimRef."""
    reference = volume.spec.claim_ref
    return None if reference is None else f"{reference.namespace}/{reference.name}"


def is_volume_bound_to_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether the volume's claimRef refers to `claim`.

    A claimRef with another uid refers to a deleted claim of the same name.
    """
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and claim_key(volume) == claim.key
        and reference.uid in ("", claim.metadata.uid)
    )


def satisfies(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether `claim` can use `volume`.

    The volume must not be terminating, and must be large enough. The volume must have the access
    modes, the volume mode and the attributes class that the claim requires.
    """
    traits = traits_of(volume)
    return (
        not volume.metadata.deletion_timestamp
        and size_of(volume) >= size_of(claim)
        and has_kind(claim, traits)
        and traits[2].issuperset(claim.spec.access_modes)
    )


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selector, phase = claim.spec.selector, volume.status.phase
    return (
        (phase == AVAILABLE or phase in UNDECIDED)
        and satisfies(volume, claim)
        and (selector is None or selector_matches(selector, volume.metadata.labels))
    )


def _rank(volume: PersistentVolume) -> tuple[int, int, str]:
    return len({*volume.spec.access_modes}), size_of(volume), volume.key


def why_unsuitable(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Return why `claim` cannot be bound to `volume`; "" if it can be bound.

    The volumeName of `claim` names `volume`.

    upstream: pv_controller.go:checkVolumeSatisfyClaim
    """
    mode, attributes_class, access_modes = traits_of(volume)
    spec = claim.spec
    reasons = (
        (
            bool(volume.metadata.deletion_timestamp),
            f'the volume is marked for deletion "{volume.key}"',
        ),
        (size_of(volume) < size_of(claim), "requested PV is too small"),
        (class_name(volume) != class_name(claim), "storageClassName does not match"),
        (
            attributes_class != spec.volume_attributes_class_name,
            "volumeAttributesClassName does not match",
        ),
        (mode != spec.volume_mode, "incompatible volumeMode"),
        (not access_modes.issuperset(spec.access_modes), "incompatible accessMode"),
    )
    return next((reason for applies, reason in reasons if applies), "")


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """Return the newest of `classes` that is marked as the default, or None if there is none.

    upstream: pkg/controller/volume/persistentvolume/pv_controller_base.go
    """
    default = [
        one
        for one in classes
        if any(one.metadata.annotations.get(key) == "true" for key in (IS_DEFAULT, IS_DEFAULT_BETA))
    ]
    default.sort(key=lambda one: one.key)
    return max(default, key=lambda one: one.metadata.creation_timestamp, default=None)
