"""The metadata that a write of a status changes, by kind."""

from __future__ import annotations

import pytest

LABELLED = {"metadata": {"labels": {"a": "b"}}, "status": {}}
MERGE = "application/merge-patch+json"
VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
RANGES = "/apis/networking.k8s.io/v1/servicecidrs"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def made(api, path, version, kind, spec):
    """Create an object and return its path."""
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
def test_only_status_writes_of_some_kinds_change_labels(api, path, version, kind, spec, labels):
    """For other kinds, labels in a status write are ignored."""
    where = made(api, path, version, kind, spec)
    found = api.ask("PATCH", f"{where}/status", LABELLED, content_type=MERGE)
    assert found.status == 200, found.text
    assert found.json["metadata"].get("labels") == labels


def test_a_phase_change_of_a_volume_sets_its_transition_time(api):
    """A time that the client sends is kept."""
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


def test_the_phase_transition_time_of_a_volume_is_kept(api):
    """The time is kept if a status write omits it."""
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"},
    }
    where = made(api, VOLUMES, "v1", "PersistentVolume", spec)
    volume = api.get(where).json
    since = volume["status"]["lastPhaseTransitionTime"]
    kept = api.put(f"{where}/status", {**volume, "status": {"phase": "Pending", "message": "m"}})
    assert kept.json["status"]["lastPhaseTransitionTime"] == since


def test_the_status_of_a_service_cidr_can_be_written_with_its_spec(api):
    """A write of the status subresource does not change its metadata."""
    where = made(api, RANGES, "networking.k8s.io/v1", "ServiceCIDR", {"cidrs": ["10.1.0.0/24"]})
    found = api.get(where).json
    ready = {"type": "Ready", "status": "True", "reason": "r", "message": "",
             "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    written = api.put(where, {**found, "status": {"conditions": [ready]}})
    assert written.json["status"]["conditions"] == [ready]
    labelled = api.patch(f"{where}/status", LABELLED)
    assert "labels" not in labelled.json["metadata"]


def test_a_local_api_service_is_available_at_once(api):
    spec = {"group": "a.b", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    obj = {"metadata": {"name": "v1.a.b"}, "spec": spec}
    answer = api.post("/apis/apiregistration.k8s.io/v1/apiservices", obj)
    (condition,) = answer.json["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Available", "Local")


USER = {"resource": "pods", "name": "p", "uid": "u"}
RESULT = {"request": "r", "driver": "d.x", "pool": "p", "device": "d0"}


def allocated(**changes):
    return {"devices": {"results": [{**RESULT, **changes}]}}


@pytest.fixture
def claim(api):
    """Patches the status of an existing ResourceClaim."""
    wanted = {"name": "r", "exactly": {"deviceClassName": "c"}}
    spec = {"devices": {"requests": [wanted]}}
    where = made(api, CLAIMS, "resource.k8s.io/v1", "ResourceClaim", spec)
    return lambda **status: api.patch(f"{where}/status", {"status": status})


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        ({"reservedFor": [USER]}, ["status.reservedFor"]),
        (
            {"reservedFor": [{}, USER, USER], "allocation": allocated()},
            [*(f"status.reservedFor[0].{key}" for key in ("resource", "name", "uid")),
             "status.reservedFor[2]"],
        ),
        (
            {"allocation": allocated(request="x", driver="", pool="A", device="d.0")},
            [f"status.allocation.devices.results[0].{key}"
             for key in ("request", "driver", "pool", "device")],
        ),
    ],
)  # fmt: skip
def test_an_invalid_claim_status_is_refused(claim, status, fields):
    assert [cause["field"] for cause in claim(**status).json["details"]["causes"]] == fields


def test_the_allocation_of_a_claim_is_immutable(claim):
    """Other consumers can be added, and the allocation can be removed."""
    assert claim(allocation=allocated(), reservedFor=[USER]).status == 200
    (cause,) = claim(allocation=allocated(device="d1")).json["details"]["causes"]
    assert cause["message"].endswith("field is immutable")
    assert claim(reservedFor=[USER, {**USER, "uid": "v"}]).status == 200
    assert claim(allocation=None, reservedFor=None).status == 200
