"""Quota usage that a recorded server knew when quotas had just been updated."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD, RESOURCE_QUOTA
from fairlead.apiserver.storage.storage import Storage
from fairlead.conformance.api.server.delayed_quotas import DelayedQuotas

LATE = 3
SPEC = {"hard": {"pods": "1"}}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q", "namespace": "default"},
    "spec": SPEC,
    "status": {},
}
COUNTED = {**QUOTA, "status": {**SPEC, "used": {"pods": "0"}}}


class Scene:
    """A quota that was created long ago, and whose usage was just updated."""

    def __init__(self):
        self.now = 100
        self.storage = Storage()
        self.plugin = DelayedQuotas(lambda: self.now, LATE)
        self.storage.subscribe(self.plugin.note)
        self.storage.put(RESOURCE_QUOTA, QUOTA)
        self.storage.put(RESOURCE_QUOTA, COUNTED)

    def let_in(self, name):
        """Return whether a pod is admitted. Raises ApiError if it is refused."""
        pod = {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": []}}
        return (
            self.plugin.admit(AdmissionAttributes(Operation.CREATE, POD, pod), self.storage) is pod
        )

    @property
    def used(self):
        return self.storage.find(RESOURCE_QUOTA, "default", "q")["status"]["used"]["pods"]


@pytest.mark.parametrize(("passed", "used"), [(0, "0"), (LATE - 1, "0"), (LATE, "1")])
def test_writes_of_other_clients_are_observed_late(passed, used):
    scene = Scene()
    scene.now += passed
    assert scene.let_in("a")
    assert scene.used == used


def test_usage_charged_by_the_server_is_known_immediately():
    scene = Scene()
    scene.now += LATE
    assert scene.let_in("a")
    with pytest.raises(ApiError, match="exceeded quota: q"):
        scene.let_in("b")
