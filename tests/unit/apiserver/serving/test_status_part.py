"""What goes along with a status, kind by kind."""

from __future__ import annotations

import pytest

LABELLED = {"metadata": {"labels": {"a": "b"}}, "status": {}}
MERGE = "application/merge-patch+json"
VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def made(api, path, version, kind, spec):
    """An object that is there, and where."""
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    created = api.post(path, obj)
    assert created.status == 201, created.text
    return f"{path}/x"


@pytest.mark.parametrize(
    ("path", "version", "kind", "spec", "labels"),
    [
        (CLAIMS, "resource.k8s.io/v1", "ResourceClaim", {}, None),
        (SETS, "apps/v1", "ReplicaSet", {"selector": {"matchLabels": {"a": "b"}}, "template": POD},
         {"a": "b"}),
    ],
)  # fmt: skip
def test_labels(api, path, version, kind, spec, labels):
    """Of some kinds they can be written along with the status, of others not."""
    where = made(api, path, version, kind, spec)
    found = api.ask("PATCH", f"{where}/status", LABELLED, content_type=MERGE)
    assert found.status == 200, found.text
    assert found.json["metadata"].get("labels") == labels


def test_a_volume_says_since_when_it_is_in_its_phase(api):
    """Unless whoever writes the phase says it."""
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"},
    }
    where = made(api, VOLUMES, "v1", "PersistentVolume", spec)
    first = api.get(where).json["status"]["lastPhaseTransitionTime"]
    for phase, said in (("Available", None), ("Bound", "2020-01-01T00:00:00Z")):
        status = {"phase": phase} | ({"lastPhaseTransitionTime": said} if said else {})
        found = api.ask("PATCH", f"{where}/status", {"status": status}, content_type=MERGE)
        since = found.json["status"]["lastPhaseTransitionTime"]
        assert since == said if said else since > first
