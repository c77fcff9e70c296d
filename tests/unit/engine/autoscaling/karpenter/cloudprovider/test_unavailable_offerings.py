"""Offerings that could not be launched are available again after three minutes."""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.api.well_known_label import ZONE
from fairlead.engine.autoscaling.karpenter.apis import NodeClassReference
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import (
    InstanceType,
    Offering,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.unavailable_offerings import (
    UnavailableOfferings,
)
from fairlead.engine.autoscaling.karpenter.labels import CAPACITY_TYPE
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import requirement
from fairlead.engine.autoscaling.karpenter.scheduling.requirements import combined
from fairlead.engine.core.instant import seconds

ZONES = tuple(f"zone-{number:02d}" for number in range(40))


def offering(zone):
    stated = ((ZONE, zone), (CAPACITY_TYPE, "on-demand"))
    return Offering(combined(requirement(key, "In", (value,)) for key, value in stated), 1.0)


def offerings_in(zones):
    sold = tuple(offering(zone) for zone in zones)
    machine = InstanceType("small", combined(()), {"cpu": 1000}, {}, sold)
    return machine, UnavailableOfferings((machine,), KarpenterOptions().well_known_labels)


def available(offerings):
    return [one.zone for one in offerings.table.types[0].offerings if one.available]


def test_an_offering_is_unavailable_for_three_minutes():
    machine, offerings = offerings_in(ZONES[:2])
    before = offerings.table
    offerings.mark(machine, machine.offerings[0], 0)
    offerings.publish()
    assert available(offerings) == [ZONES[1]]
    assert offerings.next_expiry() == seconds(180)
    assert not offerings.expire(seconds(179))
    assert offerings.expire(seconds(180))
    assert offerings.table is before
    assert offerings.next_expiry() is None


def test_an_offering_is_unavailable_for_every_node_class():
    """The types of a node class with its own capacity have the same offerings."""
    machine, _ = offerings_in(ZONES[:2])
    ref, known = NodeClassReference(name="few-pods"), KarpenterOptions().well_known_labels
    own = replace(machine, capacity={"cpu": 1000, "pods": 2})
    offerings = UnavailableOfferings((machine,), known, {ref: (own,)})
    offerings.mark(machine, machine.offerings[0], 0)
    offerings.publish()
    [marked] = offerings.table_of(ref).types
    assert marked.capacity == own.capacity
    assert [one.zone for one in marked.offerings if one.available] == [ZONES[1]]
    assert offerings.table_of(NodeClassReference(name="other")) is offerings.table


def test_only_the_last_tables_are_kept():
    machine, offerings = offerings_in(ZONES)
    for number, one in enumerate(machine.offerings):
        offerings.mark(machine, one, seconds(number))
        offerings.publish()
        assert available(offerings) == list(ZONES[number + 1 :])
    assert offerings.tables_kept < len(ZONES)
    offerings.expire(seconds(1_000))
    assert available(offerings) == list(ZONES)
