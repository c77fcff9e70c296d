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


@pytest.mark.parametrize("passed", [LATE, 10 * LATE])
def test_a_later_write_is_observed_late_too(passed):
    """It is delayed even if nothing was admitted since the previous write became visible."""
    scene = Scene()
    scene.now += passed
    scene.storage.put(RESOURCE_QUOTA, {**COUNTED, "status": {**SPEC, "used": {"pods": "1"}}})
    assert scene.let_in("a")
    scene.now += LATE
    with pytest.raises(ApiError, match="exceeded quota: q"):
        scene.let_in("b")


def test_a_write_that_is_not_observed_yet_is_not_lost():
    """The plugin charges the quota that it sees, but writes only the status."""
    scene = Scene()
    scene.now += LATE
    spec = {"hard": {"pods": "5"}}
    scene.storage.put(RESOURCE_QUOTA, {**COUNTED, "spec": spec})
    assert scene.let_in("a")
    assert (scene.storage.find(RESOURCE_QUOTA, "default", "q")["spec"], scene.used) == (spec, "1")


def test_usage_charged_by_the_server_is_known_immediately():
    scene = Scene()
    scene.now += LATE
    assert scene.let_in("a")
    with pytest.raises(ApiError, match="exceeded quota: q"):
        scene.let_in("b")
