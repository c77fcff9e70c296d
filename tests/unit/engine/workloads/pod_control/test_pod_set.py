"""PodSet: updates of pods in which only the status differs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.objects import OwnerReference
from fairlead.engine.workloads.pod_control.pod_set import PodSet
from fairlead.testing.builders import make_pod


def ready(status, since="2026-01-01T00:00:00Z"):
    """Return a status with the condition Ready."""
    stamp = {"type": "Ready", "status": status, "lastTransitionTime": since}
    return make_pod("x", status={"phase": "Running", "conditions": [stamp]}).status


VERSIONS = {
    "not ready any more": {"status": ready("False")},
    "ready since another time": {"status": ready("True", "2026-01-02T00:00:00Z")},
    "finished": {"status": make_pod("x", status={"phase": "Failed"}).status},
    "another spec": {"spec": make_pod("x", requests={"cpu": "9"}).spec},
    "another uid": {"metadata": make_pod("x", uid="other").metadata},
    "being deleted": {"metadata": make_pod("x", terminating=True).metadata},
}


@pytest.mark.parametrize("is_deleted_by_owner", [False, True], ids=["kept", "deletion expected"])
@pytest.mark.parametrize("fields", VERSIONS.values(), ids=VERSIONS)
def test_a_refreshed_set_equals_a_set_with_the_new_version(fields, is_deleted_by_owner):
    """A version that cannot be refreshed leaves the set as it is."""
    first = replace(make_pod("x"), status=ready("True"))
    sets = [
        PodSet(key="k", namespace="default", owner=OwnerReference("v1", "K", "o")) for _ in "ab"
    ]
    for pods in sets:
        pods.put(first, "")
        if is_deleted_by_owner:
            pods.expect_deletion(first)
    refreshed, put = sets
    version = replace(first, **fields)
    if refreshed.refresh(version):
        assert fields.keys() == {"status"}
        put.put(version, "")
    assert refreshed == put
