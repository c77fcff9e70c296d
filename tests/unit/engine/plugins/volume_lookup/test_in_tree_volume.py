"""In-tree disks with the names and labels of the CSI drivers that replace their plugins."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Volume
from fairlead.engine.plugins.volume_lookup.in_tree_volume import (
    TranslationError,
    csi_of_inline,
    csi_of_volume,
    driver_selector,
)
from fairlead.testing.storage_builders import make_volume

ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
GCE = {"gcePersistentDisk": {"pdName": "d"}}
AZURE = {"azureDisk": {"diskName": "d", "diskURI": "/disks/d"}}


def handle(source):
    found = csi_of_volume(make_volume("v", driver="", spec=source))
    return (found.driver, found.volume_handle)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (EBS, ("ebs.csi.aws.com", "vol-1")),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-2"}}, ("ebs.csi.aws.com", "vol-2")),
        ({"awsElasticBlockStore": {"volumeID": "aws://z/vol-3"}}, ("ebs.csi.aws.com", "vol-3")),
        (AZURE, ("disk.csi.azure.com", "/disks/d")),
        ({"cinder": {"volumeID": "c"}}, ("cinder.csi.openstack.org", "c")),
        ({"portworxVolume": {"volumeID": "p"}}, ("pxd.portworx.com", "p")),
        (
            GCE,
            ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        ),
    ],
)
def test_the_volume_handle_of_a_disk(source, expected):
    """The handle is the driver's name of the disk."""
    assert handle(source) == expected


@pytest.mark.parametrize(
    ("label", "zones", "expected"),
    [
        (ZONE, "europe-west1-b", "projects/UNSPECIFIED/zones/europe-west1-b/disks/d"),
        (BETA_ZONE, "europe-west1-b", "projects/UNSPECIFIED/zones/europe-west1-b/disks/d"),
        (
            ZONE,
            "europe-west1-b__europe-west1-c",
            "projects/UNSPECIFIED/regions/europe-west1/disks/d",
        ),
    ],
)
def test_a_gce_disk_is_named_by_its_zone(label, zones, expected):
    """A regional disk is named by its region."""
    found = csi_of_volume(make_volume("v", driver="", spec=GCE, labels={label: zones}))
    assert found.volume_handle == expected


@pytest.mark.parametrize("zones", ["europe-west1-b__asia-east1-a", "here__there"])
def test_a_gce_disk_in_several_regions_is_invalid(zones):
    """Such a disk has no valid name."""
    with pytest.raises(TranslationError, match="failed to get region from zones"):
        csi_of_volume(make_volume("v", driver="", spec=GCE, labels={ZONE: zones}))


@pytest.mark.parametrize("volume_id", ["aws://", "aws://z/disk-1", "aws://z/vol-1/x"])
def test_an_aws_disk_with_an_invalid_url_is_refused(volume_id):
    """Other names are used unchanged."""
    inline = decode_as(Volume, {"name": "d", "awsElasticBlockStore": {"volumeID": volume_id}})
    with pytest.raises(TranslationError, match="Invalid format for AWS volume"):
        csi_of_inline(inline)


def test_other_volumes_have_no_driver():
    """Neither inline nor as volumes; a CSI volume has its own."""
    assert csi_of_inline(decode_as(Volume, {"name": "x", "emptyDir": {}})) is None
    assert csi_of_volume(make_volume("v", driver="")) is None
    assert csi_of_volume(make_volume("v", driver="d", handle="h")).volume_handle == "h"


# --- where it can be reached -----------------------------------------------------------------


def reach_of(source, reach=None, labels=None):
    """Return the driver's node selector as [{key: values}]; None means any node."""
    made = make_volume("v", driver="", spec=source, reach=reach, labels=labels)
    selector = driver_selector(made)
    if selector is None:
        return None
    return [
        {one.key: list(one.values) for one in term.match_expressions}
        for term in selector.node_selector_terms
    ]


@pytest.mark.parametrize(
    ("source", "reach", "labels", "expected"),
    [
        pytest.param(EBS, None, {}, None, id="nothing is said"),
        pytest.param(EBS, {ZONE: ["a"]}, {}, [{EBS_ZONE: ["a"]}], id="a zone"),
        pytest.param(EBS, {BETA_ZONE: ["a"]}, {}, [{EBS_ZONE: ["a"]}], id="by the former label"),
        pytest.param(
            EBS, {ZONE: ["a", "b"], "x": ["y"]}, {}, [{EBS_ZONE: ["a", "b"], "x": ["y"]}], id="more"
        ),
        pytest.param(
            EBS,
            {ZONE: ["a"], BETA_ZONE: ["b"]},
            {},
            [{EBS_ZONE: ["a"], BETA_ZONE: ["b"]}],
            id="the present label goes before the former",
        ),
        pytest.param(EBS, None, {ZONE: "a"}, [{EBS_ZONE: ["a"]}], id="only the volume's label"),
        pytest.param(
            EBS, None, {BETA_ZONE: "b__a"}, [{EBS_ZONE: ["a", "b"]}], id="two zones in its label"
        ),
        pytest.param(EBS, None, {ZONE: "__"}, None, id="a label that names none"),
        pytest.param(
            EBS, {"x": ["y"]}, {ZONE: "a"}, [{"x": ["y"], EBS_ZONE: ["a"]}], id="label and affinity"
        ),
        pytest.param(
            EBS,
            {BETA_ZONE: ["a"], BETA_REGION: ["r"]},
            {},
            [{EBS_ZONE: ["a"], REGION: ["r"]}],
            id="a region by its former label",
        ),
        pytest.param(AZURE, {ZONE: ["a"]}, {ZONE: "a"}, [{ZONE: ["a"]}], id="no label of its own"),
    ],
)
def test_the_topology_label_of_the_driver_replaces_the_zone_label(source, reach, labels, expected):
    """The zone is that of the node affinity, or else of the label."""
    assert reach_of(source, reach, labels) == expected
