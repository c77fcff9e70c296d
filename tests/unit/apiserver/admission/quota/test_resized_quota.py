"""ResourceQuota: the usage of a pod whose containers are being resized."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.quota.resource_quota import ResourceQuota
from fairlead.apiserver.admission.quota.usage import effective_spec
from fairlead.apiserver.kind import RESOURCE_QUOTA


@pytest.fixture
def found(gate, obj):
    """Makes gates with a quota of 1 CPU, of which 600m are used."""

    def made(**spec):
        hard = {"requests.cpu": "1", "limits.cpu": "2"}
        status = {"hard": hard, "used": {"requests.cpu": "600m", "limits.cpu": "600m"}}
        return gate(ResourceQuota()).has(
            obj("ResourceQuota", "q", spec={"hard": hard, **spec}, status=status)
        )

    return made


def resized(found, pod, before, after, *, has=None, allocated=None, conditions=()):
    """Return the used CPU of the quota after a pod was resized from `before` to `after`.

    `has` and `allocated` are the actual and the allocated amount in the container's status.
    """
    status = {"name": "c"}
    if has is not None:
        status |= {"resources": {"requests": {"cpu": has}, "limits": {"cpu": has}}}
    if allocated is not None:
        status |= {"allocatedResources": {"cpu": allocated}}
    said = {"containerStatuses": [status], "conditions": list(conditions)}
    old = {**pod({"cpu": before}, {"cpu": before}), "status": said}
    new = {**pod({"cpu": after}, {"cpu": after}), "status": said}
    found.admits(new, Operation.UPDATE, old=old, subresource="resize")
    return found.storage.find(RESOURCE_QUOTA, "n", "q")["status"]["used"]["requests.cpu"]


def test_an_increased_request_is_charged(found, pod):
    assert resized(found(), pod, "500m", "700m") == "800m"


def test_a_resize_above_the_quota_is_refused(found, pod):
    gate = found()
    old, new = pod({"cpu": "500m"}, {"cpu": "1"}), pod({"cpu": "1"}, {"cpu": "1"})
    assert gate.refusal(new, Operation.UPDATE, old=old, subresource="resize") == (
        'pods "x" is forbidden: exceeded quota: q, requested: requests.cpu=500m, '
        "used: requests.cpu=600m, limited: requests.cpu=1"
    )


def test_resources_that_the_container_still_has_are_not_charged_again(found, pod):
    """The kubelet has not applied an earlier resize to less, and the second resize reverts it."""
    assert resized(found(), pod, "100m", "500m", has="500m", allocated="500m") == "600m"


def test_allocated_resources_are_charged(found, pod):
    assert resized(found(), pod, "100m", "450m", has="100m", allocated="400m") == "650m"


def test_an_infeasible_resize_is_not_charged(found, pod):
    """An infeasible resize is charged neither before nor after the change."""
    never = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    has = {"has": "500m", "allocated": "500m"}
    assert resized(found(), pod, "800m", "900m", **has, conditions=[never]) == "600m"


def test_an_object_that_enters_the_scope_of_a_quota_is_charged_completely(gate, obj):
    """A claim gets a VolumeAttributesClass that the quota selects."""
    terms = [{"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}]
    hard = {"requests.storage": "10Gi"}
    quota = obj(
        "ResourceQuota",
        "q",
        spec={"hard": hard, "scopeSelector": {"matchExpressions": terms}},
        status={"hard": hard, "used": {"requests.storage": "0"}},
    )
    found = gate(ResourceQuota()).has(quota)

    def claim(name):
        requested = {"requests": {"storage": "4Gi"}}
        spec = {"resources": requested, "volumeAttributesClassName": name}
        return obj("PersistentVolumeClaim", spec=spec)

    found.admits(claim("gold"), Operation.UPDATE, old=claim("silver"))
    used = found.storage.find(RESOURCE_QUOTA, "n", "q")["status"]["used"]
    assert used == {"requests.storage": "4Gi"}


def test_a_container_of_a_dump_may_have_no_name():
    row = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    pod = {"spec": {"containers": [{}]}, "status": {"containerStatuses": [row]}}
    assert effective_spec(pod) == {"containers": [{}]}
