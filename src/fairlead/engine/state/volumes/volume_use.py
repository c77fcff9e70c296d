"""VolumeUse: the claims and disks of placed pods; for each node, the number of pods with volumes.

A node is identified by its row in `NodeTable`.

Two rules need this index. A claim with access mode ReadWriteOncePod may have only one user in the
cluster. Some in-tree disks may have only one writer per node. `NodeTable` keeps this index up to
date, also during hypothetical changes (`fork`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from fairlead.api.objects import Volume
from fairlead.api.pods.volumes import named_claims
from fairlead.engine.state.pod_info import PodInfo

Disk = tuple[str, ...]
_Key = TypeVar("_Key")


class VolumeUse:
    """The claims and exclusive disks that placed pods use; only `NodeTable` changes it.

    `pods` maps the row of a node to the number of its pods with volumes. Nodes without such
    pods are left out.
    """

    def __init__(self) -> None:
        """Start without pods."""
        self.pods: dict[int, int] = {}
        self._claims: dict[str, int] = {}
        self._disks: dict[Disk, dict[int, int]] = {}

    def is_claim_used(self, key: str) -> bool:
        """Return whether a placed pod names the claim with `key`, which is its `namespace/name`.

        Claims of ephemeral volumes do not count.
        """
        return key in self._claims

    def users_of(self, key: str) -> int:
        """Return how many placed pods name the claim with `key`, which is its `namespace/name`."""
        return self._claims.get(key, 0)

    def rows_with(self, disk: Disk) -> list[int]:
        """Return the rows of the nodes on which a pod mounts `disk`, ascending."""
        return sorted(self._disks.get(disk, ()))

    def add(self, row: int, pod: PodInfo) -> None:
        """Record that `pod` uses its volumes on the node at `row`; `remove` reverts this."""
        self._count(row, pod, 1)

    def remove(self, row: int, pod: PodInfo) -> None:
        """Record that `pod` no longer uses its volumes on the node at `row`."""
        self._count(row, pod, -1)

    def _count(self, row: int, pod: PodInfo, by: int) -> None:
        _change(self.pods, row, by)
        for name in named_claims(pod.pod):
            _change(self._claims, f"{pod.namespace}/{name}", by)
        for disk in disks_of(pod):
            rows = self._disks.setdefault(disk, {})
            _change(rows, row, by)
            if not rows:
                del self._disks[disk]

    def __eq__(self, other: object) -> bool:
        """Return whether both objects have the same content; for `NodeTable.validate`."""
        if not isinstance(other, VolumeUse):
            return NotImplemented
        return (
            self.pods == other.pods
            and self._claims == other._claims
            and self._disks == other._disks
        )

    __hash__ = None  # type: ignore[assignment]


def disks_of(pod: PodInfo) -> Iterator[Disk]:
    """Yield the disks of all volumes of `pod` (see `disks_in`)."""
    for volume in pod.pod.spec.volumes:
        yield from disks_in(volume)


def disks_in(volume: Volume) -> Iterator[Disk]:
    """Yield (volume type, disk name) of `volume`; nothing if its type is always shareable.

    Volumes that conflict have the same disk. Volumes with the same disk do not always conflict.
    """
    if volume.gce_persistent_disk is not None:
        yield ("gce-pd", volume.gce_persistent_disk.pd_name)
    if volume.aws_elastic_block_store is not None:
        yield ("aws-ebs", volume.aws_elastic_block_store.volume_id)
    if volume.iscsi is not None:
        yield ("iscsi", volume.iscsi.iqn)
    if volume.rbd is not None:
        yield ("rbd", volume.rbd.pool, volume.rbd.image)


def _change(counts: dict[_Key, int], key: _Key, by: int) -> None:
    left = counts.get(key, 0) + by
    if left:
        counts[key] = left
    else:
        del counts[key]
