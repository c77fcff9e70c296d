"""The status of a ResourceClaim after its devices are released."""

from __future__ import annotations

import pytest

from fairlead.apiserver.validation.resource.resource_claim import without_deallocated


def device(name, share=""):
    found = {"driver": "gpu.example.com", "pool": "a", "device": name}
    return {**found, "shareID": share} if share else found


def claim(allocated, reported):
    allocation = {"devices": {"results": allocated}} if allocated else None
    return {"status": {"allocation": allocation, "devices": reported}}


@pytest.mark.parametrize(
    ("before", "after", "reported", "kept"),
    [
        ([device("x")], [device("x")], [device("x")], [device("x")]),
        ([device("x"), device("y")], [], [device("x"), device("y")], []),
        ([device("x", "1")], [device("x", "2")], [device("x", "1")], []),
        # The status of a device that was never allocated is kept, and refused later by validation.
        ([device("x")], [], [device("z")], [device("z")]),
    ],
    ids=["still allocated", "deallocated", "another share", "never allocated"],
)
def test_statuses_of_released_devices_are_dropped(before, after, reported, kept):
    """The API server drops them, because old schedulers do not know this field."""
    new = without_deallocated(claim(before, reported), claim(after, reported))
    assert new["status"]["devices"] == kept
