"""The CSI drivers of volumes, which have limits on nodes."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import PersistentVolume, PersistentVolumeClaim
from fairlead.engine.autoscaling.karpenter.state.storage import StorageObjects


@pytest.mark.parametrize(
    ("source", "driver"),
    [
        ({"csi": {"driver": "csi.example.com", "volumeHandle": "v"}}, "csi.example.com"),
        ({"awsElasticBlockStore": {"volumeID": "v"}}, "ebs.csi.aws.com"),
        ({"gcePersistentDisk": {"pdName": "v"}}, ""),
        ({"local": {"path": "/v"}}, ""),
    ],
)
def test_the_driver_of_a_bound_claim_is_the_driver_of_its_volume(source, driver):
    # upstream: volumeusage.go:driverFromVolume
    volume = decode_as(PersistentVolume, {"metadata": {"name": "pv"}, "spec": source})
    claim = decode_as(
        PersistentVolumeClaim,
        {"metadata": {"name": "c", "namespace": "default"}, "spec": {"volumeName": "pv"}},
    )
    assert StorageObjects(volumes={"pv": volume}).driver(claim) == driver
