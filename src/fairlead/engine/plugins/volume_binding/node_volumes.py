"""NodeVolumes: how the pod's volumes are or can be made available on each node.

    1 bound claims      their volumes must be reachable
    2 tied claims       a claim that is being provisioned for a node fits that node only
    3 matching          each further claim, the smallest first, takes the smallest free volume
    4 provisioning      a claim without a match is provisioned, if the class allows it and has room

Each claim takes its best volume, even if a later claim then finds none.
upstream: binder.go: FindPodVolumes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.api.objects import PersistentVolume, PersistentVolumeClaim
from fairlead.engine.core.status import SUCCESS, Status, unresolvable
from fairlead.engine.plugins.volume_binding.class_volumes import NONE, ClassVolumes, Ints

NAME: Final = "VolumeBinding"
NODE_CONFLICT: Final = 1
NO_MATCH: Final = 2
NO_SPACE: Final = 4
NO_VOLUME: Final = 8
_REASONS: Final = {
    NODE_CONFLICT: "node(s) didn't match PersistentVolume's node affinity",
    NO_MATCH: "node(s) didn't find available persistent volumes to bind",
    NO_SPACE: "node(s) did not have enough free storage",
    NO_VOLUME: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


def _status(flags: int) -> Status:
    reasons = (reason for flag, reason in _REASONS.items() if flags & flag)
    return unresolvable(*reasons).by(NAME)


# Bit flags of the reasons why a node does not fit.
STATUSES: Final = (SUCCESS, *map(_status, range(1, 2 * NO_VOLUME)))


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """The changes to a pod's claims if the pod is bound to one node."""

    bindings: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class VolumeMatch:
    """The volume that a claim takes, by row: a position in `volumes`, or NONE.

    Values from RESERVED downwards are positions in `reserved`, volumes that no other claim may
    take.
    """

    claim: PersistentVolumeClaim
    volumes: ClassVolumes
    chosen: Ints
    reserved: tuple[PersistentVolume, ...] = ()

    def at(self, row: int) -> PersistentVolume | None:
        """Return the volume taken on `row`."""
        position = int(self.chosen[row])
        if position == NONE:
            return None
        return (
            self.volumes.volumes[position] if position >= 0 else self.reserved[RESERVED - position]
        )


RESERVED: Final = NONE - 1


@dataclass(frozen=True, slots=True)
class NodeVolumes:
    """The result for every node: whether the pod's volumes are or can be made available.

    `flags` by row are the reasons why it does not fit, None if all rows fit. `matches` are in the
    order in which they were made; `tied` claims are being provisioned.
    """

    flags: npt.NDArray[np.int32] | None
    matches: tuple[VolumeMatch, ...] = ()
    tied: tuple[PersistentVolumeClaim, ...] = ()

    def at(self, row: int) -> PodVolumes:
        """Return the bindings and provisions on a row that fits."""
        bindings = []
        provisions = list(self.tied)
        for match in self.matches:
            volume = match.at(row)
            if volume is None:
                provisions.append(match.claim)
            else:
                bindings.append((match.claim, volume))
        return PodVolumes(tuple(bindings), tuple(provisions))
