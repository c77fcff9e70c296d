"""Classification of the volumes of a pod, and their claims."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Volume
from fairlead.api.pods.volumes import (
    all_claims,
    claim_name,
    is_claimed,
    is_exclusive,
    is_made_for,
    is_migratable,
    is_placed,
    named_claims,
)
from fairlead.testing.builders import make_pod
from fairlead.testing.storage_builders import make_claim

CLAIM = {"name": "a", "persistentVolumeClaim": {"claimName": "c"}}
EPHEMERAL = {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}}


@pytest.mark.parametrize(
    ("source", "claimed", "exclusive", "migratable"),
    [
        ({"persistentVolumeClaim": {"claimName": "c"}}, True, False, False),
        ({"ephemeral": {"volumeClaimTemplate": {}}}, True, False, False),
        ({"gcePersistentDisk": {"pdName": "d"}}, False, True, True),
        ({"awsElasticBlockStore": {"volumeID": "d"}}, False, True, True),
        ({"rbd": {"image": "d"}}, False, True, False),
        ({"iscsi": {"iqn": "d"}}, False, True, False),
        ({"azureDisk": {"diskURI": "d"}}, False, False, True),
        ({"azureFile": {"shareName": "s"}}, False, False, True),
        ({"cinder": {"volumeID": "d"}}, False, False, True),
        ({"portworxVolume": {"volumeID": "d"}}, False, False, True),
        ({"vsphereVolume": {"volumePath": "d"}}, False, False, True),
        ({"csi": {"driver": "d"}}, False, False, False),
        ({"emptyDir": {}}, False, False, False),
        ({"configMap": {"name": "m"}}, False, False, False),
        ({"hostPath": {"path": "/"}}, False, False, False),
        ({"nfs": {"server": "s", "path": "/"}}, False, False, False),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_volume_is_classified_by_its_source(source, claimed, exclusive, migratable):
    """Each of these properties can restrict the nodes of the pod."""
    volume = decode_as(Volume, {"name": "v", **source})
    assert is_claimed(volume) is claimed
    assert is_exclusive(volume) is exclusive
    assert is_migratable(volume) is migratable
    assert is_placed(volume) is (claimed or exclusive or migratable)


def test_the_claim_of_an_ephemeral_volume_has_the_names_of_pod_and_volume():
    """An ephemeral volume's claim has a derived name; a named claim keeps its name."""
    pod = make_pod("p", spec={"volumes": [EPHEMERAL, {"name": "x", "emptyDir": {}}, CLAIM]})
    assert [claim_name(pod, one) for one in pod.spec.volumes if is_claimed(one)] == ["p-b", "c"]
    assert list(all_claims(pod)) == ["p-b", "c"]
    assert list(named_claims(pod)) == ["c"]


@pytest.mark.parametrize(("uid", "expected"), [("uid-p", True), ("uid-before", False), ("", False)])
def test_a_claim_belongs_to_the_pod_that_controls_it(uid, expected):
    """A claim of another pod that had the same name does not belong to it."""
    assert is_made_for(make_claim("p-b", made_for=uid), make_pod("p")) is expected
