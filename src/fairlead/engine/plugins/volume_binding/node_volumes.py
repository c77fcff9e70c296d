"""NodeVolumes: the volumes that a pod's claims use or would get on each node.

The volumes are determined in these steps:

    1 bound claims      their volumes must be reachable
    2 selected nodes    a claim that is being provisioned for a node fits only that node
    3 matching          each other claim, smallest first, takes a volume that is reserved for it,
                        else the smallest free volume that fits
    4 provisioning      a claim without a match is provisioned if its class permits this on the node
                        and has enough capacity there

A claim takes its volume even if a later claim then finds none.
upstream: binder.go: FindPodVolumes
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

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


# The status for each combination of bit flags. Each flag is a reason why a node does not fit.
STATUSES: Final = (SUCCESS, *map(_status, range(1, 2 * NO_VOLUME)))


class PodVolumes(Struct, frozen=True):
    """The changes to a pod's claims if the pod is placed on a certain node.

    `bindings` are (claim, volume) pairs, and `provisions` are the claims to provision.
    """

    bindings: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()


class VolumeMatch(Struct, frozen=True):
    """The volume that one claim takes on each node.

    `chosen[row]` is for the node at `row` of the node table. The entry is a position in `volumes`,
    or NONE if the claim takes no volume on this node. If the claim takes `reserved[i]`, a volume
    that is reserved for it, `chosen[row]` is `RESERVED - i`.
    """

    claim: PersistentVolumeClaim
    volumes: ClassVolumes
    chosen: Ints
    reserved: tuple[PersistentVolume, ...] = ()

    def at(self, row: int) -> PersistentVolume | None:
        """Return the volume that the claim takes on the node at `row`; None if it takes none."""
        position = int(self.chosen[row])
        if position == NONE:
            return None
        return (
            self.volumes.volumes[position] if position >= 0 else self.reserved[RESERVED - position]
        )


RESERVED: Final = NONE - 1


class NodeVolumes(Struct, frozen=True):
    """The volumes of a pod's claims on each node, and the nodes that do not satisfy the claims.

    `flags[row]` holds the reasons for which the node at `row` is rejected, as bits. `flags` is None
    if all nodes fit. `matches` are in the order in which claims were matched. `with_selected_node`
    are the claims that are being provisioned.
    """

    flags: npt.NDArray[np.int32] | None
    matches: tuple[VolumeMatch, ...] = ()
    with_selected_node: tuple[PersistentVolumeClaim, ...] = ()

    def at(self, row: int) -> PodVolumes:
        """Return which claims to bind, and which to provision, if the pod is placed at `row`.

        The pod must fit the node at `row`.
        """
        bindings = []
        provisions = list(self.with_selected_node)
        for match in self.matches:
            volume = match.at(row)
            if volume is None:
                provisions.append(match.claim)
            else:
                bindings.append((match.claim, volume))
        return PodVolumes(tuple(bindings), tuple(provisions))
