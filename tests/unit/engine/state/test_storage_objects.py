"""Storage objects: their observed changes, and decisions about them."""

from __future__ import annotations

from fairlead.api.objects import CSINode, PersistentVolume, PersistentVolumeClaim
from fairlead.engine.core.stimulus import ObjectDeleted
from fairlead.engine.state.cluster import StorageChange
from fairlead.testing.storage_builders import make_claim, make_csi_node, make_volume


def test_a_change_has_the_old_and_the_new_version(believer):
    """Additions and deletions have only one."""
    old, new = make_volume("v"), make_volume("v", size="2Gi")
    assert believer.put(old) == [StorageChange(None, old)]
    assert believer.put(new) == [StorageChange(old, new)]
    believer.cluster.apply(ObjectDeleted(new))
    assert list(believer.cluster.changes) == [StorageChange(new, None)]


def test_the_log_contains_changed_objects(believer):
    """By kind and key; the version of other objects is unchanged."""
    related = believer.cluster.related
    position, version = related.storage_log.position, related.version
    believer.put(make_volume("v"), make_claim("c"), make_csi_node("n"))
    believer.gone(make_claim("c"))
    assert related.storage_log.since(position) == [
        (PersistentVolume, "v"),
        (PersistentVolumeClaim, "default/c"),
        (CSINode, "n"),
        (PersistentVolumeClaim, "default/c"),
    ]
    assert related.version == version


def test_the_log_contains_assumed_objects(believer):
    """Readers with data cached by volume read the volume again."""
    cluster = believer.cluster
    believer.put(make_volume("v"), make_claim("c"))
    position = cluster.related.storage_log.position
    volume = cluster.related.get(PersistentVolume, "v")
    claim = cluster.related.get(PersistentVolumeClaim, "default/c")
    cluster.assumed_volumes.assume_volume(volume, claim)
    cluster.assumed_volumes.assume_claim(claim, "n")
    cluster.assumed_volumes.restore_volume("v")
    cluster.assumed_volumes.restore_volume("v")
    cluster.assumed_volumes.restore_claim("default/c")
    cluster.assumed_volumes.restore_claim("default/c")
    assert cluster.related.storage_log.since(position) == [
        (PersistentVolume, "v"),
        (PersistentVolumeClaim, "default/c"),
        (PersistentVolume, "v"),
        (PersistentVolumeClaim, "default/c"),
    ]
