"""DeviceLedger: devices and their allocations, shown by the API or assumed, and the change log."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import ClaimAllocation, ClaimConsumer
from fairlead.engine.state.devices.device_ledger import DeviceLedger
from fairlead.engine.state.devices.device_pools import EVERYWHERE
from fairlead.testing.device_builders import (
    DRIVER,
    make_claim_status,
    make_device_class,
    make_resource_claim,
    make_slice,
)

GPU_0, GPU_1 = (DRIVER, "a", "gpu-0"), (DRIVER, "a", "gpu-1")
FREE = make_resource_claim("c")
TAKEN = make_resource_claim("c", status=make_claim_status("a", "gpu-0"))


def allocation(*devices):
    return decode_as(ClaimAllocation, make_claim_status("a", *devices)["allocation"])


@pytest.fixture
def ledger():
    made = DeviceLedger()
    made.observe(make_slice("a", ["gpu-0", "gpu-1"]))
    made.observe(FREE)
    return made


def test_devices_are_allocated_until_the_deallocation(ledger):
    ledger.observe(TAKEN)
    assert ledger.holders(GPU_0) == ["default/c"]
    ledger.observe(FREE)
    assert not ledger.is_taken(GPU_0)
    ledger.observe(TAKEN)
    ledger.observe_deleted(TAKEN)
    assert not ledger.is_taken(GPU_0)


def test_devices_are_allocated_until_the_assumption_is_reverted(ledger):
    ledger.assume(FREE, allocation("gpu-0"))
    assert ledger.is_taken(GPU_0)
    assert ledger.is_assumed(FREE)
    ledger.revert("default/c")
    ledger.revert("default/c")
    assert not ledger.is_taken(GPU_0)


def test_an_older_update_does_not_revert_an_assumption(ledger):
    """An update with an allocation confirms it, so that reverting it has no effect."""
    ledger.assume(FREE, allocation("gpu-0"))
    ledger.observe(FREE)
    assert ledger.is_taken(GPU_0)
    ledger.observe(TAKEN)
    assert not ledger.is_assumed(TAKEN)
    ledger.revert("default/c")
    assert ledger.is_taken(GPU_0)


def test_an_allocation_in_the_api_replaces_the_assumed_one(ledger):
    """Another client allocated another device."""
    ledger.assume(FREE, allocation("gpu-0"))
    ledger.observe(make_resource_claim("c", status=make_claim_status("a", "gpu-1")))
    assert (ledger.is_taken(GPU_0), ledger.is_taken(GPU_1)) == (False, True)


def test_allocations_with_admin_access_do_not_use_devices(ledger):
    status = make_claim_status("a", "gpu-0")
    status["allocation"]["devices"]["results"][0]["adminAccess"] = True
    ledger.observe(make_resource_claim("c", status=status))
    assert not ledger.is_taken(GPU_0)


def test_a_device_with_two_allocations_is_free_after_both_have_ended(ledger):
    """Another writer allocated the device twice."""
    ledger.observe(TAKEN)
    ledger.observe(make_resource_claim("d", status=make_claim_status("a", "gpu-0")))
    assert ledger.holders(GPU_0) == ["default/c", "default/d"]
    ledger.observe_deleted(TAKEN)
    assert ledger.holders(GPU_0) == ["default/d"]
    assert ledger.is_taken(GPU_0)


def claim_of_share(name, **consumed):
    """Return a claim with a share of gpu-0 that consumes the capacity `consumed`."""
    status = make_claim_status("a", "gpu-0")
    status["allocation"]["devices"]["results"][0] |= {
        "shareID": f"share-{name}",
        "consumedCapacity": consumed,
    }
    return make_resource_claim(name, status=status)


def test_shares_of_a_device_are_summed_until_they_are_released(ledger):
    """A share does not take the whole device."""
    shares = [claim_of_share("c", memory="2"), claim_of_share("d", memory="3")]
    for share in shares:
        ledger.observe(share)
    assert ledger.consumed(GPU_0) == {"memory": 5 * 10**9}
    assert (ledger.is_taken(GPU_0), ledger.is_allocated(GPU_0)) == (False, True)
    ledger.observe_deleted(shares[0])
    assert ledger.consumed(GPU_0) == {"memory": 3 * 10**9}
    ledger.observe_deleted(shares[1])
    assert ledger.consumed(GPU_0) is None
    assert not ledger.is_allocated(GPU_0)


def test_a_share_without_capacity_allocates_the_device(ledger):
    ledger.observe(claim_of_share("c"))
    assert ledger.is_allocated(GPU_0)
    assert ledger.consumed(GPU_0) is None


def test_assumed_consumers_are_listed_until_confirmed_or_reverted(ledger):
    """In the order in which they were assumed."""
    for uid in ("p", "q"):
        ledger.assume_reservation(TAKEN, ClaimConsumer(resource="pods", name=uid, uid=uid))
    assert [one.uid for one in ledger.consumers(TAKEN)] == ["p", "q"]
    shown = make_resource_claim("c", status=make_claim_status("a", "gpu-0", reserved_for=["q"]))
    ledger.observe(shown)
    assert [one.uid for one in ledger.consumers(shown)] == ["q", "p"]
    ledger.revert_reservation("default/c", "p")
    assert [one.uid for one in ledger.consumers(shown)] == ["q"]


def test_the_log_contains_the_nodes_that_changes_affect(ledger):
    """A device that several nodes reach affects all of them."""
    log = ledger.pools.log
    start = log.position
    ledger.observe(TAKEN)
    ledger.observe(TAKEN)
    assert log.since(start) == ["a"]
    start = log.position
    ledger.observe(make_slice("", ["x"], spec={"allNodes": True}))
    assert {*log.since(start)} == {EVERYWHERE}


def test_changes_of_classes_are_counted(ledger):
    ledger.observe(make_device_class())
    ledger.observe_deleted(make_device_class())
    assert ledger.class_version == 2
