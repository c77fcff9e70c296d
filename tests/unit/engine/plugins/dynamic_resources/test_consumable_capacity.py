"""DynamicResources: devices that several claims share, and the capacity that each claim consumes.

The expected amounts follow upstream's structured/internal/incubating/consumable_capacity.go
(calculateConsumedCapacity, violatesPolicy, CmpRequestOverCapacity) and allocator_incubating.go
(allocateDevice).
"""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import CapacityRequirements, Device
from fairlead.api.quantity import canonical
from fairlead.engine.plugins.dynamic_resources.consumable_capacity import consumption_of
from fairlead.testing.device_builders import (
    DRIVER,
    make_device,
    make_device_class,
    make_device_request,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)

RANGE = {"default": "1G", "validRange": {"min": "1G", "step": "500M", "max": "4G"}}
VALUES = {"default": "2G", "validValues": ["1G", "2G", "8G"]}


def card(name="card", policy=None, total="10G", **more):
    """A device with a shared bandwidth."""
    capacity = {"value": total} | ({"requestPolicy": policy} if policy else {})
    return {
        "name": name,
        "allowMultipleAllocations": True,
        "capacity": {"bandwidth": capacity},
        **more,
    }


def sharing(amount=None, name="r", **more):
    """Return a request for a part of the bandwidth."""
    requests = {} if amount is None else {"bandwidth": amount}
    return make_device_request(name, capacity={"requests": requests}, **more)


@pytest.mark.parametrize(
    ("policy", "wanted", "consumed"),
    [
        (None, "3G", "3G"),
        (None, None, "10G"),  # fillEmptyRequest: all of it
        (RANGE, None, "1G"),  # fillEmptyRequest: the default
        (RANGE, "300M", "1G"),  # below the minimum
        (RANGE, "1200M", "1500000000"),  # 1000M + 1 step
        (RANGE, "1500M", "1500000000"),
        (RANGE, "4G", "3906250Ki"),
        (RANGE, "4100M", None),  # 4500M exceeds the maximum
        ({"default": "1G", "validRange": {"min": "1G"}}, "1200M", "1200M"),  # no step
        (VALUES, "1500M", "2G"),
        (VALUES, "3G", "8G"),
        (VALUES, "9G", None),  # no valid value is as large
        ({"default": "2500m", "validRange": {"min": "1500m", "step": "1"}}, "2100m", "3"),
    ],
)
def test_the_capacity_that_a_request_consumes(policy, wanted, consumed):
    """Steps are counted in whole units, rounded up, and written in binary SI (roundUpRange)."""
    requests = {} if wanted is None else {"bandwidth": wanted}
    device = decode_as(Device, card(policy=policy))
    found = consumption_of(CapacityRequirements(requests=requests), device)
    assert (found and canonical(found["bandwidth"])) == consumed


def test_a_capacity_that_the_device_does_not_have():
    """Names match exactly (requestsContainNonExistCapacity)."""
    wanted = CapacityRequirements(requests={f"{DRIVER}/bandwidth": "1G"})
    assert consumption_of(wanted, decode_as(Device, card())) is None


# --- allocation --------------------------------------------------------------------------------


@pytest.fixture
def plugin(scene):
    """A node, and a class that selects every device."""
    scene.node("a")
    scene.tell(make_device_class())
    return scene.plugin("DynamicResources")


def allocate(scene, plugin, *claims):
    """The results per claim for a pod that names `claims`, or the reason why there are none.

    The allocation stays assumed.
    """
    scene.tell(*claims)
    pod = scene.pod(
        f"p-{claims[0].metadata.name}",
        **make_pod_resource_claims(*(c.metadata.name for c in claims)),
    )
    state = scene.started(plugin, pod)
    refusal = plugin.filter(state, pod, scene.table.find("a"))
    if refusal is not None:
        return refusal.message
    assert plugin.reserve(state, pod, "a") is None
    commands = plugin.pre_bind(state, pod, "a").commands
    written = [
        c.fields["allocation"]["devices"]["results"] for c in commands if hasattr(c, "fields")
    ]
    return [
        [(r["device"], r.get("consumedCapacity"), r.get("shareID")) for r in w] for w in written
    ]


def shares(found):
    """The devices and amounts, without share IDs."""
    return [[(device, amounts) for device, amounts, _ in results] for results in found]


NOT_ENOUGH = "cannot allocate all claims"


def test_claims_share_a_device_until_its_capacity_is_consumed(scene, plugin):
    """Six shares of 1500M fit into 10G; a seventh does not, one of 1G does."""
    scene.tell(make_slice("a", [card(policy=RANGE)]))
    ids = []
    for i in range(6):
        found = allocate(scene, plugin, make_resource_claim(f"c{i}", sharing("1200M")))
        assert shares(found) == [[("card", {"bandwidth": "1500000000"})]]
        ids.append(found[0][0][2])
    assert len(set(ids)) == 6
    assert allocate(scene, plugin, make_resource_claim("c6", sharing("1200M"))) == NOT_ENOUGH
    assert shares(allocate(scene, plugin, make_resource_claim("c7", sharing()))) == [
        [("card", {"bandwidth": "1G"})]
    ]


def test_shares_that_the_api_shows_count(scene, plugin):
    """An allocation with a share ID holds its capacity; one with admin access holds nothing."""
    scene.tell(make_slice("a", [card()]))
    result = {"request": "r", "driver": DRIVER, "pool": "a", "device": "card"}
    result |= {"shareID": "5f0c4a32-0000-0000-0000-000000000000"}
    result |= {"consumedCapacity": {"bandwidth": "6G"}}
    watching = result | {"adminAccess": True}
    status = {"allocation": {"devices": {"results": [result, watching]}}}
    holder = make_resource_claim("x", status=status)
    scene.tell(holder)
    assert allocate(scene, plugin, make_resource_claim("c", sharing("5G"))) == NOT_ENOUGH
    found = allocate(scene, plugin, make_resource_claim("d", sharing("4G")))
    assert shares(found) == [[("card", {"bandwidth": "4G"})]]
    scene.untell(holder)
    found = allocate(scene, plugin, make_resource_claim("e", sharing("6G")))
    assert shares(found) == [[("card", {"bandwidth": "6G"})]]


def test_a_device_allocated_without_share_id_is_fully_in_use(scene, plugin):
    """It was allocated before the device could be shared."""
    scene.tell(make_slice("a", [card()]))
    result = {"request": "r", "driver": DRIVER, "pool": "a", "device": "card"}
    scene.tell(make_resource_claim("x", status={"allocation": {"devices": {"results": [result]}}}))
    assert allocate(scene, plugin, make_resource_claim("c", sharing("1G"))) == NOT_ENOUGH


def test_requests_of_one_claim_share_but_devices_of_one_request_differ(scene, plugin):
    """Two requests take the same card; a count of two needs two cards."""
    scene.tell(make_slice("a", [card(), card("other")]))
    both = make_resource_claim("c", sharing("4G", "r"), sharing("4G", "s"))
    assert shares(allocate(scene, plugin, both)) == [
        [("card", {"bandwidth": "4G"}), ("card", {"bandwidth": "4G"})]
    ]
    two = make_resource_claim("d", sharing("2G", count=2))
    assert shares(allocate(scene, plugin, two)) == [
        [("card", {"bandwidth": "2G"}), ("other", {"bandwidth": "2G"})]
    ]
    three = make_resource_claim("e", sharing("1G", count=3))
    assert allocate(scene, plugin, three) == NOT_ENOUGH


def test_the_search_backtracks_if_a_share_consumes_too_much(scene, plugin):
    """The first request must go to the smaller card, because the second fits only the larger."""
    scene.tell(make_slice("a", [card("large", total="10G"), card("small", total="4G")]))
    claim = make_resource_claim("c", sharing("4G", "r"), sharing("8G", "s"))
    assert shares(allocate(scene, plugin, claim)) == [
        [("small", {"bandwidth": "4G"}), ("large", {"bandwidth": "8G"})]
    ]


def test_all_devices_with_enough_capacity(scene, plugin):
    """allocationMode All selects the devices whose capacity suffices (validateDeviceRequest)."""
    scene.tell(make_slice("a", [card("large"), card("small", total="1G"), make_device("other")]))
    claim = make_resource_claim("c", sharing("4G", allocationMode="All", count=0))
    assert shares(allocate(scene, plugin, claim)) == [[("large", {"bandwidth": "4G"})]]


def test_a_capacity_request_allocates_an_unshared_device_fully(scene, plugin):
    """The request selects devices by size; nothing is consumed, and there is no share ID."""
    small, large = make_device("small", "20Gi"), make_device("large", "80Gi")
    scene.tell(make_slice("a", [small, large]))
    claim = make_resource_claim("c", make_device_request(capacity={"requests": {"memory": "40Gi"}}))
    assert allocate(scene, plugin, claim) == [[("large", None, None)]]
    again = make_resource_claim("d", make_device_request(capacity={"requests": {"memory": "1Gi"}}))
    assert allocate(scene, plugin, again) == [[("small", None, None)]]


def test_counters_are_consumed_with_the_first_share(scene, plugin):
    """A shared partition consumes its counters once; other partitions see them consumed."""
    spec = {"sharedCounters": [{"name": "set", "counters": {"slots": {"value": "1"}}}]}
    consumes = [{"counterSet": "set", "counters": {"slots": {"value": "1"}}}]
    cards = [card("x", consumesCounters=consumes), card("y", consumesCounters=consumes)]
    scene.tell(make_slice("a", cards, spec=spec))
    found = allocate(scene, plugin, make_resource_claim("c", sharing("4G")))
    assert shares(found) == [[("x", {"bandwidth": "4G"})]]
    both = make_resource_claim("d", sharing("4G", "r"), sharing("2G", "s"))
    assert shares(allocate(scene, plugin, both)) == [
        [("x", {"bandwidth": "4G"}), ("x", {"bandwidth": "2G"})]
    ]
    assert allocate(scene, plugin, make_resource_claim("e", sharing("1G"))) == NOT_ENOUGH
