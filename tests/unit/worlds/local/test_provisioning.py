"""Claims in a local cluster get volumes, whatever the provisioner of their class is called."""

from __future__ import annotations

import pytest

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


@pytest.mark.parametrize(
    ("provisioner", "source"),
    [
        ("ebs.csi.aws.com", "csi"),
        ("kubernetes.io/aws-ebs", "csi"),
        ("rancher.io/local-path", "hostPath"),
        ("example.com/" + "a" * 60, "hostPath"),
        ("my_storage", "hostPath"),
    ],
)
def test_a_claim_is_bound_to_a_volume_of_its_own(cluster, provisioner, source):
    cluster.ask("POST", CLASSES, {"metadata": {"name": "fast"}, "provisioner": provisioner})
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    cluster.ask("POST", CLAIMS, {"metadata": {"name": "a"}, "spec": spec})
    cluster.pass_time(10)
    assert cluster.find("pvc", "a")["status"]["phase"] == "Bound"
    (volume,) = cluster.list("pv", "")
    assert source in volume["spec"]
