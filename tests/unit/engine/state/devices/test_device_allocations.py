"""DeviceLedger: a device has one holder, allocated or assumed; its log names the nodes."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import ClaimAllocation, ClaimConsumer
from fairlead.engine.state.devices.device_allocations import DeviceLedger
from fairlead.engine.state.devices.device_pools import EVERYWHERE
from fairlead.testing.device_builders import (
    DRIVER,
    allocated,
    make_device_class,
    make_resource_claim,
    make_slice,
)

GPU_0, GPU_1 = (DRIVER, "a", "gpu-0"), (DRIVER, "a", "gpu-1")
FREE = make_resource_claim("c")
TAKEN = make_resource_claim("c", status=allocated("a", "gpu-0"))


def allocation(*devices):
    return decode_as(ClaimAllocation, allocated("a", *devices)["allocation"])


@pytest.fixture
def ledger():
    made = DeviceLedger()
    made.observe(make_slice("a", ["gpu-0", "gpu-1"]))
    made.observe(FREE)
    return made


def test_an_allocation_holds_devices_until_it_is_given_up(ledger):
    ledger.observe(TAKEN)
    assert ledger.holders(GPU_0) == ["default/c"]
    ledger.observe(FREE)
    assert not ledger.is_taken(GPU_0)
    ledger.observe(TAKEN)
    ledger.observe_deleted(TAKEN)
    assert not ledger.is_taken(GPU_0)


def test_an_assumption_holds_devices_until_it_is_reverted(ledger):
    ledger.assume(FREE, allocation("gpu-0"))
    assert ledger.is_taken(GPU_0)
    assert ledger.is_assumed(FREE)
    ledger.revert("default/c")
    ledger.revert("default/c")
    assert not ledger.is_taken(GPU_0)


def test_an_update_that_crossed_an_assumption_does_not_undo_it(ledger):
    """One that shows an allocation fulfils it, and a take-back after that does nothing."""
    ledger.assume(FREE, allocation("gpu-0"))
    ledger.observe(FREE)
    assert ledger.is_taken(GPU_0)
    ledger.observe(TAKEN)
    assert not ledger.is_assumed(TAKEN)
    ledger.revert("default/c")
    assert ledger.is_taken(GPU_0)


def test_what_the_api_shows_wins_over_what_was_assumed(ledger):
    """Another client allocated another device."""
    ledger.assume(FREE, allocation("gpu-0"))
    ledger.observe(make_resource_claim("c", status=allocated("a", "gpu-1")))
    assert (ledger.is_taken(GPU_0), ledger.is_taken(GPU_1)) == (False, True)


def test_administrators_hold_nothing(ledger):
    status = allocated("a", "gpu-0")
    status["allocation"]["devices"]["results"][0]["adminAccess"] = True
    ledger.observe(make_resource_claim("c", status=status))
    assert not ledger.is_taken(GPU_0)


def test_a_device_with_two_holders_stays_taken_until_both_are_gone(ledger):
    """Another writer allocated the device twice."""
    ledger.observe(TAKEN)
    ledger.observe(make_resource_claim("d", status=allocated("a", "gpu-0")))
    assert ledger.holders(GPU_0) == ["default/c", "default/d"]
    ledger.observe_deleted(TAKEN)
    assert ledger.holders(GPU_0) == ["default/d"]
    assert ledger.is_taken(GPU_0)


def claim_of_share(name, **consumed):
    """A claim with a share of gpu-0 that consumes the capacity `consumed`."""
    status = allocated("a", "gpu-0")
    status["allocation"]["devices"]["results"][0] |= {
        "shareID": f"share-{name}",
        "consumedCapacity": consumed,
    }
    return make_resource_claim(name, status=status)


def test_shares_of_a_device_add_up_until_they_are_released(ledger):
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


def test_consumers_under_way_are_seen_until_shown_or_taken_back(ledger):
    """In the order in which they came."""
    for uid in ("p", "q"):
        ledger.assume_reservation(TAKEN, ClaimConsumer(resource="pods", name=uid, uid=uid))
    assert [one.uid for one in ledger.consumers(TAKEN)] == ["p", "q"]
    shown = make_resource_claim("c", status=allocated("a", "gpu-0", reserved_for=["q"]))
    ledger.observe(shown)
    assert [one.uid for one in ledger.consumers(shown)] == ["q", "p"]
    ledger.revert_reservation("default/c", "p")
    assert [one.uid for one in ledger.consumers(shown)] == ["q"]


def test_the_log_names_the_nodes_that_changes_concern(ledger):
    """All of them for devices that several nodes reach."""
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
