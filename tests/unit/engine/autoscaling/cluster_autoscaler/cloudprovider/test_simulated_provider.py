"""Machines of the simulated provider: their registration as nodes, and their deletion."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.nodes.readiness import is_starting
from fairlead.api.objects import Node
from fairlead.engine.autoscaling.capacity_outage import CapacityOutage
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import (
    ProviderError,
)
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
    SimulatedProvider,
)
from fairlead.engine.core.command import CreateObject, DeleteObject
from fairlead.engine.core.instant import seconds

TEMPLATE = {
    "metadata": {"labels": {"pool": "a"}},
    "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}},
}


def provider(seed=0, **fields):
    settings = {"minimum": 0, "maximum": 5, "labels": {"pool": "a"}, "template": TEMPLATE, **fields}
    return SimulatedProvider([NodeGroupSpec(id="A/b", **settings)], seed=seed, start=0)


def registered(one):
    """Return (seconds, manifest) of the nodes that are created in ten minutes."""
    found = []
    while (due := one.next_due()) is not None and due <= seconds(600):
        one.run_due(due)
        found += [(due / 1e9, command.manifest) for command in one.commands]
        one.commands.clear()
    return found


def view(manifest):
    return decode_as(Node, manifest)


def test_a_machine_becomes_a_starting_node_with_the_groups_labels():
    one = provider()
    one.node_groups()[0].increase_size(1, 0)
    [(_, manifest)] = registered(one)
    assert manifest["metadata"]["name"] == "a-b-new-1"
    assert manifest["metadata"]["labels"] == {
        "pool": "a", "kubernetes.io/hostname": "a-b-new-1",
    }  # fmt: skip
    assert is_starting(view(manifest))
    assert one.node_group_for(manifest["spec"]["providerID"]).id == "A/b"


def test_the_provisioning_time_is_near_the_set_time_and_depends_on_the_seed():
    def times(seed):
        one = provider(seed, provision_time=seconds(100))
        one.node_groups()[0].increase_size(5, 0)
        return [at for at, _ in registered(one)]

    assert all(75 <= at <= 125 for at in times(1))
    assert times(1) == times(1) != times(2)
    assert len(set(times(1))) == 5


def test_a_node_that_is_created_again_belongs_to_its_machine():
    one = provider()
    group = one.node_groups()[0]
    node = one.adopt(decode_as(Node, {"metadata": {"name": "n", "labels": {"pool": "a"}}}))
    group.delete_nodes([node.spec.provider_id], 0)
    one.delete_machine_of(node)
    one.adopt(node)
    assert group.target_size() == 1
    assert one.has_instance(node.spec.provider_id)
    group.delete_nodes([node.spec.provider_id], 0)
    assert group.target_size() == 0


def test_a_group_does_not_exceed_its_maximum_or_go_below_its_minimum():
    one = provider(minimum=1)
    group = one.node_groups()[0]
    with pytest.raises(ProviderError):
        group.increase_size(6, 0)
    one.adopt(decode_as(Node, {"metadata": {"name": "n", "labels": {"pool": "a"}}}))
    with pytest.raises(ProviderError):
        group.delete_nodes(["simulated:///n"], 0)
    assert group.target_size() == 1


def test_the_node_of_a_deleted_machine_is_deleted_after_a_delay():
    one = provider(deletion_time=seconds(30))
    group = one.node_groups()[0]
    node = one.adopt(decode_as(Node, {"metadata": {"name": "n", "labels": {"pool": "a"}}}))
    group.delete_nodes([node.spec.provider_id], 0)
    assert (group.target_size(), one.has_instance(node.spec.provider_id)) == (0, False)
    one.run_due(seconds(30))
    [command] = one.commands
    assert isinstance(command, DeleteObject)
    assert command.target.name == "n"


def test_a_decrease_deletes_the_newest_machines_without_a_node():
    one = provider()
    group = one.node_groups()[0]
    group.increase_size(3, 0)
    group.decrease_target_size(-2, 0)
    assert [manifest["metadata"]["name"] for _, manifest in registered(one)] == ["a-b-new-1"]
    with pytest.raises(ProviderError):
        group.decrease_target_size(-1, 0)


def test_a_machine_fails_if_the_provider_has_no_capacity():
    one = provider(out_of_capacity=((0, seconds(60)),))
    group = one.node_groups()[0]
    group.increase_size(1, seconds(59))
    assert registered(one) == []
    assert [machine.error.code for machine in group.instances()] == ["STOCKOUT"]
    group.increase_size(1, seconds(60))
    assert len(registered(one)) == 1


ZONE = "topology.kubernetes.io/zone"


def zoned(**fields):
    """Return a provider whose group has the zones x, y and z."""
    x, *others = ({**TEMPLATE, "metadata": {"labels": {ZONE: zone}}} for zone in "xyz")
    return provider(template=x, other_zones=tuple(others), **fields)


def zones_of(created):
    return sorted(manifest["metadata"]["labels"][ZONE] for _, manifest in created)


def test_a_group_of_several_zones_stays_balanced():
    one = zoned()
    metadata = {"name": "n", "labels": {"pool": "a", ZONE: "y"}}
    one.adopt(view({"apiVersion": "v1", "kind": "Node", "metadata": metadata}))
    one.node_groups()[0].increase_size(3, 0)
    assert zones_of(registered(one)) == ["x", "x", "z"]


def test_a_group_of_several_zones_uses_the_zones_with_capacity():
    one = zoned()
    one.add_outage(CapacityOutage(end=seconds(60), labels={ZONE: "x"}))
    one.node_groups()[0].increase_size(3, 0)
    assert zones_of(registered(one)) == ["y", "y", "z"]
    assert one.undelivered == {}
    one.node_groups()[0].increase_size(1, seconds(61))
    assert zones_of(registered(one)) == ["x"]


def test_a_node_deleted_by_others_lowers_the_target_size():
    one = provider()
    node = one.adopt(decode_as(Node, {"metadata": {"name": "n", "labels": {"pool": "a"}}}))
    one.adopt(decode_as(Node, {"metadata": {"name": "other", "labels": {"pool": "b"}}}))
    assert one.node_groups()[0].target_size() == 1
    one.delete_machine_of(node)
    assert one.node_groups()[0].target_size() == 0


def test_create_commands_are_complete_nodes():
    one = provider()
    one.node_groups()[0].increase_size(1, 0)
    one.run_due(seconds(600))
    [command] = one.commands
    assert isinstance(command, CreateObject)
    assert view(command.manifest).status.allocatable == {"cpu": "4"}


def test_a_new_machine_does_not_reuse_the_name_of_an_existing_node():
    first = provider()
    first.node_groups()[0].increase_size(1, 0)
    [(_, manifest)] = registered(first)
    second = provider()
    second.adopt(view(manifest))
    second.node_groups()[0].increase_size(1, 0)
    [(_, other)] = registered(second)
    assert other["metadata"]["name"] == "a-b-new-2"
    assert second.node_groups()[0].target_size() == 2


def test_a_new_machine_does_not_reuse_the_name_of_a_deleted_machine():
    """A node of the dump was created by an earlier simulation and is removed in this one."""
    one = provider()
    group = one.node_groups()[0]
    old = {"metadata": {"name": "a-b-new-1", "labels": {"pool": "a"}}}
    node = one.adopt(decode_as(Node, old))
    group.delete_nodes([node.spec.provider_id], 0)
    one.delete_machine_of(node)
    group.increase_size(1, 0)
    [(_, new)] = registered(one)
    assert new["metadata"]["name"] == "a-b-new-2"
    assert one.has_instance(new["spec"]["providerID"])


def test_a_refused_registration_and_a_refused_deletion_are_repeated():
    one = provider(deletion_time=seconds(30))
    group = one.node_groups()[0]
    group.increase_size(1, 0)
    [(_, manifest)] = registered(one)
    one.refused(CreateObject(manifest), seconds(200))
    assert registered(one) == [(210, manifest)]
    node = one.adopt(view(manifest))
    group.delete_nodes([node.spec.provider_id], seconds(300))
    one.run_due(seconds(330))
    [deletion] = one.commands
    one.commands.clear()
    one.refused(deletion, seconds(330))
    one.run_due(seconds(340))
    assert one.commands == [deletion]


def test_a_refused_registration_of_a_deleted_machine_is_not_repeated():
    one = provider()
    group = one.node_groups()[0]
    group.increase_size(1, 0)
    [(_, manifest)] = registered(one)
    group.delete_nodes([manifest["spec"]["providerID"]], seconds(200))
    one.refused(CreateObject(manifest), seconds(200))
    assert one.next_due() == seconds(260)  # when the Node is deleted
