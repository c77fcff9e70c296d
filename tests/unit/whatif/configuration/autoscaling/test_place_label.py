"""The labels that state the place of a new node."""

import pytest

from fairlead.testing.builders import make_node
from fairlead.whatif.configuration.autoscaling.place_label import labels_in, labels_of_zones

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
EBS = "topology.ebs.csi.aws.com/zone"
HETZNER = "csi.hetzner.cloud/location"
LOCAL = "topology.topolvm.io/node"


def places(*nodes, keys=(EBS, HETZNER, LOCAL)):
    built = [make_node(name, labels=labels) for name, labels in nodes]
    return labels_of_zones(built, {name: frozenset(keys) for name, _ in nodes})


def test_a_new_node_has_the_labels_of_volume_drivers_in_its_zone():
    found = places(
        ("a", {ZONE: "fsn1-dc14", REGION: "fsn1", HETZNER: "fsn1"}),
        ("b", {ZONE: "nbg1-dc3", REGION: "nbg1", HETZNER: "nbg1", EBS: "nbg1-dc3"}),
    )
    assert found == {
        "fsn1-dc14": {ZONE: "fsn1-dc14", REGION: "fsn1", HETZNER: "fsn1"},
        "nbg1-dc3": {ZONE: "nbg1-dc3", REGION: "nbg1", HETZNER: "nbg1", EBS: "nbg1-dc3"},
    }


def test_nodes_without_a_zone_have_the_labels_of_volume_drivers_too():
    assert places(("a", {HETZNER: "fsn1"}), ("b", {HETZNER: "fsn1"})) == {"": {HETZNER: "fsn1"}}


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(("a", "b", "c"), id="the names of the nodes"),
        pytest.param(("disk-1", "disk-2", "disk-3"), id="another name on each node of a zone"),
    ],
)
def test_a_new_node_has_no_label_that_differs_between_the_nodes_of_a_zone(values):
    """The single node of the second zone does not show that the label is about one node."""
    zones = dict(zip("abc", ("z1", "z1", "z2"), strict=True))
    nodes = [(name, {ZONE: zones[name], LOCAL: value}) for name, value in zip("abc", values)]  # noqa: B905
    assert places(*nodes) == {"z1": {ZONE: "z1"}, "z2": {ZONE: "z2"}}


def test_a_new_zone_repeats_its_name_in_the_labels_in_which_other_zones_do():
    found = places(
        ("a", {ZONE: "z1", REGION: "r", EBS: "z1", HETZNER: "r"}),
        ("b", {ZONE: "z2", REGION: "r", EBS: "z2"}),
        ("c", {HETZNER: "r"}),
    )
    assert labels_in("z3", found) == {ZONE: "z3", EBS: "z3"}
    assert labels_in("", found) == {HETZNER: "r"}
    assert labels_in("", {}) == {}
