"""Which nodes fail: by zone, by region and zone, or by a random share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.whatif.change.node_outage.node_selection import (
    fraction_of_nodes,
    labels_of_zone,
    zone_nodes,
)
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest_reader import manifests

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"


def cluster(**labels):
    """Return an inventory of nodes with these labels, by name."""
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": label}}
        for name, label in labels.items()
    ]
    return Inventory(manifests([Document("f.yaml", nodes)]))


def test_a_zone_selects_all_of_its_nodes():
    found = cluster(n2={ZONE: "a"}, n1={ZONE: "a"}, n3={ZONE: "b"}, n4={})
    assert zone_nodes("--fail-zone", "a", found) == ["n1", "n2"]


@pytest.mark.parametrize("zone", ["", " "])
def test_a_blank_zone_is_refused_as_missing(zone):
    with pytest.raises(InputError, match="the name of the zone is missing; known: a"):
        zone_nodes("--fail-zone", zone, cluster(n1={ZONE: "a"}))


def test_the_deprecated_zone_label_has_precedence():
    found = cluster(n1={BETA_ZONE: "old", ZONE: "new"}, n2={ZONE: "new"})
    assert zone_nodes("--fail-zone", "new", found) == ["n2"]


def test_a_region_distinguishes_zones_with_equal_names():
    found = cluster(n1={REGION: "r", ZONE: "a"}, n2={REGION: "s", ZONE: "a"})
    assert zone_nodes("--fail-zone", "s/a", found) == ["n2"]
    with pytest.raises(InputError, match="a is in several regions; say which: r/a, s/a"):
        zone_nodes("--fail-zone", "a", found)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param({"n1": {REGION: "r", ZONE: "a"}}, {ZONE: "a"}, id="the zone is enough"),
        pytest.param({"n1": {BETA_ZONE: "a"}}, {BETA_ZONE: "a"}, id="an old cluster"),
        pytest.param({"n1": {BETA_ZONE: "a", ZONE: "a"}}, {ZONE: "a"}, id="both labels"),
        pytest.param({"n1": {BETA_ZONE: "a", ZONE: "b"}}, {BETA_ZONE: "a"}, id="other value"),
        pytest.param(
            {"n1": {REGION: "r", ZONE: "a"}, "n2": {REGION: "s", ZONE: "a"}},
            {REGION: "r", ZONE: "a"},
            id="two zones of one name",
        ),
    ],
)
def test_new_nodes_of_a_zone_are_marked_by_its_label(nodes, expected):
    assert labels_of_zone(["n1"], cluster(**nodes)) == expected


@pytest.mark.parametrize(
    ("share", "count"), [("0.5", 2), ("50%", 2), ("0.3", 1), ("1", 4), ("1%", 1), ("0.625@a", 3)]
)
def test_a_share_is_rounded_to_the_nearest_count_and_at_least_one(share, count):
    found = cluster(**{f"n{number}": {ZONE: "a"} for number in range(4)})
    assert len(fraction_of_nodes("--fail-fraction", share, found, 0)) == count


@pytest.mark.parametrize("share", ["0", "-1", "1.01", "101%", "half", "nan", "inf", "%", "", "1e9"])
def test_an_invalid_share_is_refused(share):
    with pytest.raises(InputError, match="is not a fraction above 0 and up to 1"):
        fraction_of_nodes("--fail-fraction", share, cluster(n1={ZONE: "a"}), 0)


@given(seed=st.integers(0, 2**40), percent=st.integers(1, 99))
def test_a_larger_share_contains_a_smaller_one_of_the_same_seed(seed, percent):
    found = cluster(**{f"n{number}": {} for number in range(20)})
    smaller = fraction_of_nodes("", f"{percent}%", found, seed)
    larger = fraction_of_nodes("", f"{percent + 1}%", found, seed)
    assert set(smaller) <= set(larger)
    assert smaller == sorted(smaller)
