"""The cluster events of changed volumes, claims and other storage objects."""

from __future__ import annotations

import pytest

from fairlead.engine.framework.cluster_event import EventKind, storage_event
from fairlead.testing.builders import make_node
from fairlead.testing.storage_builders import (
    make_attachment,
    make_capacity,
    make_claim,
    make_csi_driver,
    make_csi_node,
    make_storage_class,
    make_volume,
)


@pytest.mark.parametrize(
    ("one", "name"),
    [
        (make_volume("v"), "VOLUME"),
        (make_claim("c"), "VOLUME_CLAIM"),
        (make_storage_class(), "STORAGE_CLASS"),
        (make_csi_node("n"), "CSI_NODE"),
        (make_csi_driver(tells_capacity=True), "CSI_DRIVER"),
        (make_capacity("k"), "STORAGE_CAPACITY"),
        (make_attachment("a", "n", "v"), "VOLUME_ATTACHMENT"),
    ],
)
def test_each_kind_has_three_events(one, name):
    """Added, updated and deleted, each with the versions of the object."""
    for old, new, suffix in ((None, one, "ADD"), (one, one, "UPDATE"), (one, None, "DELETE")):
        event = storage_event(old, new)
        assert event.kind is EventKind[f"{name}_{suffix}"]
        assert (event.old, event.new) == (old, new)


def test_other_kinds_are_refused():
    """These kinds have their own events."""
    with pytest.raises(KeyError):
        storage_event(None, make_node("n"))
